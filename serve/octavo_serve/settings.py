"""What an operator decides about the server; checked here, once.

The fields are also the keys of `octavo.yaml` and the source of its JSON Schema; `configuration` reads them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from octavo_artifact.errors import ConfigError
from octavo_artifact.parameters import read_retrieval
from octavo_serve.answering.settings import AnswerSettings
from octavo_serve.callers.keys import Key
from octavo_serve.callers.oauth import OAuthSettings
from octavo_serve.callers.rates import RateLimit
from octavo_serve.callers.views import RELEASE

AUTHORITY = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::(?P<port>[0-9]{1,5}))?")
"""Host name, IPv4 or bracketed IPv6 address in lower case, and perhaps a port (RFC 9110, `Host`)."""

_ORIGIN = re.compile(rf"[a-z][a-z0-9+.-]*://{AUTHORITY.pattern}")
_WILDCARDS = ("", "0.0.0.0", "::")

QUERY_LOG = re.compile(
    r"stdout|unix:(?P<path>/.{1,106})|udp:(?P<host>\[[0-9a-f:.]+\]|[A-Za-z0-9.-]+):(?P<port>[0-9]{1,5})"
)
"""Where the query log goes; the path of a Unix socket has 107 bytes at most."""

_URL = re.compile(r"https?://[^\s/?#@]+(?:/[^\s?#@]*)?")
_VARIABLE = re.compile(r"(?!OCTAVO_)[A-Za-z_][A-Za-z0-9_]*")
"""The server refuses variables that begin with OCTAVO_ and are no settings."""

_Seconds = Field(gt=0, le=3600, allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class RerankerSettings:
    """Who puts the best passages in a better order, and what that may cost."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    path: Annotated[
        Path | None,
        Field(description="Folder of an ONNX cross-encoder; in a file, from the file's own folder. Or `url`."),
    ] = None
    url: Annotated[
        str | None, Field(description="Where an endpoint answers `POST rerank`: `http://127.0.0.1:8080/v1`. Or `path`.")
    ] = None
    model: Annotated[str | None, Field(min_length=1, description="Name of the model; for an endpoint.")] = None
    key_env: Annotated[
        str | None, Field(description="Name of the environment variable that holds the endpoint's key.")
    ] = None
    pairs: Annotated[int, Field(ge=2, le=200, description="Passages of a search that it reads, the best first.")] = 20
    milliseconds: Annotated[int, Field(ge=1, le=60_000, description="Time it has for a search.")] = 500

    def __post_init__(self) -> None:
        if (self.path is None) == (self.url is None):
            raise ConfigError("reranker: expected either path or url")
        if self.url is None and (self.model, self.key_env) != (None, None):
            raise ConfigError("reranker: model and key_env are for an endpoint, expected url beside them")
        if self.url is not None and not _URL.fullmatch(self.url):
            # not repeated: somebody may have put a password into it
            raise ConfigError("reranker: url, expected http(s)://host/path, without user, query and fragment")
        if self.key_env is not None and not _VARIABLE.fullmatch(self.key_env):
            raise ConfigError("reranker: key_env, expected the name of a variable that does not begin with OCTAVO_")


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What is served, where the server listens, and whom it answers how much."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    dist: Annotated[
        Path | None,
        Field(description="Folder of releases; in a file, from the file's own folder.", examples=["dist"]),
    ] = None
    audience: Annotated[
        Literal["public", "friends", "family", "self"],
        Field(description="The narrowest circle that is served; releases for a narrower one are withheld."),
    ] = "public"
    host: Annotated[str, Field(description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535, description="Port to listen on; 0 lets the system choose.")] = 8000
    allowed_hosts: Annotated[
        tuple[str, ...],
        Field(
            description="Names in `Host` that are answered besides this machine's own, with a port to allow that port "
            "only.",
            examples=[["kb.example.org"]],
        ),
    ] = ()
    allowed_origins: Annotated[
        tuple[str, ...],
        Field(
            description="Web origins whose pages may call the server besides its own, such as "
            "`https://app.example.org`.",
            examples=[["https://app.example.org"]],
        ),
    ] = ()
    answer_timeout: Annotated[float, _Seconds, Field(description="Seconds a pack may take to answer.")] = 10.0
    body_timeout: Annotated[
        float, _Seconds, Field(description="Seconds a client may take to send a request's head, and again its body.")
    ] = 10.0
    max_body: Annotated[int, Field(ge=1, le=64 * 1024 * 1024, description="Bytes of a request's body.")] = 256 * 1024
    lexical_only: Annotated[
        bool,
        Field(
            description="Serve packs whose encoder is missing or fails too: searched by words, and told as degraded."
        ),
    ] = False
    keys: Annotated[
        tuple[Key, ...],
        # An empty list would open the server to everybody, which is hardly what it was emptied for.
        Field(
            min_length=1,
            description="Who may ask; without it and `oauth` everybody. `octavo key new` makes entries.",
            examples=[[{"name": "alice", "sha256": "0123456789abcdef" * 4, "packs": ["octavo"]}]],
        ),
    ] = ()
    rate_limit: Annotated[
        RateLimit | None,
        Field(
            description="How often a key, or a token's client and subject, may ask, or where neither is asked for an "
            "address; no limit if absent.",
            examples=[{"requests": 100, "per_seconds": 60}],
        ),
    ] = None
    retrieval: Annotated[
        dict[str, Any],
        Field(
            description="Parameters of every search that are to differ from the packs' own, by name.",
            examples=[{"diversity": 0.3}],
        ),
    ] = field(default_factory=dict[str, Any])
    reranker: Annotated[
        RerankerSettings | None,
        Field(
            description="Who puts the best passages in a better order; nobody if absent.",
            examples=[{"path": "models/reranker", "pairs": 20, "milliseconds": 500}],
        ),
    ] = None
    poll_seconds: Annotated[
        float,
        Field(ge=0, le=3600, allow_inf_nan=False, description="Seconds between looks for new releases; 0 for none."),
    ] = 0.5
    keep_releases: Annotated[
        int, Field(ge=0, le=100, description="How many releases of each pack stay mounted after they were replaced.")
    ] = 1
    mount: Annotated[
        tuple[str, ...],
        Field(description="Releases that are mounted beside the current ones, as slug@digest; 12 digits are enough."),
    ] = ()
    grace_seconds: Annotated[
        float, _Seconds, Field(description="Seconds that requests have to end after SIGTERM or SIGINT.")
    ] = 5.0
    drain_seconds: Annotated[
        float,
        Field(
            ge=0,
            le=3600,
            allow_inf_nan=False,
            description="Seconds for which requests are still taken after SIGTERM, while `/readyz` says no.",
        ),
    ] = 0.0
    oauth: Annotated[
        OAuthSettings | None,
        Field(
            description="The authorization server whose tokens open packs too; none if absent.",
            examples=[{"issuer": "https://login.example.org", "resource": "https://kb.example.org"}],
        ),
    ] = None
    workers: Annotated[int, Field(ge=1, le=64, description="Processes that answer at one port.")] = 1
    metrics: Annotated[
        bool, Field(description="Serve `/metrics`: to everybody, or where there are keys to those that open all packs.")
    ] = True
    log_format: Annotated[Literal["text", "json"], Field(description="Form of log lines on standard error.")] = "text"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Field(description="The least that is logged.")
    ] = "info"
    access_log: Annotated[bool, Field(description="Log a line for each request.")] = False
    query_log: Annotated[
        str | None,
        Field(
            description="Where a JSON line goes for each question to packs: `stdout`, or a socket of datagrams, "
            "`unix:/path` or `udp:host:port`; nowhere if absent.",
            examples=["unix:/run/octavo/queries"],
        ),
    ] = None
    query_log_text: Annotated[
        bool, Field(description="Write queries as they are; else their sha256, which tells repetitions only.")
    ] = True
    answers: Annotated[
        AnswerSettings | None,
        Field(
            description="Who writes answers to questions; nobody if absent.",
            examples=[{"model": {"url": "http://127.0.0.1:8080/v1"}}],
        ),
    ] = None

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"port: {self.port}, expected 0 to 65535")
        for name in self.allowed_hosts:
            if not AUTHORITY.fullmatch(name.lower()):
                raise ConfigError(f"allowed_hosts: {name!r}, expected a host name with or without a port")
        for origin in self.allowed_origins:
            if not _ORIGIN.fullmatch(origin.lower()):
                raise ConfigError(f"allowed_origins: {origin!r}, expected scheme://host with or without a port")
        for name in self.mount:
            if not RELEASE.fullmatch(name):
                raise ConfigError(f"mount: {name!r}, expected slug@digest with 12 to 64 hexadecimal digits")
        if self.reranker and self.reranker.milliseconds >= 1000 * self.answer_timeout:
            raise ConfigError(f"reranker: milliseconds {self.reranker.milliseconds}, expected less than answer_timeout")
        if self.query_log is not None and not QUERY_LOG.fullmatch(self.query_log):
            raise ConfigError("query_log: expected stdout, unix:/path or udp:host:port")
        try:
            read_retrieval(self.retrieval)
        except ConfigError as error:
            raise ConfigError(f"retrieval: {error}") from error
        for what in ("name", "sha256"):
            if len({getattr(key, what) for key in self.keys}) < len(self.keys):
                raise ConfigError(f"keys: two have the same {what}, expected different ones")

    def of_worker(self) -> ServerSettings:
        """Those of one of its processes, which has its share of the answers at once, rounded down.

        Raises ConfigError when there is none for each.
        """
        if self.answers is None:
            return self
        share, slots = self.answers.max_concurrent // self.workers, self.answers.max_concurrent
        if share == 0:
            raise ConfigError(
                f"answers: max_concurrent {slots}, expected one at least for each of {self.workers} workers"
            )
        return replace(self, answers=replace(self.answers, max_concurrent=share))

    @property
    def hosts(self) -> frozenset[str]:
        """All names in `Host` that are answered, in lower case."""
        own = f"[{self.host}]" if ":" in self.host else self.host
        bound = () if self.host in _WILDCARDS else (own,)
        return frozenset(name.lower() for name in ("127.0.0.1", "localhost", "[::1]", *bound, *self.allowed_hosts))
