"""Markdown: CommonMark and tables as markdown-it-py reads them, block rules only; inline syntax for headings alone.

Users are shown the text as written; HTML comments are neither embedded nor indexed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.parser_block import RuleFuncBlockType
from markdown_it.rules_block import StateBlock, blockquote, list_block
from markdown_it.token import Token
from markdown_it.utils import EnvType

from octavo_build.bodies.body import (
    MAX_HEADING,
    MAX_LINES,
    Block,
    Body,
    Facts,
    Hidden,
    Text,
    data_uris,
    decode,
    disjoint,
    lines_of,
    make_body,
)

MAX_NESTING = 20
"""Depth, a list counting two, beyond which lists and quotes are read as text. At a limit of its own markdown-it
drops the rest of the document, headings included."""

MAX_BRACKETS = 20
"""In a heading whose inline syntax is read; markdown-it needs quadratic time for opening brackets."""

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

_HEADING = re.compile(rb"(?:\A|(?<=[\r\n])) {0,3}(?:#(?:[ \t][^\r\n]*)?|=+[ \t]*)(?:\r\n?|\n|\Z)")
"""A line that is a heading of level 1, or makes one of the line above, unless it stands in some other block."""

_INLINE_SYNTAX = re.compile(r"[\\`*_\[\]!<&\n]")
_COMMENT = re.compile(rb"<!--(?:>|->|(?s:.*?)-->)")
_COMMENT_OR_REST = re.compile(rb"<!--(?:>|->|(?s:.*?)(?:-->|\Z))")
_COMMENT_IN_TEXT = re.compile(rb"\\[!-/:-@\[-`{-~]|`+|<!--")
_BACKTICKS = re.compile(rb"`+")


def parse_body(raw: bytes, offset: int, without: tuple[str, ...] = ()) -> Body:
    """Structure of `raw[offset:]`, found in time and memory linear in its size.

    `without` names the kinds of blocks, as markdown-it's rules are called, that are no blocks here.
    """
    line_starts = lines_of(raw, offset)
    parser = _parser(without)
    definitions: EnvType = {}
    if len(line_starts) > MAX_LINES:
        tokens, blocks = [], (Block("paragraph", offset, len(raw)),)
    else:
        tokens = parser.parse(decode(raw[offset:]), definitions)
        blocks = _blocks(tokens, [*line_starts, len(raw)], parser, definitions)
    unshown = tuple(data_uris(raw, offset))
    hidden = disjoint((*_comments(raw, blocks), *unshown)) if b"<!--" in raw else unshown
    body = make_body(raw, line_starts, blocks, unshown, hidden)
    texts = tuple(_texts(tokens, body.first_line)) if b"[" in raw or b"<!--" in raw else ()
    return replace(body, texts=texts, definitions=definitions)


def facts(raw: bytes, offset: int) -> Facts:
    """The title is the first heading of level 1.

    Only what stands before is parsed, unless that does not decide it: what looks like a heading may stand in code, and
    what a bracket in it means may be defined below.
    """
    body = raw[offset:]
    found = _HEADING.search(body)
    title = ""
    for part in (body[: found.end()], body) if found else ():
        title = first_heading(parse_body(part, 0).blocks)
        if title and "[" not in title:
            break
    return Facts(title=title)


def first_heading(blocks: Iterable[Block]) -> str:
    """Text of the first heading of level 1; empty when there is none."""
    return next((block.text for block in blocks if block.level == 1), "")


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


def _blocks(
    tokens: Sequence[Token], bounds: Sequence[int], parser: MarkdownIt, environment: EnvType
) -> tuple[Block, ...]:
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
    head = bounds[first + 2] if token.type == "table_open" else 0
    return Block(_KINDS[token.type], bounds[first], bounds[last], level, text, children, head)


def block_parser() -> MarkdownIt:
    """A parser of block structure alone; what is inline syntax stays text, nesting is bounded."""
    parser = MarkdownIt("commonmark", {"inline_definitions": True, "maxNesting": 2 * MAX_NESTING}).enable("table")
    parser.core.ruler.disable("inline")
    interrupts = ["paragraph", "reference", "blockquote"]
    parser.block.ruler.at("list", _bounded(list_block), {"alt": interrupts})
    parser.block.ruler.at("blockquote", _bounded(blockquote), {"alt": [*interrupts, "list"]})
    return parser


@cache
def _parser(without: tuple[str, ...]) -> MarkdownIt:
    return block_parser().disable(list(without))


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
