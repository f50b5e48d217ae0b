"""How the last answers went: what `/stats` tells. In memory, of one process, bounded."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from pydantic import ConfigDict
from typing_extensions import TypedDict

from octavo_serve.answering.model import Usage
from octavo_serve.answering.outcomes import End, Outcome
from octavo_serve.answering.results import Timings

LAST = 1000
"""Questions of which times, tokens and costs are kept."""

_CONFIG = ConfigDict(use_attribute_docstrings=True, extra="forbid")


class Ends(TypedDict):
    """How many questions ended how."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    answered: int
    refused: dict[str, int]
    """By reason."""
    failed: dict[str, int]
    """By stage."""
    left: int
    """Of which nobody waited for the end."""


class AllEnds(Ends):
    """With those that never became work."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    busy: int
    """Turned away, for all slots were taken."""
    invalid: int
    """Of a pack that is not there, with a filter that is none, and the like."""


class Percentiles(TypedDict):
    """Milliseconds that half, and that 95 of 100, took at most."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    p50: float
    p95: float


class StageTimes(TypedDict):
    """Of the answers and refusals that have the stage; null where none has."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    retrieval: Percentiles | None
    first_token: Percentiles | None
    """From the prompt's sending to the first piece."""
    generation: Percentiles | None
    """From the prompt's sending to the last piece."""
    total: Percentiles | None
    """Of those for which the model was asked."""


class Tokens(TypedDict):
    """As the model counts them."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    prompt: int
    completion: int


class Recent(Ends):
    """The last questions, 1,000 at most."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    questions: int
    milliseconds: StageTimes
    tokens: Tokens
    cost_usd: float | None
    """By the prices in the settings; null without them."""


class StatsResult(TypedDict):
    """What a server, or one of its workers, tells of its answers."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    worker: int
    """The process that tells it; another one may answer the next request."""
    workers: int
    """Processes that answer, each with its own figures; `/metrics` has their sums."""
    slots: int
    """Answers that this one writes at once."""
    in_flight: int
    """Answers that it is writing."""
    since_start: AllEnds
    last: Recent


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is kept of a question: none of its words."""

    end: End
    why: str | None
    """Reason of a refusal, stage of a failure."""
    timings: Timings
    usage: Usage | None
    cost: float | None


class Stats:
    """Counts what became of questions. Used from the event loop only."""

    def __init__(self) -> None:
        self._all: Counter[tuple[End, str | None]] = Counter()
        self._last: deque[_Kept] = deque(maxlen=LAST)

    def add(self, outcome: Outcome) -> None:
        """Count a question that is over."""
        why = outcome.reason if outcome.end == "refused" else outcome.stage if outcome.end == "failed" else None
        self._all[outcome.end, why] += 1
        if outcome.timings is not None and outcome.end != "invalid":
            self._last.append(_Kept(outcome.end, why, outcome.timings, outcome.usage, outcome.cost))

    def told(self, *, worker: int, workers: int, slots: int, in_flight: int) -> StatsResult:
        """All of it."""
        last = list(self._last)
        costs = [each.cost for each in last if each.cost is not None]
        usages = [each.usage for each in last if each.usage is not None]
        return {
            "worker": worker,
            "workers": workers,
            "slots": slots,
            "in_flight": in_flight,
            "since_start": {
                **_ends(self._all),
                "busy": self._all["busy", None],
                "invalid": self._all["invalid", None],
            },
            "last": {
                **_ends(Counter((each.end, each.why) for each in last)),
                "questions": len(last),
                "milliseconds": _times(last),
                "tokens": {
                    "prompt": sum(usage.prompt_tokens for usage in usages),
                    "completion": sum(usage.completion_tokens for usage in usages),
                },
                "cost_usd": sum(costs) if costs else None,
            },
        }


def _ends(counts: Counter[tuple[End, str | None]]) -> Ends:
    return {
        "answered": counts["answered", None],
        "refused": {why: count for (end, why), count in sorted(_named(counts)) if end == "refused"},
        "failed": {why: count for (end, why), count in sorted(_named(counts)) if end == "failed"},
        "left": counts["left", None],
    }


def _named(counts: Counter[tuple[End, str | None]]) -> Iterable[tuple[tuple[End, str], int]]:
    return (((end, why), count) for (end, why), count in counts.items() if why is not None)


def _times(last: Sequence[_Kept]) -> StageTimes:
    whole = [each.timings for each in last if each.end in ("answered", "refused")]
    asked = [each for each in whole if each["generation_ms"] is not None]
    return {
        "retrieval": _percentiles([each["retrieval_ms"] for each in whole]),
        "first_token": _percentiles([each["ttft_ms"] for each in asked if each["ttft_ms"] is not None]),
        "generation": _percentiles([each["generation_ms"] for each in asked if each["generation_ms"] is not None]),
        "total": _percentiles([each["total_ms"] for each in asked]),
    }


def _percentiles(times: Sequence[float]) -> Percentiles | None:
    """By nearest rank: each is a time that was measured."""
    if not times:
        return None
    ordered = sorted(times)
    return {"p50": ordered[ceil(0.5 * len(ordered)) - 1], "p95": ordered[ceil(0.95 * len(ordered)) - 1]}
