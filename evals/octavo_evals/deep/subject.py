"""What a deep check sees: the documents and passages of a released artifact, and its search."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octavo_artifact.errors import ConfigError
from octavo_artifact.layout import MANIFEST, POINTER
from octavo_artifact.manifest import read_pointer
from octavo_serve.catalog import OpenPack, open_release
from octavo_serve.encoder import Encoder
from octavo_serve.requests import SearchRequest

NO_DAY = date(1970, 1, 1)
"""A day before any pack was verified: nothing is stale on it, so that the findings are of no particular day."""
MAX_QUERY = 300
"""Characters of a query that a check makes; people ask in fewer."""
MAX_BYTES = 4_000_000
"""Of one document that are looked at for what a reader should not miss."""

_NEW_LINE = re.compile(r"\r\n?")

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is, and of how much."""


@dataclass(frozen=True, slots=True, order=True)
class Found:
    """A finding as plain data; lint knows how bad its code is."""

    path: str
    line: int
    """Of the file, counted from 1; 0 when none can be named."""
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a document."""

    title: str
    line: int


@dataclass(frozen=True, slots=True)
class Page:
    """A document as a check reads it."""

    path: str
    title: str
    searchable: bool
    headings: tuple[Heading, ...]
    text: str
    """The whole file, with `\\n` between lines; its n-th line is line n of the file. Cut after MAX_BYTES."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage as a search shows it."""

    row: int
    path: str
    title: str
    heading_path: tuple[str, ...]
    line: int
    """Of the file, at which it begins."""
    text: str
    """With the rows of a split table's header before it; without an author's words on its context."""
    added_lines: int
    """Lines of `text` that stand before the passage's own."""
    exact: bool
    """Whether the other lines of `text` are those of the file, one by one; not so in a notebook."""
    fragment: str
    """Tells it from all others of the pack; in a `Hit` too."""

    def line_of(self, line: int) -> int:
        """The file's line of a line of `text`, which is counted from 0."""
        return self.line + max(0, line - self.added_lines) if self.exact else self.line


@dataclass(frozen=True, slots=True)
class Hit:
    """What came back for a query."""

    path: str
    fragment: str
    """Of which passage."""


class Subject:
    """An opened artifact. Asking is safe from several threads; answers are the same in any order."""

    def __init__(self, artifact: Path, top: int, progress: Progress, today: date = NO_DAY) -> None:
        """Open and verify `dist/SLUG/DIGEST`, or the current release of `dist/SLUG`.

        Raises ConfigError for a path that is neither, ArtifactError for a damaged one.
        """
        path = _current(artifact)
        encoders: dict[str, Encoder] = {}
        self.pack: OpenPack = open_release(path, path.parent.parent, encoders, today)
        self.slug = self.pack.slug
        self.top = top
        self.encoder: Encoder = next(iter(encoders.values()))
        self.lexical = self.pack.index.lexical
        self._vectors = self.pack.index.vectors
        self._tables = self.pack.index.tables
        self._progress = progress

    @cached_property
    def pages(self) -> Sequence[Page]:
        """All documents, sorted by path."""
        return [self._page(row) for row in range(len(self._tables.documents))]

    @cached_property
    def passages(self) -> Sequence[Passage]:
        """All passages in row order."""
        return list(self._passages())

    @cached_property
    def vectors(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """See `VectorIndex.of_passages`."""
        return self._vectors.of_passages()

    def ask(self, query: str) -> Sequence[Hit]:
        """The `top` best passages, best first, without what they require."""
        # copies stand where they stand: one that is folded into another is not lost
        shown = {"duplicate_similarity": 0}
        request = SearchRequest(query=query[:MAX_QUERY], max_results=self.top, gate="off", retrieval=shown)
        results = self.pack.search(request)["results"]
        return [Hit(hit["source_file"], _fragment(hit)) for hit in results if not hit["requires_expanded"]]

    def ask_all(self, doing: str, queries: Sequence[str]) -> Iterator[Sequence[Hit]]:
        """`ask` for each query, in order; side by side, for a search leaves the interpreter while it encodes."""
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as threads:
            for number, hits in enumerate(threads.map(self.ask, queries), start=1):
                self._progress(doing, number, len(queries))
                yield hits

    def _page(self, row: int) -> Page:
        document = self._tables.document(row)
        text = self._tables.raw(row)[:MAX_BYTES].decode("utf-8", "replace")
        headings = [Heading(each["title"], each["start_line"]) for each in self._tables.sections(row) if each["title"]]
        return Page(
            document["path"],
            document["title"],
            document["searchable"],
            tuple(headings),
            _NEW_LINE.sub("\n", text),
        )

    def _passages(self) -> Iterator[Passage]:
        for row in range(self.pack.manifest.counts["passages"]):
            hit = self.lexical.hit(row)
            first, last = hit["line_range"]
            added = hit["added_text"].count("\n")
            yield Passage(
                row,
                hit["source_file"],
                hit["title"],
                tuple(hit["heading_path"]),
                first,
                hit["text"],
                added,
                exact=len(hit["text"].splitlines()) - added == last - first + 1,
                fragment=_fragment(hit),
            )


def _fragment(hit: Mapping[str, Any]) -> str:
    # several passages of a section share its anchor, and equal ones their hash too
    return f"{hit['fragment_id']}@{hit['byte_range'][0]}"


def _current(path: Path) -> Path:
    path = path.resolve()
    if (path / POINTER).exists():
        return path / read_pointer(path)
    if not (path / MANIFEST).exists():
        raise ConfigError(f"{path.name}: not an artifact; expected dist/SLUG or dist/SLUG/DIGEST")
    return path
