"""A document's body whatever its format: blocks, lines, and what of the text is shown, embedded and indexed.

Places are byte offsets of the raw file, so that a passage is an exact span of it. What a view leaves out, or has
something else for, are ranges of bytes with a marker; that is all a format needs to make its markup readable text.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MAX_LINES = 400_000
"""Of a body whose blocks are told apart; a longer one is a single paragraph. markdown-it needs 2 kB a list item."""

MAX_HEADING = 200
"""Characters of a heading's text that are kept, for it is repeated in every passage below it."""

MARKER = "data:…"
"""Stands for a `data:` URI, whose payload says nothing to a reader or a model."""

_LINE_END = re.compile(rb"\r\n?|\n")

# A media type or a parameter is required: "data:," alone is how code spells a field.
_DATA_URI = re.compile(
    rb"data:(?<![\w-]data:)(?:[\w.+-]{1,80}/[\w.+-]{1,80}(?:;[\w.+=-]{1,80}){0,8}|(?:;[\w.+=-]{1,80}){1,8}),"
)
# What ends a payload depends on the character before the URI. It stays on its line, lest an unclosed quote cost text.
_PAYLOAD = {
    b'"': re.compile(rb'[^"\r\n]*+(?=")'),
    b"'": re.compile(rb"[^'\r\n]*+(?=')"),
    b"<": re.compile(rb"[^<>\r\n]*+(?=>)"),
    b"(": re.compile(rb"(?:\([^\s()]*+\)|[^\s()])*+(?=[\s)])"),
}
_BARE_PAYLOAD = re.compile(rb"[^\s\"'<>()`]*+")


def decode(data: bytes) -> str:
    """UTF-8 with U+FFFD for what is not, and for NUL."""
    return data.decode("utf-8", "replace").replace("\0", "\ufffd")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a body."""

    kind: str
    """paragraph, heading, list, item, quote, table, fence, code, html, rule or definition."""
    start: int
    """Byte offset in the raw file at which the block begins: of its first line, or of its first tag."""
    end: int
    """Byte offset after the block; nothing that can be seen lies between it and the next block."""
    level: int = 0
    """1 to 6 for a heading, else 0."""
    text: str = ""
    """A heading's plain text, at most `MAX_HEADING` characters; else empty."""
    children: tuple[Block, ...] = ()
    """Of a list, its items; of an item or a quote, its blocks."""
    head: int = 0
    """Byte offset after what is shown again above each part of a table that is cut; 0 when nothing is."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """A byte range of the raw file that a view of the text leaves out."""

    start: int
    end: int
    marker: str
    """What the view has instead."""


@dataclass(frozen=True, slots=True)
class Text:
    """Text of a block in which a link or a comment may stand."""

    content: str
    """Without the marks of the lists and quotes around it. A wikilink whose `|` cut a table's cell in two is whole."""
    line: int
    """Of the raw file, counted from 1, at which it begins."""
    is_html: bool


@dataclass(frozen=True, slots=True)
class Body:
    """A document's body: its blocks, its lines, and views of its text. All places are byte offsets of `raw`."""

    raw: bytes
    offset: int
    """Where the body begins."""
    blocks: tuple[Block, ...]
    """Of the top level, in order."""
    first_line: int
    """The body's, in the raw file, counted from 1."""
    line_starts: Sequence[int]
    """Of each line of the body."""
    unshown: Sequence[Hidden]
    """What users are not shown: payloads of `data:` URIs, and the markup of formats that nobody reads as written;
    disjoint and in order, as `hidden` is."""
    hidden: Sequence[Hidden]
    """What is neither embedded nor indexed: the same and comments."""
    texts: Sequence[Text] = ()
    """Of Markdown, in order; what has neither `[` nor a comment is left out."""
    definitions: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What link reference definitions say, as markdown-it keeps it."""

    def line_at(self, position: int) -> int:
        """Line of the raw file, counted from 1, of the byte at `position`."""
        return self.first_line - 1 + bisect_right(self.line_starts, position)

    def shown(self, start: int, end: int) -> str:
        """Text of the span as users see it."""
        return "".join(decode(self.raw[a:b]) + marker for a, b, marker in parts(self.unshown, start, end))

    def visible(self, start: int, end: int) -> str:
        """Text of the span as it is embedded and indexed."""
        return "".join(decode(self.raw[a:b]) + marker for a, b, marker in self.visible_parts(start, end))

    def visible_parts(self, start: int, end: int) -> Iterator[tuple[int, int, str]]:
        """Byte ranges that make the visible text, each with the marker that follows it."""
        return parts(self.hidden, start, end)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a file says of itself outside any frontmatter."""

    title: str = ""
    description: str = ""
    language: str = ""
    """As written, a BCP 47 tag if the author meant one."""
    fault: tuple[int, str] | None = None
    """Line, and what was found, when the file is not of its format and has no text that could be found."""


def make_body(
    raw: bytes,
    line_starts: Sequence[int],
    blocks: tuple[Block, ...],
    unshown: Sequence[Hidden],
    hidden: Sequence[Hidden],
) -> Body:
    """The body whose lines begin at `line_starts`; one of more than `MAX_LINES` is a single paragraph."""
    offset = line_starts[0]
    first_line = 1 + sum(1 for _ in _LINE_END.finditer(raw, 0, offset))
    if len(line_starts) > MAX_LINES:
        blocks = (Block("paragraph", offset, len(raw)),)
    return Body(raw, offset, blocks, first_line, line_starts, unshown, hidden)


def lines_of(raw: bytes, offset: int) -> Sequence[int]:
    """Byte offsets at which the lines of `raw[offset:]` begin; one at least."""
    starts = array("q", [offset])
    starts.extend(match.end() for match in _LINE_END.finditer(raw, offset))
    return starts


def parts(hidden: Sequence[Hidden], start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Byte ranges of the span that are not hidden, each with the marker that follows it."""
    for index in range(bisect_right(hidden, start, key=_end), len(hidden)):
        gap = hidden[index]
        if gap.start >= end:
            break
        yield start, max(start, gap.start), gap.marker
        start = min(end, gap.end)
    yield start, end, ""


def disjoint(ranges: Iterable[Hidden]) -> tuple[Hidden, ...]:
    """The ranges in order; of those that overlap, the marker of the first, and of the longest that begin together."""
    result: list[Hidden] = []
    after = 0
    for each in sorted(ranges, key=_start):
        if each.start >= after:
            result.append(each)
        elif each.end > after:
            result.append(Hidden(after, each.end, ""))
        after = max(after, each.end)
    return tuple(result)


def _start(hidden: Hidden) -> tuple[int, int]:
    return hidden.start, -hidden.end


def _end(hidden: Hidden) -> int:
    return hidden.end


def data_uris(raw: bytes, offset: int) -> Iterator[Hidden]:
    """Every `data:` URI of `raw[offset:]`, in order."""
    lowered = raw.lower()
    while head := _DATA_URI.search(lowered, offset):
        payload = _PAYLOAD.get(raw[head.start() - 1 : head.start()], _BARE_PAYLOAD)
        match = payload.match(raw, head.end()) or _BARE_PAYLOAD.match(raw, head.end())
        offset = match.end() if match else head.end()
        yield Hidden(head.start(), offset, MARKER)


def elide_data_uris(text: str) -> str:
    """`text` with each `data:` URI, payload and all, replaced by `MARKER`; an image's alt text stays."""
    raw = text.encode("utf-8", "surrogatepass")
    hidden = tuple(data_uris(raw, 0))
    kept = parts(hidden, 0, len(raw))
    return "".join(raw[a:b].decode("utf-8", "surrogatepass") + marker for a, b, marker in kept) if hidden else text
