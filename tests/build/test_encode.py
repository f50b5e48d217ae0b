from __future__ import annotations

import hashlib
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from octavo_artifact.layout import ENCODERS
from octavo_build import encode
from octavo_build.content_cache import ContentCache
from octavo_build.encode import Vectors, encode_windows
from octavo_build.encoders import install_encoder
from octavo_build.workers import Workers

TEXTS = [f"Section {number}\n" + "A wallet keeps the keys of an account. " * (number % 3 + 1) for number in range(30)]


@pytest.fixture(scope="module")
def encoder_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    dist = tmp_path_factory.mktemp("dist")
    return dist / ENCODERS / install_encoder(dist)


def encoded(texts: Sequence[str], encoder_dir: Path, cache: Path, processes: int = 1) -> Vectors:
    with Workers(processes) as workers:
        return encode_windows(texts, encoder_dir, workers, ContentCache(cache), seed={}, progress=lambda _: None)


def refuse(*_: object) -> Vectors:
    raise AssertionError("encoded what was known")


def key(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def test_vectors_have_unit_length_and_meaning(tmp_path: Path, encoder_dir: Path):
    texts = ["How do I move a crypto wallet?", "Migrating wallets to new accounts", "Bread rises with yeast"]
    vectors = encoded(texts, encoder_dir, tmp_path / "cache")

    assert (vectors.shape, vectors.dtype) == ((3, 384), np.float32)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.3


def test_vectors_depend_on_nothing_but_the_text(tmp_path: Path, encoder_dir: Path):
    alone = encoded(TEXTS, encoder_dir, tmp_path / "one")
    half_cached = tmp_path / "half"
    encoded(TEXTS[::2], encoder_dir, half_cached)

    assert np.array_equal(encoded(TEXTS, encoder_dir, tmp_path / "two", processes=2), alone)
    assert np.array_equal(encoded(TEXTS[::-1], encoder_dir, tmp_path / "order")[::-1], alone)
    assert np.array_equal(encoded(TEXTS, encoder_dir, half_cached), alone)
    assert np.array_equal(encoded(TEXTS[4:5], encoder_dir, tmp_path / "single"), alone[4:5])


def test_no_texts_give_no_rows(tmp_path: Path, encoder_dir: Path):
    assert encoded([], encoder_dir, tmp_path / "cache").shape == (0, 384)


def test_text_beyond_the_encoders_length_is_cut(tmp_path: Path, encoder_dir: Path):
    vectors = encoded(["word " * 254, "word " * 300], encoder_dir, tmp_path / "cache")

    assert np.array_equal(vectors[0], vectors[1])


def test_known_texts_are_not_encoded(tmp_path: Path, encoder_dir: Path, monkeypatch: pytest.MonkeyPatch):
    texts = ["seeded", "cached", "seeded"]
    expected = encoded(texts, encoder_dir, tmp_path / "all")
    encoded(["cached"], encoder_dir, tmp_path / "cache")
    seed = {key("seeded"): expected[0]}
    done: list[int] = []
    monkeypatch.setattr(encode, "_encode_one", refuse)

    with Workers(1) as workers:
        cache = ContentCache(tmp_path / "cache")
        vectors = encode_windows(texts, encoder_dir, workers, cache, seed=seed, progress=done.append)

    assert np.array_equal(vectors, expected)
    assert done == [2, 1]


def test_equal_texts_are_encoded_once(tmp_path: Path, encoder_dir: Path, monkeypatch: pytest.MonkeyPatch):
    seen: list[str] = []
    real = encode._encode_one  # pyright: ignore[reportPrivateUsage] # the only place that sees each text once

    def count(session: object, tokenizer: object, text: str, pooling: str) -> Vectors:
        seen.append(text)
        return real(session, tokenizer, text, pooling)  # pyright: ignore[reportArgumentType] # passed on as they came

    monkeypatch.setattr(encode, "_encode_one", count)
    done: list[int] = []
    with Workers(1) as workers:
        cache = ContentCache(tmp_path / "cache")
        encode_windows(["a", "b", "a"], encoder_dir, workers, cache, seed={}, progress=done.append)

    assert sorted(seen) == ["a", "b"]
    assert sum(done) == 3


def test_few_windows_start_no_process(tmp_path: Path, encoder_dir: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Workers, "map", refuse)

    assert len(encoded(TEXTS[:5], encoder_dir, tmp_path / "cache", processes=2)) == 5


def test_a_killed_build_keeps_what_it_encoded(tmp_path: Path, encoder_dir: Path):
    program = (
        "import sys; from pathlib import Path\n"
        "from octavo_build.encode import ContentCache, encode_windows\n"
        "from octavo_build.workers import Workers\n"
        "texts = [f'text {number} ' * 50 for number in range(10_000)]\n"
        "cache = ContentCache(Path(sys.argv[2]))\n"
        "with Workers(1) as workers:\n"
        "    encode_windows(texts, Path(sys.argv[1]), workers, cache, seed={},\n"
        "                   progress=lambda count: print(count, flush=True))\n"
    )
    arguments = [sys.executable, "-c", program, str(encoder_dir), str(tmp_path / "cache")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as build:
        assert build.stdout is not None
        done = sum(int(build.stdout.readline()) for _ in range(4))
        build.kill()

    database = sqlite3.connect(tmp_path / "cache")
    assert database.execute("SELECT count(*) FROM cache").fetchone()[0] >= done > 0
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()
