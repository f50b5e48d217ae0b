"""HTML: the text of the page's main part as a reader sees it. Tags, scripts and what surrounds it are hidden.

The tokens are found here, on bytes. The standard library's `html.parser` gives lines and columns too, but what it makes
of comments and scripts changed with security releases of every Python, and a digest must not depend on these; in those
that users still have it needs quadratic time for what is never closed. Trees of other parsers have no place of each
character. Character references are the standard library's, whose list is closed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from html import unescape
from itertools import chain

from octavo_build.bodies.body import (
    MAX_HEADING,
    Block,
    Body,
    Facts,
    Hidden,
    data_uris,
    decode,
    disjoint,
    lines_of,
    make_body,
    parts,
)

MAX_ALT = 200
"""Characters of an image's alternative text that are shown."""

# Outside quotes `<` ends a tag, so that one that is never closed costs no more than its own text.
_TOKEN = re.compile(
    rb"<!--(?:-?>|(?s:.*?)(?:--!?>|\Z))"
    rb"|</?(?P<name>[A-Za-z][^\s/<>]*+)(?:[^<>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+')?+)*+(?P<closed>>)?"
    rb"|<(?:[!?]|/(?=[^A-Za-z]))[^>]*+>?"
)
_ATTRIBUTE = re.compile(
    rb"(?<=[\s\"'/])([^\s=/\"'<>]++)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'<>]++))", re.DOTALL
)
_REFERENCE = rb"&(?:#[0-9]{1,9}+;?|#[xX][0-9a-fA-F]{1,8}+;?|[A-Za-z][A-Za-z0-9]{1,31}+;?)"
_IN_PRE = re.compile(_REFERENCE)
_IN_TEXT = re.compile(rb"[ \t\r\n\f]{2,}+|[\t\r\n\f]|" + _REFERENCE)

_RAW = {
    name: re.compile(rb"</" + name.encode() + rb"(?=[\s/>])[^>]*+>?", re.IGNORECASE)
    for name in ("script", "style", "title", "iframe", "noembed", "noframes")
}
"""Elements whose content is no markup, and what ends them."""
_NEVER = frozenset({"nav", "footer", "template", "noscript", "svg"})
_AROUND = frozenset({"header", "aside"})
"""Hidden too, except in the main part, where they hold its title and notes."""
_MAIN = ("main", "article")

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LINES = frozenset("br dd div dt figcaption label legend li optgroup option summary tr".split())
_PARAGRAPHS = frozenset(
    "address article aside blockquote body caption center details dialog dir dl fieldset figure footer form"
    " h1 h2 h3 h4 h5 h6 header hgroup hr html main menu nav ol p pre search section select table tbody td textarea"
    " tfoot th thead ul".split()
)

_NOTHING, _SPACE, _CELL, _LINE, _PARAGRAPH = range(5)
_BREAKS = ("", " ", " | ", "\n", "\n\n")


def parse_body(raw: bytes, offset: int) -> Body:
    """Structure of `raw[offset:]`, found in time and memory linear in its size.

    Of a page with `<main>`, else with `<article>`, all else is hidden; what is only boilerplate is shown after all.
    """
    regions = _regions(raw, offset)
    everything = [(offset, len(raw))]
    hidden, blocks = (), ()
    for scope, without in (
        *((regions[name], _NEVER) for name in _MAIN if regions[name]),
        (everything, _NEVER | _AROUND),
        (everything, frozenset[str]()),
    ):
        left_out = sorted(chain.from_iterable(regions[name] for name in without))
        hidden, blocks = _Reader(raw, offset).read(scope, left_out)
        if blocks:
            break
    uris = tuple(data_uris(raw, offset))
    hidden = disjoint((*hidden, *uris)) if uris else hidden
    return make_body(raw, lines_of(raw, offset), blocks, hidden, hidden)


def facts(raw: bytes, offset: int) -> Facts:
    """What `<title>`, else the first `<h1>`, `<meta name="description">` and `<html lang>` say."""
    title = description = language = ""
    for start, end, name in _tokens(raw, offset):
        if name == "body":
            break
        if name == "title" and not title:
            title = _line(raw[raw.find(b">", start) + 1 : raw.rfind(b"<", start, end)])
        elif name == "meta" and _attribute(raw, start, end, b"name").lower() == "description":
            description = description or _attribute(raw, start, end, b"content")
        elif name == "html":
            language = _attribute(raw, start, end, b"lang")
    if not title:
        title = next((block.text for block in parse_body(raw, offset).blocks if block.level == 1), "")
    return Facts(title[:MAX_HEADING], description, language)


def _tokens(raw: bytes, offset: int) -> Iterator[tuple[int, int, str]]:
    """Start, end and name of what is no text: `p`, `/p`; without a name what is never markup. A script is one token."""
    never_ended: set[str] = set()
    position = offset
    while found := _TOKEN.search(raw, position):
        start, position = found.span()
        name = decode(found["name"] or b"").lower()
        if not name:
            yield start, position, ""
        elif found["closed"]:
            opens = raw[start + 1 : start + 2] != b"/"
            if opens and name in _RAW and name not in never_ended:
                if ending := _RAW[name].search(raw, position):
                    position = ending.end()
                elif name in ("script", "style"):
                    position = len(raw)
                else:
                    never_ended.add(name)
            yield start, position, name if opens else f"/{name}"


def _regions(raw: bytes, offset: int) -> dict[str, list[tuple[int, int]]]:
    """Byte ranges of the outermost elements that decide what is shown; of those not closed, of the main part only."""
    regions: dict[str, list[tuple[int, int]]] = {name: [] for name in (*_NEVER, *_AROUND, *_MAIN)}
    opened: defaultdict[str, list[int]] = defaultdict(list)
    for start, end, name in _tokens(raw, offset):
        if name in regions:
            opened[name].append(start)
        elif opened.get(name[1:]) and name.startswith("/"):
            first = opened[name[1:]].pop()
            if not opened[name[1:]]:
                regions[name[1:]].append((first, end))
    for name in _MAIN:
        if opened[name]:
            regions[name].append((opened[name][0], len(raw)))
    return regions


class _Weaver:
    """Text woven of pieces of the file: what lies between them is hidden, with the break that is due as its marker."""

    def __init__(self, raw: bytes, offset: int) -> None:
        self.hidden: list[Hidden] = []
        self.reach = offset
        """Byte offset up to which all is woven."""
        self._raw = raw
        self._due = _NOTHING
        self._done = _PARAGRAPH

    def due(self, strength: int) -> None:
        """A break stands before the next piece."""
        self._due = max(self._due, strength)

    def cut(self, place: int, lead: str = "") -> None:
        """Weave up to `place`, the break and `lead` for what is left out."""
        due = self._due if self._due > self._done else _NOTHING
        marker = ("\n" if self._done == _LINE and due else _BREAKS[due]) + lead
        # a break between two tags with nothing between them has a range of no bytes
        if (place > self.reach or marker) and self._raw[self.reach : place] != marker.encode():
            self.hidden.append(Hidden(self.reach, place, marker))
        self._done, self._due, self.reach = max(self._done, self._due), _NOTHING, place

    def finish(self) -> None:
        """Leave out what is left."""
        self._due = _NOTHING
        self.cut(len(self._raw))

    def keep(self, end: int, marker: str | None = None) -> None:
        """Weave up to `end`: the text as it stands, or `marker` for it."""
        if marker is not None:
            self.hidden.append(Hidden(self.reach, end, marker))
        self._done = _LINE if marker is None and self._raw[end - 1 : end] == b"\n" else _NOTHING
        self.reach = end


class _Reader:
    """One reading of a page: what is shown of `scope`, and which blocks it makes."""

    def __init__(self, raw: bytes, offset: int) -> None:
        self._raw, self._offset = raw, offset
        self._weaver = _Weaver(raw, offset)
        self._blocks: list[Block] = []
        self._opening: int | None = None
        """Of the tags since the last text, the first that may open the next block."""
        self._start: int | None = None
        """Of the block that is being read."""
        self._kind = self._lead = ""
        self._level = self._pre = self._tables = self._head = 0
        self._row = ""
        """Names of the cells of the row that is being read, while it may be a table's head."""

    def read(
        self, scope: Sequence[tuple[int, int]], left_out: Sequence[tuple[int, int]]
    ) -> tuple[tuple[Hidden, ...], tuple[Block, ...]]:
        """What is hidden and the blocks; `left_out` is in order."""
        inside, outside = iter(scope), iter(left_out)
        first, last = next(inside)
        gap_first, gap_last = next(outside, _NOWHERE)
        position = self._offset
        for start, end, name in chain(_tokens(self._raw, self._offset), [(len(self._raw), len(self._raw), "")]):
            while position >= gap_last:
                self._weaver.due(_SPACE)
                gap_first, gap_last = next(outside, _NOWHERE)
            while position >= last:
                first, last = next(inside, _NOWHERE)
            if first <= position < last and not gap_first <= position < gap_last:
                self._text(position, start)
            if first <= start < last and not gap_first <= start < gap_last:
                self._tag(name, start, end)
            position = end
        self._close()
        self._weaver.finish()
        return tuple(self._weaver.hidden), tuple(self._blocks)

    def _tag(self, name: str, start: int, end: int) -> None:
        closing, name = name.startswith("/"), name.removeprefix("/")
        if name == "pre":
            self._pre = max(0, self._pre + (-1 if closing else 1))
        if name in ("table", "caption"):
            self._break(_PARAGRAPH, start, closing)
            if name == "table":
                self._tables = max(0, self._tables + (-1 if closing else 1))
            self._head, self._row = 0, ""
        elif name in _HEADINGS:
            self._break(_PARAGRAPH, start, closing)
            self._level = 0 if closing else _HEADINGS[name]
        elif self._tables and name != "pre":
            self._tag_in_table(name, start, closing)
        elif name == "br":
            self._weaver.due(_LINE)
        elif name in _LINES or name in _PARAGRAPHS:
            self._break(_LINE if name in _LINES else _PARAGRAPH, start, closing)
            if name == "li":
                self._lead = "" if closing else "- "
        if name == "img" and (alt := _attribute(self._raw, start, end, b"alt")[:MAX_ALT]):
            self._begin(start)
            self._weaver.keep(end, alt)

    def _tag_in_table(self, name: str, start: int, closing: bool) -> None:
        if name == "tr":
            self._weaver.due(_LINE)
            if not closing and self._start is not None:
                self._weaver.cut(start)
                if self._row and not self._head:
                    self._head = start if set(self._row.split()) == {"th"} else -1
            self._row = "" if not closing else self._row
        elif name in ("td", "th"):
            self._weaver.due(_CELL)
            if not closing and not self._head:
                self._row = f"{self._row[:20]} {name}"
        elif name in _LINES or name in _PARAGRAPHS:
            self._weaver.due(_LINE if name in ("thead", "tbody", "tfoot") else _SPACE)

    def _break(self, strength: int, place: int, closing: bool) -> None:
        self._close()
        self._weaver.due(strength)
        if closing:
            self._opening = None
        elif self._opening is None:
            self._opening = place

    def _close(self) -> None:
        """End the block that is being read, if it has text."""
        if self._start is None:
            return
        start, end = self._start, self._weaver.reach
        if self._level:
            shown = "".join(decode(self._raw[a:b]) + marker for a, b, marker in parts(self._weaver.hidden, start, end))
            text = " ".join(shown.replace("¶", " ").split())[:MAX_HEADING]
            self._blocks.append(Block("heading", start, end, self._level, text))
        else:
            self._blocks.append(Block(self._kind, start, end, head=max(0, self._head)))
        self._start, self._opening, self._level = None, None, 0

    def _begin(self, place: int) -> None:
        """Text stands at `place`: weave up to it, and open a block if none is open."""
        if self._start is None:
            self._kind = "code" if self._pre else "table" if self._tables else "paragraph"
            self._start = place if self._opening is None else self._opening
            self._weaver.cut(self._start)
            self._weaver.cut(place, self._lead)
            self._lead = ""
        else:
            self._weaver.cut(place)

    def _text(self, start: int, end: int) -> None:
        for special in (_IN_PRE if self._pre else _IN_TEXT).finditer(self._raw, start, end):
            self._piece(start, special.start())
            start = special.end()
            if special[0].isspace():
                self._weaver.due(_SPACE)
                continue
            character = unescape(special[0].decode())
            if character.isspace() and not self._pre:
                self._weaver.due(_SPACE)
            elif character:
                self._begin(special.start())
                self._weaver.keep(special.end(), character)
        self._piece(start, end)

    def _piece(self, start: int, end: int) -> None:
        """Text without references, and with single spaces only unless it is preformatted."""
        if not self._pre and self._raw[start : min(end, start + 1)] == b" ":
            self._weaver.due(_SPACE)
            start += 1
        while self._pre and self._start is None and start < end and self._raw[start] in b"\r\n":
            start += 1
        trailing = not self._pre and start < end and self._raw[end - 1 : end] == b" "
        end -= trailing
        if start < end:
            self._begin(start)
            self._weaver.keep(end)
        if trailing:
            self._weaver.due(_SPACE)


_NOWHERE = (1 << 62, 1 << 62)


def _attribute(raw: bytes, start: int, end: int, name: bytes) -> str:
    """The value of a tag's attribute on one line; empty when it has none."""
    for found in _ATTRIBUTE.finditer(raw, start, end):
        if found[1].lower() == name:
            return _line(found[2] or found[3] or found[4] or b"")
    return ""


def _line(data: bytes) -> str:
    return " ".join(unescape(decode(data)).split())
