"""Whether a body can be a message of JSON-RPC at all, said before the SDK sees it.

The SDK's leg for clients of 2025 answers what is none in the words of its validator, with the client's input and an
address. Importing this module does not import the SDK.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard, cast

import anyio
from pydantic_core import from_json, to_json
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600


class WellFormed:
    """ASGI application that passes on what is a message; the edge has read its body, which comes in one piece."""

    def __init__(self, whole: ASGIApp, streaming: ASGIApp, long: frozenset[str]) -> None:
        """`whole` answers with one document. `streaming` may also tell how far it is, and stops when the client leaves:
        it gets the calls that want to be told, and those of the tools that take `long`.
        """
        self._whole = whole
        self._streaming = streaming
        self._long = long

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what is none with status 400 and a JSON-RPC error."""
        first = await receive()
        message = parse_message(first.get("body", b""))
        if isinstance(message, bytes):
            await Response(message, 400, media_type="application/json")(scope, receive, send)
            return
        messages: list[Message] = [first]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        tool, watched = _called(message)
        if not (watched or tool in self._long):
            await self._whole(scope, replay, send)
        elif _reads_events(scope):
            await self._streaming(scope, replay, send)
        else:
            await _until_left(self._whole, scope, replay, send)


def parse_message(body: bytes) -> Mapping[str, Any] | bytes:
    """The message, or the answer to a body that is none.

    Strict JSON of UTF-8 is expected: no NaN, no half of a surrogate pair, no nesting that a parser would not follow.
    Batches ended with the protocol of 2025-06-18.
    """
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError:
        return _error(_PARSE_ERROR, "Parse error: expected JSON in UTF-8")
    if _is_message(value):
        return value
    return _error(_INVALID_REQUEST, "Invalid Request: expected one JSON-RPC 2.0 message")


def _called(message: Mapping[str, Any]) -> tuple[object, bool]:
    """The tool that a message calls, None without, and whether the client wants to be told how far it is."""
    params = message.get("params")
    if message.get("method") != "tools/call" or not isinstance(params, dict):
        return None, False
    given = cast(Mapping[str, Any], params)
    name, meta = given.get("name"), given.get("_meta")
    return name if isinstance(name, str) else None, isinstance(meta, dict) and "progressToken" in meta


def _reads_events(scope: Scope) -> bool:
    """Whether the client reads streams, as every one should; those that do not are answered all the same."""
    return any(
        name == b"accept" and (b"text/event-stream" in value or b"*/*" in value) for name, value in scope["headers"]
    )


async def _until_left(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer as long as somebody waits for it."""
    first: list[Message] = [await receive()]

    async def given() -> Message:
        if not first:
            await anyio.sleep_forever()
        return first.pop()

    async def watch(cancel: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        cancel.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch, tasks.cancel_scope)
        await app(scope, given, send)
        tasks.cancel_scope.cancel()


def _is_message(value: Any) -> TypeGuard[Mapping[str, Any]]:
    if not isinstance(value, dict):
        return False
    message = cast(Mapping[str, Any], value)
    if message.get("jsonrpc") != "2.0":
        return False
    identified = isinstance(message.get("id"), int | str) and not isinstance(message.get("id"), bool)
    if "method" in message:
        shaped = isinstance(message["method"], str) and isinstance(message.get("params"), dict | None)
        return shaped and (identified or "id" not in message)
    # an answer, of which a server that never asks has no use; the SDK takes note of it
    return identified and isinstance(message.get("result"), dict)


def _error(code: int, text: str) -> bytes:
    return to_json({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": text}})
