"""How often somebody may ask: a token bucket a caller, in memory, counted before the work."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Annotated

from pydantic import ConfigDict, Field

MAX_CALLERS = 10_000
"""Buckets that are kept; the one unused for longest goes first, and comes back full."""

_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class RateLimit:
    """So many requests at once, and as many again evenly over each period."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    requests: Annotated[int, Field(ge=1, le=1_000_000, description="Requests that may come at once.")]
    per_seconds: Annotated[int, Field(ge=1, le=86_400, description="Seconds in which as many more are allowed.")]


@dataclass(slots=True)
class _Bucket:
    level: int
    at: int


class Limiter:
    """The buckets of all callers. Used from the event loop only, so without a lock."""

    def __init__(self, limit: RateLimit, clock: Callable[[], int]) -> None:
        """`clock` gives nanoseconds that never go back."""
        # In units of 1 / requests nanoseconds everything is whole, so nothing is lost to rounding.
        self._gain = limit.requests
        self._cost = limit.per_seconds * _SECOND
        self._full = limit.requests * self._cost
        self._clock = clock
        self._buckets: OrderedDict[Hashable, _Bucket] = OrderedDict()

    def take(self, caller: Hashable) -> int:
        """Count a request: 0 when it is allowed, otherwise the whole seconds after which one will be."""
        now = self._clock()
        bucket = self._buckets.setdefault(caller, _Bucket(self._full, now))
        self._buckets.move_to_end(caller)
        if len(self._buckets) > MAX_CALLERS:
            self._buckets.popitem(last=False)
        bucket.level = min(self._full, bucket.level + (now - bucket.at) * self._gain)
        bucket.at = now
        if bucket.level < self._cost:
            return -(-(self._cost - bucket.level) // (self._gain * _SECOND))
        bucket.level -= self._cost
        return 0
