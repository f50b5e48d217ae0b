"""What a client may keep of an answer, and how it asks whether that still holds (RFC 9110, 9111)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic_core import to_json

from octavo_artifact.ids import sha256_hex

IMMUTABLE = "public, max-age=31536000, immutable"
"""Of an answer that is named by all it depends on; RFC 8246."""

REVALIDATED = "no-cache"
"""Kept, but not used before the server was asked whether it still holds."""

NEVER = "no-store"

_TAG = re.compile(r'(?:W/)?("[^"]*")')


def tag_of(*parts: Any) -> str:
    """A strong entity tag: equal values, models among them, give equal tags."""
    # pydantic writes JSON in a tenth of the time of `canonical_json`, and this is done for every request.
    return f'"{sha256_hex(to_json(parts))[:32]}"'


def is_held(conditions: Sequence[str], tag: str) -> bool:
    """Whether the client has the answer of that tag; `conditions` are the `If-None-Match` lines of the request."""
    return any(found == tag for line in conditions for found in _TAG.findall(line))


def is_any(conditions: Sequence[str]) -> bool:
    """Whether the client has some answer, whichever (`*`): that there is one must be seen first."""
    return any(line.strip() == "*" for line in conditions)
