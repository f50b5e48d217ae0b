"""What is asked of a language model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol

from typing_extensions import TypedDict

from octavo_artifact.errors import OctavoError
from octavo_serve.answering.settings import ModelSettings


class ModelError(OctavoError):
    """The model gave no answer; the message has no address, no key and none of its words."""


class Message(TypedDict):
    """One of the messages of a prompt."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen, and how many there may be."""

    max_tokens: int
    temperature: float
    top_p: float
    seed: int | None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that were read and written, as the model counts them."""

    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The answer ended as it should."""

    truncated: bool
    """Whether it was cut at `max_tokens`."""
    usage: Usage | None
    model: str | None
    """What the server calls the model."""


class Model(Protocol):
    """A language model."""

    def stream(self, messages: Sequence[Message], sampling: Sampling) -> AsyncGenerator[Text | Ended]:
        """The pieces of an answer, then its end. Raises ModelError."""
        ...

    async def warm_up(self) -> None:
        """Have it ready for the first question."""
        ...

    async def close(self) -> None:
        """End its connections."""
        ...


class ChatEndpoint:
    """Placeholder."""

    def __init__(self, settings: ModelSettings, key: str | None) -> None:
        self._settings = settings

    async def stream(self, messages: Sequence[Message], sampling: Sampling) -> AsyncGenerator[Text | Ended]:
        """Nothing yet."""
        raise ModelError("no model")
        yield Ended(False, None, None)

    async def warm_up(self) -> None:
        """Nothing yet."""

    async def close(self) -> None:
        """Nothing yet."""


def cost(usage: Usage | None, price_in: float | None, price_out: float | None) -> float | None:
    """Placeholder."""
    if usage is None or price_in is None or price_out is None:
        return None
    return (usage.prompt_tokens * price_in + usage.completion_tokens * price_out) / 1e6
