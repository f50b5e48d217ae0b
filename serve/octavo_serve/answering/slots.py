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
    def one(self) -> Generator[None]:
        """Hold a slot. Raises BusyError when all are taken."""
        if self.taken >= self.count:
            raise BusyError(f"all {self.count} answers at once are being written; ask again in a moment")
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1
