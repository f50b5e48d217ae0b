"""Formats of documents: which module reads a file's body, and the registry of them by mime type.

Each format is one module with a function that gives the `Body` of a file and one that gives its `Facts`. Both take the
file and the offset at which its body begins, take any bytes whatever, and need time linear in their number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from octavo_artifact.schema import Document
from octavo_build.bodies import html, markdown, mdx, notebook, rst, text
from octavo_build.bodies.body import Body, Facts


@dataclass(frozen=True, slots=True)
class Format:
    """What the compiler knows of one kind of file."""

    parse: Callable[[bytes, int], Body]
    facts: Callable[[bytes, int], Facts]
    markdown: bool = False
    """Whether the file is Markdown: its links are read as Markdown has them."""
    frontmatter: bool = False
    """Whether a line `---` or a brace at the top may open frontmatter; elsewhere it is the text's own."""
    marked: bool = False
    """Whether its visible text has the marks of Markdown, which the encoder need not read."""


MARKDOWN = "text/markdown"
PLAIN = "text/plain"

FORMATS: dict[str, Format] = {
    MARKDOWN: Format(markdown.parse_body, markdown.facts, markdown=True, frontmatter=True, marked=True),
    "text/mdx": Format(mdx.parse_body, mdx.facts, markdown=True, frontmatter=True, marked=True),
    "text/html": Format(html.parse_body, html.facts, frontmatter=True),
    "text/x-rst": Format(rst.parse_body, rst.facts),
    PLAIN: Format(text.parse_body, text.facts),
    "application/x-ipynb+json": Format(notebook.parse_body, notebook.facts, marked=True),
}

MIME_TYPES: dict[str, str] = {
    ".md": MARKDOWN,
    ".markdown": MARKDOWN,
    ".mdx": "text/mdx",
    ".html": "text/html",
    ".htm": "text/html",
    ".rst": "text/x-rst",
    ".txt": PLAIN,
    ".ipynb": "application/x-ipynb+json",
}
"""By the end of the file's name, in lower case; the commonest first."""

_README = "readme"
"""A name that needs no ending to be a document's."""


def mime_type_of(path: str) -> str | None:
    """The mime type of a file by its name; None when it is no document's."""
    name = PurePosixPath(path)
    kind = MIME_TYPES.get(name.suffix.casefold())
    return PLAIN if kind is None and name.name.casefold() == _README else kind


def format_of(document: Document) -> Format:
    """The format that a document's mime type names."""
    return FORMATS[document.mime_type]


def body_of(document: Document) -> Body:
    """The body of a document, as its format has it."""
    return format_of(document).parse(document.raw, document.body_offset)
