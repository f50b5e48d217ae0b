"""The stages of a build: each reads files of the one before and writes its own, in the pack's work folder.

    source -> passages -> {vectors, lexical, graph, resources} -> calibrate -> release

Each is an ordinary function of paths. `tasks` says which depends on what, so that doit runs only what changed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from octavo_artifact import __version__, placing
from octavo_artifact.dates import parse_date
from octavo_artifact.errors import ArtifactError, PackError
from octavo_artifact.ids import canonical_json, fragment_id, sha256_file, sha256_hex
from octavo_artifact.layout import (
    DOCUMENTS,
    EDGES,
    ENCODER_TOKENIZER,
    LEXICAL,
    NODES,
    PASSAGES,
    REPORT,
    RESOURCES,
    SECTIONS,
    TABLES,
    VECTORS,
)
from octavo_artifact.manifest import (
    Column,
    FileEntry,
    Manifest,
    fingerprint,
    read_encoder,
    read_gate,
    read_index,
    read_pointer,
)
from octavo_artifact.schema import AUDIENCES, Document, Edge, EncoderSpec, Node, Passage, Resource, Section
from octavo_artifact.text import ANALYZER, FIELD, LITERALS, estimate_tokens, lexical_text
from octavo_build import release
from octavo_build.bodies.body import decode
from octavo_build.calibrate import Searched
from octavo_build.calibrate import calibrate as calibrate_gate
from octavo_build.content_cache import ContentCache
from octavo_build.cuts import Cut, cut_documents
from octavo_build.encode import encode_windows, runtime_of
from octavo_build.encoders import DEFAULT_ENCODER, LANGUAGES
from octavo_build.findings import Finding, count_by_severity
from octavo_build.graph import build_graph
from octavo_build.lexical import LexicalRow, write_lexical
from octavo_build.pack import Pack
from octavo_build.passages import PassageLimits
from octavo_build.progress import Progress
from octavo_build.resources import list_resources
from octavo_build.sources import Options
from octavo_build.sources import read as read_source
from octavo_build.sources.audience import released
from octavo_build.tables import TableWriter, iterate_table, logical_hash, read_table, write_table
from octavo_build.vectors import INDEXED_FROM, QUESTIONS, read_vectors, write_vectors
from octavo_build.windows import limits_for, load_tokenizer
from octavo_build.workers import Workers

# Libraries whose version may change an artifact's bytes.
LIBRARIES = (
    "markdown-it-py", "numpy", "onnxruntime", "pathspec", "pyarrow", "pylance", "pyyaml", "regex", "tantivy",
    "tokenizers",
)  # fmt: skip

_TEXTS = pa.schema({"shown": pa.string(), "visible": pa.string()})
_WINDOWS = pa.schema({"passage": pa.int32(), "window": pa.int32(), "text": pa.string()})

_ROWS = 1_000
"""Passages whose texts are held at once."""

_BULK = frozenset({"documents", "findings", "extras", "fronts", "sidecars"})
"""Fields of a pack that are kept apart from what it says of itself."""


@dataclass(frozen=True, slots=True)
class Work:
    """Files between the stages of one pack; those under `parts` go into the artifact as they are."""

    root: Path

    @property
    def parts(self) -> Path:
        """The artifact's files before the manifest."""
        return self.root / "parts"

    @property
    def pack(self) -> Path:
        """The pack's identity and the findings of its adapter."""
        return self.root / "pack.json"

    @property
    def extras(self) -> Path:
        """Path to text of the files that the graph is made of besides the documents."""
        return self.root / "extras.json"

    @property
    def texts(self) -> Path:
        """A row a passage: the text to show and the text to index."""
        return self.root / "texts.parquet"

    @property
    def windows(self) -> Path:
        """A row a window: passage row, ordinal, text."""
        return self.root / "windows.parquet"

    @property
    def columns(self) -> Path:
        """Where the vectors lie in their files and how they are searched; written after them."""
        return self.root / "vectors.json"

    @property
    def lexical(self) -> Path:
        """sha256 of each file of the lexical index; written after them."""
        return self.root / "lexical.json"

    @property
    def gate(self) -> Path:
        """The relevance gate, as the manifest has it."""
        return self.root / "gate.json"

    @property
    def passage_findings(self) -> Path:
        """Findings of the passages stage."""
        return self.root / "passages.json"

    @property
    def graph_findings(self) -> Path:
        """Findings of the graph stage."""
        return self.root / "graph.json"

    @property
    def resource_findings(self) -> Path:
        """Findings of the resources stage."""
        return self.root / "resources.json"

    @property
    def released(self) -> Path:
        """What was released: digest and counts."""
        return self.root / "released.json"


def source(root: Path, work: Work, options: Options) -> None:
    """Read the pack into the documents table."""
    pack = released(read_source(root, options), options.get("audience", AUDIENCES[0]))
    work.parts.mkdir(parents=True, exist_ok=True)
    write_table(work.parts / DOCUMENTS.file, Document, pack.documents)
    identity = {name: value for name, value in _pack_fields(pack).items() if name not in _BULK}
    _write_json(work.pack, {**identity, "findings": [asdict(finding) for finding in pack.findings]})
    _write_json(work.extras, {path: decode(raw) for path, raw in pack.extras.items()})


def passages(
    work: Work, encoder: Path, cache: ContentCache, compiler: str, spec: EncoderSpec = DEFAULT_ENCODER
) -> None:
    """Cut the documents into passages, windows and outlines; `spec` is that of the encoder in the folder `encoder`."""
    documents = iterate_table(work.parts / DOCUMENTS.file, Document)
    tokenizer = load_tokenizer(encoder / ENCODER_TOKENIZER)
    findings: list[Finding] = []
    with (
        TableWriter(work.parts / PASSAGES.file, Passage) as passages_,
        TableWriter(work.parts / SECTIONS.file, Section) as sections,
        pq.ParquetWriter(work.texts, _TEXTS, compression="zstd") as texts,
        pq.ParquetWriter(work.windows, _WINDOWS, compression="zstd") as windows,
    ):
        row = 0
        limits = limits_for(spec, tokenizer)
        for cut in cut_documents(documents, tokenizer, cache, f"{compiler} {encoder.name}", limits):
            texts.write_batch(_batch(_TEXTS, ((each.text, each.visible) for each in cut.passages)))
            windows.write_batch(_batch(_WINDOWS, _window_rows(row, cut)))
            for each in cut.passages:
                passages_.add(each.passage)
            for each in cut.sections:
                sections.add(each)
            findings.extend(cut.findings)
            row += len(cut.passages)
    _write_json(work.passage_findings, [asdict(finding) for finding in sorted(findings)])


def _window_rows(first: int, cut: Cut) -> Iterator[tuple[int, int, str]]:
    for row, windows in enumerate(cut.windows, first):
        yield from ((row, ordinal, text) for ordinal, text in enumerate(windows))


def vectors(  # noqa: PLR0917  # what it reads, where it looks for known vectors, who works
    work: Work,
    dist: Path,
    encoder: Path,
    cache: ContentCache,
    workers: Workers,
    progress: Progress,
    indexed_from: int = INDEXED_FROM,
) -> None:
    """Encode the windows that no cache and no earlier release has, and write the vector table; from `indexed_from`
    windows on with an index.
    """
    table = pq.read_table(work.windows)
    texts: list[str] = table.column("text").to_pylist()
    slug = json.loads(work.pack.read_bytes())["slug"]
    seed = _earlier_vectors(dist / slug, encoder.name)
    encoded = encode_windows(texts, encoder, workers, cache, seed, progress.encoding(slug, len(texts)))
    questions = None
    if len(texts) >= indexed_from:
        questions = encode_windows(_headings(texts), encoder, workers, cache, {}, lambda _: None)
    target = work.parts / VECTORS
    shutil.rmtree(target, ignore_errors=True)
    written = write_vectors(
        target,
        table.column("passage").to_numpy(),
        table.column("window").to_numpy(),
        [bytes.fromhex(sha256_hex(text.encode())) for text in texts],
        encoded,
        questions,
    )
    if written.index:
        progress.indexed(slug, written.index)
    _write_json(work.columns, {**asdict(written), "files": _hashes(target)})


def _headings(texts: Sequence[str]) -> list[str]:
    """Questions for the index: the headings above evenly spaced windows, each once."""
    lines = (text.partition("\n")[0] for text in texts[:: max(1, len(texts) // QUESTIONS)])
    return list(dict.fromkeys(line.rpartition(" > ")[2] for line in lines))


def lexical(work: Work) -> None:
    """Write the word index, whose stored fields are all that a search shows."""
    documents = _described(work)
    rows = iterate_table(work.parts / PASSAGES.file, Passage)
    target = work.parts / LEXICAL
    shutil.rmtree(target, ignore_errors=True)
    write_lexical(
        target,
        (
            _lexical_row(documents[passage.document], passage, text, body)
            for passage, (text, body) in zip(rows, _texts(work), strict=True)
        ),
    )
    _write_json(work.lexical, {"files": _hashes(target)})


def _described(work: Work) -> list[Document]:
    """The documents without their bytes."""
    return [replace(each, raw=b"") for each in iterate_table(work.parts / DOCUMENTS.file, Document)]


def _texts(work: Work) -> Iterator[tuple[str, str]]:
    """What is shown and what is visible of each passage."""
    with pq.ParquetFile(work.texts) as file:
        for batch in file.iter_batches(_ROWS):
            yield from zip(*(batch.column(name).to_pylist() for name in _TEXTS.names), strict=True)


def calibrate(work: Work, encoder: Path, cache: ContentCache, workers: Workers) -> None:
    """Measure what tells an answer from none in this pack."""
    documents = _described(work)
    rows = iterate_table(work.parts / PASSAGES.file, Passage)
    searched = [
        Searched(
            passage.document,
            passage.heading_path[-1] if passage.heading_path else documents[passage.document].title,
            text,
            _indexed(documents[passage.document], passage, text),
            passage.language,
        )
        for passage, (_, text) in zip(rows, _texts(work), strict=True)
    ]

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        return encode_windows(texts, encoder, workers, cache, {}, lambda _: None, as_queries=True)

    windows = pq.read_table(work.windows).column("passage").to_pylist()
    _, known = read_vectors(work.parts / VECTORS)
    gate = calibrate_gate(searched, windows, known, encode)
    _write_json(work.gate, None if gate is None else asdict(gate))


def is_intact(folder: Path, written: Path) -> bool:
    """Whether the files of `folder` are those that its stage noted in `written`: nothing checks a work folder's files
    once they are sealed into a release.
    """
    try:
        return json.loads(written.read_bytes())["files"] == _hashes(folder)
    except (OSError, ValueError):
        return False


def graph(work: Work) -> None:
    """Write nodes and edges."""
    extras: dict[str, str] = json.loads(work.extras.read_bytes())
    documents = read_table(work.parts / DOCUMENTS.file, Document)
    built = build_graph(documents, {path: text.encode() for path, text in extras.items()}, _source_format(work))
    write_table(work.parts / NODES.file, Node, built.nodes)
    write_table(work.parts / EDGES.file, Edge, built.edges)
    _write_json(work.graph_findings, [asdict(finding) for finding in built.findings])


def resources(work: Work) -> None:
    """Write what MCP lists."""
    documents = tuple(read_table(work.parts / DOCUMENTS.file, Document))
    rows, findings = list_resources(replace(_read_pack(work), documents=documents))
    write_table(work.parts / RESOURCES.file, Resource, rows)
    _write_json(work.resource_findings, [asdict(finding) for finding in findings])


def publish(work: Work, dist: Path, encoder: Path, progress: Progress, *, strict: bool, point: bool) -> None:
    """Seal the release, verify it and, if `point`, make it current.

    Raises PackError when `strict` and a finding is an error or a warning: nothing is released then.
    """
    pack = _read_pack(work)
    findings = sorted(
        Finding(**finding)
        for file in (work.passage_findings, work.graph_findings, work.resource_findings)
        for finding in json.loads(file.read_bytes())
    )
    findings = sorted([*pack.findings, *findings])
    counts = count_by_severity(findings)
    _write_json(work.parts / REPORT, {"counts": counts, "findings": [finding.as_json() for finding in findings]})
    progress.findings(pack.slug, findings)
    if strict and (refused := counts["error"] + counts["warning"]):
        first = next(finding for finding in findings if finding.severity in ("error", "warning"))
        raise PackError(
            f"{pack.slug}: not released: --strict, and {refused} findings are errors or warnings; the first is "
            f"{first.path}:{first.line}: {first.code}: {first.message}"
        )
    manifest = _manifest(work, pack, encoder)
    with placing.exclusive(dist / pack.slug):
        artifact = release.seal(work.parts, manifest, dist / pack.slug)
        placing.verify(artifact)
        if point:
            placing.point(artifact)
    _write_json(work.released, {"digest": artifact.name, "counts": {**manifest.counts, **counts}})


def library_versions() -> dict[str, str]:
    """The versions that an artifact records."""
    return {"octavo": __version__, **{name: version(name) for name in LIBRARIES}}


def _manifest(work: Work, pack: Pack, encoder: Path) -> Manifest:
    spec = read_encoder(encoder, encoder.name)
    tables = {table.file: logical_hash(work.parts / table.file, table) for table in TABLES}
    vectors = json.loads(work.columns.read_bytes())
    return Manifest(
        digest="",
        pack={name: value for name, value in _pack_fields(pack).items() if name not in {*_BULK, "retrieval"}},
        encoder=spec,
        parameters={
            "encoder": {"languages": LANGUAGES.get(encoder.name, ())},
            "lexical": {"analyzer": ANALYZER, "field": FIELD, "literals": LITERALS, "languages": _languages(work)},
            "passages": asdict(PassageLimits()),
            "windows": asdict(limits_for(spec, load_tokenizer(encoder / ENCODER_TOKENIZER))),
            "retrieval": pack.retrieval,
        },
        libraries=library_versions(),
        counts={
            **{
                table.file.removesuffix(".parquet"): pq.read_metadata(work.parts / table.file).num_rows
                for table in TABLES
            },
            "windows": pq.read_metadata(work.windows).num_rows,
            # so that a server need not open the edges to learn that there is nothing to follow
            "requires": pq.read_table(work.parts / EDGES.file, columns=["kind"])["kind"].to_pylist().count("requires"),
            "skills": len(pq.read_table(work.parts / RESOURCES.file, columns=["frontmatter"])[0].drop_null()),
        },
        columns={name: Column(**column) for name, column in vectors["columns"].items()},
        index=read_index(vectors["index"]),
        tables=tables,
        files={
            path: FileEntry(sha256, (work.parts / path).stat().st_size)
            for path, sha256 in _hashes(work.parts, only=_part_names()).items()
        },
        gate=read_gate(json.loads(work.gate.read_bytes())),
    )


def _part_names() -> frozenset[str]:
    return frozenset({*(table.file for table in TABLES), VECTORS, LEXICAL, REPORT})


def _lexical_row(document: Document, passage: Passage, text: str, visible: str) -> LexicalRow:
    hit = {
        "text": text,
        "added_text": passage.prefix,
        "source_file": document.path,
        "id": document.id,
        "uri": document.uri,
        "fragment_id": fragment_id(document.id, passage.section, passage.span_sha256),
        "title": document.title,
        "heading_path": list(passage.heading_path),
        "type": document.type,
        "tags": list(document.tags),
        "line_range": [passage.start_line, passage.end_line],
        "byte_range": [passage.start_byte, passage.end_byte],
        "span_sha256": passage.span_sha256,
        "content_hash": f"sha256:{document.body_sha256}",
        "verified_at": document.verified_at,
        "verified_by": document.verified_by,
        "confidence": document.confidence,
        "refresh": document.refresh,
        "expires_at": min(filter(None, (document.expires_at, passage.expires_at)), default=None),
    }
    return LexicalRow(
        text=_indexed(document, passage, visible),
        language=passage.language,
        type=document.type,
        tags=document.tags,
        path=document.path,
        tier=document.tier,
        verified_on=parse_date(document.verified_at) if document.verified_at else None,
        document=passage.document,
        tokens=estimate_tokens(visible),
        hit=canonical_json(hit).decode(),
    )


def _indexed(document: Document, passage: Passage, visible: str) -> str:
    return lexical_text(document.title, passage.heading_path, document.tags, visible)


def _earlier_vectors(pack: Path, encoder: str) -> dict[bytes, NDArray[np.float32]]:
    """Vectors of the pack's current release by sha256 of their window's text, if the same encoder made them."""
    try:
        artifact = pack / read_pointer(pack)
        manifest = placing.verify(artifact)
        runtime = "" if manifest.encoder.model else f"onnxruntime {manifest.libraries.get('onnxruntime')}"
        if (fingerprint(manifest.encoder), runtime) != (encoder, runtime_of(manifest.encoder)):
            return {}
        hashes, encoded = read_vectors(artifact / VECTORS)
    except ArtifactError:
        return {}  # nothing to reuse is no error: the windows are encoded again
    return dict(zip(hashes, encoded, strict=True))


def _languages(work: Work) -> list[str]:
    """Of all passages, sorted: those by which a query has to be stemmed."""
    return sorted(set(pq.read_table(work.parts / PASSAGES.file, columns=["language"])["language"].to_pylist()))


def _source_format(work: Work) -> str:
    return json.loads(work.pack.read_bytes())["source_format"]


def _pack_fields(pack: Pack) -> dict[str, Any]:
    return {name: getattr(pack, name) for name in Pack.__dataclass_fields__}


def _read_pack(work: Work) -> Pack:
    """The pack without its documents."""
    fields = json.loads(work.pack.read_bytes())
    findings = tuple(Finding(**finding) for finding in fields.pop("findings"))
    return Pack(**fields, documents=(), findings=findings)


def _hashes(root: Path, only: frozenset[str] | None = None) -> dict[str, str]:
    """sha256 of every file under `root`, by path; with `only`, of those whose first part is named there."""
    files = (path for path in sorted(root.rglob("*")) if path.is_file())
    relative = ((path.relative_to(root), path) for path in files)
    return {name.as_posix(): sha256_file(path) for name, path in relative if only is None or name.parts[0] in only}


def _batch(schema: pa.Schema, rows: Iterable[tuple[object, ...]]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.record_batch([pa.array(c, field.type) for c, field in zip(columns, schema, strict=True)], schema=schema)


def _write_json(path: Path, value: Any) -> None:
    path.write_bytes(canonical_json(value))
