"""Which characters of Markdown are prose and which are code, told one by one, so that a stream can be asked.

The rules are CommonMark's as far as they can be known without what comes later: a code span whose closing backticks
never come is code until its paragraph ends. Fences may stand at any depth of lists and quotes.
"""

from __future__ import annotations

import re
from enum import Enum, auto

_FENCE_LINE = 200
"""Characters of a line that may close a fence."""
_MARK = re.compile(r"[-*+]|\d{1,9}[.)]?")
_ITEM = re.compile(r"[-*+]|\d{1,9}[.)]")
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)(?:\[| = )")

Span = tuple[int, int]
"""Characters of a text: the first and the one behind the last."""


class _Mode(Enum):
    LINE = auto()
    """On a line that has had no letter yet."""
    TEXT = auto()
    INFO = auto()
    """On the line that opens a fence."""
    FENCE = auto()
    INDENTED = auto()


class Prose:
    """A reader of Markdown that takes a character at a time."""

    def __init__(self) -> None:
        self.at = 0
        """Characters read."""
        self.first = False
        """Whether the last character is the first of its line but for blanks, quote and list marks."""
        self.blocks: list[Span] = []
        """Lines of code blocks, with their fences."""
        self.spans: list[Span] = []
        """Code within lines, with its backticks."""
        self.variables: set[str] = set()
        """Names that code used as arrays or variables: `name[`, `name = `."""
        self._mode = _Mode.LINE
        self._escaped = False
        self._run, self._runs_of = 0, ""
        self._item = self._whole = self._continued = False
        self._span, self._span_start = 0, 0
        self._fence, self._fence_start, self._fence_line = "", 0, 0
        self._code: list[str] = []
        self._line_start, self._indent, self._mark = 0, 0, ""
        self._lists: list[int] = []

    def step(self, character: str) -> bool:
        """Take the next character; whether it is prose, in which Markdown's marks mean something."""
        if self._run and character != self._runs_of:
            self._end_run()
        self.first = False
        prose = self._take(character)
        self.at += 1
        if not prose:
            self._code.append(character)
        return prose

    def skip(self, count: int) -> None:
        """Pass over characters that have no meaning here."""
        self.at += count

    def finish(self) -> None:
        """End the text."""
        if self._run:
            self._end_run()
        self._newline()
        if self._mode is _Mode.FENCE:
            self.blocks.append((self._fence_line, self.at))
        self._end_span()

    def _take(self, character: str) -> bool:
        if character == "\n":
            self._newline()
            return True
        match self._mode:
            case _Mode.LINE:
                return self._begin(character)
            case _Mode.TEXT:
                return self._text(character)
            case _Mode.INFO if character == "`" == self._fence[0]:
                self._start_run(character)
            case _:
                pass
        return False

    def _text(self, character: str) -> bool:
        escaped, self._escaped = self._escaped, False
        if self._span:
            if character == "`":
                self._start_run(character)
            return False
        if escaped:
            return False
        if character == "`":
            self._start_run(character)
        self._escaped = character == "\\"
        return True

    def _begin(self, character: str) -> bool:
        """Take a character before which its line has only blanks and marks of quotes and lists."""
        if self._run:
            self._start_run(character)
            return True
        if character in " \t" and not self._mark:
            self._indent += 1 if character == " " else 4 - self._indent % 4
            return True
        if self._mark:
            return self._after_mark(character)
        if self._is_indented(character):
            self._mode = _Mode.INDENTED
            return False
        self.first = True
        if character == ">":
            self._indent = -1  # the blank behind it belongs to it
        elif _MARK.fullmatch(character):
            self._mark = character
        elif character in "`~":
            self._start_run(character)
        else:
            if character in "#|":
                self._end_span()
                self._whole = True
            self._mode = _Mode.TEXT
            return self._text(character)
        return True

    def _after_mark(self, character: str) -> bool:
        if character in " \t" and _ITEM.fullmatch(self._mark):
            self._end_span()
            self._indent += len(self._mark) + 1
            self._lists.append(self._indent)
            self._mark, self._item = "", True
            return True
        if _MARK.fullmatch(self._mark + character):
            self._mark += character
            return True
        self._mark, self._mode = "", _Mode.TEXT
        return self._text(character)

    def _is_indented(self, character: str) -> bool:
        """Whether a line whose first letter this is belongs to an indented code block."""
        if self._item:
            return False
        if not self._continued or _MARK.fullmatch(character):
            while self._lists and self._indent < self._lists[-1]:
                self._lists.pop()
        return not self._continued and self._indent >= 4 + (self._lists[-1] if self._lists else 0)

    def _start_run(self, character: str) -> None:
        self._run, self._runs_of = self._run + 1, character

    def _end_run(self) -> None:
        """All the backticks or tildes of a run are there."""
        count, self._run = self._run, 0
        start = self.at - count
        if self._mode is _Mode.LINE:
            if count >= 3:
                self._end_span()
                self._mode, self._fence = _Mode.INFO, self._runs_of * count
                self._fence_start, self._fence_line = start, self._line_start
                return
            self._mode = _Mode.TEXT
            if self._runs_of == "~":
                return
        elif self._mode is _Mode.INFO:
            # what a fence says of itself has no backticks: this was a code span
            self._mode, self._span, self._span_start = _Mode.TEXT, len(self._fence), self._fence_start
        if not self._span:
            self._span, self._span_start = count, start
        elif self._span == count:
            self.spans.append((self._span_start, self.at))
            self._span = 0
            self._end_code()

    def _newline(self) -> None:
        match self._mode:
            case _Mode.LINE:
                self._continued = bool(self._mark) or self._item
                if not self._continued:
                    self._end_span()
            case _Mode.TEXT:
                self._continued = not self._whole
                if self._whole:
                    self._end_span()
                self._mode = _Mode.LINE
            case _Mode.INFO:
                self._mode = _Mode.FENCE
            case _Mode.FENCE:
                self._end_fence()
            case _Mode.INDENTED:
                self.blocks.append((self._line_start, self.at))
                self._continued, self._mode = False, _Mode.LINE
        self._end_code()
        self._escaped = self._item = self._whole = False
        self._indent, self._mark, self._line_start = 0, "", self.at + 1

    def _end_fence(self) -> None:
        if len(self._code) > _FENCE_LINE:
            return
        line = "".join(self._code).lstrip(" \t>").rstrip()
        if len(line) >= len(self._fence) and set(line) == {self._fence[0]}:
            self.blocks.append((self._fence_line, self.at))
            self._mode, self._continued = _Mode.LINE, False

    def _end_span(self) -> None:
        if self._span:
            self.spans.append((self._span_start, self.at))
            self._span = 0
            self._end_code()

    def _end_code(self) -> None:
        if self._code:
            self.variables.update(_ASSIGNED.findall("".join(self._code)))
            self._code.clear()
