"""The sentences of an answer with the sources that they cite, and those of a passage, which may be evidence.

A sentence is what ends with a full stop, and also a line, a list item, a row of a table. Abbreviations, decimal
numbers, names of files, addresses and code spans end none. Code blocks of an answer are no sentences; in a passage each
of their lines is one.

Markers before or behind the full stop belong to the sentence before them, and so does a line of nothing but markers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache

from octavo_serve.answering.citations.markers import Citation, scan
from octavo_serve.answering.citations.prose import Span

_MARKER, _CODE = "\x01", "\x02"
"""What stands for each character of a marker and of a code span while sentences are looked for."""

_MARKS = re.compile(r"(?:[ \t]*>)*[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(?:\[[ xX]\][ \t]+)?")
_OPENS = re.compile(r"[ \t]*(?:[>|]|#{1,6}(?:\s|\Z)|(?:[-*+]|\d{1,9}[.)])(?:[ \t]|\Z))")
_HEADING = re.compile(r"(#{1,6})(?:[ \t]+|\Z)")
_RULE = re.compile(r"[\s|:=*_\-]+")
_FENCE = re.compile(r"[\s>]*(?:[-*+][ \t]+|\d{1,9}[.)][ \t]+)?(?:```|~~~)")
_END = re.compile(rf"(?P<stop>[.!?…]+|[。！？]+)[\"'”’»)\]*_]*(?P<cited>(?:[ \t\n]*{_MARKER}+)*)(?P<gap>\s*)")
_LAST_WORD = re.compile(r"[\w.]+\Z")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_ABBREVIATIONS = frozenset("approx ca cf dr eg ie incl jr mr mrs ms prof resp st viz vs".split())
_BEFORE_NUMBER = frozenset("art ch chap eq fig figs no nos nr p pp par sec tab ver vol".split())
_CAPITAL = re.compile(r"(?:\A|\b[^\W\d_a-z]\w*\.?)\s+\Z")

_NOISE = re.compile(
    rf"(?P<marker>\s*{_MARKER}+)"
    r"|!?\[(?P<label>[^\[\]\n]{0,300})\]\([^()\s]{0,500}[^()\n]{0,200}\)"
    r"|(?P<strong>(?<![\w*])\*{1,3}(?=\S)|(?<=\S)\*{1,3}(?![\w*])|(?<!\w)_{1,3}(?=\w)|(?<=[\w.!?])_{1,3}(?!\w)|~~)"
    r"|(?P<cell>\s*\|\s*)"
)
_EMPTY = re.compile(r"\s*\(\s*(?:see|cf\.|[,;&])?\s*\)")


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """A sentence of an answer."""

    text: str
    """Without markers and Markdown's marks, but for the backticks of code; blanks are single spaces."""
    start: int
    end: int
    """Characters of the answer, with the markers."""
    numbers: tuple[int, ...]
    """The sources that it cites, ascending, each once."""


class _Kind(Enum):
    PROSE = auto()
    HEADING = auto()
    ROW = auto()
    CODE = auto()


@dataclass(frozen=True, slots=True)
class _Line:
    """What stands on a line, or on the lines of a paragraph, behind the marks of quotes, lists and headings."""

    kind: _Kind
    start: int
    end: int


def cited_sentences(answer: str) -> tuple[CitedSentence, ...]:
    """Those sentences of an answer that cite a source, in order."""
    return tuple(sentence for sentence in sentences(answer) if sentence.numbers)


def sentences(answer: str) -> tuple[CitedSentence, ...]:
    """All sentences of an answer, in order; a heading is one only if it cites something."""
    found = scan(answer)
    masked = _masked(answer, found.citations, found.spans)
    citations, place = found.citations, 0
    said: list[CitedSentence] = []
    for line in _lines(answer, found.blocks):
        if line.kind is _Kind.CODE:
            continue
        for start, end in _split(masked, line):
            numbers = set[int]()
            while place < len(citations) and citations[place].end <= end:
                numbers.update(citations[place].numbers if citations[place].start >= start else ())
                place += 1
            text = _plain(answer, masked, start, end)
            if any(map(str.isalnum, text)):
                if numbers or line.kind is not _Kind.HEADING:
                    said.append(CitedSentence(text, start, end, tuple(sorted(numbers))))
            elif numbers and said:
                last = said[-1]
                said[-1] = CitedSentence(last.text, last.start, end, tuple(sorted(numbers.union(last.numbers))))
    return tuple(said)


@lru_cache(maxsize=64)
def split_passage(text: str) -> tuple[Span, ...]:
    """The characters of a passage's sentences, list items, rows of tables and lines of code, in order.

    A paragraph may be broken over lines anywhere. Headings and the rows of dashes in tables are left out.
    """
    found = scan(text)
    masked = _masked(text, (), found.spans)
    lines = (line for line in _paragraphs(text, _lines(text, found.blocks)) if line.kind is not _Kind.HEADING)
    return tuple(
        span
        for line in lines
        for span in ([(line.start, line.end)] if line.kind is _Kind.CODE else _split(masked, line))
    )


def _masked(text: str, citations: Sequence[Citation], code: Sequence[Span]) -> str:
    """The text with its markers and code spans as runs of one character each, so that places stay the same."""
    replaced = [(each.start, each.end, _MARKER) for each in citations] + [(*span, _CODE) for span in code]
    pieces, place = list[str](), 0
    for start, end, character in sorted(replaced):
        pieces += (text[place:start], character * (end - start))
        place = end
    return "".join([*pieces, text[place:]])


def _lines(text: str, blocks: Sequence[Span]) -> Iterator[_Line]:
    """The lines that say something, in order."""
    start = block = 0
    for line in text.split("\n"):
        end = start + len(line)
        while block < len(blocks) and blocks[block][1] < end:
            block += 1
        if block < len(blocks) and blocks[block][0] <= start:
            if line.strip() and not _FENCE.match(line):
                yield _Line(_Kind.CODE, *_trimmed(text, start, end))
        elif not _RULE.fullmatch(line) and line:
            yield _of_line(text, start, end)
        start = end + 1


def _of_line(text: str, start: int, end: int) -> _Line:
    marks = _MARKS.match(text, start, end)
    content = marks.end() if marks else start
    if heading := _HEADING.match(text, content, end):
        return _Line(_Kind.HEADING, *_trimmed(text, heading.end(), end))
    kind = _Kind.ROW if text.startswith("|", content) else _Kind.PROSE
    return _Line(kind, *_trimmed(text, content, end))


def _paragraphs(text: str, lines: Iterable[_Line]) -> Iterator[_Line]:
    """The lines, those of a paragraph as one."""
    paragraph: _Line | None = None
    for line in lines:
        if paragraph:
            between = text[paragraph.end : line.start]
            if line.kind is _Kind.PROSE and between.count("\n") == 1 and not _OPENS.match(between.partition("\n")[2]):
                paragraph = _Line(_Kind.PROSE, paragraph.start, line.end)
                continue
            yield paragraph
            paragraph = None
        if line.kind is _Kind.PROSE:
            paragraph = line
        else:
            yield line
    if paragraph:
        yield paragraph


def _split(masked: str, line: _Line) -> Iterator[Span]:
    """The sentences of a line."""
    start = line.start
    for stop in _END.finditer(masked, line.start, line.end):
        end = stop.end("cited")
        after = masked[stop.end() : min(stop.end() + 1, line.end)]
        if not after:
            break
        if stop["stop"][0] not in "。！？":
            if not (stop["gap"] or stop["cited"]) or _is_abbreviation(masked, start, stop, after):
                continue
            if after.islower():
                if not stop["cited"]:
                    continue
                if stop["cited"][0] != _MARKER:  # "Done. [1] says": the marker begins the next sentence
                    end = stop.start("cited")
        if (span := _trimmed(masked, start, end)) and span[0] < span[1]:
            yield span
        start = end
    if (span := _trimmed(masked, start, line.end)) and span[0] < span[1]:
        yield span


def _is_abbreviation(masked: str, start: int, stop: re.Match[str], after: str) -> bool:
    """Whether the full stop belongs to the word before it."""
    if stop["stop"] != ".":
        return False
    begin = max(start, stop.start() - 40)
    before = _LAST_WORD.search(masked[begin : stop.start()])
    if before is None:
        return False
    word = before.group()
    if _DOTTED.fullmatch(word) or word.lower() in _ABBREVIATIONS:
        return True
    if word.lower() in _BEFORE_NUMBER and after.isdecimal():
        return True
    # an initial: "D. Knuth", "Donald E. Knuth", but not "vitamin C. It"
    return len(word) == 1 and word.isupper() and bool(_CAPITAL.search(masked[begin : begin + before.start()] or " "))


def _trimmed(text: str, start: int, end: int) -> Span:
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), start + len(part.rstrip()) if part.strip() else start


def _plain(text: str, masked: str, start: int, end: int) -> str:
    """A sentence as it would be read out."""
    pieces, place = list[str](), start
    for noise in _NOISE.finditer(masked, start, end):
        pieces.append(text[place : noise.start()])
        if noise["label"] is not None:
            pieces.append(text[slice(*noise.span("label"))])
        elif noise["cell"]:
            pieces.append(", ")
        place = noise.end()
    plain = " ".join("".join([*pieces, text[place:end]]).split())
    return _EMPTY.sub("", plain).strip(", ") if "|" in text[start:end] else _EMPTY.sub("", plain)
