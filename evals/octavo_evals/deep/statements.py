"""What a text states, taken apart by lines: sentences, list items, and cells of tables under their headers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_STATEMENT = 600
"""Characters; what is longer states more than one thing."""

_FENCE = re.compile(r"\s{0,3}(```|~~~)")
_HEADING = re.compile(r"\s{0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_LINK = re.compile(r"!?\[([^\[\]]{0,300})\]\([^()\s]{0,500}[^()]{0,200}\)|\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")
_MARKS = re.compile(r"[*_`]+(?=\S)|(?<=\S)[*_`]+|^\s{0,12}(?:>\s?)*(?:[-*+]\s+|\d{1,3}[.)]\s+)?(?:\[[ xX]\]\s+)?")
_RULE = re.compile(r"[\s|:\-]+")
_SENTENCE_END = re.compile(r"(?<=[.!?;])[\"')\]]?\s+(?=[\"'(\[]?[A-Z0-9])")


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that a passage says."""

    line: int
    """Counted from 0 at the beginning of the text."""
    text: str
    """Without Markdown's marks; of a table's cell `row, column: cell`."""
    heading: str
    """The nearest heading above it in the text; empty when the text has none before it."""
    before: str = ""
    """The sentence before it in the same line, which may name what it speaks of."""


def statements(text: str) -> Iterator[Statement]:
    """The statements of Markdown text in order; code and comments state nothing."""
    blank = _COMMENT.sub(lambda found: "\n" * found.group().count("\n"), text)
    heading, header, fence = "", list[str](), ""
    for number, line in enumerate(blank.split("\n")):
        if mark := _FENCE.match(line):
            fence = "" if fence == mark[1] else fence or mark[1]
            continue
        if fence:
            continue
        if found := _HEADING.match(line):
            heading, header = plain(found[2]), []
        elif line.lstrip().startswith("|"):
            cells = [plain(cell) for cell in line.strip().strip("|").split("|")]
            if not header:
                header = cells
            elif not _RULE.fullmatch(line):
                yield from _of_row(number, cells, header, heading)
        else:
            header = []
            yield from _of_line(number, line, heading)


def _of_row(number: int, cells: list[str], header: list[str], heading: str) -> Iterator[Statement]:
    for place, cell in enumerate(cells[1:], start=1):
        column = header[place] if place < len(header) else ""
        if cell and len(cell) <= MAX_STATEMENT:
            yield Statement(number, f"{cells[0]}, {column}: {cell}", heading)


def _of_line(number: int, line: str, heading: str) -> Iterator[Statement]:
    before = ""
    for sentence in _SENTENCE_END.split(plain(line)):
        if sentence and len(sentence) <= MAX_STATEMENT:
            yield Statement(number, sentence, heading, before)
        before = sentence


def plain(line: str) -> str:
    """A line without Markdown's marks."""
    return _MARKS.sub("", _LINK.sub(lambda found: found[1] or found[2] or "", line)).strip()
