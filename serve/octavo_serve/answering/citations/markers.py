"""Citation markers in a stream."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InvalidCitation:
    """A number that points to no source."""

    number: int
    position: int
    """Characters into the answer."""


class Markers:
    """Placeholder: the stream as it is."""

    def __init__(self, sources: int) -> None:
        self._given: list[str] = []
        self.invalid: tuple[InvalidCitation, ...] = ()

    def feed(self, text: str) -> str:
        """What may be shown now."""
        self._given.append(text)
        return text

    def finish(self) -> str:
        """What was held back."""
        return ""

    @property
    def answer(self) -> str:
        """All that was given out."""
        return "".join(self._given)
