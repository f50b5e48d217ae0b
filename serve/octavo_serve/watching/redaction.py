"""What may be written down: no secrets, and nothing that a terminal or a reader of lines takes for something else."""

from __future__ import annotations

import re

from octavo_serve.callers.keys import KEY

_SECRETS = (
    (KEY, "octavo_…"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?"), "eyJ…"),  # a JWT
    # a scheme and what is too long for a word after it, a header wherever and however it is quoted
    (re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9._~+/-]{20,}=*", re.IGNORECASE), r"\1 …"),
    (
        re.compile(
            r"\b((?:proxy-)?authorization['\"]?\s*[:=,]\s*b?['\"]?)(?:(?:bearer|basic|digest|token)\s+)?[^\s'\",;]{8,}",
            re.IGNORECASE,
        ),
        r"\1…",
    ),
)

# C0, DEL, C1, line and paragraph separators, marks that turn the direction of text, halves of surrogates
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def redact(text: str) -> str:
    """`text` without API keys, tokens and credentials of an `Authorization` header."""
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


def printable(text: str) -> str:
    r"""`text` on one line: what a terminal would obey or cannot show is escaped as Python does (`\x0a`, `\u202e`)."""
    return _UNPRINTABLE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
