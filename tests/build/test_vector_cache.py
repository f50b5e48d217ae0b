from __future__ import annotations

import hashlib
import logging
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from octavo_artifact.errors import ConfigError
from octavo_build.vector_cache import VectorCache


def key(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def test_the_cache_gives_back_what_was_written(tmp_path: Path):
    vector = np.arange(4, dtype=np.float32)
    VectorCache(tmp_path / "new folder" / "cache").write({key("a"): vector})

    cache = VectorCache(tmp_path / "new folder" / "cache")
    found = cache.read([key("a"), key("b")], 4)
    assert found.keys() == {key("a")}
    assert np.array_equal(found[key("a")], vector)
    assert cache.read([key("a")], 8) == {}


@pytest.mark.parametrize("damage", ["UPDATE vectors SET value = x'00'", "UPDATE vectors SET value = 'text'"])
def test_a_changed_vector_is_not_trusted(tmp_path: Path, damage: str):
    cache = VectorCache(tmp_path / "cache")
    cache.write({key("a"): np.ones(4, np.float32)})
    database = sqlite3.connect(tmp_path / "cache")
    with database:
        database.execute(damage)
    database.close()

    assert cache.read([key("a")], 4) == {}


def test_a_vector_under_another_key_is_not_trusted(tmp_path: Path):
    cache = VectorCache(tmp_path / "cache")
    cache.write({key("a"): np.ones(4, np.float32)})
    database = sqlite3.connect(tmp_path / "cache")
    with database:
        database.execute("UPDATE vectors SET key = ?", (key("b"),))
    database.close()

    assert cache.read([key("b")], 4) == {}


def test_a_damaged_cache_is_thrown_away_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    file = tmp_path / "cache"
    cache = VectorCache(file)
    cache.write({key(str(number)): np.full(384, number, np.float32) for number in range(50)})
    file.write_bytes(b"this is no database" * 400)

    with caplog.at_level(logging.WARNING):
        assert cache.read([key("1")], 384) == {}
    cache.write({key("1"): np.ones(384, np.float32)})

    assert [record.getMessage() for record in caplog.records] == [
        "vector cache cache: damaged (file is not a database), beginning a new one"
    ]
    assert cache.read([key("1")], 384).keys() == {key("1")}


def test_every_kind_of_damage_leaves_right_vectors_or_none(tmp_path: Path):
    file = tmp_path / "cache"
    keys = [key(str(number)) for number in range(40)]
    VectorCache(file).write({key: np.full(384, row, np.float32) for row, key in enumerate(keys)})
    whole = file.read_bytes()
    for position in range(0, len(whole), 509):
        file.write_bytes(whole[:position] + bytes(byte ^ 0x5A for byte in whole[position : position + 40]))
        for found, vector in VectorCache(file).read(keys, 384).items():
            assert (vector == keys.index(found)).all()


def test_a_cache_that_cannot_be_opened_is_the_operators_matter(tmp_path: Path):
    (tmp_path / "cache").mkdir()

    with pytest.raises(ConfigError, match="vector cache cache: cannot be used"):
        VectorCache(tmp_path / "cache").read([], 4)


def test_threads_share_a_cache(tmp_path: Path):
    cache = VectorCache(tmp_path / "cache")

    def write(number: int) -> None:
        for step in range(10):
            cache.write({key(f"{number}/{step}"): np.full(4, number, np.float32)})

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))

    keys = [key(f"{number}/{step}") for number in range(4) for step in range(10)]
    assert len(cache.read(keys, 4)) == 40
