"""Who finds the passages of an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from octavo_artifact.errors import NotFoundError, OctavoError, RequestError
from octavo_serve.answering.citations.support import Encode
from octavo_serve.callers.views import View, slug_of
from octavo_serve.faces import Library, Workers
from octavo_serve.introduction import authority_of
from octavo_serve.metadata import mapping
from octavo_serve.requests import SearchRequest
from octavo_serve.results import Authority, SearchResult


class RetrievalError(OctavoError):
    """Somebody else was asked for passages and gave none; the message has no address, no key and none of its words."""


class Retriever(Protocol):
    """Finds passages for one caller."""

    async def search(self, request: SearchRequest) -> SearchResult:
        """The passages. Raises what a library raises, and RetrievalError where somebody else was asked in vain."""
        ...

    async def authority(self, pack: str, digest: str) -> Authority | None:
        """What a release says of what it may be relied on for."""
        ...

    def encoder(self, pack: str, digest: str) -> Encode | None:
        """What compares texts of a release; None where it is not at hand. Slow: not for the event loop."""
        ...


RetrieverOf = Callable[[View], Retriever]
"""Who finds passages for a caller that sees so much of this server's packs."""


class Connection(Protocol):
    """What the retrievers of all callers share."""

    async def warm_up(self) -> None:
        """Open it. What goes wrong is logged: the first question tries again."""
        ...

    async def close(self) -> None:
        """End it."""
        ...


class InProcess:
    """The packs of this server that a caller may see."""

    def __init__(self, library: Library, workers: Workers) -> None:
        """`library` is what the caller may see of it."""
        self._library = library
        self._workers = workers

    async def search(self, request: SearchRequest) -> SearchResult:
        """The passages, found in a thread of the workers."""
        # told with the answer, not as a search that somebody asked for
        return await self._workers.run(lambda _: self._library.search(request), None)

    async def authority(self, pack: str, digest: str) -> Authority | None:
        """As its manifest says."""
        return authority_of(mapping(self._library.choose(f"{pack}@{digest}").manifest.pack.get("metadata")))

    def encoder(self, pack: str, digest: str) -> Encode | None:
        """The pack's own."""
        try:
            return self._library.choose(f"{pack}@{digest}").encode
        except NotFoundError:
            return None


def named_for(slugs: frozenset[str] | None, pack: str | None) -> str | None:
    """The pack that somebody else is asked for a caller that sees these; None for all that it has.

    Nobody else knows what the caller may see: one that may not see everything has to name one pack, or has one only.
    Raises RequestError when it names none, NotFoundError when it names one that it does not see.
    """
    if slugs is None or (pack is not None and slug_of(pack) in slugs):
        return pack
    known = ", ".join(sorted(slugs)) or "none"
    if pack is not None or not slugs:
        raise NotFoundError("pack", f"not served here; known are {known}")
    if len(slugs) > 1:
        raise RequestError("pack", f"missing; name one of {known}")
    return next(iter(slugs))


def in_process(workers: Workers) -> RetrieverOf:
    """Who finds passages in this server's own packs."""

    def of(view: View) -> Retriever:
        return InProcess(view, workers)

    return of
