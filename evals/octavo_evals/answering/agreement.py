"""Agreement of two judges of the same citations: two models, or a model and the server's check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from octavo_artifact.errors import ConfigError
from octavo_artifact.ids import sha256_hex
from octavo_evals.answering.faithfulness import Pair, read_faithfulness
from octavo_evals.answering.results import read_answers
from octavo_evals.results import ANSWERS, kind_of


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What one judge says of citations."""

    answers_sha256: str
    """Of the file of results whose answers they are."""
    judge: str
    decided: Mapping[Pair, bool]
    """Whether the passage says so; without what it did not decide."""
    asked: frozenset[Pair]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two judges of the same pairs: a table of two by two, and what follows from it."""

    both_yes: int
    first_only: int
    """The first says yes, the second no."""
    second_only: int
    both_no: int
    left_out: int = 0
    """Pairs that one of them did not decide."""

    @property
    def count(self) -> int:
        """Pairs that both decided."""
        return self.both_yes + self.first_only + self.second_only + self.both_no

    @property
    def observed(self) -> float | None:
        """Share of the pairs on which they agree; None without a pair."""
        return (self.both_yes + self.both_no) / self.count if self.count else None

    @property
    def expected(self) -> float | None:
        """Share on which two judges would agree who say yes as often as these and look at nothing."""
        if not self.count:
            return None
        first, second = self.both_yes + self.first_only, self.both_yes + self.second_only
        return (first * second + (self.count - first) * (self.count - second)) / self.count**2

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa (1960): the part of what chance leaves that they agree on. 1 is always, 0 as chance would, less
        than 0 seldomer. None without a pair, and where both say the same of all: chance leaves nothing then.
        """
        if self.observed is None or self.expected is None or self.expected == 1:
            return None
        return (self.observed - self.expected) / (1 - self.expected)


def read_verdicts(path: Path) -> Verdicts:
    """The verdicts of a judge model, or from results those of the server's own check. Raises ConfigError."""
    if kind_of(path) != ANSWERS:
        found = read_faithfulness(path)
        decided = {each.pair: each.said == "yes" for each in found.pairs if each.said in ("yes", "no")}
        return Verdicts(found.answers_sha256, found.judge, decided, frozenset(each.pair for each in found.pairs))
    checked = {
        Pair(answered.case.id, place, citation.number): citation.supported
        for answered in read_answers(path).answers
        if answered.written.end == "answered"
        for place, sentence in enumerate(answered.written.sentences)
        for citation in sentence.citations
    }
    decided = {pair: supported for pair, supported in checked.items() if supported is not None}
    return Verdicts(sha256_hex(path.read_bytes()), "check", decided, frozenset(checked))


def agreement(first: Verdicts, second: Verdicts) -> Agreement:
    """How two judges agree on the pairs that both decided. Raises ConfigError when they judged other answers."""
    if first.answers_sha256 != second.answers_sha256:
        raise ConfigError("the two judges judged different answers; expected both of the same file of results")
    both = first.decided.keys() & second.decided.keys()
    table = [(first.decided[pair], second.decided[pair]) for pair in both]
    return Agreement(
        both_yes=table.count((True, True)),
        first_only=table.count((True, False)),
        second_only=table.count((False, True)),
        both_no=table.count((False, False)),
        left_out=len((first.asked | second.asked) - both),
    )
