"""What every face (HTTP, MCP, stdio) asks of the packs, and how it asks without holding up the event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from datetime import date
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import unquote

from pydantic_core import to_json

from octavo_artifact.errors import NotFoundError, OctavoError
from octavo_artifact.ids import KNOWLEDGE
from octavo_artifact.manifest import Manifest
from octavo_artifact.schema import Resource
from octavo_serve.completion import Names
from octavo_serve.prompts import Prompt
from octavo_serve.requests import ReadRequest, SearchRequest, TopicsRequest, TraverseRequest
from octavo_serve.results import PackSummary, ReadResult, SearchResult, TopicsResult, TraverseResult
from octavo_serve.skills import Entry, Skill

if TYPE_CHECKING:
    from octavo_serve.catalog import Refusal
    from octavo_serve.encoder import Vector

RETRY_AFTER = 1
"""Seconds after which a client that was turned away may ask again."""

_MAX_WAITING = 128
_MAX_MESSAGE = 500

AskedT = TypeVar("AskedT")
AnswerT = TypeVar("AnswerT")


class Pack(Protocol):
    """A pack that is open; its methods are synchronous and may be called from any thread."""

    @property
    def slug(self) -> str: ...  # noqa: D102
    @property
    def digest(self) -> str: ...  # noqa: D102
    @property
    def manifest(self) -> Manifest: ...  # noqa: D102
    @property
    def degraded(self) -> str | None:
        """Why it is searched by words only; None when it is not."""
        ...

    def encode(self, text: str) -> Vector:
        """The vector of a text by the pack's encoder, float32 [dim]; raises whatever its runtime does."""
        ...

    def search(self, request: SearchRequest) -> SearchResult: ...  # noqa: D102
    def read(self, request: ReadRequest) -> ReadResult: ...  # noqa: D102
    def traverse(self, request: TraverseRequest) -> TraverseResult: ...  # noqa: D102
    def topics(self, request: TopicsRequest) -> TopicsResult: ...  # noqa: D102
    def summary(self, day: date) -> PackSummary: ...  # noqa: D102
    def day(self) -> date:
        """By which ages are told to requests that name none."""
        ...

    def resources(self) -> Sequence[Resource]:
        """The resources to list, sorted by URI."""
        ...

    def resource(self, uri: str) -> tuple[Resource, bytes]:
        """The resource and its bytes; raises NotFoundError."""
        ...

    def skills(self) -> Mapping[str, Skill]:
        """The pack's skills by the URI of their SKILL.md, sorted."""
        ...

    def directory(self, uri: str) -> Sequence[Entry]:
        """What lies directly in a directory of a skill, sorted by URI; raises NotFoundError."""
        ...

    def names(self, prefix: str, pattern: str) -> Names:
        """What URIs of resources that begin with `prefix` have after it: the group of the regular expression `pattern`,
        where all that follows fits it, without percent-encoding.
        """
        ...

    def always(self) -> Names:
        """The paths of the documents that are meant to be always in context."""
        ...

    def prompts(self) -> Sequence[Prompt]:
        """The prompts the pack offers, sorted by name."""
        ...

    def prompt(self, name: str) -> tuple[Prompt, str]:
        """The prompt and its text; raises NotFoundError."""
        ...


class Library(Protocol):
    """The packs of a server."""

    @property
    def packs(self) -> Mapping[str, Pack]:
        """By slug, sorted."""
        ...

    @property
    def refused(self) -> Mapping[str, str]:
        """Slug, or slug@digest, to reason, one line that may be shown to anybody."""
        ...

    @property
    def releases(self) -> Mapping[str, Pack]:
        """All that are mounted, the current ones included, by slug@digest."""
        ...

    @property
    def failed(self) -> Mapping[str, Refusal]:
        """By slug: what should have replaced the current release, and could not."""
        ...

    def search(self, request: SearchRequest, slugs: frozenset[str] | None = None) -> SearchResult:
        """Find passages in the pack that the request names, else in all packs of these slugs at once; None for all."""
        ...

    def choose(self, name: str | None, /) -> Pack:
        """The pack of that slug, the release of that slug@digest, or the only pack.

        Raises RequestError or NotFoundError.
        """
        ...


def pack_of(packs: Sequence[Pack], uri: str) -> Pack:
    """The pack whose slug, or whose owner if it is a repository, a resource's URI names. Raises NotFoundError."""
    name = uri.partition("://")[2].partition("/")[0]
    for pack in packs:
        if unquote(name) == owner_of(pack) if uri.startswith(KNOWLEDGE) else name == pack.slug:
            return pack
    raise NotFoundError("uri", "not a resource of this server")


def owner_of(pack: Pack) -> str | None:
    """Whom the URIs of a knowledge repository name; None for every other pack."""
    described = pack.manifest.pack
    return described["metadata"]["owner"] if described.get("source_format") == "repository" else None


class UnavailableError(OctavoError):
    """The same request may succeed later: the server is busy or was too slow."""


class BusyError(UnavailableError):
    """Too many requests are waiting already."""


Observer = Callable[[Any, Any, float], None]
"""Told of each piece of work: what was asked, the answer or the exception, seconds."""


def _unobserved(asked: Any, outcome: Any, seconds: float) -> None:
    """For those who do not watch."""


class Workers:
    """The threads in which packs do their work.

    A worker stays taken until its work ends, even if nobody waits for it any more: a pack that hangs can
    occupy the workers, but never multiply them. That is why this is an executor; an abandoned
    `anyio.to_thread` call gives its token back while its thread still runs.
    """

    def __init__(self, timeout: float, observe: Observer = _unobserved) -> None:
        self.timeout = timeout
        """Seconds for a piece of work, waiting included."""
        self._observe = observe
        self._waiting = 0
        self._executor = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="octavo")
        self._behind = ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // 2), thread_name_prefix="octavo-behind")

    async def run(self, work: Callable[[AskedT], AnswerT], asked: AskedT) -> AnswerT:
        """`work(asked)`; raises what it raises, and UnavailableError when it takes or would wait too long."""
        started = perf_counter()
        try:
            answer = await self._run(work, asked, self._executor)
        except Exception as error:
            self._observe(asked, error, perf_counter() - started)
            raise
        self._observe(asked, answer, perf_counter() - started)
        return answer

    async def run_behind(self, work: Callable[[AskedT], AnswerT], asked: AskedT) -> AnswerT:
        """The same, in other threads and unobserved: for what takes long, and must not keep questions waiting."""
        return await self._run(work, asked, self._behind)

    @property
    def waiting(self) -> int:
        """Pieces of work that are done or wait for a thread."""
        return self._waiting

    async def _run(self, work: Callable[[AskedT], AnswerT], asked: AskedT, executor: Executor) -> AnswerT:
        if self._waiting >= _MAX_WAITING:
            raise BusyError("too many requests are waiting; ask again in a moment")
        self._waiting += 1
        try:
            async with asyncio.timeout(self.timeout):
                return await asyncio.get_running_loop().run_in_executor(executor, work, asked)
        except TimeoutError as error:
            raise UnavailableError(f"no answer within {self.timeout:g} seconds") from error
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Give up work that has not begun."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._behind.shutdown(wait=False, cancel_futures=True)


def compact_json(result: Any) -> bytes:
    """A result as compact UTF-8 JSON; pydantic's writer takes a quarter of the time of `json.dumps`."""
    return to_json(result, inf_nan_mode="null")


def message(error: OctavoError) -> str:
    """The error's text as a client may get it: bounded, and encodable whatever the client sent."""
    text = str(error).encode("utf-8", "replace").decode()
    return text if len(text) <= _MAX_MESSAGE else text[:_MAX_MESSAGE] + "…"
