"""Jupyter notebooks: text and code of the cells in order, as Markdown. Outputs, images and metadata are hidden.

A cell's source is JSON: one string, or a list of them. It is decoded with the place of each character, so that Markdown
is parsed as it was written and its blocks are byte ranges of the file; an escape is hidden, its character the marker.
Outputs are what code prints on one day on one machine: a release has them in the file's bytes, a search does not.
"""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from typing import Any, cast

from octavo_build.bodies import markdown
from octavo_build.bodies.body import Block, Body, Facts, Hidden, decode, disjoint, lines_of, make_body

MAX_ESCAPES = 1_000_000
"""In the sources of a notebook, line ends mostly; each takes about 250 bytes of memory."""

_JSON = re.compile(rb"[\[\]{}:,]|\"(?:[^\"\\]++|\\.)*+\"|[^\s\[\]{}:,\"]++", re.DOTALL)
_ESCAPES = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[^u]")
_SHORT = {rb"\n": "\n", rb"\t": "\t", rb"\r": "\r", rb"\b": "\b", rb"\f": "\f", rb"\/": "/", rb"\"": '"', rb"\\": "\\"}
_FENCE = re.compile(rb"`{3,}")


_IN_CELLS: list[str | None] = ["cells", None]
_IN_KIND: list[str | None] = [*_IN_CELLS, "cell_type"]
_IN_SOURCE: list[str | None] = [*_IN_CELLS, "source"]


@dataclass(slots=True)
class _Cell:
    start: int
    end: int = 0
    kind: str = ""
    strings: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Byte ranges between the quotes of the strings that are its source."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A cell's source decoded, with the place of each of its bytes."""

    text: bytes
    starts: array[int]
    """Offset in `text` of each piece: a run of bytes as they stand in the file, or one escape."""
    raw_starts: array[int]
    raw_ends: array[int]
    """Of each piece, in the file."""
    hidden: list[Hidden]
    """What stands between the pieces, and the escapes."""

    def start(self, offset: int) -> int:
        """Where in the file the character at `offset` of the text stands."""
        piece = bisect_right(self.starts, offset) - 1
        return self.raw_starts[piece] + offset - self.starts[piece]

    def end(self, offset: int) -> int:
        """Where in the file the character before `offset` of the text ends."""
        piece = bisect_left(self.starts, offset) - 1
        if offset == (self.starts[piece + 1] if piece + 1 < len(self.starts) else len(self.text)):
            return self.raw_ends[piece]
        return self.raw_starts[piece] + offset - self.starts[piece]


def parse_body(raw: bytes, offset: int) -> Body:
    """Structure of `raw[offset:]`, found in time and memory linear in its size; of what is no notebook, no blocks."""
    reader = _Reader(raw, offset)
    cells, fault = _read(raw, offset)
    for cell in cells if fault is None else ():
        reader.add(cell)
    reader.hide(len(raw))
    unshown = disjoint(reader.unshown)
    hidden = disjoint((*unshown, *reader.comments)) if reader.comments else unshown
    return make_body(raw, lines_of(raw, offset), tuple(reader.blocks), unshown, hidden)


def facts(raw: bytes, offset: int) -> Facts:
    """The title is the first heading of level 1.

    What is not JSON, has no list of cells, or too many escapes in them, is at fault.
    """
    if fault := _read(raw, offset)[1]:
        return Facts(fault=fault)
    return Facts(title=markdown.first_heading(parse_body(raw, offset).blocks))


def _read(raw: bytes, offset: int) -> tuple[list[_Cell], tuple[int, str] | None]:
    """The cells, and the line and the message of what is wrong."""
    if fault := _fault(raw, offset):
        return [], fault
    cells = _cells(raw, offset)
    escapes = sum(raw.count(b"\\", *string) for cell in cells for string in cell.strings)
    return cells, (1, f"{escapes} escapes in cells, expected at most {MAX_ESCAPES}") if escapes > MAX_ESCAPES else None


def _fault(raw: bytes, offset: int) -> tuple[int, str] | None:
    try:
        notebook: Any = json.loads(decode(raw[offset:]))
    except json.JSONDecodeError as error:
        return error.lineno, f"no JSON ({error.msg}), expected a notebook"
    except (ValueError, RecursionError):
        return 1, "JSON with a number too long or lists too deep, expected a notebook"
    cells: Any = cast(dict[str, Any], notebook).get("cells") if isinstance(notebook, dict) else None
    return None if isinstance(cells, list) else (1, "JSON without a list of cells, expected a notebook of format 4")


def _cells(raw: bytes, offset: int) -> list[_Cell]:
    """The cells of a notebook that is valid JSON."""
    cells: list[_Cell] = []
    cell = _Cell(0)
    path: list[str | None] = []
    """Of each object that is open, the key whose value is being read; of each list, None."""
    expects_key = False
    for found in _JSON.finditer(raw, offset):
        token = found[0]
        if token in (b"{", b"["):
            if path == _IN_CELLS:
                cell = _Cell(found.start())
            elif path == _IN_SOURCE:
                cell.strings = []
            expects_key = token == b"{"
            path.append("" if expects_key else None)
        elif token in (b"}", b"]"):
            path.pop()
            if path == _IN_CELLS:
                cell.end = found.end()
                cells.append(cell)
        elif token == b",":
            expects_key = path[-1] is not None
        elif expects_key and token.startswith(b'"'):
            path[-1] = json.loads(decode(token)) if len(path) in (1, 3) else ""
            expects_key = False
            if path == ["cells"]:
                cells.clear()
        elif token.startswith(b'"'):
            if path == _IN_KIND:
                cell.kind = json.loads(decode(token))
            elif path == _IN_SOURCE:
                cell.strings = [(found.start() + 1, found.end() - 1)]
            elif path == [*_IN_SOURCE, None]:
                cell.strings.append((found.start() + 1, found.end() - 1))
    return cells


def _decoded(raw: bytes, strings: list[tuple[int, int]]) -> _Source:
    texts: list[bytes] = []
    source = _Source(b"", array("q"), array("q"), array("q"), [])
    length = 0

    def add(start: int, end: int, text: bytes) -> None:
        nonlocal length
        if source.raw_ends and source.raw_ends[-1] < start:
            source.hidden.append(Hidden(source.raw_ends[-1], start, ""))
        source.starts.append(length)
        source.raw_starts.append(start)
        source.raw_ends.append(end)
        texts.append(text)
        length += len(text)

    for first, end in strings:
        start = first
        for escape in _ESCAPES.finditer(raw, first, end):
            if start < escape.start():
                add(start, escape.start(), raw[start : escape.start()])
            character = _SHORT.get(escape[0]) or _long(escape[0])
            add(*escape.span(), character.encode())
            source.hidden.append(Hidden(*escape.span(), character))
            start = escape.end()
        if start < end:
            add(start, end, raw[start:end])
    return replace(source, text=b"".join(texts))


def _long(escape: bytes) -> str:
    """The character of an escape in hexadecimal digits; U+FFFD for NUL and for half a character."""
    character: str = json.loads(b'"%s"' % escape)
    return "\ufffd" if character == "\0" or "\ud800" <= character <= "\udfff" else character


class _Reader:
    """Cells become blocks, one after the other."""

    def __init__(self, raw: bytes, offset: int) -> None:
        self.blocks: list[Block] = []
        self.unshown: list[Hidden] = []
        self.comments: list[Hidden] = []
        self._raw, self._reach = raw, offset

    def hide(self, end: int, marker: str = "") -> None:
        """Hide what has not been read, up to `end`."""
        if end > self._reach:
            self.unshown.append(Hidden(self._reach, end, marker))
        self._reach = end

    def add(self, cell: _Cell) -> None:
        """Read a cell; one without text stays hidden."""
        source = _decoded(self._raw, cell.strings)
        if not source.text.strip():
            return
        self.hide(cell.start, "\n\n" if self.blocks else "")
        if cell.kind == "markdown":
            self._markdown(cell, source)
        else:
            self._code(cell, source)

    def _markdown(self, cell: _Cell, source: _Source) -> None:
        self._text(source)
        body = markdown.parse_body(source.text, 0)
        self.unshown.extend(_placed(source, each) for each in body.unshown)
        if body.hidden is not body.unshown:
            self.comments.extend(_placed(source, each) for each in body.hidden)
        blocks = [_block(source, each) for each in body.blocks]
        self.blocks += [replace(each, start=cell.start) for each in blocks[:1]] + blocks[1:]
        self.hide(cell.end)

    def _code(self, cell: _Cell, source: _Source) -> None:
        longest = max((len(run[0]) for run in _FENCE.finditer(source.text)), default=2)
        fence = "`" * (longest + 1)
        self._text(source, f"{fence}\n")
        self.blocks.append(Block("fence", cell.start, cell.end))
        self.hide(cell.end, fence if source.text.endswith(b"\n") else f"\n{fence}")

    def _text(self, source: _Source, before: str = "") -> None:
        self.hide(source.raw_starts[0], before)
        self.unshown += source.hidden
        self._reach = source.raw_ends[-1]


def _placed(source: _Source, hidden: Hidden) -> Hidden:
    return replace(hidden, start=source.start(hidden.start), end=source.end(hidden.end))


def _block(source: _Source, block: Block) -> Block:
    return replace(
        block,
        start=source.start(block.start),
        end=source.end(block.end),
        head=source.end(block.head) if block.head else 0,
        children=tuple(_block(source, each) for each in block.children),
    )
