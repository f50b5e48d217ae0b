"""What may be meant by the beginning of a name, or by a part of it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

MAX_VALUES = 100
"""Of one answer, as MCP wants."""


class Names:
    """Names that can be completed, whatever the case of what was typed. 100,000 of them take some milliseconds."""

    def __init__(self, names: Iterable[str]) -> None:
        pairs = sorted((name.casefold(), name) for name in set(names))
        self._folded = [folded for folded, _ in pairs]
        self._names = [name for _, name in pairs]

    def __iter__(self) -> Iterator[str]:
        """Sorted."""
        return iter(self._names)

    def matching(self, typed: str) -> tuple[list[str], int]:
        """The names that begin with what was typed, then those that have it elsewhere, each sorted: at most MAX_VALUES;
        and how many there are.
        """
        wanted = typed.casefold()
        first = bisect_left(self._folded, wanted)
        last = first
        while last < len(self._folded) and self._folded[last].startswith(wanted):
            last += 1
        elsewhere = [
            place for place, folded in enumerate(self._folded) if wanted in folded and not first <= place < last
        ]
        found = [*range(first, last), *elsewhere]
        return [self._names[place] for place in found[:MAX_VALUES]], len(found)
