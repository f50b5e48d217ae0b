"""What a search runs over: one pack, or several as if they were one.

A row is a passage of any of them: rows of the lexical index, which links their segments, count on from pack to pack,
and so do document rows. Only this module knows which pack a row belongs to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octavo_artifact.errors import NotFoundError
from octavo_artifact.gate import Gate
from octavo_artifact.ids import canonical_json, sha256_hex
from octavo_serve.encoder import Encoder
from octavo_serve.graph import Relations
from octavo_serve.lexical import LexicalIndex
from octavo_serve.ranking import EMPTY, Ranking, Rows, ranked
from octavo_serve.tables import Tables
from octavo_serve.vectors import VectorIndex


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """The opened parts of one artifact."""

    slug: str
    digest: str
    directory: Path
    """Of its lexical index."""
    lexical: LexicalIndex
    vectors: VectorIndex
    encoder: Encoder
    tables: Tables
    relations: Relations
    gate: Gate | None
    reads: tuple[str, ...]
    """Languages that the encoder was trained for; empty where that is not known."""
    documents: int
    """How many it has."""


class Collection:
    """Packs that are searched together: `slug` and `digest` are those of the one pack; of several there is no slug, and
    the digest is that of theirs by slug.
    """

    def __init__(self, parts: Sequence[Index]) -> None:
        """Raises ArtifactError when their lexical indexes do not open as one."""
        self.parts = tuple(parts)
        if len(parts) == 1:
            self.slug, self.digest, self.lexical = parts[0].slug, parts[0].digest, parts[0].lexical
        else:
            self.slug = None
            self.digest = sha256_hex(canonical_json({part.slug: part.digest for part in parts}))
            languages = sorted({language for part in parts for language in part.lexical.languages})
            self.lexical = LexicalIndex([part.directory for part in parts], "several packs", languages)
        self._starts = self.lexical.starts
        self._document_starts = np.cumsum([0, *(part.documents for part in parts)])

    def part_of(self, row: int) -> tuple[Index, int]:
        """The pack of a passage, and the passage's row in it."""
        if len(self.parts) == 1:
            return self.parts[0], row
        part = int(np.searchsorted(self._starts, row, side="right")) - 1
        return self.parts[part], row - int(self._starts[part])

    def split(self, rows: Rows) -> Iterator[tuple[Index, int, NDArray[np.bool_]]]:
        """Of each pack that has any of `rows`: it, its first row, and which of them are its own: bool [rows]."""
        if len(self.parts) == 1 and len(rows):
            yield self.parts[0], 0, np.ones(len(rows), dtype=np.bool_)
            return
        for part, first, following in zip(self.parts, self._starts[:-1], self._starts[1:], strict=True):
            own = (rows >= first) & (rows < following)
            if own.any():
                yield part, int(first), own

    def documents(self, rows: Sequence[int]) -> list[int]:
        """The document row of each passage row."""
        found = self.lexical.documents(rows)
        if len(self.parts) == 1:
            return found
        firsts = self._document_starts[np.searchsorted(self._starts, rows, side="right") - 1]
        return (np.array(found, dtype=np.int64) + firsts).tolist()

    def document(self, row: int) -> Mapping[str, Any]:
        """A row of the documents table, without its bytes."""
        part, local = self._part_of_document(row)
        return part.tables.document(local)

    def passages_of(self, row: int) -> range:
        """Rows of a document's passages."""
        part, local = self._part_of_document(row)
        first = int(self._starts[self.parts.index(part)])
        passages = part.tables.passages_of(local)
        return range(passages.start + first, passages.stop + first)

    def raw(self, row: int) -> bytes:
        """The bytes of a document as they were in its file."""
        part, local = self._part_of_document(row)
        return part.tables.raw(local)

    def joined(self, row: int) -> Iterable[int]:
        """The documents that edges join with a document, by row."""
        part, local = self._part_of_document(row)
        return self._named(part, sorted(part.relations.neighbours([part.tables.document(local)["id"]])))

    def required(self, row: int) -> Iterable[int]:
        """The documents that a document requires, in its order, by row."""
        part, local = self._part_of_document(row)
        return self._named(part, part.relations.required(part.tables.document(local)["id"]))

    def tokens(self, rows: Sequence[int]) -> list[int]:
        """The estimated tokens of each passage."""
        return self.lexical.tokens(rows)

    def hit(self, row: int) -> dict[str, Any]:
        """What the build stored to show a passage, with the pack and the release that it is of."""
        part, _ = self.part_of(row)
        return {**self.lexical.hit(row), "pack": part.slug, "digest": part.digest}

    def merged(self, rankings: Sequence[tuple[Index, Ranking]], k: int | None = None) -> Ranking:
        """The `k` best of rankings that packs gave, whose scores compare."""
        if len(self.parts) == 1 or not rankings:
            return rankings[0][1] if rankings else EMPTY
        firsts = {part.slug: int(first) for part, first in zip(self.parts, self._starts, strict=False)}
        rows = np.concatenate([ranking.rows + firsts[part.slug] for part, ranking in rankings])
        return ranked(rows, np.concatenate([ranking.scores for _, ranking in rankings]), k)

    def _part_of_document(self, row: int) -> tuple[Index, int]:
        part = int(np.searchsorted(self._document_starts, row, side="right")) - 1
        return self.parts[part], row - int(self._document_starts[part])

    def _named(self, part: Index, names: Iterable[str]) -> Iterator[int]:
        first = int(self._document_starts[self.parts.index(part)])
        for name in names:
            try:
                yield part.tables.find(name) + first
            except NotFoundError:
                continue  # an entity of the ontology, or a document that is not in this release
