"""What a pack calls its things, fit to be put before a model or a person that did not ask for it.

Titles and descriptions stand in lists and in the introduction of a server, where text of a pack could pass for the
server's own, or hide what it says. Content that was asked for is given as it is.
"""

from __future__ import annotations

import re

MAX_TITLE = 200
MAX_DESCRIPTION = 1024
"""Characters; a skill's description may have as many."""

# ZWNJ and ZWJ stay: words of Persian and Hindi are written with them.
_UNSEEN = re.compile(
    "[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ue000-\uf8ff]+")


def label(text: str, limit: int | None = None) -> str:
    """The text in one line of at most `limit` characters, without those that hide, reorder or steer others."""
    plain = text.isascii() and text.isprintable()  # as most are, and this is asked of every line of every answer
    line = text.strip() if plain else _CONTROLS.sub(" ", _UNSEEN.sub("", text)).strip()
    return line if limit is None or len(line) <= limit else f"{line[: limit - 1]}…"
