"""Where Markdown shows its text as code; what stands there is seen by every reader."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FENCE = re.compile(r"[ >]{0,12}(`{3,}|~{3,})(.*)")
_TICKS = re.compile(r"(?<!`)(`{1,2})(?!`)[^`]{1,500}\1(?!`)")


def code_spans(text: str) -> list[tuple[int, int]]:
    """Characters of fences and code spans, in order; a fence that nobody closes goes to the end."""
    return list(_spans(text))


def _spans(text: str) -> Iterator[tuple[int, int]]:
    start = opened = 0
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                yield opened, start + len(line)
                fence = ""
        elif mark and "`" not in mark[2]:
            fence, opened = mark[1], start
        else:
            for found in _TICKS.finditer(line):
                yield start + found.start(), start + found.end()
        start += len(line)
    if fence:
        yield opened, len(text)


def without_code(text: str) -> str:
    """The text with a space for each character of code, so that places and lines stay."""
    parts: list[str] = []
    end = 0
    for start, stop in code_spans(text):
        parts += [text[end:start], re.sub(r"[^\n]", " ", text[start:stop])]
        end = stop
    return "".join([*parts, text[end:]])
