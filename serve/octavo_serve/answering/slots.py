"""How many answers there may be at once: as many as the model has slots, and nobody waits for one."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from octavo_serve.faces import BusyError


class Slots:
    """Used from the event loop only."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.taken = 0

    @contextmanager
    def one(self) -> Generator[Slot]:
        """Hold a slot. Raises BusyError when all are taken."""
        if self.taken >= self.count:
            raise BusyError(f"all {self.count} answers at once are being written; ask again in a moment")
        slot = Slot(self)
        try:
            yield slot
        finally:
            slot.free()


class Slot:
    """One of them, taken."""

    def __init__(self, slots: Slots) -> None:
        self._slots: Slots | None = slots
        slots.taken += 1

    def free(self) -> None:
        """Give it to the next, if that was not done yet."""
        if self._slots is not None:
            self._slots.taken -= 1
            self._slots = None
