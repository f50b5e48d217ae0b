"""The relevance gate: how probable it is that a pack's best passages answer a question.

The compiler measures each pack's own scale with it, the server judges questions by it; both compute the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
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
TELLING = math.log(10)
"""Weight from which on a name tells passages apart: at most one in ten has it. The name of what the whole pack is about
does not."""
BRIEF = 3
"""Terms up to which a question is brief: by so few, one passage has them all by chance."""


LOOKED_AT = 5
"""Passages at the head of an answer in which a question's terms are looked for."""
BEYOND = 50
"""Place among the passages by nearness whose cosine is what the pack has for any such question."""


@dataclass(frozen=True, slots=True)
class Weights:
    """A logistic over seven features; see `Features`."""

    intercept: float
    nearness: float
    lead: float
    evidence: float
    coverage: float
    name: float
    terms: float
    brief: float


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

    def inputs(self, features: Features) -> tuple[float, ...]:
        """What the weights but the intercept multiply, in their order; cosines on the pack's own scale."""
        span = self.own - self.unrelated
        beyond = self.unrelated if features.beyond is None else features.beyond
        return (
            (features.cosine - self.unrelated) / span,
            (features.cosine - beyond) / span,
            features.evidence,
            features.coverage,
            float(features.name),
            min(features.terms, MANY_TERMS),
            float(features.terms <= BRIEF),
        )

    def probability(self, features: Features) -> float:
        """That the best passages answer: 0 to 1."""
        intercept, *factors = astuple(self.weights)
        logit = intercept + sum(a * b for a, b in zip(factors, self.inputs(features), strict=True))
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, logit))))


@dataclass(frozen=True, slots=True)
class Features:
    """What a question and the best passages have to do with each other."""

    cosine: float
    """Of the nearest passage's best window."""
    beyond: float | None
    """Of the passage in place BEYOND; None where there are fewer, which says as much as an unrelated question."""
    evidence: float
    """Share of the question's terms, by their weight, for which the first passage speaks: 0 to 1."""
    coverage: float
    """Share of the question's terms that are no names, by their weight, which one of the first passages has: 0 to 1."""
    name: bool
    """Whether the first passage lacks a name that the question has, other than one that most passages have."""
    terms: int
    """Distinct terms of the question: the longer it is, the less of it one passage can have."""


def features(
    cosine: float,
    beyond: float | None,
    weights: Mapping[TermT, float],
    named: Collection[TermT],
    passages: Sequence[Mapping[TermT, float]],
) -> Features:
    """Compare the terms of a question with the first passages, at least one.

    `weights` is the inverse document frequency of each term, `named` has those that are names, `passages` how often
    each passage has the terms it has.
    """
    first, total = passages[0], sum(weights.values())
    found = sum(weight * first[term] / (first[term] + 1) for term, weight in weights.items() if term in first)
    plain = [term for term in weights if term not in named]
    askable = sum(weights[term] for term in plain)
    covered = max(sum(weights[term] for term in plain if term in passage) for passage in passages)
    lacks_name = any(weights.get(term, 0.0) >= TELLING and term not in first for term in named)
    return Features(
        cosine,
        beyond,
        evidence=found / total if total else 0.0,
        coverage=covered / askable if askable else float(not lacks_name),
        name=lacks_name,
        terms=len(weights),
    )


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
