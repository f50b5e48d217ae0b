"""Passages that another server finds: any endpoint of MCP whose `ep_search` answers as Octavo's does.

What it says is checked before it is used: the whole of each passage with its place and hash, for an answer's citations
and its receipt rest on them. An endpoint that leaves them out, as ep-mcp does (no digest, no byte range, a hash on
request only), cannot be cited to the byte, and is refused by the name of what is missing.
"""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Mapping
from functools import cache
from typing import Literal, NotRequired, TypeVar

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from octavo_artifact.errors import NotFoundError, RequestError
from octavo_serve.answering.citations.support import Encode
from octavo_serve.answering.mcp_connection import Called, McpConnection
from octavo_serve.answering.retriever import RetrievalError, Retriever, named_for
from octavo_serve.answering.settings import RetrieverSettings
from octavo_serve.callers.views import View, slug_of
from octavo_serve.labels import label
from octavo_serve.requests import MAX_TOKENS, MIN_TOKENS, SearchRequest
from octavo_serve.results import Authority, Hit, Nearest, SearchResult

SEARCH, TOPICS = "ep_search", "ep_list_topics"

_RELEASES = 256
"""Of which the authority is kept."""

_MISSING = ("encoder", "reranker")
"""What a search may have had to do without, as clients know it."""

_CLIENTS = frozenset("query pack type tags path tier verified_within as_of".split())
"""Fields that whoever asks the question chose."""

_COMPLAINT = re.compile(r"([a-z_]+)(?:\.[a-z0-9_]+)*: (.+)", re.DOTALL)
"""How a tool tells which argument is wrong."""

_logger = logging.getLogger(__name__)

T = TypeVar("T")


class _Found(TypedDict):
    """What is used of a search's result."""

    pack: str | None
    digest: str
    missing: NotRequired[list[str]]
    refused: NotRequired[bool]
    reason: NotRequired[Literal["empty_query", "no_relevant_passage"] | None]
    answer_probability: NotRequired[float | None]
    doubtful: NotRequired[bool]
    results: list[Hit]
    nearest: NotRequired[list[Nearest]]


class _Summary(TypedDict):
    authority_boundary: Authority | None


class _Topics(TypedDict):
    """What is used of a list of topics."""

    pack: _Summary
    digest: str


class McpEndpoint:
    """The server that finds passages for all callers, over one connection. Used from one event loop."""

    def __init__(self, settings: RetrieverSettings, key: str | None, timeout: float) -> None:
        """`timeout` is in seconds, for each call."""
        self._connection = McpConnection(settings, key, timeout)
        self._authorities: OrderedDict[str, Authority | None] = OrderedDict()

    def retriever(self, view: View) -> Retriever:
        """Who finds passages for a caller that sees so much."""
        return _McpRetriever(self, view.slugs)

    async def warm_up(self) -> None:
        """Open the connection."""
        await self._connection.warm_up()

    async def close(self) -> None:
        """End it."""
        await self._connection.close()

    async def search(self, request: SearchRequest) -> SearchResult:
        """The passages. Raises RequestError for what cannot be asked so, and RetrievalError."""
        # In process a passage has no bound; here it has the largest.
        asked = {**request.model_dump(mode="json", exclude_defaults=True), "max_tokens": MAX_TOKENS}
        called = await self._connection.call(SEARCH, asked)
        if called.failed:
            raise _complaint(called.text, request)
        found = _checked(_Found, SEARCH, called)
        missing = [each for each in found.get("missing", ()) if each in _MISSING]
        results = found["results"][: request.max_results]
        refused = found.get("refused", False) or not results
        return {
            "query": request.query,
            "pack": found["pack"],
            "digest": found["digest"],
            "degraded": bool(missing),
            "missing": missing,
            "refused": refused,
            "reason": (found.get("reason") or "no_relevant_passage") if refused else None,
            "answer_probability": found.get("answer_probability"),
            "doubtful": found.get("doubtful", False),
            "overrides": {},
            "total": len(results),
            "truncated": False,
            "next_cursor": None,
            "results": results,
            "nearest": found.get("nearest", []),
        }

    async def authority(self, pack: str, digest: str) -> Authority | None:
        """What a release says of itself, asked once. Raises RetrievalError."""
        release = f"{pack}@{digest}"
        if release in self._authorities:
            self._authorities.move_to_end(release)
            return self._authorities[release]
        called = await self._connection.call(TOPICS, {"pack": release, "max_tokens": MIN_TOKENS})
        if called.failed:
            raise RetrievalError("the release that answered is not there any more; ask again")
        authority = _checked(_Topics, TOPICS, called)["pack"]["authority_boundary"]
        self._authorities[release] = authority
        if len(self._authorities) > _RELEASES:
            self._authorities.popitem(last=False)
        return authority


class _McpRetriever:
    """The endpoint as one caller may ask it."""

    def __init__(self, endpoint: McpEndpoint, slugs: frozenset[str] | None) -> None:
        self._endpoint = endpoint
        self._slugs = slugs

    async def search(self, request: SearchRequest) -> SearchResult:
        """Passages of the packs that the caller may see, and of no other."""
        pack = named_for(self._slugs, request.pack)
        try:
            found = await self._endpoint.search(request.model_copy(update={"pack": pack}))
        except RequestError as error:
            if error.field == "pack" and self._slugs is not None:
                # which packs there are beside these is nothing for this caller
                raise NotFoundError("pack", f"not served here; known are {', '.join(sorted(self._slugs))}") from error
            raise
        others = {each["pack"] for each in (*found["results"], *found["nearest"])} - {pack and slug_of(pack)}
        if pack is not None and others:
            raise RetrievalError("the server that finds passages answered from another pack than was asked")
        return found

    async def authority(self, pack: str, digest: str) -> Authority | None:
        """As the pack says there."""
        return await self._endpoint.authority(pack, digest)

    def encoder(self, pack: str, digest: str) -> Encode | None:
        """None: it is where the pack is."""
        return None


@cache
def _adapter(shape: type[T]) -> TypeAdapter[T]:
    return TypeAdapter(shape)


def _checked(shape: type[T], tool: str, called: Called) -> T:
    """The content of an answer, without what is not known here. Raises RetrievalError naming what is missing."""
    if not isinstance(called.content, Mapping):
        raise RetrievalError(f"the {tool} of the server that finds passages gives no structured content")
    try:
        return _adapter(shape).validate_python(called.content, strict=True, extra="ignore")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        # names of ours and numbers: nothing that the server made up
        place = ".".join(str(part) for part in first["loc"] if not isinstance(part, int))
        what = "gives no" if first["type"] == "missing" else "gives another kind of"
        raise RetrievalError(f"the {tool} of the server that finds passages {what} `{place}`") from None


def _complaint(text: str, request: SearchRequest) -> RequestError | RetrievalError:
    """What a tool's error says of the question; an error of another kind is for the log."""
    said = _COMPLAINT.fullmatch(text)
    if said is None or said[1] not in _CLIENTS:
        _logger.warning("the %s of the server that finds passages failed", SEARCH)
        return RetrievalError("the search for passages failed")
    kind = NotFoundError if said[1] == "pack" and request.pack is not None else RequestError
    return kind(said[1], label(said[2]))
