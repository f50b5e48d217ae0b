"""Citation markers in the stream of an answer: brought into one form, and those that point nowhere taken out.

Models write `[1, 3]`, `[2-4]`, `【1†x】`, `[Source 2]`, `［１］`; readers see `[1][3]`. What only looks like a marker
stays as it is:

* all of a code span and of a code block (see `prose`), and what is escaped (`\\[1]`);
* three and more digits (years); a list or range that has 0 (an interval, an array) or goes down, a range of more than
  MAX_RANGE numbers; brackets in brackets, but for `[[1]]`;
* links `[1](u)`, labels `[text][1]`, definitions `[1]: u` at the beginning of a line;
* array indices. A bracket right behind a word is one

  - behind an identifier: `snake_case`, `camelCase`, `x.y` (but no file name), `f()`, one or two small letters that are
    neither a common word nor a unit behind its number (`10 ms[1]`);
  - behind any word, if its number is 0, which no source has and arrays begin with;
  - behind any word, if an expression goes on after it: `.name`, `=`, `+`, `->`;
  - behind a name that the answer used as an array or a variable before: in code (`name[`, `name = `) or by such an
    index.

  Behind any other word (`replaced[1].`) it is a citation, as models write them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from octavo_artifact.text import STOP_WORDS
from octavo_serve.answering.citations.prose import Prose, Span

MAX_MARKER = 40
"""Characters; what is longer is text."""
MAX_RANGE = 20
"""Numbers of a range: the most sources that an answer can have."""
_BEHIND = 64
"""Characters before a bracket that decide whether it is an index."""

_OPEN, _CLOSE = "[【［", "]】］"
_INNER = rf"[^{re.escape(_OPEN + _CLOSE)}\n`]"
_WHOLE = re.compile(rf"\[\[(?P<double>{_INNER}*)\]\]|[{re.escape(_OPEN)}](?P<single>{_INNER}*)[{re.escape(_CLOSE)}]")
_BEGUN = re.compile(rf"\[?[{re.escape(_OPEN)}](?P<inner>{_INNER}*)\]?")

_WORDS = "sources source references reference refs ref documents document docs doc passages passage citations citation"
_WORD = rf"(?:\^|#|(?:{_WORDS.replace(' ', '|')})(?![a-z])[\s.:#_^]*)"
_LOCATOR = (
    r"(?:(?::\d{1,3})?†[^,;]*"
    r"|\s*(?:[,:;]\s*(?=\w)|\b(?=\w+[.\s]*\d))"
    r"(?:pp?|pg|pages?|lines?|sections?|sec|chapters?|ch|paragraphs?|para|figures?|fig|tables?)(?![a-z])"
    r"[.\s]*[^,;\s][^,;]*"
    r"|(?:\s*[,:;])?\s*§[^,;]*)"
)
_PART = re.compile(
    rf"\s*{_WORD}?\s*(?P<low>\d{{1,2}})(?!\d)(?:\s*(?:[-‐‑–—−~～]|to\b)\s*(?P<high>\d{{1,2}})(?!\d))?{_LOCATOR}?\s*",
    re.IGNORECASE,
)
_YEAR = re.compile(r"\d{3}")
_SEPARATOR = re.compile(r"[,;，；、&]|and\b", re.IGNORECASE)

_NAME = re.compile(r"(?P<before>[^\w.]?)(?P<name>\w+(?:\.\w+)*)(?P<call>\(\))?\Z", re.DOTALL)
_BEFORE_NAME = frozenset(" \t\n([{=,+*&|!<>")
_IDENTIFIER = re.compile(r"\w*[^\W_]_\w*[^\W_]|[a-z]{2,}(?:[A-Z][a-z0-9]+)+|[a-z]{1,2}|(?!v)[a-z]\d", re.ASCII)
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII)
_FILE_ENDINGS = frozenset(
    "c cfg com conf cpp css csv dev gz h htm html ini io ipynb java jpg js json lock log md mdx net onnx org parquet"
    " pdf png py rs rst sh sql svg tar toml ts txt xml yaml yml zip zst".split()
)
_UNIT = re.compile(r"\d\s\w{1,2}\Z")
_GOES_ON = re.compile(r"\.[a-z_]| ?[=+]|->")
_MAY_GO_ON = frozenset((".", " ", "-"))


@dataclass(frozen=True, slots=True)
class InvalidCitation:
    """A number that no source has."""

    number: int
    position: int
    """Characters into the answer, as it was given out, where it stood."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A marker of a text."""

    numbers: tuple[int, ...]
    """As written, each once; ranges expanded."""
    start: int
    end: int
    """Characters of the text as it was given in."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What there is of citations and of code in a text."""

    citations: tuple[Citation, ...]
    blocks: tuple[Span, ...]
    """Lines of code blocks, with their fences."""
    spans: tuple[Span, ...]
    """Code within lines, with its backticks."""


class Markers:
    """A stream of text in which the markers of sources 1 to `sources` (99 at most) become `[1][3]`.

    A number that no source has is left out and reported; a marker without any other takes the space before it along.
    However the text is cut into pieces, the same comes out. At most MAX_MARKER characters, and the few behind them that
    decide, are held back; the time is linear.
    """

    def __init__(self, sources: int) -> None:
        self._sources = sources
        self._prose = Prose()
        self._pending = ""
        self._stepped = False
        """Whether the first of the pending characters is a bracket that `_prose` has taken."""
        self._behind = ""
        self._marker_end = -1
        self._variables = set[str]()
        self._given: list[str] = []
        self._length = 0
        self._space = False
        self._invalid: list[InvalidCitation] = []
        self._citations: list[Citation] = []

    @property
    def invalid(self) -> tuple[InvalidCitation, ...]:
        """The numbers that point nowhere, in text order."""
        return tuple(self._invalid)

    @property
    def answer(self) -> str:
        """All that was given out so far."""
        return "".join(self._given)

    def feed(self, text: str) -> str:
        """Take the next piece; what may be shown now, which never ends inside of a marker."""
        return self._read(text, final=False)

    def finish(self) -> str:
        """End the text; what was held back."""
        given = self._read("", final=True)
        self._prose.finish()
        return given

    def found(self) -> Scan:
        """What the text had, when it is finished."""
        return Scan(tuple(self._citations), tuple(self._prose.blocks), tuple(self._prose.spans))

    def _read(self, piece: str, *, final: bool) -> str:
        before = len(self._given)
        text, self._pending = self._pending + piece, ""
        shown = position = 0
        while position < len(text):
            character = text[position]
            if self._stepped:
                prose, self._stepped = True, False
            else:
                prose = self._prose.step(character)
            if character in _OPEN and prose:
                behind = (self._behind + text[max(0, position - _BEHIND) : position])[-_BEHIND:]
                found = self._decide(text, position, behind, final)
                if found is None:
                    self._stepped = True
                    break
                if found.numbers:
                    self._give(text[shown:position])
                    self._cite(found)
                    self._prose.skip(found.length - 1)
                    shown = position = position + found.length
                    self._marker_end = self._prose.at
                    continue
            position += 1
        self._give(text[shown:position])
        self._behind = (self._behind + text[max(0, position - _BEHIND) : position])[-_BEHIND:]
        self._pending = text[position:]
        if final:
            self._release()
        return "".join(self._given[before:])

    def _decide(self, text: str, position: int, behind: str, final: bool) -> _Found | None:
        """What the bracket at `position` begins; None when only more text can tell."""
        window = text[position : position + MAX_MARKER]
        match = _WHOLE.match(window)
        if match is None:
            waits = not final and len(window) < MAX_MARKER and _may_become_marker(window)
            return None if waits else _NOTHING
        numbers = _numbers(match["double"] or match["single"] or "")
        if not numbers:
            return _NOTHING
        after = text[position + match.end() : position + match.end() + 2]
        if not after and not final:
            return None
        if after[:1] in ("(", "]") or (after[:1] == ":" and self._prose.first):
            return _NOTHING
        follows_marker = self._marker_end == self._prose.at - 1
        if not follows_marker and text[position] == "[":
            if behind.endswith(("[", "]")):
                return _NOTHING
            if name := _NAME.search(behind):
                if not final and len(after) < 2 and after in _MAY_GO_ON:
                    return None
                if self._is_index(name, behind, numbers[0], after):
                    return _NOTHING
        return _Found(numbers, match.end())

    def _is_index(self, name: re.Match[str], behind: str, number: int, after: str) -> bool:
        """Whether a bracket with that number, behind a name, is an array's; see the module."""
        word = name["name"]
        if number == 0 or _GOES_ON.match(after):
            self._variables.add(word)
            return True
        if word in self._variables or word in self._prose.variables:
            return True
        starts = name["before"] in _BEFORE_NAME if name["before"] else not name.start() and len(behind) < _BEHIND
        if not starts or _UNIT.search(behind) or (len(word) == 2 and word in STOP_WORDS):
            return False
        if name["call"] or _IDENTIFIER.fullmatch(word):
            return True
        return bool(_DOTTED.fullmatch(word)) and word.rpartition(".")[2].lower() not in _FILE_ENDINGS

    def _cite(self, found: _Found) -> None:
        start = self._prose.at - 1
        self._citations.append(Citation(found.numbers, start, start + found.length))
        valid = [number for number in found.numbers if 1 <= number <= self._sources]
        self._space = self._space and bool(valid)
        for number in found.numbers:
            if number in valid:
                self._give(f"[{number}]")
            else:
                self._invalid.append(InvalidCitation(number, self._length + self._space))

    def _give(self, text: str) -> None:
        """Give text out, but for a space at its end, which may have to go with a marker."""
        if not text:
            return
        shown = " " * self._space + text
        self._space = shown.endswith(" ")
        self._append(shown.removesuffix(" "))

    def _release(self) -> None:
        self._append(" " * self._space)
        self._space = False

    def _append(self, text: str) -> None:
        self._given.append(text)
        self._length += len(text)


def scan(text: str) -> Scan:
    """The citations and the code of a whole text; time linear in its length."""
    markers = Markers(0)
    markers.feed(text)
    markers.finish()
    return markers.found()


@dataclass(frozen=True, slots=True)
class _Found:
    numbers: tuple[int, ...]
    """Empty where there is no marker."""
    length: int


_NOTHING = _Found((), 0)


def _numbers(content: str) -> tuple[int, ...]:
    """The numbers of a marker's content, each once; none if it is no marker's."""
    numbers: dict[int, None] = {}
    position = 0
    while part := _PART.match(content, position):
        low = int(part["low"])
        high = int(part["high"] or low)
        if not low <= high < low + MAX_RANGE:
            return ()
        numbers.update(dict.fromkeys(range(low, high + 1)))
        if part.end() == len(content):
            return () if 0 in numbers and len(numbers) > 1 else tuple(numbers)
        separator = _SEPARATOR.match(content, part.end())
        if separator is None:
            return ()
        position = separator.end()
    return ()


def _may_become_marker(window: str) -> bool:
    """Whether more text could make a marker of one that has no closing bracket yet; never wrongly False."""
    begun = _BEGUN.fullmatch(window)
    if begun is None:
        return False
    inner = begun["inner"].lstrip().casefold()
    if not inner or inner[0] in "^#" or inner[0].isdecimal():
        return not _YEAR.match(inner)
    return any(word.startswith(inner) or inner.startswith(word) for word in _WORDS.split())
