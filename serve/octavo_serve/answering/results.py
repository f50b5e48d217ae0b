"""What a client gets for a question: the same objects over HTTP, MCP and the shell.

Typed dictionaries, as in `octavo_serve.results`; offsets of texts are in characters, ranges of files in bytes.
"""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict
from typing_extensions import TypedDict

from octavo_serve.results import Freshness, Nearest

_CONFIG = ConfigDict(use_attribute_docstrings=True, extra="forbid")

Stage = Literal["retrieval", "generation", "internal"]
Reason = Literal["empty_query", "no_relevant_passage", "not_in_sources"]


class Source(Freshness):
    """A passage that the model was shown, by the number under which answers cite it."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    number: int
    """1 for the first."""
    pack: str
    digest: str
    """Release it is of."""
    fragment_id: str
    id: str
    uri: str
    title: str
    heading_path: list[str]
    source_file: str
    line_range: list[int]
    byte_range: list[int]
    """Start and end byte in the file, end excluded."""
    span_sha256: str
    """Of exactly these bytes of the file."""
    verified_at: str | None
    score: float
    text: str
    """As the model was shown it."""
    shown: int
    """Characters of the passage that it was shown; fewer than it has where the model's context was full."""


class Sources(TypedDict):
    """The first event: what was found."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    pack: str | None
    """Null when several packs were asked."""
    digest: str
    """Release that answered."""
    sources: list[Source]


class Token(TypedDict):
    """A piece of the answer; no piece has half a citation."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    text: str


class Evidence(TypedDict):
    """The part of a source that speaks of a sentence."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    fragment_id: str
    source_file: str
    byte_range: list[int]
    """In the file; of the whole passage where its text is not written so in the file."""
    sha256: str
    """Of exactly these bytes of the file."""


class AnswerCitation(TypedDict):
    """A sentence of the answer and a source that it cites."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    sentence: str
    range: list[int]
    """Of the answer."""
    number: int
    supported: bool | None
    """Whether the source says so; null when that was not checked."""
    score: float | None
    """How much of the sentence the source says, from 0 to 1."""
    evidence: Evidence


class WrongCitation(TypedDict):
    """A number that points to no source; it is left out of the answer."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    number: int
    position: int
    """Where in the answer it would stand."""


class Unsupported(TypedDict):
    """A sentence that none of the sources that it cites supports."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    sentence: str
    range: list[int]
    numbers: list[int]
    """What it cites."""
    reason: str
    """What is missing: `terms`, `number`, `negation`, `meaning`."""
    supported_by: int | None
    """Another source that does support it."""


class Uncited(TypedDict):
    """A sentence that cites nothing."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    sentence: str
    range: list[int]
    """Of the answer."""


class TokenUsage(TypedDict):
    """Tokens as the model counts them."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    prompt_tokens: int
    completion_tokens: int


class Timings(TypedDict):
    """Milliseconds of the stages."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    retrieval_ms: float
    ttft_ms: float | None
    """From the prompt's sending to the first piece; null when there was none."""
    generation_ms: float | None
    """From the prompt's sending to the last piece."""
    total_ms: float


class ReceiptPassage(TypedDict):
    """A passage of a prompt, by where it stands."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    pack: str
    digest: str
    source_file: str
    fragment_id: str
    byte_range: list[int]
    shown: int
    """Characters of it that the prompt has."""


class ReceiptSampling(TypedDict):
    """How tokens were chosen."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    max_tokens: int
    temperature: float
    top_p: float
    seed: int | None


class Receipt(TypedDict):
    """Enough to make the prompt again, byte for byte, from the release that it names."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    format: int
    octavo: str
    """Version that made it."""
    question: str
    as_of: str
    """Day by which ages were told."""
    passages: list[ReceiptPassage]
    """In the order of their numbers."""
    template_sha256: str
    fence_seed: str
    model: str | None
    """What its server calls it, else how it is configured."""
    sampling: ReceiptSampling
    prompt_sha256: str
    """Of the messages as canonical JSON."""
    answer_sha256: str


class Done(TypedDict):
    """The last event of an answer, or of a refusal."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    answer: str
    """All pieces, joined."""
    citations: list[AnswerCitation]
    invalid_citations: list[WrongCitation]
    unsupported: list[Unsupported]
    uncited: list[Uncited]
    refused: bool
    reason: Reason | None
    """Why: `empty_query` and `no_relevant_passage` without a call of the model, `not_in_sources` as it said."""
    nearest: list[Nearest]
    """What was nearest when nothing relevant was found, three at most: where to look, not an answer."""
    truncated: bool
    """True when the answer is cut at the model's `max_tokens`."""
    missing: list[str]
    """What had to be done without: `encoder` and `reranker` by the search, `citation_check`; `citation_encoder` where
    sentences were compared with sources by words only."""
    usage: TokenUsage | None
    cost_usd: float | None
    """By the prices in the settings; null without them."""
    timings: Timings
    trace_id: str
    """Names this answer in traces, else in the log."""
    digest: str
    receipt: Receipt | None
    """Null when there was no prompt."""


class Failure(TypedDict):
    """The last event where there is no answer."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    stage: Stage
    message: str
    partial: str | None
    """What was written before, which is no answer."""
    trace_id: str


class Answer(Done):
    """All of an answer at once: its last event, and what the first one has."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see octavo_serve.results

    pack: str | None
    sources: list[Source]
