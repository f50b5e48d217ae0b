"""A passage's words without Markdown's marks: what the encoder reads.

Pipes, rules, asterisks and link targets take an encoder's tokens and say nothing: without them the community packs need
an eighth fewer windows, and R@5 of their questions rises from .96 to .98.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

MAX_CHARACTERS = 100_000
MAX_BRACKETS = 2_000
"""Text with more is taken as it stands: looking for the ends of links takes the square of their number."""

_WIKILINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_ALT = re.compile(r"<img\s[^<>]*?\balt\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)'|([^\s\"'<>]+))", re.IGNORECASE)
"""The words of an image that is written as HTML."""
_SHORTCODE = re.compile(r"\{\{[<%].{0,400}?[%>]\}\}|\{%.{0,400}?%\}|\{#.{0,400}?#\}|\{[#:.][\w:. -]{1,80}\}")
"""What a site generator fills in or carries out (Hugo, Liquid, Jinja), and attributes (`{#anchor}`, `{:.class}`)."""
_QUOTED = re.compile(r"\"([^\"]*)\"")
_ADMONITION = re.compile(r"^(?::{3,}|!!!|\?\?\?\+?)[ \t]*(?:\{(\w+)\}|(?=\w|$))")
"""Opens or closes a note (`:::tip`, `:::{tip}`, `!!! tip`); its kind and title stay."""
_BLANK_LINES = re.compile(r"\n\s*\n+")


def plain_text(text: str) -> str:
    """The words of Markdown text in their order: a line a block, a table's cells apart, code as it stands."""
    if len(text) > MAX_CHARACTERS or text.count("[") > MAX_BRACKETS:
        return text
    words = "".join(_words(_parser().parse(text)))
    return _BLANK_LINES.sub("\n", _WIKILINK.sub(r"\1", words)).strip()


@cache
def _parser() -> MarkdownIt:
    # A link's text is read either way; its definition only hides the target.
    return MarkdownIt("commonmark", {"maxNesting": 100}).enable("table")


def _words(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type == "inline":
            yield from _inline(token.children or [])
            yield " "
        elif token.type in ("fence", "code_block"):
            yield token.content
        elif token.type == "html_block":
            yield _TAG.sub(_alt, token.content)
        elif token.nesting == -1 and token.type not in ("td_close", "th_close"):
            yield "\n"


def _inline(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type == "text":
            yield _without_directives(token.content)
        elif token.type == "code_inline":
            yield token.content
        elif token.type in ("softbreak", "hardbreak"):
            yield "\n"
        elif token.type == "html_inline":
            yield _alt(token.content)
        elif token.type == "image":
            yield from _inline(token.children or [])


def _alt(tag: str | re.Match[str]) -> str:
    """What stands for an HTML tag: an image's words, else nothing, or a space where `tag` was found in a block."""
    found = _ALT.match(tag if isinstance(tag, str) else tag.group())
    words = "".join(filter(None, found.groups())) if found else ""
    return words if isinstance(tag, str) else f" {words} " if words else " "


def _without_directives(text: str) -> str:
    """Text without what speaks to a site generator; of a shortcode, what it says in quotes stays."""
    if "{" in text:
        text = _SHORTCODE.sub(lambda found: " ".join(_QUOTED.findall(found.group())), text)
    return _ADMONITION.sub(r"\1", text)
