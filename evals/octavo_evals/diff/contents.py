"""What of a release's documents, passages, edges and names is another in the next.

Rows are paired once, documents first: by path, then by bytes (moved), then by an id that outlived its path. Passages
follow their documents.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from octavo_artifact.errors import NotFoundError
from octavo_artifact.schema import Edge
from octavo_evals.diff.lines import Line, compare_lines
from octavo_evals.diff.releases import Release
from octavo_serve.reading import find
from octavo_serve.tables import Tables

FIELDS = (
    *("id", "title", "description", "type", "tags", "pack", "tier", "strategy", "scope", "searchable", "mime_type"),
    *("verified_at", "verified_by", "confidence", "requires", "related", "refresh", "expires_at", "activation"),
    *("audience", "language"),
)
"""Columns of a document that its readers see."""

_HELD_BY_FIELDS = frozenset({*FIELDS, "retrieval_strategy", "concept_scope"})

_AROUND = ("heading_path", "prefix", "context_prefix", "expires_at")
"""What of a passage is no part of its span, and found or told with it."""

Row = Mapping[str, Any]
Pairs = Sequence[tuple[Row, Row]]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field whose value is another; None where it is missing."""

    field: str
    old: Any
    new: Any

    @property
    def entries(self) -> tuple[list[Any], list[Any]] | None:
        """What a list lost and what it gained, in its order; None when it is no list, or only its order is another."""
        if not (isinstance(self.old, list) and isinstance(self.new, list)):
            return None
        old, new = cast(list[Any], self.old), cast(list[Any], self.new)
        lost = [entry for entry in old if entry not in new], [entry for entry in new if entry not in old]
        return lost if any(lost) else None


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """A document that is not the same in both releases."""

    kind: str
    """`added`, `removed`, `changed`, or `moved` (the same bytes at another path)."""
    path: str
    """In NEW; in OLD when it was removed."""
    old_path: str | None
    """None when it was added."""
    title: str
    fields: tuple[FieldChange, ...]
    lines_added: int
    lines_removed: int
    """Lines of the body, frontmatter left out."""
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class PassageChange:
    """A passage that is not the same in both releases."""

    kind: str
    """`added`, `removed`, `changed` (another text under its heading), `moved` (the same bytes elsewhere), or `context`
    (the same bytes in their place, but what is indexed or told with them is another).
    """
    old: str | None
    """Fragment id in OLD."""
    new: str | None
    """Fragment id in NEW."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A name that OLD gave out and that NEW does not understand as OLD did."""

    name: str
    """A fragment id or a URI."""
    kind: str
    """`broken`: NEW refuses it; `drifted`: NEW opens the document, in which the passage has another text."""
    now: str | None
    """Fragment id (or URI) in NEW under which the same bytes stand, if they do."""


@dataclass(frozen=True, slots=True)
class Contents:
    """All that changed in what a release says."""

    documents: tuple[DocumentChange, ...]
    """Sorted by path."""
    passages: tuple[PassageChange, ...]
    passages_kept: int
    edges_added: tuple[Edge, ...]
    edges_removed: tuple[Edge, ...]
    citations: tuple[Citation, ...]
    """Sorted by kind and name."""


def compare_contents(old: Release, new: Release) -> Contents:
    """Compare what two releases of one pack say."""
    pairs = pair_documents(old, new)
    changes, kept = _passages(old, new, pairs)
    return Contents(
        documents=tuple(sorted(_documents(old, new, pairs), key=lambda change: (change.path, change.kind))),
        passages=tuple(sorted(changes, key=lambda change: (change.kind, change.new or "", change.old or ""))),
        passages_kept=kept,
        edges_added=_sorted(new.edges - old.edges),
        edges_removed=_sorted(old.edges - new.edges),
        citations=tuple(sorted(_citations(old, new), key=lambda citation: (citation.kind, citation.name))),
    )


def pair_documents(old: Release, new: Release) -> Pairs:
    """The documents that are in both, each with its counterpart."""
    pairs: list[tuple[Row, Row]] = []
    before, after = list(old.documents), list(new.documents)
    for key in ("path", "file_sha256", "id"):
        matched, before, after = _match(before, after, lambda row, key=key: row[key])
        pairs += matched
    return pairs


def _match(
    before: Sequence[Row], after: Sequence[Row], key: Callable[[Row], Any]
) -> tuple[Pairs, list[Row], list[Row]]:
    """Rows of equal key in order, each once; and what is left of both."""
    waiting: defaultdict[Any, list[Row]] = defaultdict(list)
    for row in reversed(after):
        waiting[key(row)].append(row)
    pairs: list[tuple[Row, Row]] = []
    rest: list[Row] = []
    for row in before:
        if counterparts := waiting[key(row)]:
            pairs.append((row, counterparts.pop()))
        else:
            rest.append(row)
    left = {id(row) for rows in waiting.values() for row in rows}
    return pairs, rest, [row for row in after if id(row) in left]


def _documents(old: Release, new: Release, pairs: Pairs) -> Iterator[DocumentChange]:
    in_old, in_new = ({id(row) for row in side} for side in zip(*pairs, strict=True)) if pairs else (set(), set())
    for row in old.documents:
        if id(row) not in in_old:
            removed = len(_body(row).splitlines())
            yield DocumentChange("removed", row["path"], row["path"], row["title"], (), 0, removed, ())
    for row in new.documents:
        if id(row) not in in_new:
            yield DocumentChange("added", row["path"], None, row["title"], (), len(_body(row).splitlines()), 0, ())
    for before, after in pairs:
        fields = tuple(_fields(before, after))
        same_bytes = before["file_sha256"] == after["file_sha256"]
        if same_bytes and before["path"] != after["path"]:
            yield DocumentChange("moved", after["path"], before["path"], after["title"], fields, 0, 0, ())
        elif fields or not same_bytes:
            found = compare_lines(_body(before), _body(after))
            yield DocumentChange(
                "changed",
                after["path"],
                before["path"],
                after["title"],
                fields,
                found.added,
                found.removed,
                found.lines,
            )


def _fields(before: Row, after: Row) -> Iterator[FieldChange]:
    for field in FIELDS:
        if before[field] != after[field]:
            yield FieldChange(field, before[field], after[field])
    written, rewritten = (json.loads(row["frontmatter"]) for row in (before, after))
    for field in sorted((written.keys() | rewritten.keys()) - _HELD_BY_FIELDS):
        if written.get(field) != rewritten.get(field):
            yield FieldChange(f"frontmatter.{field}", written.get(field), rewritten.get(field))


def _body(document: Row) -> str:
    return document["raw"][document["body_offset"] :].decode("utf-8", "replace")


def _passages(old: Release, new: Release, pairs: Pairs) -> tuple[list[PassageChange], int]:
    paths = {before["path"]: after["path"] for before, after in pairs}
    renamed = {row: paths.get(document["path"]) for row, document in enumerate(old.documents)}
    before = [{**passage, "path": renamed[passage["document"]]} for passage in old.passages]
    after = [{**passage, "path": new.documents[passage["document"]]["path"]} for passage in new.passages]
    # the same place and text; the same text anywhere; the same place
    kept, before, after = _match(before, after, lambda row: (row["path"], row["section"], row["span_sha256"]))
    moved, before, after = _match(before, after, lambda row: row["span_sha256"])
    changed, before, after = _match(before, after, lambda row: (row["path"], row["section"]))
    around = [pair for pair in kept if any(pair[0][name] != pair[1][name] for name in _AROUND)]
    changes = [
        *(PassageChange("context", one["fragment"], other["fragment"]) for one, other in around),
        *(PassageChange("moved", one["fragment"], other["fragment"]) for one, other in moved),
        *(PassageChange("changed", one["fragment"], other["fragment"]) for one, other in changed),
        *(PassageChange("removed", one["fragment"], None) for one in before),
        *(PassageChange("added", None, other["fragment"]) for other in after),
    ]
    return changes, len(kept) - len(around)


def _citations(old: Release, new: Release) -> Iterator[Citation]:
    tables = Tables(new.artifact)
    known = {passage["fragment"] for passage in new.passages}
    spans = {passage["span_sha256"]: passage["fragment"] for passage in reversed(new.passages)}
    for name, span in {passage["fragment"]: passage["span_sha256"] for passage in old.passages}.items():
        if name not in known:
            yield Citation(name, "drifted" if _opens(tables, name) else "broken", spans.get(span))
    uris = {document["file_sha256"]: document["uri"] for document in reversed(new.documents)}
    for document in old.documents:
        if not _opens(tables, document["uri"]):
            yield Citation(document["uri"], "broken", uris.get(document["file_sha256"]))


def _opens(tables: Tables, name: str) -> bool:
    try:
        find(tables, name, "id")
    except NotFoundError:
        return False
    return True


def _sorted(edges: frozenset[Edge]) -> tuple[Edge, ...]:
    return tuple(sorted(edges, key=lambda edge: (edge.source, edge.target, edge.kind)))
