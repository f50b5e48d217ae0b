"""reStructuredText: sections by their adornment, explicit markup, code, tables and paragraphs, to the line.

Users are shown the text as written. Neither embedded nor indexed are comments, targets, adornment, and the marks of
directives, roles and links; what these say is.

Lines are told apart here: docutils gives lines for some of its nodes only, not for tables, comments and the ends of
sections, wants every directive and role that a project defines, and may read other files.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

from octavo_build.bodies.body import (
    MAX_HEADING,
    MAX_LINES,
    Block,
    Body,
    Facts,
    Hidden,
    data_uris,
    decode,
    disjoint,
    lines_of,
    make_body,
)

_ADORNMENT = re.compile(rb"([!-/:-@\[-`{-~])\1*+")
_EXPLICIT = re.compile(rb"\.\.(?:[ \t]++|$)")
_DIRECTIVE = re.compile(rb"(?:\|[^|]{1,200}\|[ \t]++)?([A-Za-z][\w.+:-]{0,80}?)[ \t]?::(?=\s|$)")
_TARGET = re.compile(rb"_[^:].{0,1000}?:(?:\s|$)|__(?:\s|:)")
_NOTE = re.compile(rb"\[[^\]]{1,100}\](?:\s|$)")
_CODE = frozenset(
    b"code code-block sourcecode highlight parsed-literal literalinclude prompt ipython doctest testcode testoutput"
    b" testsetup testcleanup math raw productionlist graphviz mermaid digraph graph".split()
)
_OPTION = re.compile(rb":[^:\s][^:]{0,100}:(?:\s|$)")
_META = re.compile(rb":description(?:[ \t][^:]{0,40})?:[ \t]+(.+)")
_GRID = re.compile(rb"\+[-=+]*[-=]\+$")
_SIMPLE = re.compile(rb"=++(?:[ \t]++=++)++$")
_HEAD = re.compile(rb"\+[=+]+\+$")

_INLINE = re.compile(
    rb"(?P<literal>``)[^`]{1,1000}?``"
    rb"|(?P<role>(?::[A-Za-z][\w.+-]{0,60}){1,3}:)?`(?P<text>[^`<]{0,1000}+)(?P<target><[^<>`]{0,1000}+>)?`(?P<link>_{0,2})"
)
_MARKS = re.compile(r"(?::[A-Za-z][\w.+:-]{0,60}:)?`+([^`<]*)(?:<[^<>`]*>)?`+_{0,2}|[*|]+")


def parse_body(raw: bytes, offset: int) -> Body:
    """Structure of `raw[offset:]`, found in time and memory linear in its size."""
    starts = lines_of(raw, offset)
    reader = _Reader(raw, [*starts, len(raw)] if len(starts) <= MAX_LINES else [offset, offset])
    reader.read()
    unshown = tuple(data_uris(raw, offset))
    return make_body(raw, starts, tuple(reader.blocks), unshown, disjoint((*unshown, *reader.hidden)))


def facts(raw: bytes, offset: int) -> Facts:
    """The title is the first section's; the description that of a `meta` directive."""
    title = next((block.text for block in parse_body(raw, offset).blocks if block.level), "")
    meta = raw.find(b".. meta::")
    described = _META.search(raw, meta, meta + 4000) if meta >= 0 else None
    return Facts(title, decode(described[1]).strip() if described else "")


class _Reader:
    """Walks the lines once; a block takes the lines that belong to it."""

    def __init__(self, raw: bytes, bounds: list[int]) -> None:
        self.blocks: list[Block] = []
        self.hidden: list[Hidden] = []
        self._raw, self._bounds = raw, bounds
        self._lines = [raw[start:end].rstrip() for start, end in pairwise(bounds)]
        self._unclosed: set[bytes] = set()
        """Borders that end no table below."""
        self._styles: list[tuple[bytes, bool]] = []

    def read(self) -> None:
        """Tell the blocks apart."""
        line = 0
        while line < len(self._lines):
            line = self._next(line) if self._lines[line] else line + 1

    def _next(self, line: int) -> int:
        """Read the block that begins at `line`; the line after it."""
        if (after := self._heading(line)) or (after := self._table(line)):
            return after
        text = self._lines[line]
        if _ADORNMENT.fullmatch(text) and len(text) >= 4 and not self._text_at(line + 1):
            self._hide(line, line + 1)
            return self._block("rule", line, line + 1)
        if _EXPLICIT.match(text.lstrip()):
            return self._explicit(line)
        return self._paragraph(line)

    def _heading(self, line: int) -> int:
        """0 when there is none."""
        over = self._is_adornment(line) and self._is_adornment(line + 2) and self._text_at(line + 1) is not None
        if over and self._lines[line] == self._lines[line + 2] and not self._is_adornment(line + 1):
            return self._section(line, line + 1, over=True)
        text = self._text_at(line)
        if text and not text[:1].isspace() and self._is_adornment(line + 1) and not self._is_adornment(line):
            under = self._lines[line + 1]
            if len(under) >= 4 or len(under) >= _width(text):
                return self._section(line, line, over=False)
        return 0

    def _section(self, line: int, title: int, *, over: bool) -> int:
        style = (self._lines[title + 1][:1], over)
        if style not in self._styles:
            self._styles.append(style)
        text = " ".join(_MARKS.sub(r"\1", decode(self._lines[title][: 8 * MAX_HEADING])).split())[:MAX_HEADING]
        self._hide(title + 1, title + 2)
        if over:
            self._hide(line, line + 1)
        self._inline(title, title + 1)
        return self._block("heading", line, title + 2, min(6, 1 + self._styles.index(style)), text)

    def _table(self, line: int) -> int:
        """0 when there is none; a table that is indented is one too."""
        first = self._lines[line].lstrip()
        if _GRID.match(first):
            end, head = self._grid(line)
        elif _SIMPLE.match(first):
            end, head = self._simple(line)
        else:
            return 0
        if end:
            self._inline(line, end)
            start, head = self._bounds[line], self._bounds[head] if head else 0
            self.blocks.append(Block("table", start, self._bounds[end], head=head))
        return end

    def _grid(self, line: int) -> tuple[int, int]:
        """The line after a table with borders all around, and the one after its head, 0 when it has none."""
        end, head = line + 1, 0
        while (row := (self._text_at(end) or b"").lstrip())[:1] in (b"+", b"|") and row:
            end += 1
            head = end if not head and _HEAD.match(row) else head
        return end, head if head < end else 0

    def _simple(self, line: int) -> tuple[int, int]:
        """The same of a table with borders above and below: it ends with a border before a blank line."""
        border, head = self._lines[line], 0
        if border in self._unclosed:
            return 0, 0
        for end in range(line + 1, len(self._lines)):
            if self._lines[end] == border:
                if not self._text_at(end + 1):
                    return end + 1, head
                head = head or end + 1
        self._unclosed.add(border)
        return 0, 0

    def _explicit(self, line: int) -> int:
        text = self._lines[line].lstrip()
        indent = len(self._lines[line]) - len(text)
        mark = self._bounds[line] + indent
        rest = text[2:].lstrip()
        content = mark + len(text) - len(rest)
        if directive := _DIRECTIVE.match(rest):
            self.hidden.append(Hidden(mark, content, ""))
            self.hidden.append(Hidden(content + directive.end() - 2, content + directive.end(), ""))
            if directive[1].lower().rpartition(b":")[2] in _CODE:
                return self._block("code", line, self._deeper(line + 1, indent))
            end = line + 1
            while _OPTION.match((self._text_at(end) or b"").lstrip()) and self._indent(end) > indent:
                end += 1
            self._inline(line, end)
            return self._block("paragraph", line, end)
        if _NOTE.match(rest):
            self.hidden.append(Hidden(mark, content, ""))
            self._inline(line, line + 1)
            return self._block("paragraph", line, line + 1)
        end = self._deeper(line + 1, indent) if rest or self._text_at(line + 1) else line + 1
        self._hide(line, end)
        return self._block("definition" if _TARGET.match(rest) else "comment", line, end)

    def _paragraph(self, line: int) -> int:
        end = line + 1
        while self._text_at(end) and not (
            _EXPLICIT.match(self._lines[end].lstrip()) and self._indent(end) <= self._indent(line)
        ):
            end += 1
        self._inline(line, end)
        self._block("paragraph", line, end)
        last = self._lines[end - 1]
        code = self._after_blank(end)
        if last.endswith(b"::") and self._indent(code) > self._indent(line):
            return self._block("code", code, self._deeper(code, self._indent(line)))
        return end

    def _deeper(self, line: int, indent: int) -> int:
        """The line after those from `line` on that are indented deeper, blank lines at their end not counted."""
        end = line
        while line < len(self._lines) and (not self._lines[line] or self._indent(line) > indent):
            line += 1
            end = line if self._lines[line - 1] else end
        return end

    def _after_blank(self, line: int) -> int:
        while line < len(self._lines) and not self._lines[line]:
            line += 1
        return line

    def _text_at(self, line: int) -> bytes | None:
        """The line, or None when it is blank or there is none."""
        return (self._lines[line] or None) if line < len(self._lines) else None

    def _indent(self, line: int) -> int:
        text = self._text_at(line) or b""
        return len(text) - len(text.lstrip())

    def _is_adornment(self, line: int) -> bool:
        text = self._text_at(line)
        return text is not None and _ADORNMENT.fullmatch(text) is not None and text not in (b"::", b"..", b"...")

    def _block(self, kind: str, first: int, last: int, level: int = 0, text: str = "") -> int:
        self.blocks.append(Block(kind, self._bounds[first], self._bounds[last], level, text))
        return last

    def _hide(self, first: int, last: int) -> None:
        self.hidden.append(Hidden(self._bounds[first], self._bounds[last], ""))

    def _inline(self, first: int, last: int) -> None:
        self.hidden.extend(_inline_marks(self._raw, self._bounds[first], self._bounds[last]))


def _inline_marks(raw: bytes, start: int, end: int) -> Iterator[Hidden]:
    """The marks of roles, links and literals; the words between them stay."""
    for found in _INLINE.finditer(raw, start, end):
        if found["literal"]:
            yield Hidden(found.start(), found.start() + 2, "")
            yield Hidden(found.end() - 2, found.end(), "")
        elif found["text"].strip():
            yield Hidden(found.start(), found.start("text"), "")
            yield Hidden(found.start() + len(found[0][: found.end("text") - found.start()].rstrip()), found.end(), "")
        elif found["target"]:
            yield Hidden(found.start(), found.start("target") + 1, "")
            yield Hidden(found.end("target") - 1, found.end(), "")


def _width(title: bytes) -> int:
    """Columns of a title, as its adornment must cover them."""
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in decode(title))
