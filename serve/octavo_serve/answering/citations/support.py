"""Whether a passage says what a sentence claims: rules that can be explained, and an encoder where there is one.

A sentence is supported when

* the passage speaks of it: it has most of its words, and where there is an encoder, says something near it in meaning;
* its names, codes and literals stand in the passage;
* each of its numbers does, with its unit, and near to the same words;
* the passage does not say the opposite (see `polarity`).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from octavo_artifact.literals import literals_of, phrases_of
from octavo_artifact.text import normalise
from octavo_serve.answering.citations.polarity import Sign, contradicted, signs
from octavo_serve.answering.citations.prose import Span
from octavo_serve.answering.citations.quantities import Quantity, quantities
from octavo_serve.answering.citations.sentences import split_passage
from octavo_serve.answering.citations.words import Word, alike, common, words

Encode = Callable[[str], NDArray[np.float32]]
"""The vector of a text: float32 [dim], unit length."""

Reason = Literal["terms", "meaning", "number", "negation"]

MAX_SENTENCE = 2_000
"""Characters of a sentence that are checked."""
_ATTRIBUTION = re.compile(
    r"(?:according to|based on|as (?:described|explained|mentioned|noted|shown|stated) (?:by|in))(?: the)?"
    r"(?: (?:cited|given|provided))?(?: (?:context|docs|documentation|documents?|passages?|sources?|text))?\s*[,:]\s*"
    r"|the (?:context|docs|documentation|documents?|passages?|sources?|text)"
    r" (?:(?:describes|explains|mentions|notes|says|states)(?: that)?|(?:explain|mention|note|say|state) that)\s+",
    re.IGNORECASE,
)
"""What says whence a claim is and belongs to none."""
WIDEST = 3
"""Neighbouring parts of a passage that may be evidence together."""
WIDER = 0.03
"""Share of the words that one more part must add to be worth it."""
COMPARED = 8
"""Parts, those with most of the words, whose meaning is compared."""

# On the labelled pairs for development (evals/answers/support.yaml) precision is above .95 from .55 to .68 of either,
# and F1 the highest at .66 (.94).
ENOUGH_WORDS = 0.66
"""Share of a sentence's words that a passage must have."""
ENOUGH = 0.66
"""Mean of that share and the cosine, where there is an encoder."""

NEAR_CLAIM, NEAR_FOUND = 5, 8
"""Content words on either side of a number that say what it is the number of; a passage is less to the point."""
SUBJECT = 4
"""First words of a part, which say what a row or an item is about."""
FEW = 2
"""Words near a number up to which those of the headings may say what it is the number of."""
LIKELIER = 2
"""Words by which another number of the same unit must be nearer to what is claimed to be what is meant."""
MAX_NUMBERS = 32
"""Numbers of a sentence that are looked for."""
MAX_WORDS = 200
"""Words of a part that may contradict; what has more is data."""
RELEVANT = 0.3
"""Share of the words from which on a part, and those beside it, may contradict."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What comes of a check."""

    supported: bool
    reason: Reason | None
    """Why not: the passage lacks its words or literals (`terms`), is not near in `meaning`, has another `number`, or
    says the opposite (`negation`).
    """
    score: float
    """0 to 1: how far the passage speaks of what the sentence does, whatever it says of it."""
    span: Span
    """Characters of the passage that speak of it best: one part, or a few neighbouring ones."""


@dataclass(frozen=True, slots=True)
class _Number:
    quantity: Quantity
    """Without its place."""
    near: frozenset[str]
    """Stems of the words around it."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A sentence, a list item, a row of a table or a line of code of a passage."""

    start: int
    end: int
    stems: frozenset[str]
    signs: tuple[Sign, ...]


@dataclass(frozen=True, slots=True)
class _Passage:
    text: str
    parts: tuple[_Part, ...]
    stems: frozenset[str]
    """Of all its words, its headings, and its context."""
    context: frozenset[str]
    numbers: tuple[_Number, ...]
    """Of all parts, each once."""
    given: tuple[Quantity, ...]
    """Numbers of the context, which stand near to everything."""
    letters: str
    """Its text and context, folded, in which literals are looked for."""


@dataclass(frozen=True, slots=True)
class _Claim:
    text: str
    stems: tuple[str, ...]
    """Each once, in order."""
    numbers: tuple[_Number, ...]
    literals: tuple[str, ...]
    signs: tuple[Sign, ...]


def check(sentence: str, passage: str, encode: Encode | None = None, context: str = "") -> Verdict:
    """Whether a passage says what a sentence claims.

    `context` is the passage's title and headings: their words count as the passage's, but are no evidence. A sentence
    that claims nothing ("Yes.") is supported. Raises what `encode` raises.
    """
    attribution = _ATTRIBUTION.match(sentence)
    claim = _claim(sentence[attribution.end() if attribution else 0 :][:MAX_SENTENCE])
    source = _passage(passage, context)
    if not claim.stems and not claim.numbers and not claim.literals:
        return Verdict(True, None, 1.0, (0, 0))
    masks = _masks(claim.stems, source)
    everywhere = _share(_union(masks.values()), claim.stems)
    parts = [_union(masks.get(stem, 0) for stem in part.stems) for part in source.parts]
    given = _union(masks.get(stem, 0) for stem in source.context)
    first, last = _best_window(parts, given, claim.stems)
    span = (source.parts[first].start, source.parts[last].end) if source.parts else (0, 0)
    score, enough = everywhere, everywhere >= ENOUGH_WORDS
    if encode is not None and (everywhere + 1) / 2 < ENOUGH:
        # whatever the encoder says; most of the passages that a sentence does not cite are such
        score = everywhere / 2
    elif encode is not None and source.parts:
        shares = [_share(part | given, claim.stems) for part in parts]
        cosine, span = _nearest(claim, source, shares, span, encode)
        score = (everywhere + max(0.0, cosine)) / 2
        enough = score >= ENOUGH
    reason: Reason | None = None
    if not enough:
        reason = "terms" if everywhere < ENOUGH_WORDS else "meaning"
    elif any(not _has_literal(source, literal) for literal in claim.literals):
        reason = "terms"
    elif any(not _has_number(source, number) for number in claim.numbers):
        reason = "number"
    elif contradicted(claim.signs, list(_relevant(source, parts, claim.stems, first, last))):
        reason = "negation"
    return Verdict(reason is None, reason, score, span)


def _claim(sentence: str) -> _Claim:
    told = words(sentence)
    return _Claim(
        text=sentence,
        stems=tuple(dict.fromkeys(word.stem for word in told if word.is_content)),
        numbers=tuple(number for number in _numbers(sentence, told, NEAR_CLAIM, 0) if number.quantity.claimed)[
            :MAX_NUMBERS
        ],
        literals=tuple(dict.fromkeys([*literals_of(sentence), *phrases_of(sentence)])),
        signs=signs(told[:MAX_WORDS]),
    )


@lru_cache(maxsize=64)
def _passage(text: str, context: str) -> _Passage:
    given = frozenset(word.stem for word in words(context) if word.is_content)
    told = words(text)
    starts = [word.start for word in told]
    parts: list[_Part] = []
    numbers: dict[_Number, None] = {}
    for start, end in split_passage(text):
        own = told[bisect_left(starts, start) : bisect_left(starts, end)]
        stems = frozenset(word.stem for word in own if word.is_content)
        parts.append(_Part(start, end, stems, signs(own[:MAX_WORDS])))
        numbers.update(dict.fromkeys(_numbers(text[start:end], own, NEAR_FOUND, SUBJECT, start)))
    return _Passage(
        text=text,
        parts=tuple(parts),
        stems=frozenset(word.stem for word in told if word.is_content) | given,
        context=given,
        numbers=tuple(numbers),
        given=tuple(quantities(context)),
        letters=_letters(f"{text} {context}"),
    )


def _numbers(text: str, told: Sequence[Word], reach: int, subject: int, offset: int = 0) -> Iterator[_Number]:
    """The numbers of a text, with `reach` content words on either side and the `subject` first ones of the text.

    The words count their characters from `offset` before the text.
    """
    content = [word for word in told if word.is_content]
    starts = [word.start - offset for word in content]
    for quantity in quantities(text):
        before, after = bisect_left(starts, quantity.start), bisect_left(starts, quantity.end)
        around = content[max(0, before - reach) : before] + content[after : after + reach] + content[:subject]
        yield _Number(replace(quantity, start=0, end=0), frozenset(word.stem for word in around))


def _masks(stems: Sequence[str], source: _Passage) -> dict[str, int]:
    """Stems of the passage to those of the sentence that they stand for, a bit each."""
    by_beginning: dict[str, list[tuple[str, int]]] = {}
    for bit, stem in enumerate(stems):
        by_beginning.setdefault(stem[:4], []).append((stem, 1 << bit))
    found: dict[str, int] = {}
    for stem in source.stems:
        mask = sum(bit for own, bit in by_beginning.get(stem[:4], ()) if alike(own, stem))
        if mask:
            found[stem] = mask
    return found


def _union(masks: Iterable[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union


def _share(mask: int, stems: Sequence[str]) -> float:
    return mask.bit_count() / len(stems) if stems else 1.0


def _best_window(parts: Sequence[int], given: int, stems: Sequence[str]) -> tuple[int, int]:
    """The first and last of the neighbouring parts that have most of the words; the earliest and shortest such."""
    best, window = -1.0, (0, 0)
    for first in range(len(parts)):
        mask = given
        for last in range(first, min(first + WIDEST, len(parts))):
            mask |= parts[last]
            share = _share(mask, stems) - WIDER * (last - first)
            if share > best:
                best, window = share, (first, last)
    return window


def _nearest(
    claim: _Claim, source: _Passage, shares: Sequence[float], window: Span, encode: Encode
) -> tuple[float, Span]:
    """The best cosine of the sentence and a part of the passage or that window, and where that is."""
    order = sorted(range(len(source.parts)), key=lambda place: (-shares[place], place))[:COMPARED]
    spans = dict.fromkeys([window, *((source.parts[place].start, source.parts[place].end) for place in order)])
    vector = encode(claim.text)
    cosines = [(float(vector @ encode(source.text[start:end])), (start, end)) for start, end in spans]
    best = max(cosine for cosine, _ in cosines)
    return next((cosine, span) for cosine, span in cosines if cosine == best)


def _letters(text: str) -> str:
    """What of a text literals are compared by: letters, figures and the marks within names."""
    return "".join(each for each in normalise(text).casefold() if each.isalnum() or each in "_/.-+#")


def _has_literal(source: _Passage, literal: str) -> bool:
    """Whether a literal stands in the passage, or all the words that it is made of do."""
    letters = _letters(literal)
    if letters in source.letters if letters else literal in source.text:
        return True
    made_of = [word.stem for word in words(literal) if word.is_content]
    return bool(made_of) and all(stem in source.stems for stem in made_of)


def _has_number(source: _Passage, claimed: _Number) -> bool:
    """Whether the number stands in the passage, near to the words around it, and no other nearer."""
    if any(claimed.quantity.says(quantity) for quantity in source.given):
        return True
    same, others = set[frozenset[str]](), set[frozenset[str]]()
    for found in source.numbers:
        near = found.near if len(found.near) > FEW else found.near | source.context
        if claimed.quantity.says(found.quantity):
            same.add(near)
        elif found.quantity.unit == claimed.quantity.unit:
            others.add(near)
    nearest = max((common(claimed.near, near) for near in same), default=0)
    other = max((common(claimed.near, near) for near in others), default=0)
    return bool(same) and (nearest > 0 or not claimed.near) and other < nearest + LIKELIER


def _relevant(
    source: _Passage, parts: Sequence[int], stems: Sequence[str], first: int, last: int
) -> Iterator[tuple[float, Sequence[Sign]]]:
    """The parts that may contradict, with their likeness to the sentence: by its words and its neighbours'."""
    shares = [_share(part, stems) for part in parts]
    for place, part in enumerate(source.parts):
        beside = max(shares[max(0, place - 1) : place + 2])
        if beside >= RELEVANT or first - 1 <= place <= last + 1:
            yield shares[place] + beside / 2, part.signs
