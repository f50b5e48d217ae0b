"""Why a search answered as it did: what each stage made of each passage, and how long it took."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Self

from octavo_serve.candidates import Candidates
from octavo_serve.ranking import Ranking
from octavo_serve.results import Explanation, Step, StepOfHit

_SIGNALS = ("words", "nearest", "documents")
"""What the stages before fusion make, each by itself."""


@dataclass(frozen=True, slots=True)
class _Noted:
    stage: str
    milliseconds: float
    rankings: Mapping[str, Ranking]
    """What the stage made or changed."""


class Trace:
    """What was noted of a search while it ran."""

    def __init__(self, begun: float) -> None:
        self._last = begun
        self._known: dict[str, Ranking] = {}
        self.noted: list[_Noted] = []

    @classmethod
    def begin(cls) -> Self:
        """A trace whose first stage begins now."""
        return cls(perf_counter())

    def note(self, stage: str, found: Candidates) -> None:
        """A stage has just ended with this."""
        now = perf_counter()
        rankings = {name: getattr(found, name) for name in (*_SIGNALS, "ranking")}
        changed = {name: ranking for name, ranking in rankings.items() if ranking is not self._known.get(name)}
        self._known = rankings
        new = {name: ranking for name, ranking in changed.items() if len(ranking)}
        self.noted.append(_Noted(stage, round((now - self._last) * 1000, 3), new))
        self._last = perf_counter()


def explanation(found: Candidates, trace: Trace, shown: Container[str]) -> Explanation:
    """All that is known of how the search came to its answer; of the hits, of those whose fragment ids are `shown`."""
    query = found.query
    return {
        "intent": query.intent,
        "terms": [list(term) for term in query.terms],
        "literals": list(query.literals),
        "phrases": list(query.phrases),
        "languages": list(found.asked.collection.lexical.languages),
        "parameters": asdict(found.asked.parameters),
        "stages": [_step(noted) for noted in trace.noted],
        "hits": {
            hit["fragment_id"]: _of_hit(row, trace.noted)
            for row, hit in zip(found.ranking.rows.tolist(), found.hits, strict=False)
            if hit["fragment_id"] in shown
        },
    }


def _step(noted: _Noted) -> Step:
    return {
        "stage": noted.stage,
        "milliseconds": noted.milliseconds,
        "passages": max((len(ranking) for ranking in noted.rankings.values()), default=None),
    }


def _of_hit(row: int, noted: Sequence[_Noted]) -> list[StepOfHit]:
    """Where a passage stood after each stage that ranked it anew."""
    return [
        {
            "stage": each.stage if name == "ranking" else f"{each.stage}: {name}",
            "rank": rank,
            "score": None if rank is None else round(float(ranking.scores[rank - 1]), 6),
        }
        for each in noted
        for name, ranking in each.rankings.items()
        for rank in (ranking.rank_of(row),)
    ]
