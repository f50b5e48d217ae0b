"""The relevance gate: how probable it is that a pack's best passages answer a question.

The compiler measures each pack's own scale with it, the server judges questions by it; both compute the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from octavo_artifact.errors import ArtifactError

TermT = TypeVar("TermT")

OWN_WORDS = 1 / 4
"""Share of a question's words that the pack has at least, if it is in the pack's language: `how`, `the` and `is` do
for most."""
FEW_WORDS = 4
"""Words from which on a question can be said to be in a language."""
MANY_TERMS = 8
"""Terms from which on a question's length says nothing more."""


@dataclass(frozen=True, slots=True)
class Weights:
    """A logistic over five features; see `Features`."""

    intercept: float
    nearness: float
    evidence: float
    missing: float
    name: float
    terms: float


@dataclass(frozen=True, slots=True)
class Gate:
    """How a pack's answers are judged."""

    unrelated: float
    """Best cosine that a question about something else finds in the pack: the median."""
    own: float
    """Best cosine that the pack's own headings find: the median."""
    refuse_below: float
    """Probability below which nothing is answered."""
    doubt_below: float
    """Probability below which an answer is marked as doubtful."""
    weights: Weights
    questions: Mapping[str, int]
    """How many questions of each kind calibrated it: own, withheld, unrelated."""
    roc: tuple[Mapping[str, float], ...]
    """For some thresholds, the share of each kind's questions that is refused."""

    def __post_init__(self) -> None:
        if not self.unrelated < self.own:
            raise ArtifactError(f"gate: own is {self.own}, expected more than unrelated, {self.unrelated}")

    def inputs(self, features: Features) -> tuple[float, float, float, float, float]:
        """What the weights but the intercept multiply, in their order; the cosine on the pack's own scale."""
        nearness = (features.cosine - self.unrelated) / (self.own - self.unrelated)
        terms = min(features.terms, MANY_TERMS)
        return nearness, features.evidence, features.missing, float(features.name), terms

    def probability(self, features: Features) -> float:
        """That the best passages answer: 0 to 1."""
        weights = self.weights
        factors = (weights.nearness, weights.evidence, weights.missing, weights.name, weights.terms)
        logit = weights.intercept + sum(a * b for a, b in zip(factors, self.inputs(features), strict=True))
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, logit))))


@dataclass(frozen=True, slots=True)
class Features:
    """What a question and the best passages have to do with each other."""

    cosine: float
    """Of the nearest window."""
    evidence: float
    """Share of the question's terms, by their weight, for which the best passage speaks: 0 to 1."""
    missing: float
    """Weight of the weightiest term that the best passage lacks, as a share of the weight of an unknown word."""
    name: bool
    """Whether the best passage lacks a name that the question has."""
    terms: int
    """Distinct terms of the question: the longer it is, the less of it one passage can have."""


def features(
    cosine: float,
    weights: Mapping[TermT, float],
    named: Collection[TermT],
    passage: Mapping[TermT, float],
    unknown: float,
) -> Features:
    """Compare the terms of a question with the best passage.

    `weights` is the inverse document frequency of each term, `named` has those that are names, `passage` how often the
    passage has those it has, `unknown` is the weight of a term that no passage has.
    """
    total = sum(weights.values())
    found = sum(weight * passage[term] / (passage[term] + 1) for term, weight in weights.items() if term in passage)
    missing = max((weight for term, weight in weights.items() if term not in passage), default=0.0)
    lacks_name = any(term in weights and term not in passage for term in named)
    return Features(cosine, found / total if total else 0.0, missing / unknown, lacks_name, len(weights))


def inverse_document_frequency(passages: int, containing: int) -> float:
    """The weight of a term as BM25 has it: high for a term that few of the passages contain."""
    return math.log(1 + (passages - containing + 0.5) / (containing + 0.5))


def spelled_alike(term: str, vocabulary: Iterable[str]) -> list[str]:
    """Those words that differ from `term` by one letter more, less, other or changed places: it may be a slip."""
    # one edit leaves what is before or what is behind the middle as it is: few words need to be compared by letters
    middle = max(3, len(term) // 2)
    head, tail, lengths = term[:middle], term[middle + 1 :], range(len(term) - 1, len(term) + 2)
    near = (word for word in vocabulary if (word.startswith(head) or word.endswith(tail)) and len(word) in lengths)
    return [word for word in near if _one_edit(*sorted((term, word), key=len))]


def names_in(question: str) -> str:
    """The words of a question that look like names: those after the first that have a capital."""
    words = question.split()
    return " ".join(word for word in words[1:] if word != word.lower())


def may_be_misspelled(term: str) -> bool:
    """Whether a term is long enough that a word one letter away is likely to be meant."""
    return len(term) > 4 and term.isalpha()


def is_foreign(known: int, words: int) -> bool:
    """Whether a question of `words` words, `known` of them in the pack, is in a language that is not the pack's.

    Such a question shares no words with a passage that may well answer it.
    """
    return words >= FEW_WORDS and known < OWN_WORDS * words


def _one_edit(short: str, long: str) -> bool:
    at = next((place for place, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) < len(long):
        return short[at:] == long[at + 1 :]
    return short[at + 1 :] == long[at + 1 :] or (
        short[at + 2 :] == long[at + 2 :] and short[at : at + 2] == long[at : at + 2][::-1]
    )
