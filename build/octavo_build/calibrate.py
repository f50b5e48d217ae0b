"""The relevance gate's calibration: what the numbers of the gate are in this pack.

A pack's own headings are questions that it answers. Asked while their documents are left out, they are questions in
the pack's words that nothing answers; and some questions are about other things in every pack. The weights are the
same for all packs: fitted over questions that people would ask, which headings are not (see `WEIGHTS`). Nothing here
depends on other packs, and all sums are exact or in a fixed order, so that every machine calibrates alike.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from octavo_artifact.gate import (
    BEYOND,
    LOOKED_AT,
    Features,
    Gate,
    Weights,
    features,
    inverse_document_frequency,
    may_be_misspelled,
    names_in,
    spelled_alike,
)
from octavo_artifact.ids import sha256_hex
from octavo_artifact.parameters import DEFAULTS
from octavo_artifact.text import DEFAULT_LANGUAGE, Term, query_terms, terms_of
from octavo_build.lexical import stem
from octavo_build.whole_numbers import UNIT, Floats, in_units

WEIGHTS = Weights(
    intercept=-6.21, nearness=0.6, lead=3.48, evidence=3.31, coverage=1.56, name=-2.37, terms=0.45, brief=1.18
)
"""Fitted by `python -m octavo_evals.gate DIST --fit` over questions.yaml, unanswerable.yaml, gate.yaml and
calibration.yaml of evals/*/: 347 questions with an answer and 293 without, about six packs."""
REFUSE_BELOW = 0.25
DOUBT_BELOW = 0.4
"""Probabilities below which 4 and 10 in 100 of the answerable ones lie, by weights fitted without their pack. Those
questions are hard on purpose: at 3 in 100 (.18) a seventh fewer of the others are refused."""

UNRELATED = (
    "Who painted the ceiling of the Sistine Chapel?",
    "How long should I boil an egg so that the yolk stays soft?",
    "What is the capital of Mongolia?",
    "How do I file a tax return for a deceased relative?",
    "Which vaccine is given against yellow fever?",
    "How many players are on a cricket team?",
    "How do I knit a cable pattern into a jumper?",
    "What did the treaty of Westphalia end?",
    "How do I train a puppy to walk on a lead?",
    "What is the boiling point of ethanol?",
    "Which chess opening suits a beginner with the black pieces?",
    "How far away is the nearest galaxy?",
    "How do I tune the strings of a violin?",
    "Which mortgage is better, fixed or variable rate?",
    "How do I prune an old apple tree?",
    "What is the notice period of a tenancy agreement?",
    "Which trains run overnight from Vienna to Venice?",
    "How do I prove that the square root of two is irrational?",
    "How do I write a SELECT statement with a left join in SQL?",
    "How do I make a pivot table in a spreadsheet?",
    "What is the annual revenue of the company?",
    "translate good morning into Spanish",
    "what is the weather like tomorrow",
    "hello, how are you today?",
)
"""Questions of several fields; a pack that is about one of them has the others. Few enough to
be encoded without workers."""

QUESTIONS = 100
"""Own questions that are asked at most: enough to count 3 in 100."""
_ENOUGH = 10
# Below so many own questions the threshold falls in proportion: of four pages, even plain words may not be among them.
_TYPICAL = 30
_THRESHOLDS = tuple(round(0.1 * step, 1) for step in range(1, 10))
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？])")

Encode = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Searched:
    """A passage as a search sees it."""

    document: int
    heading: str
    """Its own, or the document's title."""
    visible: str
    indexed: str
    """Made by `octavo_artifact.text.lexical_text`."""
    language: str = DEFAULT_LANGUAGE


def calibrate(
    passages: Sequence[Searched], windows: Sequence[int], vectors: NDArray[np.float32], encode: Encode
) -> Gate | None:
    """Ask the pack's own questions and those about other things, and note the scale.

    `windows` has the passage row of each row of `vectors`, float32 [windows, dim]. `encode` gives the vectors of
    questions. None when there is nothing to find, or when own questions are no nearer than others.
    """
    asked = own_questions(passages)
    if not asked or not len(windows):
        return None
    index = _Index(passages, np.array(windows), vectors)
    unrelated = [index.judge(index.look(*each), []) for each in zip(UNRELATED, encode(UNRELATED), strict=True)]
    looked = [index.look(*each) for each in zip(asked, encode(list(asked)), strict=True)]
    own = [index.judge(each, []) for each in looked]
    withheld = [index.judge(each, documents) for each, documents in zip(looked, asked.values(), strict=True)]
    scale = (_middle(unrelated), _middle(own))
    if scale[1] - scale[0] < 0.01:
        return None
    gate = Gate(*scale, REFUSE_BELOW, DOUBT_BELOW, WEIGHTS, {}, ())
    probabilities = {
        kind: sorted(gate.probability(each) for each in found if each is not None)
        for kind, found in (("own", own), ("withheld", withheld), ("unrelated", unrelated))
    }
    return Gate(
        *scale,
        # Headings are easier than what people ask, but some say nothing (`Part 3`). A pack of which the gate would
        # refuse more than that needs a lower threshold; so does a small one, where words weigh alike and few are known.
        _at_most(REFUSE_BELOW * min(1.0, len(own) / _TYPICAL), probabilities["own"], 0.1),
        _at_most(DOUBT_BELOW, probabilities["own"], 0.2),
        WEIGHTS,
        {kind: len(found) for kind, found in probabilities.items()},
        tuple(
            {"threshold": threshold, **{kind: _share_below(found, threshold) for kind, found in probabilities.items()}}
            for threshold in _THRESHOLDS
        ),
    )


def own_questions(passages: Sequence[Searched]) -> dict[str, list[int]]:
    """Questions that the pack answers, at most QUESTIONS, each with the documents that have it.

    Headings of three words and more; of a pack that has few, the first sentences of its passages.
    """
    found = _documents_of((each.heading, each.document) for each in passages if len(each.heading.split()) > 2)
    if len(found) < _ENOUGH:
        found = _documents_of((_first_sentence(each), each.document) for each in passages)
    # by hash: a sample that stays the same when other documents change
    chosen = sorted(found, key=lambda text: sha256_hex(text.encode()))[:QUESTIONS]
    return {text: found[text] for text in chosen}


def _documents_of(pairs: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for text, document in pairs:
        if text:
            found[text].append(document)
    return found


def _first_sentence(passage: Searched) -> str:
    prose = (line.strip() for line in passage.visible.splitlines() if not line.lstrip().startswith("#"))
    return _SENTENCE_END.split(next(filter(None, prose), passage.heading), maxsplit=1)[0][:200]


@dataclass(frozen=True, slots=True)
class _Looked:
    """What a question has to do with every passage."""

    cosines: Floats
    """Of the nearest window of each passage; -1 for one without windows."""
    frequencies: Mapping[Term, Floats]
    """How often each passage has the term, or one that it may be a slip of."""
    named: frozenset[Term]


class _Index:
    """The pack's passages, to be searched as the server does, but for the means of documents."""

    def __init__(self, passages: Sequence[Searched], windows: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        self._languages = sorted({passage.language for passage in passages})
        self._stems = [Counter(terms_of(passage.indexed, passage.language, stem)) for passage in passages]
        self._documents = np.array([passage.document for passage in passages])
        self._rows, self._starts = np.unique(windows, return_index=True)
        self._vectors = in_units(vectors)
        self._lengths = np.array([stems.total() for stems in self._stems], dtype=np.float64)
        self._postings: defaultdict[str, list[int]] = defaultdict(list)
        for row, stems in enumerate(self._stems):
            for each in stems:
                self._postings[each].append(row)
        self._alike: defaultdict[str, list[str]] = defaultdict(list)
        for each in self._postings:
            self._alike[each[:2]].append(each)

    def look(self, question: str, vector: NDArray[np.float32]) -> _Looked:
        """Compare a question and its vector with every passage."""
        cosines = np.full(len(self._documents), -1.0)
        cosines[self._rows] = np.maximum.reduceat(self._vectors @ in_units(vector), self._starts) / UNIT**2
        frequencies = {term: self._frequencies(term) for term in query_terms(question, self._languages, stem)}
        names = names_in(question)
        return _Looked(cosines, frequencies, frozenset(query_terms(names, self._languages, stem)))

    def judge(self, looked: _Looked, without: Sequence[int]) -> Features | None:
        """What the question has to do with the best passages outside of the documents `without`; None without any."""
        allowed = ~np.isin(self._documents, without)
        if not allowed[self._rows].any():
            return None
        count = int(allowed.sum())
        weights = {
            term: inverse_document_frequency(count, int((allowed & (found > 0)).sum()))
            for term, found in looked.frequencies.items()
        }
        best = self._best(self._words(looked.frequencies, weights), looked.cosines, allowed)
        passages = [
            {term: float(found[row]) for term, found in looked.frequencies.items() if found[row]} for row in best
        ]
        cosines = np.sort(looked.cosines[self._rows][allowed[self._rows]])[::-1]
        beyond = float(cosines[BEYOND - 1]) if len(cosines) >= BEYOND else None
        return features(float(cosines[0]), beyond, weights, looked.named, passages)

    def _frequencies(self, term: Term) -> Floats:
        found = np.zeros(len(self._documents))
        for spelling in term:
            known = spelling in self._postings
            slip = not known and may_be_misspelled(spelling)
            for each in spelled_alike(spelling, self._alike[spelling[:2]]) if slip else [spelling]:
                for row in self._postings.get(each, ()):
                    found[row] = max(found[row], self._stems[row][each])
        return found

    def _words(self, frequencies: Mapping[Term, Floats], weights: Mapping[Term, float]) -> Floats:
        """BM25 of each passage."""
        scores = np.zeros(len(self._documents))
        norm = 1.2 * (0.25 + 0.75 * self._lengths / max(self._lengths.mean(), 1))
        for term, found in frequencies.items():
            scores += weights[term] * found * 2.2 / (found + norm)
        return scores

    def _best(self, words: Floats, cosines: Floats, allowed: NDArray[np.bool_]) -> list[int]:
        """The first passages, best first."""
        scores = np.zeros(len(words))
        for found, weight in ((words, DEFAULTS.words_weight), (cosines, DEFAULTS.passage_weight)):
            best = found[allowed].max()
            if best > 0:
                scores += weight * np.maximum(found, 0) / best
        order = np.argsort(-np.where(allowed, scores, -1), kind="stable")
        return order[: min(LOOKED_AT, int(allowed.sum()))].tolist()


def _middle(found: Sequence[Features | None]) -> float:
    cosines = sorted(each.cosine for each in found if each is not None)
    return round(cosines[len(cosines) // 2], 4)


def _at_most(threshold: float, probabilities: Sequence[float], share: float) -> float:
    """`threshold`, or less where it would refuse more than a share of these, which are sorted."""
    # at least one of them may be: an index page says nothing
    place = min(max(1, int(share * len(probabilities))), len(probabilities) - 1)
    allowed = probabilities[place]
    return min(threshold, math.floor(allowed * 10_000) / 10_000)


def _share_below(probabilities: Sequence[float], threshold: float) -> float:
    return round(bisect_left(probabilities, threshold) / max(len(probabilities), 1), 4)
