"""The block structure of a document's body, and which of its text is shown, embedded and indexed.

CommonMark and tables are markdown-it-py's, block rules only; inline syntax is read for headings alone. Places are
byte offsets of the raw file, so that a passage is an exact span of it.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.parser_block import RuleFuncBlockType
from markdown_it.rules_block import StateBlock, blockquote, list_block
from markdown_it.token import Token
from markdown_it.utils import EnvType

MAX_LINES = 400_000
"""Of a body whose blocks are told apart; a longer one is a single paragraph. markdown-it needs 2 kB a list item."""

MAX_NESTING = 20
"""Depth, a list counting two, beyond which lists and quotes are read as text. At a limit of its own markdown-it
drops the rest of the document, headings included."""

MAX_HEADING = 200
"""Characters of a heading's text that are kept, for it is repeated in every passage below it."""

MAX_BRACKETS = 20
"""In a heading whose inline syntax is read; markdown-it needs quadratic time for opening brackets."""

MARKER = "data:…"
"""Stands for a `data:` URI, whose payload says nothing to a reader or a model."""

_KINDS = {
    "paragraph_open": "paragraph",
    "heading_open": "heading",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "list_item_open": "item",
    "blockquote_open": "quote",
    "table_open": "table",
    "fence": "fence",
    "code_block": "code",
    "html_block": "html",
    "hr": "rule",
    "definition": "definition",
}
_CONTAINERS = frozenset({"bullet_list", "ordered_list", "list_item", "blockquote"})

_LINE_END = re.compile(rb"\r\n?|\n")
_INLINE_SYNTAX = re.compile(r"[\\`*_\[\]!<&\n]")
_COMMENT = re.compile(rb"<!--(?:>|->|(?s:.*?)-->)")
_COMMENT_OR_REST = re.compile(rb"<!--(?:>|->|(?s:.*?)(?:-->|\Z))")
_COMMENT_IN_TEXT = re.compile(rb"\\[!-/:-@\[-`{-~]|`+|<!--")
_BACKTICKS = re.compile(rb"`+")

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
    """A block of Markdown."""

    kind: str
    """paragraph, heading, list, item, quote, table, fence, code, html, rule or definition."""
    start: int
    """Byte offset in the raw file of the line that opens the block."""
    end: int
    """Byte offset after the block's last line; only blank lines lie between it and the next block."""
    level: int = 0
    """1 to 6 for a heading, else 0."""
    text: str = ""
    """A heading's plain text, at most `MAX_HEADING` characters; else empty."""
    children: tuple[Block, ...] = ()
    """Of a list, its items; of an item or a quote, its blocks."""


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
    """Of the top level, in order; only blank lines lie between them."""
    first_line: int
    """The body's, in the raw file, counted from 1."""
    line_starts: Sequence[int]
    """Of each line of the body."""
    data_uris: Sequence[Hidden]
    hidden: Sequence[Hidden]
    """HTML comments and `data:` URIs; disjoint and in order, as `data_uris` are."""
    texts: Sequence[Text] = ()
    """In order; what has neither `[` nor a comment is left out."""
    definitions: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What link reference definitions say, as markdown-it keeps it."""

    def line_at(self, position: int) -> int:
        """Line of the raw file, counted from 1, of the byte at `position`."""
        return self.first_line - 1 + bisect_right(self.line_starts, position)

    def shown(self, start: int, end: int) -> str:
        """Text of the span as users see it: as written but for `data:` URIs."""
        return "".join(decode(self.raw[a:b]) + marker for a, b, marker in _parts(self.data_uris, start, end))

    def visible(self, start: int, end: int) -> str:
        """Text of the span as it is embedded and indexed: as shown, without HTML comments."""
        return "".join(decode(self.raw[a:b]) + marker for a, b, marker in self.visible_parts(start, end))

    def visible_parts(self, start: int, end: int) -> Iterator[tuple[int, int, str]]:
        """Byte ranges that make the visible text, each with the marker that follows it."""
        return _parts(self.hidden, start, end)


def _parts(hidden: Sequence[Hidden], start: int, end: int) -> Iterator[tuple[int, int, str]]:
    for index in range(bisect_right(hidden, start, key=_end), len(hidden)):
        gap = hidden[index]
        if gap.start >= end:
            break
        yield start, max(start, gap.start), gap.marker
        start = min(end, gap.end)
    yield start, end, ""


def _start(hidden: Hidden) -> int:
    return hidden.start


def _end(hidden: Hidden) -> int:
    return hidden.end


def parse_body(raw: bytes, offset: int) -> Body:
    """Structure of `raw[offset:]`, found in time and memory linear in its size."""
    line_starts = array("q", [offset])
    line_starts.extend(match.end() for match in _LINE_END.finditer(raw, offset))
    first_line = 1 + sum(1 for _ in _LINE_END.finditer(raw, 0, offset))
    definitions: EnvType = {}
    if len(line_starts) > MAX_LINES:
        blocks, texts = (Block("paragraph", offset, len(raw)),), ()
    else:
        tokens = _parser().parse(decode(raw[offset:]), definitions)
        texts = tuple(_texts(tokens, first_line)) if b"[" in raw or b"<!--" in raw else ()
        blocks = _blocks(tokens, [*line_starts, len(raw)], definitions)
    data_uris = tuple(_data_uris(raw, offset))
    return Body(
        raw=raw,
        offset=offset,
        blocks=blocks,
        first_line=first_line,
        line_starts=line_starts,
        data_uris=data_uris,
        hidden=_disjoint((*_comments(raw, blocks), *data_uris)) if b"<!--" in raw else data_uris,
        texts=texts,
        definitions=definitions,
    )


def _texts(tokens: Iterable[Token], line: int) -> Iterator[Text]:
    first = line
    cut: Token | None = None
    for token in tokens:
        line = first + token.map[0] if token.map else line
        if token.type == "tr_close" and cut:
            yield Text(cut.content, line, False)
            cut = None
        if token.type not in ("inline", "html_block"):
            continue
        content = f"{cut.content}|{token.content}" if cut else token.content
        _, opened, rest = content.rpartition("[[")
        if opened and "]]" not in rest and token.level > 2:
            cut = token.copy(content=content)
            continue
        cut = None
        if "[" in content or "<!--" in content:
            yield Text(content, line, token.type == "html_block")


def _blocks(tokens: Sequence[Token], bounds: Sequence[int], environment: EnvType) -> tuple[Block, ...]:
    parser = _parser()
    open_blocks: list[tuple[Token, list[Block]]] = []
    siblings: list[Block] = []
    for index, token in enumerate(tokens):
        kind = _KINDS.get(token.type, "")
        if token.nesting and token.type.rpartition("_")[0] in _CONTAINERS:
            if token.nesting > 0:
                open_blocks.append((token, siblings))
                siblings = []
            else:
                opening, parents = open_blocks.pop()
                parents.append(_block(opening, bounds, children=tuple(siblings)))
                siblings = parents
        elif kind == "heading":
            text = _plain_text(tokens[index + 1].content, parser, environment)
            siblings.append(_block(token, bounds, level=int(token.tag[1:]), text=text))
        elif kind:
            siblings.append(_block(token, bounds))
    return tuple(siblings)


def _block(
    token: Token, bounds: Sequence[int], level: int = 0, text: str = "", children: tuple[Block, ...] = ()
) -> Block:
    first, last = token.map or (0, 0)
    return Block(_KINDS[token.type], bounds[first], bounds[last], level, text, children)


def block_parser() -> MarkdownIt:
    """A parser of block structure alone; what is inline syntax stays text, nesting is bounded."""
    parser = MarkdownIt("commonmark", {"inline_definitions": True, "maxNesting": 2 * MAX_NESTING}).enable("table")
    parser.core.ruler.disable("inline")
    interrupts = ["paragraph", "reference", "blockquote"]
    parser.block.ruler.at("list", _bounded(list_block), {"alt": interrupts})
    parser.block.ruler.at("blockquote", _bounded(blockquote), {"alt": [*interrupts, "list"]})
    return parser


_parser = cache(block_parser)


def _bounded(rule: RuleFuncBlockType) -> RuleFuncBlockType:
    def bounded(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
        return state.level < MAX_NESTING and rule(state, start_line, end_line, silent)

    return bounded


def _plain_text(content: str, parser: MarkdownIt, environment: EnvType) -> str:
    content = content[: 4 * MAX_HEADING]
    if _INLINE_SYNTAX.search(content) and content.count("[") <= MAX_BRACKETS:
        tokens: list[Token] = []
        parser.inline.parse(content, parser, environment, tokens)
        content = "".join(_inline_texts(tokens))
    return " ".join(content.split())[:MAX_HEADING]


def _inline_texts(tokens: Iterable[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            yield " "
        elif token.type == "image":
            yield from _inline_texts(token.children or ())
        elif token.type != "html_inline":
            yield token.content


def _comments(raw: bytes, blocks: Iterable[Block]) -> Iterator[Hidden]:
    """HTML comments of html blocks and of text; what looks like one in code is none."""
    for block in blocks:
        if block.children:
            yield from _comments(raw, block.children)
        elif block.kind == "html":
            for match in _COMMENT_OR_REST.finditer(raw, block.start, block.end):
                yield Hidden(match.start(), match.end(), "")
        elif block.kind not in ("fence", "code") and raw.find(b"<!--", block.start, block.end) >= 0:
            yield from _comments_in_text(raw, block.start, block.end)


def _comments_in_text(raw: bytes, start: int, end: int) -> Iterator[Hidden]:
    runs: dict[int, list[int]] = defaultdict(list)
    for run in _BACKTICKS.finditer(raw, start, end):
        runs[run.end() - run.start()].append(run.start())
    while mark := _COMMENT_IN_TEXT.search(raw, start, end):
        start = mark.end()
        if mark.group().startswith(b"`"):
            length = mark.end() - mark.start()
            closing = bisect_left(runs[length], start)
            if closing < len(runs[length]):
                start = runs[length][closing] + length
        elif mark.group() == b"<!--":
            comment = _COMMENT.match(raw, mark.start(), end)
            if comment is None:
                return
            start = comment.end()
            yield Hidden(comment.start(), comment.end(), "")


def _data_uris(raw: bytes, offset: int) -> Iterator[Hidden]:
    lowered = raw.lower()
    while head := _DATA_URI.search(lowered, offset):
        payload = _PAYLOAD.get(raw[head.start() - 1 : head.start()], _BARE_PAYLOAD)
        match = payload.match(raw, head.end()) or _BARE_PAYLOAD.match(raw, head.end())
        offset = match.end() if match else head.end()
        yield Hidden(head.start(), offset, MARKER)


def _disjoint(ranges: Iterable[Hidden]) -> tuple[Hidden, ...]:
    result: list[Hidden] = []
    after = 0
    for each in sorted(ranges, key=_start):
        if each.start >= after:
            result.append(each)
        elif each.end > after:
            result.append(Hidden(after, each.end, ""))
        after = max(after, each.end)
    return tuple(result)


def elide_data_uris(text: str) -> str:
    """`text` with each `data:` URI, payload and all, replaced by `MARKER`; an image's alt text stays."""
    raw = text.encode("utf-8", "surrogatepass")
    hidden = tuple(_data_uris(raw, 0))
    parts = _parts(hidden, 0, len(raw))
    return "".join(raw[a:b].decode("utf-8", "surrogatepass") + marker for a, b, marker in parts) if hidden else text
