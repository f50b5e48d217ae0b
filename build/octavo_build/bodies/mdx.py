"""MDX: Markdown in which JSX stands. Users are shown the text as written.

Neither embedded nor indexed are `import` and `export` statements, JSX tags and comments; the text between tags is, and
so is what components are given to say in attributes such as `title`. JSX in code is code.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from octavo_build.bodies import markdown
from octavo_build.bodies.body import Block, Body, Facts, Hidden, disjoint

_WITHOUT = ("code", "html_block")
"""What MDX takes from Markdown: text indented by JSX around it is no code, and a line with a tag no HTML."""

_STATEMENT = re.compile(
    rb"import\s*(?:[\"'{*]|type\s|[A-Za-z_$][\w$]*\s*(?:,|from\b))"
    rb"|export\s*(?:(?:default|const|let|var|function|async|class|type|interface|enum)\b|[{*])"
)
_JAVASCRIPT = re.compile(rb"\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'|`(?:[^`\\]|\\.)*+`|[{}()\[\]]", re.DOTALL)
_IN_TEXT = re.compile(rb"\\[!-/:-@\[-`{-~]|`+|\{\s*+/\*|<(?=/?[A-Za-z][\w.:-]{0,80}+(?:\s|/?>)|/?>)")
_BACKTICKS = re.compile(rb"`+")
_COMMENT_END = re.compile(rb"\*/\s*+\}")
_IN_TAG = re.compile(rb"\"[^\"]*+\"|'[^']*+'|`[^`]*+`|[{}<>]")
_SAID = re.compile(
    rb"(?<=\s)(?:title|label|heading|description|summary|alt|caption)=(?:\"([^\"]++)\"|'([^']++)'|\{\"([^\"]++)\"\})"
)


def parse_body(raw: bytes, offset: int) -> Body:
    """Structure of `raw[offset:]`, found in time and memory linear in its size."""
    body = markdown.parse_body(raw, offset, _WITHOUT)
    jsx = _Jsx(raw, list(_leaves(body.blocks))).hidden()
    return replace(body, hidden=disjoint((*_statements(raw, body.blocks), *body.hidden, *jsx)))


def facts(raw: bytes, offset: int) -> Facts:
    """The title is the first heading of level 1."""
    return Facts(title=markdown.first_heading(parse_body(raw, offset).blocks))


def _leaves(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        if block.children:
            yield from _leaves(block.children)
        else:
            yield block


def _statements(raw: bytes, blocks: Sequence[Block]) -> Iterator[Hidden]:
    """Blocks that are `import` or `export` statements, and those after them up to where all brackets are closed."""
    reach, closes = 0, True
    for index, block in enumerate(blocks):
        if block.start >= reach and block.kind == "paragraph" and _STATEMENT.match(raw, block.start, block.end):
            closed = _closed(raw, blocks, index) if closes else None
            closes = closed is not None
            reach = closed or block.end
            yield Hidden(block.start, reach, "")


def _closed(raw: bytes, blocks: Sequence[Block], first: int) -> int | None:
    depth = 0
    for block in (blocks[index] for index in range(first, len(blocks))):
        for found in _JAVASCRIPT.finditer(raw, block.start, block.end):
            depth += 1 if found[0] in (b"{", b"(", b"[") else -1 if found[0] in (b"}", b")", b"]") else 0
        if depth <= 0:
            return block.end
    return None


class _Jsx:
    """Tags and comments outside code. What is never closed is text."""

    def __init__(self, raw: bytes, leaves: Sequence[Block]) -> None:
        self._raw, self._leaves = raw, leaves
        self._fences = [block.start for block in leaves if block.kind == "fence"]
        self._no_end = 0
        """Byte offset up to which no comment ends."""

    def hidden(self) -> Iterator[Hidden]:
        """All of them, in order."""
        reach = 0
        for block in self._leaves:
            if block.kind != "fence" and reach < block.end:
                for each in self._in_text(max(reach, block.start), block.end):
                    reach = each.end
                    yield each

    def _in_text(self, start: int, end: int) -> Iterator[Hidden]:
        raw = self._raw
        runs: dict[int, list[int]] = defaultdict(list)
        for run in _BACKTICKS.finditer(raw, start, end):
            runs[run.end() - run.start()].append(run.start())
        while start < end and (mark := _IN_TEXT.search(raw, start, end)):
            start = mark.end()
            if mark[0].startswith(b"`"):
                same = runs[len(mark[0])]
                closing = bisect_left(same, start)
                start = same[closing] + len(mark[0]) if closing < len(same) else start
            elif mark[0].startswith(b"{"):
                if ending := self._comment_end(start):
                    start = ending
                    yield Hidden(mark.start(), ending, "")
            elif mark[0] == b"<":
                start, closed = _after_tag(raw, start, end)
                if closed:
                    yield from _without_said(raw, mark.start(), start)

    def _comment_end(self, start: int) -> int | None:
        """Where a comment ends, in this block or in a later one; a fence lies in none."""
        if start < self._no_end:
            return None
        fence = bisect_left(self._fences, start)
        limit = self._fences[fence] if fence < len(self._fences) else len(self._raw)
        ending = _COMMENT_END.search(self._raw, start, limit)
        self._no_end = self._no_end if ending else limit
        return ending.end() if ending else None


def _after_tag(raw: bytes, start: int, end: int) -> tuple[int, bool]:
    """Where a tag ends, or, when nothing closes it, up to where its text was looked through."""
    depth = 0
    for found in _IN_TAG.finditer(raw, start, end):
        if found[0] == b"{":
            depth += 1
        elif found[0] == b"}":
            depth -= 1
        elif found[0] in (b"<", b">") and depth <= 0:
            return (found.end(), True) if found[0] == b">" else (found.start(), False)
    return end, False


def _without_said(raw: bytes, start: int, end: int) -> Iterator[Hidden]:
    """A tag but for what a component is given to say."""
    if raw[start + 1 : start + 2].isupper():
        for said in _SAID.finditer(raw, start, end):
            first, last = said.span(said.lastindex or 0)
            yield Hidden(start, first, " ")
            start = last
    yield Hidden(start, end, " " if raw[start] in b"\"'" else "")
