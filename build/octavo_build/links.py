"""What a document's text refers to: wikilinks, Markdown links to files, hints in comments. Nothing inside code.

Inline syntax is markdown-it-py's, with one rule more for wikilinks. What a reference means is `graph`'s business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.parser_inline import RuleFuncInlineType
from markdown_it.rules_inline import StateInline, html_inline, link
from markdown_it.token import Token
from markdown_it.utils import EnvType

from octavo_artifact.schema import Document
from octavo_build.bodies import format_of
from octavo_build.bodies.body import MAX_LINES, decode
from octavo_build.bodies.markdown import block_parser
from octavo_build.findings import Finding
from octavo_build.frontmatter import read_frontmatter

MAX_BRACKETS = 2000
"""Opening brackets of a paragraph whose links are read: markdown-it may need time that grows with their square."""

_AT = "at"
_WIKILINK = re.compile(r"\[\[([^\[\]|\n]*)(?:\|[^\[\]\n]*)?\]\]")
_CONTEXT = re.compile(r"<!--\s*context\s*:(.*?)(?:-->|\Z)", re.DOTALL)
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_LINE_END = re.compile(r"\r\n?|\n")


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """A place of the text that names another document."""

    line: int
    """Of the raw file, counted from 1."""
    kind: str
    """`wikilink`, `link` or `context`."""
    target: str
    """As written, without alias, query and anchor; percent-decoded in a link."""


def references_of(document: Document) -> tuple[list[Reference], list[Finding]]:
    """The references of a document by line, and the findings about what was not read."""
    raw, offset = document.raw, document.body_offset
    if not format_of(document).markdown or (b"[" not in raw and b"<!--" not in raw):
        return [], []
    references = list(_between_blocks(document))
    findings: list[Finding] = []
    environment: EnvType = {}
    for text, line in _texts(decode(raw[offset:]), environment):
        at = line + _lines(raw[:offset])
        if text.type == "html_block":
            references += _hints(text.content, at)
        elif text.content.count("[") > MAX_BRACKETS:
            message = f"a paragraph with more than {MAX_BRACKETS} opening brackets"
            findings.append(Finding(document.path, at, "links-ignored", message))
        else:
            references += _inline(text.content, at, environment)
    return sorted(references), findings


def _between_blocks(document: Document) -> Iterator[Reference]:
    """Hints in comments between the two blocks of frontmatter."""
    if b"<!--" in document.raw[: document.body_offset]:
        start = read_frontmatter(document.path, document.raw).body_offset
        between = decode(document.raw[start : document.body_offset]).partition("\n---")[0]
        yield from _hints(between, 1 + _lines(document.raw[:start]))


def _texts(body: str, environment: EnvType) -> Iterator[tuple[Token, int]]:
    """Tokens that hold text, each with the line it begins at, counted from 1 in the body.

    A wikilink whose `|` cut a table's cell in two is made whole.
    """
    if len(_LINE_END.findall(body)) >= MAX_LINES:
        return
    line = 1
    cut: Token | None = None
    for token in _parser().parse(body, environment):
        line = token.map[0] + 1 if token.map else line
        if token.type == "tr_close" and cut:
            yield cut, line
            cut = None
        if token.type not in ("inline", "html_block"):
            continue
        if cut:
            token.content = f"{cut.content}|{token.content}"
        _, opened, rest = token.content.rpartition("[[")
        cut = token if opened and "]]" not in rest and token.level > 2 else None
        if cut is None:
            yield token, line


def _inline(content: str, line: int, environment: EnvType) -> Iterator[Reference]:
    if "[" not in content and "<!--" not in content:
        return
    parser = _parser()
    state = StateInline(content, parser, environment, [])
    parser.inline.tokenize(state)
    for token in state.tokens:
        at = line + content.count("\n", 0, token.meta.get(_AT, 0))
        if token.type == "html_inline":
            yield from _hints(token.content, at)
        elif token.type == "wikilink":
            yield Reference(at, "wikilink", token.content)
        elif token.type == "link_open" and (target := _file(str(token.attrGet("href") or ""))):
            yield Reference(at, "link", target)


def _file(href: str) -> str:
    """The path that a link's destination names; empty when it leads out of the pack, or to an anchor of the page."""
    return "" if _ELSEWHERE.match(href) else unquote(href.partition("#")[0].partition("?")[0])


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
    parser.inline.ruler.at("link", _located(link))
    parser.inline.ruler.at("html_inline", _located(html_inline))
    parser.inline.ruler.before("link", "wikilink", _located(_wikilink))
    return parser


def _wikilink(state: StateInline, silent: bool) -> bool:
    found = _WIKILINK.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        # a backslash before the bar keeps it from ending a table's cell
        state.push("wikilink", "", 0).content = found[1].rstrip("\\").partition("#")[0].strip()
    state.pos = found.end()
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
