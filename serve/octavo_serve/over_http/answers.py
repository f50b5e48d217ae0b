"""What is told over HTTP only; all else is in `octavo_serve.results`."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from octavo_serve.answering.results import Answer, Stage

_CONFIG = ConfigDict(use_attribute_docstrings=True, extra="forbid")


class Problem(TypedDict):
    """What is wrong (RFC 9457)."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    type: Literal["about:blank"]
    title: str
    """The status in words."""
    status: Annotated[int, Field(ge=400, le=599)]
    detail: NotRequired[str]
    """What was wrong and what is expected."""
    field: NotRequired[str]
    """Parameter or field of the request that is meant."""
    request_id: NotRequired[str]
    """Names the request in the server's log, where the server failed."""


class AnswerProblem(Problem):
    """What is wrong with a question, or why there is no answer."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    stage: NotRequired[Stage]
    """What failed, where it was the answer."""
    partial: NotRequired[str | None]
    """What was written before, which is no answer."""


class Answered(TypedDict):
    """The envelope of an answer, or of a refusal."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    success: Literal[True]
    data: Answer
    error: None


class NotAnswered(TypedDict):
    """The envelope of a problem."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    success: Literal[False]
    data: None
    error: AnswerProblem


class RefusedRelease(TypedDict):
    """A release that is not served."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    digest: str | None
    """Null when the pointer names none."""
    reason: str


class ServedPack(TypedDict):
    """A pack that answers."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    digest: str
    version: str
    documents: int
    passages: int
    degraded: bool
    """Whether it is searched by words only."""
    reason: NotRequired[str]
    """Why, if it is."""
    mounted: NotRequired[list[str]]
    """Digests of its other releases that answer, by `slug@digest`."""
    refused_release: NotRequired[RefusedRelease]
    """What the pointer names and is not served; the one before is served on."""


class Health(TypedDict):
    """Whether all is well."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    status: Literal["ok", "degraded", "down"]
    packs: NotRequired[dict[str, ServedPack]]
    """By slug; not told to callers without a key where keys are needed."""
    refused: NotRequired[dict[str, str]]
    """Slug to the reason why a pack is not served; as `packs`."""
    passages: NotRequired[str]
    """Who finds the passages of answers, where it is not this server; as `packs`."""


class Readiness(TypedDict):
    """Whether requests may come."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    status: Literal["ready", "stopping", "empty"]


class Index(TypedDict):
    """What there is to ask."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    name: str
    version: str
    endpoints: dict[str, str]
    """Path to what is answered there."""
