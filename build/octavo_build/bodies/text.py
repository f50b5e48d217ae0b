"""Plain text: paragraphs between blank lines, shown as written. Nothing in it is a heading."""

from __future__ import annotations

import re
from itertools import pairwise

from octavo_build.bodies.body import MAX_LINES, Block, Body, Facts, data_uris, decode, lines_of, make_body

MAX_TITLE = 80
"""Characters of a first line that may be a title."""

_TITLE = re.compile(r"(?=.*\w)[^\s\-*>|.,;:].*[^.,;:\s]|\w")
_RULE = re.compile(r"([=~^\-_#*])\1{2,}")


def parse_body(raw: bytes, offset: int) -> Body:
    """Paragraphs of `raw[offset:]`."""
    starts = lines_of(raw, offset)
    blocks: list[Block] = []
    opened: int | None = None
    for start, end in pairwise([*starts, len(raw)] if len(starts) <= MAX_LINES else []):
        if raw[start:end].strip():
            opened = start if opened is None else opened
        elif opened is not None:
            blocks.append(Block("paragraph", opened, start))
            opened = None
    if opened is not None:
        blocks.append(Block("paragraph", opened, len(raw)))
    unshown = tuple(data_uris(raw, offset))
    return make_body(raw, starts, tuple(blocks), unshown, unshown)


def facts(raw: bytes, offset: int) -> Facts:
    """The title is the first line, when it is short, ends like no sentence, and a rule or a blank line follows it."""
    lines = [decode(line).strip() for line in raw[offset:].lstrip()[: 8 * MAX_TITLE].splitlines()[:2]]
    first, second = (*lines, "", "")[:2]
    follows = not second or _RULE.fullmatch(second) is not None
    return Facts(title=first if follows and len(first) <= MAX_TITLE and _TITLE.fullmatch(first) else "")
