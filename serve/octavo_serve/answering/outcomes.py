"""What became of a question: told to those who watch, and to the spans of its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from octavo_serve.answering.model import Ended, Sampling, Usage
from octavo_serve.answering.results import Reason, Source, Stage, Timings
from octavo_serve.answering.spans import Attributes
from octavo_serve.requests import AskRequest

End = Literal["answered", "refused", "failed", "left", "busy", "invalid"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a question."""

    end: End
    """`busy` was turned away unread, `invalid` cannot be asked so, of `left` nobody waited for the end."""
    asked: AskRequest | None = None
    """None when it is `busy`."""
    pack: str | None = None
    digest: str | None = None
    stage: Stage | None = None
    """Where it failed, or what was being done when the client left."""
    reason: Reason | None = None
    """Why it was refused."""
    error: Exception | None = None
    """What was in the way when it is `failed`, `busy` or `invalid`."""
    missing: tuple[str, ...] = ()
    """What the answer had to do without."""
    sources: tuple[Source, ...] = ()
    """What the model was shown."""
    timings: Timings | None = None
    """None when it is `busy`."""
    usage: Usage | None = None
    cost: float | None = None


Observe = Callable[[Outcome], None]


def unobserved(outcome: Outcome) -> None:
    """For those who do not watch."""


def of_outcome(outcome: Outcome) -> Attributes:
    """Attributes of the span of an answer; none of them is of a client's choosing."""
    told = {"end": outcome.end, "stage": outcome.stage, "reason": outcome.reason, "digest": outcome.digest}
    if outcome.digest is not None:
        told["pack"] = outcome.pack
    return {f"octavo.{name}": value for name, value in told.items() if value is not None}


def of_request(model: str | None, sampling: Sampling) -> Attributes:
    """Attributes of a generation, by the conventions for generative AI; its provider is known by the API it speaks."""
    asked = {"model": model, "max_tokens": sampling.max_tokens, "temperature": sampling.temperature}
    asked |= {"top_p": sampling.top_p, "seed": sampling.seed}
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        **{f"gen_ai.request.{name}": value for name, value in asked.items() if value is not None},
    }


def of_response(ended: Ended) -> Attributes:
    """The same, of a generation that ended."""
    usage = ended.usage
    told = {
        "response.finish_reasons": ("length" if ended.truncated else "stop",),
        "response.model": ended.model,
        "usage.input_tokens": usage.prompt_tokens if usage else None,
        "usage.output_tokens": usage.completion_tokens if usage else None,
    }
    return {f"gen_ai.{name}": value for name, value in told.items() if value is not None}
