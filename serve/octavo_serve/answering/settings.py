"""What an operator decides about answers: which model writes them, from where its passages come, how many at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from octavo_artifact.endpoint import is_address
from octavo_artifact.errors import ConfigError

VARIABLE = re.compile(r"(?!OCTAVO_)[A-Za-z_][A-Za-z0-9_]*")
"""The server refuses variables that begin with OCTAVO_ and are no settings."""

LEAST_CONTEXT = 1024
"""Tokens that must be left for the instructions, the question and the sources."""

_Seconds = Field(gt=0, le=3600, allow_inf_nan=False)
_Price = Field(ge=0, allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The language model: any server of the OpenAI-compatible `POST chat/completions`."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    url: Annotated[str, Field(description="Base URL of the model's API.", examples=["http://127.0.0.1:8080/v1"])]
    name: Annotated[str | None, Field(min_length=1, description="Name of the model, where its server has several.")] = (
        None
    )
    key_env: Annotated[str | None, Field(description="Name of the environment variable that holds the API's key.")] = (
        None
    )
    context_tokens: Annotated[
        int, Field(ge=2048, le=10_000_000, description="Tokens that the model reads and writes for one answer.")
    ] = 4096
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000, description="Tokens of an answer; beyond it is cut.")] = 512
    temperature: Annotated[float, Field(ge=0, le=2, description="Of sampling; 0 takes the likeliest token.")] = 0.0
    top_p: Annotated[float, Field(gt=0, le=1, description="Of sampling: the share of likelihood that counts.")] = 1.0
    seed: Annotated[int | None, Field(description="Of sampling; none is sent if null.")] = 0
    connect_timeout: Annotated[float, _Seconds, Field(description="Seconds to reach the model's server.")] = 5.0
    chunk_timeout: Annotated[
        float, _Seconds, Field(description="Seconds without a piece of the answer, the first one included.")
    ] = 60.0
    retries: Annotated[int, Field(ge=0, le=10, description="Further attempts, while nothing was written yet.")] = 2
    price_in: Annotated[float | None, _Price, Field(description="Price of a million tokens that it reads.")] = None
    price_out: Annotated[float | None, _Price, Field(description="Price of a million tokens that it writes.")] = None
    extra: Annotated[
        dict[str, Any],
        Field(
            description="Further fields of the request to the model.",
            examples=[{"chat_template_kwargs": {"enable_thinking": False}}],
        ),
    ] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        if not is_address(self.url):
            # not repeated: somebody may have put a password into it
            raise ConfigError("answers: model.url, expected http(s)://host/path, without user, query and fragment")
        if self.key_env is not None and not VARIABLE.fullmatch(self.key_env):
            raise ConfigError(
                "answers: model.key_env, expected the name of a variable that does not begin with OCTAVO_"
            )
        if self.context_tokens - self.max_tokens < LEAST_CONTEXT:
            raise ConfigError(
                f"answers: model.context_tokens {self.context_tokens}, expected {LEAST_CONTEXT} more than max_tokens "
                f"({self.max_tokens})"
            )


@dataclass(frozen=True, slots=True)
class RetrieverSettings:
    """An MCP server that finds the passages, where it is not this one."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    url: Annotated[str | None, Field(description="URL of its MCP endpoint. Or `command`.")] = None
    command: Annotated[
        tuple[str, ...], Field(description="Command that speaks MCP on its standard streams, word by word. Or `url`.")
    ] = ()
    key_env: Annotated[
        str | None, Field(description="Name of the environment variable that holds the endpoint's key.")
    ] = None

    def __post_init__(self) -> None:
        if (self.url is None) == (not self.command):
            raise ConfigError("answers: retriever, expected either url or command")
        if self.url is not None and not is_address(self.url):
            raise ConfigError("answers: retriever.url, expected http(s)://host/path, without user, query and fragment")
        if self.key_env is not None and (self.url is None or not VARIABLE.fullmatch(self.key_env)):
            raise ConfigError(
                "answers: retriever.key_env, expected the name of a variable that does not begin with OCTAVO_, and url"
            )


@dataclass(frozen=True, slots=True)
class AnswerSettings:
    """Who writes answers, from what, and how many at once."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    model: Annotated[ModelSettings, Field(description="The language model that writes them.")]
    retriever: Annotated[
        RetrieverSettings | None,
        Field(
            description="The MCP server that finds the passages; this server's own packs if absent.",
            examples=[{"url": "https://kb.example.org/mcp"}],
        ),
    ] = None
    passages: Annotated[
        int, Field(ge=1, le=20, description="Passages that the model is shown, where a question does not say.")
    ] = 5
    max_concurrent: Annotated[
        int,
        Field(
            ge=1,
            le=1024,
            description="Answers at once: the slots of the model. More are refused, none waits. Each worker has its "
            "part, rounded down.",
        ),
    ] = 4
    heartbeat_seconds: Annotated[
        float, _Seconds, Field(description="Seconds of silence after which a stream shows that it lives.")
    ] = 5.0
    reader_timeout: Annotated[
        float, _Seconds, Field(description="Seconds that a client may take to read what it was sent.")
    ] = 30.0


def key_of(what: str, variable: str | None, environment: Mapping[str, str]) -> str | None:
    """The key that an environment variable holds; None when none is named. Raises ConfigError when it holds none."""
    if variable is None:
        return None
    key = environment.get(variable, "")
    if not (key.isascii() and key.isprintable() and key.strip() == key != ""):
        raise ConfigError(f"answers: {what}: the variable {variable} holds no key, expected one line of ASCII")
    return key
