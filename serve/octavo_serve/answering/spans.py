"""The spans of an answer: `octavo.answer`, and below it `octavo.retrieval` and `octavo.generation`.

Here are those of a server that is not traced, which go nowhere; `watching.answer_spans` has the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from types import MappingProxyType
from typing import Protocol

ANSWER, RETRIEVAL, GENERATION = "octavo.answer", "octavo.retrieval", "octavo.generation"
FIRST_TOKEN = "first_token"
"""Event of a generation."""

Attributes = Mapping[str, str | int | float | tuple[str, ...]]

outgoing: ContextVar[Mapping[str, str]] = ContextVar("octavo_outgoing", default=MappingProxyType({}))
"""Headers that tell whoever is asked now for which span it is: `traceparent` where there are traces, else none."""


def kind_of(error: BaseException) -> str:
    """The type of an error by its public name; what it says may be anything."""
    return next(kind.__name__ for kind in type(error).__mro__ if not kind.__name__.startswith("_"))


class StageSpan(Protocol):
    """The span of a stage of an answer."""

    def current(self) -> AbstractContextManager[object]:
        """What is asked of others inside of this is asked for the stage. Nothing may be yielded meanwhile."""
        ...

    def event(self, name: str) -> None:
        """Something happens now."""
        ...

    def tell(self, attributes: Attributes) -> None:
        """Say more of it."""
        ...


class AnswerSpan(Protocol):
    """The span of an answer."""

    @property
    def trace_id(self) -> str | None:
        """32 hexadecimal digits; None where nobody traces."""
        ...

    def stage(self, name: str, attributes: Attributes) -> AbstractContextManager[StageSpan]:
        """The span of a stage, which ends with the context."""
        ...

    def end(self, attributes: Attributes, error: str | None) -> None:
        """End it; `error` is the type of what failed."""
        ...


AnswerSpans = Callable[[], AnswerSpan]
"""Begins the span of an answer, in the span of the request that is being answered."""


class Untraced:
    """A span of an answer, and of its stages, where nobody traces."""

    trace_id = None

    def stage(self, name: str, attributes: Attributes) -> AbstractContextManager[StageSpan]:
        """Itself."""
        return nullcontext(self)

    def current(self) -> AbstractContextManager[object]:
        """Nothing."""
        return nullcontext()

    def event(self, name: str) -> None:
        """Nothing."""

    def tell(self, attributes: Attributes) -> None:
        """Nothing."""

    def end(self, attributes: Attributes, error: str | None) -> None:
        """Nothing."""
