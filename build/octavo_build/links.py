"""What a document's text refers to: wikilinks, Markdown links to files, hints in comments. Nothing inside code.

Inline syntax is markdown-it-py's, with one rule more for wikilinks. What a reference means is `graph`'s business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.parser_inline import RuleFuncInlineType
from markdown_it.rules_inline import StateInline, html_inline, link

from octavo_artifact.schema import Document
from octavo_build.bodies import body_of, format_of
from octavo_build.bodies.body import Body, decode
from octavo_build.bodies.markdown import block_parser
from octavo_build.findings import Finding
from octavo_build.frontmatter import read_frontmatter

MAX_BRACKETS = 2000
"""Opening brackets of a paragraph whose links are read: markdown-it may need time that grows with their square."""

FOOTNOTES = ("footnote", "footnote_text")
"""Kinds of what refers to a footnote's label, and of what says the footnote's text."""

_AT = "at"
_WIKILINK = re.compile(r"\[\[([^\[\]|\n]*)(?:\|[^\[\]\n]*)?\]\]")
_FOOTNOTE = re.compile(r"\[\^([^\[\]\s]{1,200})\](?!\()(:?)")
_CONTEXT = re.compile(r"<!--\s*context\s*:(.*?)(?:-->|\Z)", re.DOTALL)
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_LINE_END = re.compile(r"\r\n?|\n")


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """A place of the text that names another document."""

    line: int
    """Of the raw file, counted from 1."""
    kind: str
    """`wikilink`, `link`, `context`, or one of `FOOTNOTES`."""
    target: str
    """As written, without alias, query and anchor; percent-decoded in a link. Empty for a place of the same page."""
    anchor: str = ""
    """Of a link: what follows its `#`, percent-decoded."""


def references_of(document: Document) -> tuple[list[Reference], list[Finding]]:
    """The references of a document to others by line, and the findings about what was not read."""
    raw = document.raw
    if not format_of(document).markdown or (b"[" not in raw and b"<!--" not in raw):
        return [], []
    found, unread = read_references(body_of(document))
    references = [*_between_blocks(document), *(each for each in found if each.kind not in FOOTNOTES)]
    message = f"a paragraph with more than {MAX_BRACKETS} opening brackets"
    return sorted(references), [Finding(document.path, line, "links-ignored", message) for line in unread]


def read_references(body: Body) -> tuple[list[Reference], list[int]]:
    """The references of a body in order, those to places of its own included, and the lines of texts not read."""
    references: list[Reference] = []
    unread: list[int] = []
    for text in body.texts:
        if text.is_html:
            references += _hints(text.content, text.line)
        elif text.content.count("[") > MAX_BRACKETS:
            unread.append(text.line)
        else:
            references += _inline(text.content, text.line, body.definitions)
    return references, unread


def _between_blocks(document: Document) -> Iterator[Reference]:
    """Hints in comments between the two blocks of frontmatter."""
    if b"<!--" in document.raw[: document.body_offset]:
        start = read_frontmatter(document.path, document.raw).body_offset
        between = decode(document.raw[start : document.body_offset]).partition("\n---")[0]
        yield from _hints(between, 1 + _lines(document.raw[:start]))


def _inline(content: str, line: int, definitions: Mapping[str, Any]) -> Iterator[Reference]:
    parser = _parser()
    state = StateInline(content, parser, {**definitions}, [])
    parser.inline.tokenize(state)
    for token in state.tokens:
        at = line + content.count("\n", 0, token.meta.get(_AT, 0))
        if token.type == "html_inline":
            yield from _hints(token.content, at)
        elif token.type == "wikilink":
            yield Reference(at, "wikilink", token.content)
        elif token.type in FOOTNOTES:
            yield Reference(at, token.type, token.content)
        elif token.type == "link_open" and not _ELSEWHERE.match(href := str(token.attrGet("href") or "")):
            path, _, anchor = href.partition("#")
            yield Reference(at, "link", unquote(path.partition("?")[0]), unquote(anchor))


def _hints(text: str, line: int) -> Iterator[Reference]:
    """What the `related=` of context comments names."""
    for comment in _CONTEXT.finditer(text):
        at = line + len(_LINE_END.findall(text, 0, comment.start()))
        field = ""
        for part in comment[1].split(","):
            name, equals, value = part.partition("=")
            field = name.strip() if equals else field
            hint = (value if equals else part).strip()
            if field == "related" and hint:
                yield Reference(at, "context", hint)


@cache
def _parser() -> MarkdownIt:
    parser = block_parser()
    parser.normalizeLink = _as_written  # what it would encode is decoded here again
    parser.inline.ruler.at("link", _located(link))
    parser.inline.ruler.at("html_inline", _located(html_inline))
    parser.inline.ruler.before("link", "wikilink", _located(_wikilink))
    parser.inline.ruler.before("link", "footnote", _located(_footnote))
    return parser


def _as_written(url: str) -> str:
    return url


def _wikilink(state: StateInline, silent: bool) -> bool:
    found = _WIKILINK.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        # a backslash before the bar keeps it from ending a table's cell
        state.push("wikilink", "", 0).content = found[1].rstrip("\\").partition("#")[0].strip()
    state.pos = found.end()
    return True


def _footnote(state: StateInline, silent: bool) -> bool:
    found = _FOOTNOTE.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        before = state.src[max(0, state.pos - 4) : state.pos].rstrip(" ")
        opens = found[2] and before[-1:] in ("", "\n")
        state.push(FOOTNOTES[1] if opens else FOOTNOTES[0], "", 0).content = found[1]
    state.pos = found.end(1) + 1
    return True


def _located(rule: RuleFuncInlineType) -> RuleFuncInlineType:
    """The rule, whose first token notes where in the text it stands; markdown-it itself keeps no place of inlines."""

    def located(state: StateInline, silent: bool) -> bool:
        start, before = state.pos, len(state.tokens)
        if not rule(state, silent):
            return False
        if not silent:
            pending = state.tokens[before].type == "text"
            state.tokens[before + pending].meta[_AT] = start
        return True

    return located


def _lines(data: bytes) -> int:
    return len(_LINE_END.findall(decode(data)))
