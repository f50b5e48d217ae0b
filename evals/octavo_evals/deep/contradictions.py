"""Statements of different documents that are about the same and give different numbers.

Two statements are about the same when they share most of their rare words and are near in meaning. Measured on the
community packs: of what is told, about two in three are real contradictions, the others are of a different case.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from octavo_evals.deep.quantities import MAX_QUANTITIES, Quantity, conflict, quantities
from octavo_evals.deep.statements import Statement, statements
from octavo_evals.deep.subject import Found, Subject

SHARED_TERMS = 3
COMMON = 0.5
"""Of the weight of the shorter statement's terms, the part that the other must have."""
NEAR = 0.6
"""Cosine of the statements."""
STRENGTH = 0.1
"""Product of that part, the same part of the longer statement, and the cosine."""
JOINING_TERMS = 8
"""Of a statement, its rarest, by which the statements to compare are found."""
COMMON_TERM = 60
"""A term by which more statements would be found joins none of them: it bounds the pairs."""
MAX_COMPARED = 1_000
"""Pairs whose meanings are compared, those with most in common: 10 s of encoding at most."""
SHOWN_OTHERS = 5
SHOWN = 120
"""Characters of a statement in a message."""

_SUPPOSED = re.compile(r"[=≈]|\b(?:examples?|e\.g\.|suppose|assum\w+)\b", re.IGNORECASE)
"""What is reckoned or supposed holds for its case only."""
_PER = re.compile(r"\bper\s+(\w+(?:\s+\w+)?)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement with numbers."""

    path: str
    line: int
    statement: Statement
    terms: frozenset[str]
    quantities: tuple[Quantity, ...]
    per: frozenset[str]
    """What its numbers are reckoned by, in words."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two claims, by their places in the list, that may contradict each other."""

    common: float
    """Product of the shared weight's part of either claim."""
    one: int
    other: int
    unit: str


def check_contradictions(subject: Subject) -> Iterator[Found]:
    """One finding for all claims that contradict each other, at the first of them, with the places of the others."""
    claims, weights = _claims(subject)
    pairs = sorted(_pairs(claims, weights), key=lambda pair: (-pair.common, pair.one, pair.other))
    kept = [pair for pair in pairs[:MAX_COMPARED] if pair.common * _nearness(subject, claims, pair) >= STRENGTH]
    for group in _joined(kept):
        first, *others = sorted({place for pair in group for place in (pair.one, pair.other)})
        unit = group[0].unit
        against = "; ".join(
            f"{claims[place].path}:{claims[place].line} {_told(claims[place], unit)}" for place in others[:SHOWN_OTHERS]
        )
        message = f"{_told(claims[first], unit)}; {against}"
        yield Found(claims[first].path, claims[first].line, "deep-contradiction", message)


def _claims(subject: Subject) -> tuple[list[Claim], dict[str, float]]:
    """All statements with numbers, in the pack's order, and how much each term weighs (idf over all statements)."""
    claims: list[Claim] = []
    frequency: Counter[str] = Counter()
    number = 0
    for passage in subject.passages:
        for statement in statements(passage.text):
            terms = frozenset(term for (term, *_) in subject.lexical.terms(statement.text) if not term.isdigit())
            frequency.update(terms)
            number += 1
            found = tuple(quantities(statement.text))
            if found and len(found) <= MAX_QUANTITIES and not _SUPPOSED.search(statement.text):
                line = passage.line_of(statement.line)
                per = frozenset(each[1].casefold() for each in _PER.finditer(statement.text))
                claims.append(Claim(passage.path, line, statement, terms, found, per))
    return claims, {term: math.log(number / count) for term, count in frequency.items()}


def _pairs(claims: Sequence[Claim], weights: dict[str, float]) -> Iterator[Pair]:
    """Claims of different documents about the same with a unit in which no number of one agrees with the other's."""
    having: dict[str, list[int]] = {}
    for place, claim in enumerate(claims):
        for term in sorted(claim.terms, key=lambda term: (-weights[term], term))[:JOINING_TERMS]:
            having.setdefault(term, []).append(place)
    candidates = {pair for places in having.values() if len(places) <= COMMON_TERM for pair in combinations(places, 2)}
    for one, other in sorted(candidates):
        if claims[one].path == claims[other].path or claims[one].per != claims[other].per:
            continue
        common = _common(claims[one].terms, claims[other].terms, weights)
        unit = _disagreement(claims[one].quantities, claims[other].quantities) if common else None
        if unit is not None:
            yield Pair(common, one, other, unit)


def _common(one: frozenset[str], other: frozenset[str], weights: dict[str, float]) -> float:
    shared = one & other
    if len(shared) < SHARED_TERMS:
        return 0.0
    weight, *both = (math.fsum(weights[term] for term in terms) for terms in (shared, one, other))
    return weight * weight / (both[0] * both[1]) if weight >= COMMON * min(both) and all(both) else 0.0


def _disagreement(one: Iterable[Quantity], other: Sequence[Quantity]) -> str | None:
    """The first unit, by name, in which every number of one conflicts with every number of the other."""
    conflicts: dict[str, bool] = {}
    for left in one:
        for right in other:
            if left.unit == right.unit:
                conflicts[left.unit] = conflicts.get(left.unit, True) and conflict(left, right)
    return min((unit for unit, found in conflicts.items() if found), default=None)


def _nearness(subject: Subject, claims: Sequence[Claim], pair: Pair) -> float:
    vectors = [subject.encoder.encode(claims[place].statement.text) for place in (pair.one, pair.other)]
    cosine = float(vectors[0] @ vectors[1])
    return cosine if cosine >= NEAR else 0.0


def _joined(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """Pairs of one unit that share a claim, together; in the order of their first claims."""
    groups: list[list[Pair]] = []
    for pair in pairs:
        touching = [
            group
            for group in groups
            if any(each.unit == pair.unit and {each.one, each.other} & {pair.one, pair.other} for each in group)
        ]
        groups = [group for group in groups if group not in touching]
        groups.append([pair, *(each for group in touching for each in group)])
    return sorted(groups, key=lambda group: min((pair.one, pair.other) for pair in group))


def _told(claim: Claim, unit: str) -> str:
    """The number and the words around it."""
    first = next(quantity for quantity in claim.quantities if quantity.unit == unit)
    text = claim.statement.text
    start = max(0, min(first.start - SHOWN // 2, len(text) - SHOWN))
    shown = text[start : start + SHOWN]
    return f'says {first.shown}: "{"…" if start else ""}{shown}{"…" if start + SHOWN < len(text) else ""}"'
