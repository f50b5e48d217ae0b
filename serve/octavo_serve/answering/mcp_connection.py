"""A connection to an MCP server, for calls of its tools: kept open, and opened once more when it dies during a call.

A server of the protocol of 2026 by URL is asked by one POST a call, which costs a third of what the SDK's client costs;
older ones, and those that a command starts, are asked by the SDK.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Protocol, TypeVar, cast

import anyio
import httpx2
from pydantic_core import from_json, to_json

from octavo_artifact import __version__
from octavo_serve.answering.model import is_loopback
from octavo_serve.answering.retriever import RetrievalError
from octavo_serve.answering.settings import RetrieverSettings
from octavo_serve.answering.spans import outgoing

MAX_ANSWER = 16 * 1024 * 1024
"""Bytes of an answer over HTTP: twenty passages of the largest size, twice, with what JSON adds."""

_VERSION = "2026-07-28"
_META = {
    "io.modelcontextprotocol/protocolVersion": _VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "octavo", "version": __version__},
}
_JSON, _EVENTS = "application/json", "text/event-stream"
_KEPT = 30.0
"""Seconds for which a connection is kept open."""

_OK = 200
_REFUSED = frozenset({401, 403, 429})

_logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Called:
    """What a tool answered."""

    failed: bool
    text: str
    """Of its first block of text."""
    content: Any
    """Its structured content; None without."""


class BrokenError(Exception):
    """The connection died before the answer came."""


class Link(Protocol):
    """An open connection; several calls may be under way."""

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Called:
        """Call a tool. Raises BrokenError, and RetrievalError where another connection would not help."""
        ...

    async def close(self) -> None:
        """End it."""
        ...


class McpConnection:
    """Used from one event loop."""

    def __init__(self, settings: RetrieverSettings, key: str | None, timeout: float) -> None:
        """`timeout` is in seconds, for a call with all that it takes, the opening included."""
        self._settings = settings
        self._key = key
        self._timeout = timeout
        self._link: Link | None = None
        self._opening = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()

    async def warm_up(self) -> None:
        """Open it, if it is not. What goes wrong is logged: the first question tries again."""
        try:
            await self._in_time(self._opened())
        except RetrievalError as error:
            _logger.warning("%s", error)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Called:
        """What the tool answers. Raises RetrievalError."""
        return await self._in_time(self._call(tool, arguments))

    async def close(self) -> None:
        """End it; whoever waits for an answer gets none."""
        if self._link is not None:
            self._forget(self._link)
        await asyncio.gather(*self._closing, return_exceptions=True)

    async def _in_time(self, work: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self._timeout):
                return await work
        except TimeoutError as error:
            raise RetrievalError(f"no passages came within {self._timeout:g} seconds") from error
        except BrokenError as error:
            raise RetrievalError("the server that finds passages cannot be reached") from error

    async def _call(self, tool: str, arguments: Mapping[str, Any]) -> Called:
        link = await self._opened()
        try:
            return await link.call(tool, arguments)
        except BrokenError:
            # It only reads: to ask it twice does no harm.
            _logger.warning("the connection to the server that finds passages broke; it is opened again")
            self._forget(link)
            return await (await self._opened()).call(tool, arguments)

    async def _opened(self) -> Link:
        async with self._opening:
            if self._link is None:
                self._link = await self._open()
            return self._link

    async def _open(self) -> Link:
        if self._settings.url is None:
            return await _SdkLink.by_command(self._settings.command)
        link = _HttpLink(self._settings.url, self._key)
        try:
            if await link.is_modern():
                return link
        except BaseException:
            await link.close()
            raise
        await link.close()
        return await _SdkLink.by_url(self._settings.url, self._key)

    def _forget(self, link: Link) -> None:
        """Let go of a link that broke, unless somebody else has; nobody waits for its end."""
        if self._link is link:
            self._link = None
            closing = asyncio.create_task(link.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)


class _HttpLink:
    """The protocol of 2026: each call is a request of its own, over connections that are kept."""

    def __init__(self, url: str, key: str | None) -> None:
        self._url = url
        self._client = _http_client(url, key)
        self._client.headers.update(
            {"content-type": _JSON, "accept": f"{_JSON}, {_EVENTS}", "mcp-protocol-version": _VERSION}
        )
        self._number = 0
        self._waiting = 0
        self._closed = False

    async def is_modern(self) -> bool:
        """Whether the server speaks this protocol. Raises BrokenError and RetrievalError."""
        status, answer = await self._send("server/discover", {}, {})
        if status in _REFUSED or status >= 500:
            raise _status(status)
        result = _mapping(answer.get("result"))
        return status == _OK and _VERSION in _list(result.get("supportedVersions"))

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Called:
        """See `Link`."""
        params = {"name": tool, "arguments": arguments}
        status, answer = await self._send("tools/call", params, {"mcp-name": tool})
        if "result" in answer:
            return _called(_mapping(answer["result"]))
        if "error" in answer:
            raise _protocol_error(_mapping(answer["error"]).get("code"))
        raise _status(status)

    async def close(self) -> None:
        """End it when all calls that are under way have."""
        self._closed = True
        await self._end()

    async def _end(self) -> None:
        if self._closed and not self._waiting:
            await self._client.aclose()

    async def _send(
        self, method: str, params: Mapping[str, Any], headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, Any]]:
        """Status and message of the answer; an empty one where there is none."""
        self._number += 1
        number = self._number
        body = to_json({"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": _META}})
        self._waiting += 1
        try:
            async with self._client.stream(
                "POST", self._url, content=body, headers={"mcp-method": method, **headers, **outgoing.get()}
            ) as response:
                status, kind = response.status_code, response.headers.get("content-type", "").partition(";")[0]
                content = await _bounded(response.aiter_bytes())
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise BrokenError from error
        finally:
            self._waiting -= 1
            await self._end()
        return status, _message(content, number, events=kind.strip().lower() == _EVENTS)


class _SdkLink:
    """The SDK's client, held open by a task of its own: what it enters, the same task has to leave."""

    def __init__(self, transport: AbstractAsyncContextManager[Any]) -> None:
        self._transport = transport
        self._client: Any = None
        self._ended = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold())

    @classmethod
    async def by_command(cls, command: tuple[str, ...]) -> _SdkLink:
        """Start a command that speaks MCP on its standard streams. Raises BrokenError."""
        from mcp import StdioServerParameters, stdio_client

        return await cls(stdio_client(StdioServerParameters(command=command[0], args=list(command[1:]))))._begun()

    @classmethod
    async def by_url(cls, url: str, key: str | None) -> _SdkLink:
        """Ask a server of any version. Raises BrokenError."""
        return await cls(_streams(url, key))._begun()

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Called:
        """See `Link`."""
        import mcp.types as t
        from mcp.shared.exceptions import MCPError

        request = t.CallToolRequest(params=t.CallToolRequestParams(name=tool, arguments=dict(arguments)))
        try:
            # Not `call_tool`, which lists all tools first and checks the answer by a schema that the server chose.
            result = await self._client.session.send_request(request, t.CallToolResult)
        except MCPError as error:
            if error.code in (t.CONNECTION_CLOSED, t.INVALID_REQUEST):  # the latter where a session ended
                raise BrokenError from error
            raise _protocol_error(error.code) from error
        except ValueError as error:
            raise RetrievalError("the server that finds passages does not answer as MCP has it") from error
        except (OSError, RuntimeError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise BrokenError from error
        return _called(result.model_dump(by_alias=True, mode="json"))

    async def close(self) -> None:
        """See `Link`."""
        self._ended.set()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _begun(self) -> _SdkLink:
        try:
            await asyncio.shield(self._ready)
        except asyncio.CancelledError:
            self._task.cancel()
            raise
        return self

    async def _hold(self) -> None:
        from mcp import Client

        try:
            async with Client(self._transport) as self._client:
                self._ready.set_result(None)
                await self._ended.wait()
        except Exception as error:
            if not self._ready.done():
                self._ready.set_exception(BrokenError())
            _logger.info("the connection to the server that finds passages ended (%s)", type(error).__name__)


@asynccontextmanager
async def _streams(url: str, key: str | None) -> AsyncGenerator[Any]:
    from mcp.client.streamable_http import streamable_http_client

    async with _http_client(url, key) as client, streamable_http_client(url, http_client=client) as streams:
        yield streams


def _http_client(url: str, key: str | None) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        headers={} if key is None else {"Authorization": f"Bearer {key}"},
        # kept by nobody: an answer does not depend on those before
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        # the whole call has one
        timeout=None,
        limits=httpx2.Limits(keepalive_expiry=_KEPT),
        # The key and the question are for this place.
        follow_redirects=False,
        trust_env=not is_loopback(url),
    )


async def _bounded(pieces: AsyncIterator[bytes]) -> bytes:
    content = bytearray()
    async for piece in pieces:
        content += piece
        if len(content) > MAX_ANSWER:
            raise RetrievalError("the server that finds passages sent more than an answer may have")
    return bytes(content)


def _message(content: bytes, number: int, *, events: bool) -> Mapping[str, Any]:
    """The answer to a request, in a document of its own or among events; empty where there is none."""
    documents = [content]
    if events:
        blocks = content.replace(b"\r\n", b"\n").split(b"\n\n")
        documents = [
            b"\n".join(line[5:] for line in block.split(b"\n") if line.startswith(b"data:")) for block in blocks
        ]
    for document in documents:
        with suppress(ValueError):
            message = _mapping(from_json(document))
            if message.get("id") == number:
                return message
    return {}


def _called(result: Mapping[str, Any]) -> Called:
    texts = [each.get("text") for each in map(_mapping, _list(result.get("content")))]
    text = next((each for each in texts if isinstance(each, str)), "")
    return Called(result.get("isError") is True, text, result.get("structuredContent"))


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else []


def _status(status: int) -> RetrievalError:
    return RetrievalError(f"the server that finds passages answers with status {status}")


def _protocol_error(code: object) -> RetrievalError:
    number = f" ({code})" if isinstance(code, int) else ""
    return RetrievalError(f"the server that finds passages answers with an error of MCP{number}")
