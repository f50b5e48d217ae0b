"""Hits that relations add to an answer: neighbours in reserved slots, and what the hits require."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from octavo_artifact.ids import fragment_id, sha256_hex
from octavo_artifact.text import estimate_tokens
from octavo_serve.candidates import Candidates
from octavo_serve.collection import Collection
from octavo_serve.filters import Filters
from octavo_serve.ranking import Ranking


@dataclass(frozen=True, slots=True)
class Limits:
    """How much relations may add to one answer."""

    hops: int = 2
    """Edges of `requires` between a hit and what it brings along."""
    atoms: int = 3
    tokens: int = 3500
    """Estimate over all required atoms together. These three are ExpertPack's numbers."""
    decay: float = 0.85
    """Factor of the score for each of those edges."""
    seeds: int = 5
    """Passages at the head of the answer whose neighbours are looked at."""
    slots: int = 2
    """Places of an answer that neighbours may take; never more than half of them."""
    drift: float = 0.5
    """Share of the best score below which a neighbour has drifted from the question."""


LIMITS = Limits()


def expand(found: Candidates) -> Candidates:
    """Give places to neighbours, if asked, and add what the results require."""
    asked = found.asked
    parts = asked.collection.parts
    if asked.parameters.graph and len(found.ranking) and any(part.relations.joins for part in parts):
        ranking, added = with_neighbours(found.ranking, found.fused, asked.collection)
        found = replace(found, ranking=ranking, graph_expanded=added)
    if asked.parameters.requires and any(part.relations.requires for part in parts):
        found = replace(found, required=tuple(required_atoms(found.ranking, asked.collection, asked.filters)))
    return found


def with_neighbours(
    kept: Ranking, fused: Ranking, collection: Collection, *, limits: Limits = LIMITS
) -> tuple[Ranking, frozenset[int]]:
    """`kept` with its last places given to the best passages of documents that are joined to its first ones.

    A neighbour's score is its own, from the same fusion; only passages that were scored can be taken, one a document.
    Returns the ranking, and the rows that would not be in it without the graph.
    """
    slots = min(limits.slots, len(kept) // 2)
    core = kept.rows[: len(kept) - slots].tolist()
    inside = collection.documents(core)
    joined = {document for seed in inside[: limits.seeds] for document in collection.joined(seed)}
    floor = limits.drift * float(kept.scores[0]) if slots else 0.0
    taken: list[int] = []
    rows = fused.rows.tolist()
    for row, document, score in zip(rows, collection.documents(rows), fused.scores.tolist(), strict=True):
        if len(taken) == slots or score < floor:
            break
        if document not in inside and document in joined:
            inside.append(document)
            taken.append(row)
    rest = [row for row in kept.rows[len(core) :].tolist() if row not in taken]
    chosen = {*core, *taken, *rest[: slots - len(taken)]}
    positions = [position for position, row in enumerate(rows) if row in chosen]
    return fused.take(positions), frozenset(taken) - frozenset(kept.rows.tolist())


def required_atoms(
    ranking: Ranking, collection: Collection, filters: Filters, *, limits: Limits = LIMITS
) -> Iterator[tuple[dict[str, Any], float]]:
    """Whole documents that the results require, nearest first, each with its score: for the end of the answer.

    The first one that would exceed the budget ends it, so that nothing less close takes its place.
    """
    documents = collection.documents(ranking.rows.tolist())
    scores = dict(zip(reversed(documents), reversed(ranking.scores.tolist()), strict=True))
    frontier = list(dict.fromkeys(documents))
    atoms, tokens = 0, 0
    for _ in range(limits.hops):
        reached: list[int] = []
        for document in frontier:
            for required in collection.required(document):
                if required in scores:
                    continue
                scores[required] = scores[document] * limits.decay
                atom = _atom(required, collection, filters)
                if atom is None:
                    continue
                atoms, tokens = atoms + 1, tokens + estimate_tokens(atom["text"])
                if atoms > limits.atoms or tokens > limits.tokens:
                    return
                reached.append(required)
                yield atom, scores[required]
        frontier = reached


def _atom(row: int, collection: Collection, filters: Filters) -> dict[str, Any] | None:
    """A document's whole body as a hit, or None when it may not be found. Its passages partition the body."""
    document = collection.document(row)
    if not (document["searchable"] and filters.admits(document)):
        return None
    parts = [collection.hit(passage) for passage in collection.passages_of(row)]
    return joined(parts, lambda: collection.raw(row)) if parts else None


def joined(parts: Sequence[dict[str, Any]], raw: Callable[[], bytes]) -> dict[str, Any]:
    """A document's passages, all of them and in order, as one; `raw` reads the bytes of its file."""
    if len(parts) == 1:
        return parts[0]
    start, end = parts[0]["byte_range"][0], parts[-1]["byte_range"][1]
    texts = [part["text"].removeprefix(part["added_text"]) for part in parts]
    # Where each text is its span, byte for byte, the file itself need not be read: that takes a millisecond.
    exact = all(sha256_hex(text.encode()) == part["span_sha256"] for text, part in zip(texts, parts, strict=True))
    span = sha256_hex("".join(texts).encode() if exact else raw()[start:end])
    return {
        **parts[0],
        "text": "".join(texts),
        "added_text": "",
        "fragment_id": fragment_id(parts[0]["id"], "", span),
        "heading_path": [],
        "line_range": [parts[0]["line_range"][0], parts[-1]["line_range"][1]],
        "byte_range": [start, end],
        "span_sha256": span,
        "expires_at": min((part["expires_at"] for part in parts if part["expires_at"]), default=None),
    }
