"""The page at `/` for people: one answer without anything to load, which asks this server like any other client.

It tells nothing itself, so it needs no key; people give theirs to the page, which forgets it when it is closed.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from starlette.responses import Response
from starlette.types import Scope

from octavo_serve.over_http.caching import REVALIDATED

_HTML, _JSON = "text/html", "application/json"


def wants_page(scope: Scope) -> bool:
    """Whether a request for `/` comes from a browser: one that takes HTML rather than JSON (RFC 9110, `Accept`)."""
    if scope["path"] != "/" or scope["method"] not in ("GET", "HEAD"):
        return False
    accepted = ",".join(value.decode("latin-1") for name, value in scope["headers"] if name == b"accept")
    return _quality(accepted, _HTML) > _quality(accepted, _JSON)


@cache
def _parts() -> tuple[bytes, str]:
    """The page, and the policy by which the browser runs nothing but what stands in it."""
    here = files("octavo_serve.over_http")
    style, answer, search = (here.joinpath(each).read_text("utf-8") for each in ("page.css", "answer.js", "page.js"))
    style, script = style.strip(), f"{answer}{search}".strip()
    html = here.joinpath("page.html").read_text("utf-8").replace("/*style*/", style).replace("/*script*/", script)
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return html.encode(), policy


def page() -> Response:
    """The page."""
    content, policy = _parts()
    headers = {
        "Content-Security-Policy": policy,
        "Cache-Control": REVALIDATED,
        "Referrer-Policy": "no-referrer",
        "Vary": "Accept",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(content, headers=headers, media_type=_HTML)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _quality(accepted: str, wanted: str) -> float:
    """How much a type of content is wanted: the quality of the narrowest range that holds it, 0 to 1."""
    qualities: dict[str, float] = {}
    for entry in accepted.lower().split(","):
        media_range, *parameters = (part.strip() for part in entry.split(";"))
        written = next((each[2:] for each in parameters if each.startswith("q=")), "1")
        qualities[media_range] = float(written) if written.replace(".", "", 1).isdecimal() and written.isascii() else 0
    ranges = (wanted, f"{wanted.partition('/')[0]}/*", "*/*")
    return next((qualities[each] for each in ranges if each in qualities), 0)
