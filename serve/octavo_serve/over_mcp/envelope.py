"""Whether a body can be a message of JSON-RPC at all, said before the SDK sees it.

The SDK's leg for clients of 2025 answers what is none in the words of its validator, with the client's input and an
address. Importing this module does not import the SDK.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic_core import from_json, to_json
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600


class WellFormed:
    """ASGI application that passes on what is a message; the edge has read its body, which comes in one piece."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what is none with status 400 and a JSON-RPC error."""
        first = await receive()
        malformed = refuse_malformed(first.get("body", b""))
        if malformed is not None:
            await Response(malformed, 400, media_type="application/json")(scope, receive, send)
            return
        messages: list[Message] = [first]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        await self._app(scope, replay, send)


def refuse_malformed(body: bytes) -> bytes | None:
    """The answer to a body that is no message, or None for one that is.

    Strict JSON of UTF-8 is expected: no NaN, no half of a surrogate pair, no nesting that a parser would not follow.
    Batches ended with the protocol of 2025-06-18.
    """
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError:
        return _error(_PARSE_ERROR, "Parse error: expected JSON in UTF-8")
    return (
        None if _is_message(value) else _error(_INVALID_REQUEST, "Invalid Request: expected one JSON-RPC 2.0 message")
    )


def _is_message(value: Any) -> bool:
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
