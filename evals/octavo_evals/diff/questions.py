"""Questions asked of both releases: which answers moved, and by how much.

Beside those of a query set, questions are sampled from the headings of both releases: what a page is headed with is
what its readers look for. The sample is by the hash of the text, so it needs no seed and hardly changes with the pack.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from octavo_artifact.ids import sha256_hex
from octavo_evals.diff.contents import pair_documents
from octavo_evals.diff.releases import Release
from octavo_serve.catalog import OpenPack
from octavo_serve.requests import MAX_QUERY, SearchRequest
from octavo_serve.results import Hit

HEADING = "heading"
"""The category of a sampled question."""

SHORT = 3
"""A heading of fewer words means something only below its document's title."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question to ask of both releases."""

    id: str
    text: str
    category: str
    expected: tuple[str, ...]
    """Files that answer it, best first; empty when nobody said."""
    filters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields of the search request besides the question."""


@dataclass(frozen=True, slots=True)
class Place:
    """A passage that at least one of the releases answers with."""

    path: str
    """Of its document, in NEW if it is there."""
    section: str
    old_rank: int | None
    """1 for the best; None when OLD does not answer with it."""
    new_rank: int | None
    old_score: float | None
    new_score: float | None
    expected: bool
    """Whether its document is one that answers the question."""
    rewritten: bool
    """Whether its text is another; False when only one of them answers with it."""


@dataclass(frozen=True, slots=True)
class Movement:
    """A question, and how its answer moved."""

    question: Question
    overlap: float
    """Passages that both answer with / those of the longer answer; 1 when both refuse."""
    moved: bool
    """Whether the passages, or their order, are others."""
    top_moved: bool
    """Whether the first passage is another."""
    score_change: float
    """Largest change of a score among the passages that both answer with."""
    old_reciprocal_rank: float | None
    """Of the first expected file; None when none is expected."""
    new_reciprocal_rank: float | None
    places: tuple[Place, ...]
    """In NEW's order, then those only OLD answers with, in its order."""

    @property
    def gain(self) -> float:
        """How much nearer the top the first expected file came; negative when it fell."""
        return (self.new_reciprocal_rank or 0.0) - (self.old_reciprocal_rank or 0.0)


@dataclass(frozen=True, slots=True)
class Movements:
    """All questions that were asked of both releases."""

    k: int
    """Passages asked for."""
    asked: int
    labelled: int
    """Questions with an expected file."""
    moved: int
    top_moved: int
    overlap: float | None
    """Mean over all questions; None when none was asked."""
    old_reciprocal_rank: float | None
    """Mean over the labelled ones."""
    new_reciprocal_rank: float | None
    questions: tuple[Movement, ...]
    """Those that moved: what was lost first, then what was gained, then the least overlap."""


def sample(releases: Sequence[Release], size: int) -> tuple[Question, ...]:
    """At most `size` questions from the headings of the releases, each text once, sorted by text."""
    texts = {text for release in releases for text in _headings(release) if len(text) <= MAX_QUERY}
    chosen = sorted(sorted(texts, key=lambda text: sha256_hex(text.encode()))[:size])
    return tuple(Question(sha256_hex(text.encode())[:8], text, HEADING, ()) for text in chosen)


def _headings(release: Release) -> Iterator[str]:
    for section in release.sections:
        document = release.documents[section["document"]]
        if document["searchable"] and section["title"].strip():
            short = len(section["title"].split()) < SHORT and section["title"] != document["title"]
            yield f"{document['title']}: {section['title']}" if short else section["title"]


def ask(
    old: Release, new: Release, packs: tuple[OpenPack, OpenPack], questions: Sequence[Question], k: int
) -> Movements:
    """Ask every question of both; `packs` are the opened releases."""
    paths = {before["path"]: after["path"] for before, after in pair_documents(old, new)}
    movements = [_ask(packs, question, paths, k) for question in questions]
    labelled = [movement for movement in movements if movement.question.expected]
    moved = [movement for movement in movements if movement.moved]
    return Movements(
        k=k,
        asked=len(movements),
        labelled=len(labelled),
        moved=len(moved),
        top_moved=sum(movement.top_moved for movement in movements),
        overlap=_mean([movement.overlap for movement in movements]),
        old_reciprocal_rank=_mean([movement.old_reciprocal_rank or 0.0 for movement in labelled]),
        new_reciprocal_rank=_mean([movement.new_reciprocal_rank or 0.0 for movement in labelled]),
        questions=tuple(sorted(moved, key=_urgency)),
    )


def _urgency(movement: Movement) -> tuple[int, float, float, str]:
    kind = 0 if movement.gain < 0 else 1 if movement.gain > 0 else 2
    return kind, -abs(movement.gain), movement.overlap, movement.question.id


def _ask(packs: tuple[OpenPack, OpenPack], question: Question, paths: Mapping[str, str], k: int) -> Movement:
    request = SearchRequest(query=question.text, max_results=k, **question.filters)
    before, after = (pack.search(request)["results"] for pack in packs)
    old, new = dict(_keyed(before, paths)), dict(_keyed(after, {}))
    order = [*new, *(key for key in old if key not in new)]
    both = old.keys() & new.keys()
    expected = {paths.get(path, path) for path in question.expected}  # a label may name either release's path
    return Movement(
        question=question,
        overlap=round(len(both) / max(len(old), len(new)), 6) if order else 1.0,
        moved=list(old) != list(new),
        top_moved=next(iter(old), None) != next(iter(new), None),
        score_change=max((round(abs(new[key][1]["score"] - old[key][1]["score"]), 6) for key in both), default=0.0),
        old_reciprocal_rank=_reciprocal_rank(old, expected),
        new_reciprocal_rank=_reciprocal_rank(new, expected),
        places=tuple(_place(key, old.get(key), new.get(key), expected) for key in order),
    )


def _reciprocal_rank(places: Iterable[Key], expected: Collection[str]) -> float | None:
    """1 / the place of the first expected file among the files found, 0 when none is; None when none is expected."""
    if not expected:
        return None
    files = dict.fromkeys(path for path, _, _ in places)
    return next((1 / place for place, file in enumerate(files, 1) if file in expected), 0.0)


Key = tuple[str, str, int]
Ranked = tuple[int, Hit]


def _keyed(hits: Sequence[Hit], paths: Mapping[str, str]) -> Iterator[tuple[Key, Ranked]]:
    """Hits with their rank, by what is the same place in both releases: path, section, and which of its passages."""
    seen: Counter[tuple[str, str]] = Counter()
    for rank, hit in enumerate(hits, 1):
        path = paths.get(hit["source_file"], hit["source_file"])
        section = hit["fragment_id"].rpartition("#")[2].rpartition(":")[0]
        seen[path, section] += 1
        yield (path, section, seen[path, section]), (rank, hit)


def _place(key: Key, old: Ranked | None, new: Ranked | None, expected: Collection[str]) -> Place:
    return Place(
        path=key[0],
        section=key[1],
        old_rank=old[0] if old else None,
        new_rank=new[0] if new else None,
        old_score=old[1]["score"] if old else None,
        new_score=new[1]["score"] if new else None,
        expected=key[0] in expected,
        rewritten=bool(old and new and old[1]["span_sha256"] != new[1]["span_sha256"]),
    )


def _mean(values: Sequence[float]) -> float | None:
    return round(fmean(values), 6) if values else None
