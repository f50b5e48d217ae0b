"""Results of earlier builds by what they were made from, so that only what is new or changed is computed."""

from __future__ import annotations

import hashlib
import logging
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from octavo_artifact.errors import ConfigError

_CHECKSUM_BYTES = 8
# What SQLite answers for a file that is damaged, is no database, or has another table of that name.
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)

Result = TypeVar("Result")

_log = logging.getLogger(__name__)


class ContentCache:
    """Bytes by key in one SQLite file, for any number of threads and processes.

    A key is a hash of all that decides the value. Every value carries a checksum: a damaged file costs time and nothing
    else.
    """

    def __init__(self, file: Path) -> None:
        """Use `file`, which is made when it is missing and made anew when it is damaged."""
        self._file = file

    def read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Values of those `keys` that are cached. Raises ConfigError when the file cannot be used."""

        def select(database: sqlite3.Connection) -> dict[bytes, bytes]:
            found: dict[bytes, bytes] = {}
            for key in keys:
                row = database.execute("SELECT CAST(value AS BLOB) FROM cache WHERE key = ?", (key,)).fetchone()
                sealed: bytes = (row and row[0]) or b""
                value = sealed[_CHECKSUM_BYTES:]
                if sealed and sealed == _sealed(key, value):
                    found[key] = value
            return found

        return self._run(select)

    def write(self, values: Mapping[bytes, bytes]) -> None:
        """Keep `values`. Raises ConfigError when the file cannot be used."""
        rows = [(key, _sealed(key, value)) for key, value in values.items()]

        def insert(database: sqlite3.Connection) -> None:
            database.executemany("INSERT OR REPLACE INTO cache VALUES (?, ?)", rows)

        self._run(insert)

    def _run(self, action: Callable[[sqlite3.Connection], Result]) -> Result:
        try:
            return self._attempt(action)
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF not in _DAMAGED:
                raise ConfigError(f"cache {self._file.name}: cannot be used ({error})") from error
            _log.warning("cache %s: damaged (%s), beginning a new one", self._file.name, error)
        for name in (self._file.name, f"{self._file.name}-journal"):
            self._file.with_name(name).unlink(missing_ok=True)
        return self._attempt(action)

    def _attempt(self, action: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run `action` in a transaction of a connection of its own, so that threads and forks share none."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self._file, timeout=60)) as database, database:
            # A killed process loses nothing by this; a power cut may, and the checksums notice.
            database.execute("PRAGMA synchronous = OFF")
            database.execute("CREATE TABLE IF NOT EXISTS cache (key BLOB PRIMARY KEY, value BLOB NOT NULL)")
            return action(database)


def _sealed(key: bytes, value: bytes) -> bytes:
    """The value behind a checksum that binds it to its key."""
    return hashlib.sha256(key + value).digest()[:_CHECKSUM_BYTES] + value
