"""What browsers must be told before a page of another origin may call (the Fetch standard, CORS).

For the origins that the operator lists, and no others; never a wildcard, and never credentials, since keys travel in a
header that the page sets itself.
"""

from __future__ import annotations

import re

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import Message, Scope, Send

EXPOSED = "octavo-digest, ETag, Retry-After, WWW-Authenticate, Mcp-Session-Id"
"""Headers of an answer that a page may read besides the few that it always may."""

SENT = "Authorization, Content-Type, If-None-Match, MCP-Protocol-Version, Mcp-Method, Mcp-Name"
"""Headers of a request that a page may set; of `Mcp-Param-*` those that it asks for."""

_MAX_AGE = "600"
_PARAM = re.compile(r"mcp-param-[a-z0-9!#$%&'*+.^_`|~-]{1,100}")
_ASKED = (b"access-control-request-method", b"access-control-request-headers")


def preflight(scope: Scope, methods: str) -> Response | None:
    """The answer to a browser that asks which `methods` and headers a page may use; None for any other request."""
    if scope["method"] != "OPTIONS":
        return None
    asked = {name: value for name, value in scope["headers"] if name in _ASKED}
    if _ASKED[0] not in asked:
        return None
    wanted = (name.strip().lower() for name in asked.get(_ASKED[1], b"").decode("latin-1").split(","))
    return Response(
        status_code=204,
        headers={
            "Access-Control-Allow-Methods": methods,
            "Access-Control-Allow-Headers": ", ".join([SENT, *(name for name in wanted if _PARAM.fullmatch(name))]),
            "Access-Control-Max-Age": _MAX_AGE,
            "Vary": "Access-Control-Request-Method, Access-Control-Request-Headers",
        },
    )


def shared(send: Send, origin: str | None) -> Send:
    """`send`, telling the browser that pages of `origin`, if any, may read the answer."""

    async def sharing(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.add_vary_header("Origin")
            if origin is not None:
                headers["Access-Control-Allow-Origin"] = origin
                headers["Access-Control-Expose-Headers"] = EXPOSED
        await send(message)

    return sharing
