"""The artifact's Parquet tables, read when a client first needs more than a search's hits.

Importing Arrow costs more CPU than a first answer does, so it happens here and not at start.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import RLock
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from octavo_artifact.errors import NotFoundError
from octavo_artifact.layout import DOCUMENTS, PASSAGES, RESOURCES, SECTIONS
from octavo_artifact.schema import Resource
from octavo_serve.completion import Names
from octavo_serve.filters import Filters
from octavo_serve.freshness import last_fresh_day
from octavo_serve.loading import loaded_once
from octavo_serve.skills import Skill, list_skills, listed

_LARGE = frozenset({"raw", "frontmatter", "marks", "chunks"})


class Tables:
    """Lookups over documents, passages and resources. Safe to call from several threads."""

    def __init__(self, artifact: Path) -> None:
        """Nothing is opened yet."""
        self._artifact = artifact
        self._names: dict[tuple[str, str], Names] = {}
        self.lock = RLock()

    def document(self, row: int) -> Mapping[str, Any]:
        """A row of the documents table, without its bytes."""
        return self._documents[row]

    def raw(self, row: int) -> bytes:
        """The bytes of a document as they were in its file; only its row group is read."""
        with self.lock:
            file, starts = self._raw_file
            group = int(np.searchsorted(starts, row, side="right")) - 1
            column = file.read_row_group(group, columns=["raw"]).column("raw")
            return column[row - int(starts[group])].as_py()

    def find(self, name: str) -> int:
        """The row of the document with that id, path or URI. Raises NotFoundError."""
        with self.lock:
            row = self._rows_by_name.get(name)
        if row is None:
            raise NotFoundError("id", "no document of the pack has this id, path or URI")
        return row

    @property
    def documents(self) -> Sequence[Mapping[str, Any]]:
        """All documents in row order, without their bytes."""
        return self._documents

    @loaded_once
    def resources(self) -> Sequence[Resource]:
        """All resources, sorted by URI, with the bytes of those that are no document."""
        return [Resource(**row) for row in self._read(RESOURCES.file, list(RESOURCES.columns)).to_pylist()]

    @loaded_once
    def resources_by_uri(self) -> Mapping[str, Resource]:
        """All resources by URI."""
        return {resource.uri: resource for resource in self.resources}

    @loaded_once
    def listed_resources(self) -> Sequence[Resource]:
        """The resources to list, sorted by URI."""
        return listed(self.resources)

    @loaded_once
    def skills(self) -> Mapping[str, Skill]:
        """The skills by the URI of their SKILL.md."""
        return list_skills(self.resources)

    def names(self, prefix: str, pattern: str) -> Names:
        """What follows `prefix` in the URIs of resources, as far as `pattern` has a group for it; see `faces.Pack`."""
        with self.lock:
            found = self._names.get((prefix, pattern))
            if found is None:
                uris = self.resources_by_uri
                fits = re.compile(pattern).fullmatch
                rests = (fits(uri[len(prefix) :]) for uri in uris if uri.startswith(prefix))
                found = Names(unquote(rest[1]) for rest in rests if rest)
                if any(found):
                    self._names[prefix, pattern] = found
            return found

    @loaded_once
    def always(self) -> Names:
        """The paths of the documents of tier `always`."""
        return Names(document["path"] for document in self._documents if document["tier"] == "always")

    def passages_where(self, filters: Filters) -> NDArray[np.bool_]:
        """Which passages belong to documents that the filters admit: bool [passages]."""
        admitted = np.array([filters.admits(document) for document in self._documents], dtype=np.bool_)
        with self.lock:
            return admitted[self._passages.column("document").to_numpy()]

    def sections(self, document: int) -> list[Mapping[str, Any]]:
        """What of a document can be read alone: anchor, title, start_line, end_line.

        Its headings in order, then the parts of large sections that have no heading of their own.
        """
        with self.lock:
            headings = _of_document(self._headings, document)
            anchors = {heading["anchor"] for heading in headings}
            parts = (
                {"anchor": part["section"], "title": "", **part}
                for part in _of_document(self._passages, document)
                if part["section"] and part["section"] not in anchors
            )
            return [*headings, *parts]

    def passages_of(self, document: int) -> range:
        """Rows of a document's passages."""
        with self.lock:
            documents = self._passages.column("document").to_numpy()
        first, last = (int(np.searchsorted(documents, document, side=side)) for side in ("left", "right"))
        return range(first, last)

    @loaded_once
    def last_fresh_day(self) -> NDArray[np.int32]:
        """The ordinal of the last day on which each passage is neither stale nor expired: int32 [passages]."""
        passages = self._passages.select(["document", "expires_at"]).to_pylist()
        days = [last_fresh_day(self._documents[each["document"]], each["expires_at"]) for each in passages]
        return np.array(days, dtype=np.int32)

    @loaded_once
    def _documents(self) -> list[dict[str, Any]]:
        return self._read(DOCUMENTS.file, [name for name in DOCUMENTS.columns if name not in _LARGE]).to_pylist()

    @loaded_once
    def _rows_by_name(self) -> dict[str, int]:
        # ids win over paths: an author's id names one document for ever, a path may come to mean another
        by_path = {document["path"]: row for row, document in enumerate(self._documents)}
        by_uri = {document["uri"]: row for row, document in enumerate(self._documents)}
        by_id = {document["id"]: row for row, document in enumerate(self._documents)}
        return by_path | by_uri | by_id

    @loaded_once
    def _headings(self) -> Any:
        return self._read(SECTIONS.file, ["document", "anchor", "title", "start_line", "end_line"])

    @loaded_once
    def _passages(self) -> Any:
        return self._read(PASSAGES.file, ["document", "section", "start_line", "end_line", "expires_at"])

    @loaded_once
    def _raw_file(self) -> tuple[Any, NDArray[np.int64]]:
        from pyarrow import parquet

        file = parquet.ParquetFile(self._artifact / DOCUMENTS.file, memory_map=True)
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
        return file, np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)

    def _read(self, file: str, columns: list[str]) -> Any:
        from pyarrow import parquet

        return parquet.read_table(self._artifact / file, columns=columns)


def _of_document(rows: Any, document: int) -> list[Mapping[str, Any]]:
    """The rows of one document, of a table that is sorted by document."""
    of_document = rows.column("document").to_numpy()
    first, last = np.searchsorted(of_document, [document, document + 1]).tolist()
    return rows.slice(first, last - first).to_pylist()
