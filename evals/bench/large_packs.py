"""What a search costs at 1,000, 10,000 and 100,000 passages: CPU of the words and of the vectors, memory, start-up,
and the share of the ten nearest passages that it finds; ours, and of engines that people would use instead.

Texts are windows of the reference corpora. REAL of them, evenly spaced, are encoded; the other vectors are these
again with noise from a fixed seed. Questions are headings of the corpora. Each engine searches in a process of its
own. The first run takes some ten minutes, for it cuts the corpora and encodes; `--sizes 1000,10000` and
`--engines octavo,lancedb` choose.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from _server import BENCH, SHARED
from corpora import CORPORA
from numpy.typing import NDArray

FOLDER = BENCH / "large"
SIZES = (1_000, 10_000, 100_000)
REAL = 3_000
ASKED = 200
CANDIDATES = 100
"""Passages that an engine gives for a question, by words and by vector."""
NOISE = 0.7
"""Length of the noise beside a unit vector: cosines of .82 between a vector and its copy."""
DOCUMENT = 8
"""Passages of a document."""

Rows = Sequence[int]
Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Collection:
    """Passages to search, and what is asked of them."""

    texts: list[str]
    vectors: Vectors
    """float32 [texts, dim], rows unit length."""
    tuning: Vectors
    """Vectors of other questions, by which an index may be tuned."""
    questions: list[str]
    question_vectors: Vectors


@dataclass(frozen=True, slots=True)
class Engine:
    """One way to search. Builders get an empty folder; an opener gives the two legs of a search."""

    build: Callable[[Path, Collection], None]
    open: Callable[[Path], tuple[Words, Meaning]]
    modules: tuple[str, ...]
    """That must be installed, and are imported before memory and start-up are measured."""


Words = Callable[[str], Rows]
Meaning = Callable[[Vectors], Rows]


def main() -> int:
    arguments = _arguments()
    if arguments.child:
        print(json.dumps(measured(*arguments.child)))
        return 0
    if not (SHARED / "corpora").is_dir():
        print("the reference corpora (../shared/corpora) are not on this machine")
        return 0
    for size in arguments.sizes:
        found = collection(size)
        real_, made = min(size, REAL), max(0, size - REAL)
        print(f"{size:,} passages: {real_:,} real vectors, {made:,} of them again with noise; {ASKED} questions")
        for name in arguments.engines:
            if missing := [each for each in ENGINES[name].modules if importlib.util.find_spec(each) is None]:
                print(f"  {name:<10} needs {', '.join(missing)}: pip install -e '.[bench]'")
                continue
            report(name, size, *built(name, found))
    return 0


def report(name: str, size: int, build: float, megabytes: float, found: dict[str, Any]) -> None:
    """Print a line an engine, and one of what only ours can do."""
    print(
        f"  {name:<10} CPU ms: words {found['words']:7.2f}, vectors {found['meaning']:7.2f}; "
        f"recall@10 {found['recall']:.3f}, @{CANDIDATES} {found['deep']:.3f}; open {found['open']:6.0f} ms; "
        f"memory a passage: {found['anon'] / size:6.0f} B own, {found['file'] / size:6.0f} B mapped; "
        f"disk {megabytes:.0f} MB; build {build:.1f} s CPU",
        flush=True,
    )
    if found["more"]:
        print(f"  {'':<10} " + "; ".join(f"{label} {value}" for label, value in found["more"].items()), flush=True)


def built(name: str, found: Collection) -> tuple[float, float, dict[str, Any]]:
    """CPU seconds of building an engine's files, their megabytes, and what a fresh process measured on them."""
    folder = FOLDER / "engines" / f"{name}-{len(found.texts)}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    nearest = [_nearest(np.vecdot(found.vectors, question), CANDIDATES) for question in found.question_vectors]
    np.savez(folder / ASKED_FILE, texts=found.questions, vectors=found.question_vectors, nearest=nearest)
    start = time.process_time()
    ENGINES[name].build(folder, found)
    seconds = time.process_time() - start
    megabytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
    command = [sys.executable, __file__, "--child", name, folder]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return seconds, megabytes, json.loads(done.stdout)


def measured(name: str, folder: str) -> dict[str, Any]:
    """What an engine costs in this process, which has done nothing else."""
    asked = np.load(Path(folder) / ASKED_FILE)
    texts, vectors, nearest = asked["texts"].tolist(), asked["vectors"], asked["nearest"]
    for module in ENGINES[name].modules:
        importlib.import_module(module)
    before = _memory()
    start = time.process_time()
    words, meaning = ENGINES[name].open(Path(folder))
    opened = time.process_time() - start
    for text, vector in zip(texts[:20], vectors[:20], strict=True):
        words(text)
        meaning(vector)
    found, meaning_ms = _each(meaning, vectors)
    _, words_ms = _each(words, texts)
    after = _memory()
    recall = [np.isin(truth[:10], rows[:10]).mean() for truth, rows in zip(nearest, found, strict=True)]
    deep = [np.isin(truth, rows).mean() for truth, rows in zip(nearest, found, strict=True)]
    return {
        "open": opened * 1000,
        "words": words_ms,
        "meaning": meaning_ms,
        "recall": float(np.mean(recall)),
        "deep": float(np.mean(deep)),
        "anon": after[0] - before[0],
        "file": after[1] - before[1],
        "more": _octavo_more(Path(folder), texts, vectors) if name == "octavo" else {},
    }


def _each(search: Callable[[Any], Rows], asked: Sequence[Any] | NDArray[Any]) -> tuple[list[Rows], float]:
    """What each question finds, and the CPU milliseconds of one, threads included."""
    start = time.process_time()
    found = [search(question) for question in asked]
    return found, (time.process_time() - start) * 1000 / len(found)


# What is searched


def collection(size: int) -> Collection:
    """`size` passages; those of a smaller one come first in a larger one."""
    texts, vectors = real()
    headings = list(dict.fromkeys(text.partition("\n")[0].rpartition(" > ")[2] for text in texts))
    chosen = [headings[each] for each in np.arange(2 * ASKED) * len(headings) // (2 * ASKED)]
    asked = encoded(chosen)
    generator = np.random.default_rng(0)
    made = vectors[generator.integers(len(vectors), size=max(0, size - REAL))]
    noise = generator.standard_normal(made.shape, np.float32) * np.float32(NOISE / np.sqrt(made.shape[1]))
    made = (made + noise) / np.linalg.norm(made + noise, axis=1, keepdims=True)
    return Collection(
        texts=[texts[row % len(texts)] for row in range(size)],
        vectors=np.concatenate([vectors, made])[:size],
        tuning=asked[::2],
        questions=chosen[1::2],
        question_vectors=asked[1::2],
    )


def real() -> tuple[list[str], Vectors]:
    """All windows of the corpora, those that are encoded first; and their vectors."""
    texts = [text for name in CORPORA for text in windows(name)]
    spaced = (np.arange(REAL) * len(texts) // REAL).tolist()
    first = set(spaced)
    ordered = [texts[row] for row in spaced] + [text for row, text in enumerate(texts) if row not in first]
    return ordered, encoded(ordered[:REAL])


def windows(corpus: str) -> list[str]:
    """The windows of a corpus, cut as a build does."""
    from octavo_build import stages
    from octavo_build.content_cache import ContentCache

    work = stages.Work(FOLDER / "cuts" / corpus)
    if not work.windows.is_file():
        work.root.mkdir(parents=True, exist_ok=True)
        stages.source(SHARED / "corpora" / corpus, work, {"format": "docs"})
        stages.passages(work, encoder(), ContentCache(FOLDER / "cuts.sqlite"), "bench")
    return pq.read_table(work.windows).column("text").to_pylist()


def encoded(texts: Sequence[str]) -> Vectors:
    """The vectors of texts, kept for the next run."""
    from octavo_build.content_cache import ContentCache
    from octavo_build.encode import encode_windows
    from octavo_build.workers import Workers

    with Workers(None) as workers:
        return encode_windows(texts, encoder(), workers, ContentCache(FOLDER / "vectors.sqlite"), {}, lambda _: None)


def encoder() -> Path:
    """The default encoder, installed."""
    from octavo_build.encoders import install_encoder, wanted_encoder

    install_encoder(FOLDER)
    return FOLDER / "encoders" / wanted_encoder()


# Ours: the compiler's own writers, the server's own readers


def build_octavo(folder: Path, found: Collection) -> None:
    from octavo_artifact.ids import canonical_json
    from octavo_artifact.manifest import Manifest, manifest_bytes
    from octavo_artifact.schema import EncoderSpec
    from octavo_build.lexical import LexicalRow, write_lexical
    from octavo_build.vectors import INDEXED_FROM, write_vectors

    count = len(found.texts)
    written = write_vectors(
        folder / "vectors.lance",
        np.arange(count, dtype=np.int32),
        np.zeros(count, np.int32),
        [hashlib.sha256(text.encode()).digest() for text in found.texts],
        found.vectors,
        found.tuning if count >= INDEXED_FROM else None,
    )
    hits = (canonical_json(_hit(row, text)).decode() for row, text in enumerate(found.texts))
    rows = zip(found.texts, hits, strict=True)
    write_lexical(
        folder / "lexical",
        (
            LexicalRow(text, None, (), f"{row // DOCUMENT}", row // DOCUMENT, hit)
            for row, (text, hit) in enumerate(rows)
        ),
    )
    encoder_ = EncoderSpec("bench", "", "", found.vectors.shape[1], 256, "mean", True)
    manifest = Manifest("", {"slug": "bench"}, encoder_, {}, {}, {}, written.columns, {}, {}, index=written.index)
    (folder / "manifest.json").write_bytes(manifest_bytes(manifest))


def _hit(row: int, text: str) -> dict[str, Any]:
    """What a release stores of a passage."""
    heading, _, body = text.partition("\n")
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {
        "text": body,
        "added_text": "",
        "source_file": f"{row // DOCUMENT}.md",
        "id": f"bench/{row // DOCUMENT}",
        "uri": f"ep://bench/file/{row // DOCUMENT}.md",
        "fragment_id": f"bench/{row // DOCUMENT}#{row % DOCUMENT}:{digest[:12]}",
        "title": heading.partition(" > ")[0],
        "heading_path": heading.split(" > "),
        "type": None,
        "tags": [],
        "line_range": [1, 9],
        "byte_range": [0, len(body.encode())],
        "span_sha256": digest,
        "content_hash": f"sha256:{digest}",
        "verified_at": "2026-01-01",
        "verified_by": None,
        "confidence": None,
        "refresh": None,
        "expires_at": None,
    }


def _whole_search(folder: Path, texts: Sequence[str], vectors: Vectors) -> Callable[[str], Any]:
    """All stages of a search, the gate included, with vectors that are at hand in place of the encoder."""
    from datetime import date
    from types import SimpleNamespace

    from octavo_artifact.gate import Gate
    from octavo_build.calibrate import DOUBT_BELOW, REFUSE_BELOW, WEIGHTS
    from octavo_serve.collection import Collection as Packs
    from octavo_serve.collection import Index
    from octavo_serve.requests import SearchRequest
    from octavo_serve.search import search

    lexical, index, _ = _octavo(folder)
    known = dict(zip(texts, vectors, strict=True))
    stand_in: Any = SimpleNamespace(encode=known.__getitem__, failure=None)
    unjoined: Any = SimpleNamespace(joins=False, requires=False)
    gate = Gate(0.3, 0.6, REFUSE_BELOW, DOUBT_BELOW, WEIGHTS, {}, ())
    part = Index(
        slug="bench",
        digest="0" * 64,
        directory=folder / "lexical",
        lexical=lexical,
        vectors=index,
        encoder=stand_in,
        tables=unjoined,
        relations=unjoined,
        gate=gate,
        reads=("en",),
        documents=lexical.passages // DOCUMENT + 1,
    )
    packs, today = Packs([part]), date(2026, 1, 1)
    return lambda text: search(packs, SearchRequest(query=text, gate="flag"), today)


def open_octavo(folder: Path) -> tuple[Words, Meaning]:
    lexical, vectors, _ = _octavo(folder)

    def words(text: str) -> Rows:
        return lexical.search(lexical.terms(text), CANDIDATES, typo_cost=0.5).rows.tolist()

    def meaning(vector: Vectors) -> Rows:
        similarity = vectors.compare(vector)
        nearest = similarity.nearest(CANDIDATES).rows
        similarity.of_documents(nearest)
        return nearest.tolist()

    return words, meaning


def _octavo(folder: Path) -> tuple[Any, Any, Any]:
    from octavo_artifact.manifest import parse_manifest
    from octavo_serve.lexical import LexicalIndex
    from octavo_serve.vectors import VectorIndex

    manifest = parse_manifest((folder / "manifest.json").read_bytes())
    lexical = LexicalIndex([folder / "lexical"], "bench", ("en",))
    return lexical, VectorIndex(folder, manifest, lexical.documents), manifest


def _octavo_more(folder: Path, texts: Sequence[str], vectors: Vectors) -> dict[str, str]:
    """What the index would give with other numbers of probes, and searches with filters."""
    _, index, manifest = _octavo(folder)
    whole = _whole_search(folder, texts, vectors)
    for text in texts[:20]:
        whole(text)
    more = {"all stages of a search, ten hits:": f"{_each(whole, texts)[1]:.2f} ms"}
    if manifest.index:
        more["index"] = (
            f"{manifest.index.nprobes} of {manifest.index.partitions} partitions hold {manifest.index.recall}"
        )
        lexical, _, _ = _octavo(folder)
        every = np.ones(manifest.columns["passage"].extents[0][1], np.bool_)
        exact = [index.compare(vector, every).nearest(10).rows for vector in vectors]
        for probes in (8, 16, 32, 64):
            few = replace(manifest, index=replace(manifest.index, nprobes=probes))
            probing = type(index)(folder, few, lexical.documents)
            found, milliseconds = _each(partial(_ten, probing), vectors)
            recall = np.mean([np.isin(truth, rows).mean() for truth, rows in zip(exact, found, strict=True)])
            more[f"{probes} probed"] = f"{milliseconds:.2f} ms, recall@10 {recall:.3f}"
    passages = manifest.columns["passage"].extents[0][1]
    for share in (2, 100):
        allowed = np.arange(passages) % share == 0
        _, milliseconds = _each(partial(_filtered, index, allowed), vectors)
        more[f"filter to 1/{share}"] = f"{milliseconds:.2f} ms"
    return more


def _ten(index: Any, vector: Vectors) -> Rows:
    return index.compare(vector).nearest(10).rows


def _filtered(index: Any, allowed: NDArray[np.bool_], vector: Vectors) -> Rows:
    return index.compare(vector, allowed).nearest(CANDIDATES).rows


# Others


def build_lancedb(folder: Path, found: Collection) -> None:
    import lancedb
    from lancedb.index import FTS, IvfPq

    rows = [{"row": row, "text": text, "vector": found.vectors[row]} for row, text in enumerate(found.texts)]
    table = lancedb.connect(folder).create_table("passages", rows)
    table.create_index("text", config=FTS())
    if len(found.texts) >= 50_000:
        table.create_index("vector", config=IvfPq(distance_type="cosine"))


def open_lancedb(folder: Path) -> tuple[Words, Meaning]:
    import lancedb

    table = lancedb.connect(folder).open_table("passages")

    def words(text: str) -> Rows:
        found = table.search(text, query_type="fts").select(["row", "_score"]).limit(CANDIDATES)
        return found.to_arrow()["row"].to_pylist()

    def meaning(vector: Vectors) -> Rows:
        search: Any = table.search(vector)
        return (
            search.distance_type("cosine")
            .refine_factor(10)
            .select(["row", "_distance"])
            .limit(CANDIDATES)
            .to_arrow()["row"]
            .to_pylist()
        )

    return words, meaning


def build_sqlite(folder: Path, found: Collection) -> None:
    database = _sqlite(folder)
    database.execute("create virtual table words using fts5(text, tokenize='porter unicode61')")
    database.execute(f"create virtual table meaning using vec0(vector float[{found.vectors.shape[1]}])")
    with database:
        texts = ((row, text) for row, text in enumerate(found.texts))
        database.executemany("insert into words(rowid, text) values (?, ?)", texts)
        vectors = ((row, vector.tobytes()) for row, vector in enumerate(found.vectors))
        database.executemany("insert into meaning(rowid, vector) values (?, ?)", vectors)


def open_sqlite(folder: Path) -> tuple[Words, Meaning]:
    database = _sqlite(folder)

    def words(text: str) -> Rows:
        terms = " OR ".join(f'"{term}"' for term in _words_of(text))
        query = "select rowid from words where text match ? order by rank limit ?"
        return [row for (row,) in database.execute(query, (terms, CANDIDATES))] if terms else []

    def meaning(vector: Vectors) -> Rows:
        query = "select rowid from meaning where vector match ? and k = ? order by distance"
        return [row for (row,) in database.execute(query, (vector.tobytes(), CANDIDATES))]

    return words, meaning


def _sqlite(folder: Path) -> Any:
    import apsw
    import sqlite_vec

    database: Any = apsw.Connection(str(folder / "passages.sqlite"))
    database.enable_load_extension(True)
    database.load_extension(sqlite_vec.loadable_path())
    return database


def _words_of(text: str) -> Iterator[str]:
    return (word for word in ("".join(c if c.isalnum() else " " for c in text)).split())


def build_bm25s(folder: Path, found: Collection) -> None:
    import bm25s

    index = bm25s.BM25()
    index.index(bm25s.tokenize(found.texts, show_progress=False), show_progress=False)
    index.save(folder / "bm25s", show_progress=False)
    np.save(folder / "vectors.npy", found.vectors)


def open_bm25s(folder: Path) -> tuple[Words, Meaning]:
    """The words of bm25s beside numpy's product with all vectors, mapped."""
    import bm25s

    index = bm25s.BM25.load(folder / "bm25s", mmap=True, show_progress=False)
    vectors: Vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    count = min(CANDIDATES, len(vectors))

    def words(text: str) -> Rows:
        tokens = bm25s.tokenize(text, show_progress=False, return_ids=False)
        if not tokens[0]:
            return []
        rows, _ = index.retrieve(tokens, k=count, show_progress=False)
        return rows[0].tolist()

    def meaning(vector: Vectors) -> Rows:
        return _nearest(vectors @ vector, count).tolist()

    return words, meaning


ENGINES = {
    "octavo": Engine(build_octavo, open_octavo, ("octavo_serve.lexical", "octavo_serve.vectors")),
    "lancedb": Engine(build_lancedb, open_lancedb, ("lancedb",)),
    "sqlite": Engine(build_sqlite, open_sqlite, ("apsw", "sqlite_vec")),
    "bm25s": Engine(build_bm25s, open_bm25s, ("bm25s",)),
}
"""`octavo`: this server. `lancedb`: full-text and vector search of LanceDB, its defaults, refined 10 times; with an
index from 50,000. `sqlite`: FTS5 and sqlite-vec. `bm25s`: bm25s and a product in numpy."""
ASKED_FILE = "asked.npz"


def _nearest(scores: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """The rows of the greatest scores, best first."""
    rows = np.argpartition(-scores, min(count, len(scores) - 1))[:count]
    return rows[np.argsort(-scores[rows], kind="stable")]


def _memory() -> tuple[int, int]:
    """Bytes of this process that are its own, and of files that it maps."""
    status = Path("/proc/self/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    anon, file = (int(fields[name].split()[0]) * 1024 for name in ("RssAnon", "RssFile"))
    return anon, file


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")], default=SIZES)
    parser.add_argument("--engines", type=lambda text: text.split(","), default=list(ENGINES))
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
