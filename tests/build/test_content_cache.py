from __future__ import annotations

import hashlib
import logging
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from octavo_artifact.errors import ConfigError
from octavo_build.content_cache import ContentCache


def key(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def test_the_cache_gives_back_what_was_written(tmp_path: Path) -> None:
    ContentCache(tmp_path / "new folder" / "cache").write({key("a"): b"\x00value", key("empty"): b""})

    cache = ContentCache(tmp_path / "new folder" / "cache")
    assert cache.read([key("a"), key("b"), key("empty")]) == {key("a"): b"\x00value", key("empty"): b""}


@pytest.mark.parametrize("damage", ["UPDATE cache SET value = x'00'", "UPDATE cache SET value = 'text'"])
def test_a_changed_value_is_not_trusted(tmp_path: Path, damage: str) -> None:
    cache = ContentCache(tmp_path / "cache")
    cache.write({key("a"): b"value"})
    database = sqlite3.connect(tmp_path / "cache")
    with database:
        database.execute(damage)
    database.close()

    assert cache.read([key("a")]) == {}


def test_a_value_under_another_key_is_not_trusted(tmp_path: Path) -> None:
    cache = ContentCache(tmp_path / "cache")
    cache.write({key("a"): b"value"})
    database = sqlite3.connect(tmp_path / "cache")
    with database:
        database.execute("UPDATE cache SET key = ?", (key("b"),))
    database.close()

    assert cache.read([key("b")]) == {}


def test_a_damaged_cache_is_thrown_away_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "cache"
    cache = ContentCache(file)
    cache.write({key(str(number)): bytes([number]) * 1500 for number in range(50)})
    file.write_bytes(b"this is no database" * 400)

    with caplog.at_level(logging.WARNING):
        assert cache.read([key("1")]) == {}
    cache.write({key("1"): b"new"})

    assert [record.getMessage() for record in caplog.records] == [
        "cache cache: damaged (file is not a database), beginning a new one"
    ]
    assert cache.read([key("1")]) == {key("1"): b"new"}


def test_every_kind_of_damage_leaves_right_values_or_none(tmp_path: Path) -> None:
    file = tmp_path / "cache"
    keys = [key(str(number)) for number in range(40)]
    values = {each: bytes([row]) * 1500 for row, each in enumerate(keys)}
    ContentCache(file).write(values)
    whole = file.read_bytes()
    for position in range(0, len(whole), 509):
        file.write_bytes(whole[:position] + bytes(byte ^ 0x5A for byte in whole[position : position + 40]))
        for found, value in ContentCache(file).read(keys).items():
            assert value == values[found]


def test_a_cache_that_cannot_be_opened_is_the_operators_matter(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()

    with pytest.raises(ConfigError, match="cache cache: cannot be used"):
        ContentCache(tmp_path / "cache").read([])


def test_threads_share_a_cache(tmp_path: Path) -> None:
    cache = ContentCache(tmp_path / "cache")

    def write(number: int) -> None:
        for step in range(10):
            cache.write({key(f"{number}/{step}"): bytes([number])})

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))

    assert len(cache.read([key(f"{number}/{step}") for number in range(4) for step in range(10)])) == 40
