"""Documents cut into passages: exact spans that partition a document's body and end where its structure does.

A passage is a section, the run from one top-level heading to the next. Small sections join a neighbour; large ones
are cut between blocks, then inside them: list items, quoted blocks, table rows, lines, sentences, words and, as the
last resort, graphemes. Which of the text counts is `bodies`' to say; windows are `windows`'.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Any

import regex

from octavo_artifact.ids import sha256_hex, slugify
from octavo_artifact.schema import Document, Passage, Section
from octavo_artifact.text import estimate_tokens, unix_lines
from octavo_build.bodies import body_of
from octavo_build.bodies.body import MAX_LINES, Block, Body
from octavo_build.findings import Finding

_CHARS = 4
"""Characters of a token, as `estimate_tokens` counts."""

_LOOK_BACK = 256
"""Characters in which the start of a grapheme is looked for; a longer one is cut."""

# Blank space, what prints nothing and the bare markers of Markdown: `#` alone is no content.
_CONTENT = regex.compile(r"[^\s\p{Cc}\p{Cf}\ufffd#>*\-+_=~`|:]")

_LARGE_BY = {False: "a passage that comments or blank lines make", True: "a passage that its sidecar makes"}

_WORDS = regex.compile(rb"\S")
_SPACES = regex.compile(r"\s*+")
_FLAGS_BEFORE = regex.compile(r"(?r)[\U0001f1e6-\U0001f1ff]*+")
_ALL_BUT_LAST_GRAPHEME = regex.compile(r"(?:\X(?=\X))*+")

# Places to cut, at the end of a match; `(?r)` searches backwards. What follows is never part of a grapheme before it.
_NEXT = r"(?![\p{GCB=Extend}\p{GCB=SpacingMark}\p{GCB=ZWJ}])(?=\S)"
_LINE_END = regex.compile(r"(?:\n|\r(?!\n))(?=.)", regex.DOTALL)
_LAST_LINE_END = regex.compile(r"(?r)(?:\n|\r(?!\n))(?=.)", regex.DOTALL)
_LAST_SENTENCE_END = regex.compile(rf"(?r)(?:[.!?…][\"'”’)\]]*\s|[。！？｡][」』”’）]*){_NEXT}")
_LAST_SPACE = regex.compile(rf"(?r)\s{_NEXT}")
_SPACE = regex.compile(rf"\s{_NEXT}")


@dataclass(frozen=True, slots=True)
class PassageLimits:
    """Sizes of passages, in estimated tokens of their visible text."""

    min_tokens: int = 64
    """A smaller section joins a neighbour."""
    target_tokens: int = 500
    """Up to which the pieces of a large section are filled."""
    ceiling_tokens: int = 1000
    """A larger section is cut."""

    def __post_init__(self) -> None:
        if not 0 < self.min_tokens <= self.target_tokens <= self.ceiling_tokens:
            raise ValueError(f"expected 0 < min <= target <= ceiling, found {self}")


LIMITS = PassageLimits()


@dataclass(frozen=True, slots=True)
class PassageText:
    """A passage with its text."""

    passage: Passage
    text: str
    """What a user is shown: the prefix, then the span as its format shows it, its line ends line feeds."""
    visible: str
    """What is embedded and indexed: the context prefix, then the same without comments."""


@dataclass(frozen=True, slots=True)
class _Section:
    """A top-level heading and what follows it, or several of them joined."""

    start: int
    end: int
    first_block: int
    last_block: int
    """Of the body's; half open."""
    level: int
    """0 before any heading."""
    path: tuple[str, ...]
    anchor: str
    size: int
    """Characters of visible text."""
    content: bool
    """Whether anything in it can be found."""


@dataclass(frozen=True, slots=True)
class _Span:
    """What will be a passage."""

    start: int
    end: int
    path: tuple[str, ...]
    anchor: str
    prefix: str = ""
    context_prefix: str = ""


@dataclass(frozen=True, slots=True)
class _Piece:
    """Text of a large section that is not cut further."""

    start: int
    size: int
    """Characters of visible text; 0 when it is blank, for blank text opens no passage."""
    prefix: str = ""
    """Of a passage that begins with this piece."""
    oversized: str = ""
    """What had to be cut where it has no structure, on the first piece of a block."""


def passages_of(
    document: Document, row: int, limits: PassageLimits = LIMITS
) -> tuple[list[PassageText], list[Finding]]:
    """Passages of the document whose row is `row`, in order, and what its author should know of them.

    The spans partition the body. A body in which nothing can be found has no passage and the finding `no-content`.
    An atomic document is one passage of any size; of other documents, `passage-oversized` names the blocks that were
    cut at no structural place, and the passages that HTML comments or blank space make larger than the ceiling.
    """
    body = body_of(document)
    anchors = _Anchors()
    sections = _sections(body, anchors)
    if not any(section.content for section in sections):
        return [], [Finding(document.path, 1, "no-content", "found nothing to index, expected text")]
    if document.strategy == "atomic":
        return [_passage(body, _whole(body, sections), row, 0)], []

    chunks = json.loads(document.chunks)
    oversized: list[tuple[int, str]] = []
    spans = list(_chosen(body, sections, chunks)) if chunks else []
    for section in () if chunks else _joined(sections, limits):
        pieces = _pieces(body, section, limits)
        spans.extend(_spans(section, _packed(pieces, limits), anchors))
        oversized.extend((body.line_at(piece.start), piece.oversized) for piece in pieces if piece.oversized)
    passages = [_passage(body, span, row, ordinal) for ordinal, span in enumerate(spans)]
    oversized.extend(
        (each.passage.start_line, f"{_LARGE_BY[bool(chunks)]} {each.passage.tokens} tokens")
        for each in passages
        if each.passage.tokens > limits.ceiling_tokens
    )
    expected = f"expected at most {limits.ceiling_tokens} tokens"
    findings = [
        Finding(document.path, line, "passage-oversized", f"found {what}, {expected}")
        for line, what in sorted(oversized)
    ]
    if len(body.line_starts) > MAX_LINES:
        found = f"found {len(body.line_starts)} lines, expected at most {MAX_LINES}"
        findings.append(Finding(document.path, body.first_line, "structure-ignored", found))
    return passages, findings


def outline(document: Document, row: int) -> list[Section]:
    """The headings of the document whose row is `row`, with the anchors that its passages have."""
    body = body_of(document)
    headings = [section for section in _sections(body, _Anchors()) if section.level]
    sections: list[Section] = []
    for ordinal, heading in enumerate(headings):
        following = (other.start for other in headings[ordinal + 1 :] if other.level <= heading.level)
        end = next(following, len(body.raw))
        first = body.line_at(heading.start)
        last = body.line_at(max(heading.start, end - 1))
        title = heading.path[-1] if heading.path else ""
        sections.append(Section(row, ordinal, heading.level, title, heading.anchor, first, last))
    return sections


def _chosen(body: Body, sections: Sequence[_Section], chunks: Sequence[Mapping[str, Any]]) -> Iterator[_Span]:
    """The spans that a sidecar wants; it was checked to cover the body."""
    anchors = _Anchors()
    starts = [section.start for section in sections]
    for chunk, end in zip(chunks, [*(each["start_byte"] for each in chunks[1:]), len(body.raw)], strict=True):
        start = chunk["start_byte"]
        words = _WORDS.search(body.raw, start, end)
        section = sections[max(0, bisect_right(starts, words.start() if words else start) - 1)]
        yield _Span(start, end, section.path, anchors.claim(chunk["section"]), context_prefix=chunk["context_prefix"])


def _whole(body: Body, sections: Sequence[_Section]) -> _Span:
    top = next(section for section in sections if section.content)
    path, anchor = (top.path, top.anchor) if top.level == 1 else ((), "")
    return _Span(body.offset, len(body.raw), path, anchor)


def _spans(section: _Section, openings: Sequence[_Piece], anchors: _Anchors) -> Iterator[_Span]:
    bounds = [section.start, *(opening.start for opening in openings[1:]), section.end]
    for index, (opening, (start, end)) in enumerate(zip(openings, pairwise(bounds), strict=True)):
        anchor = anchors.claim(section.anchor or "opening") if index else section.anchor
        yield _Span(start, end, section.path, anchor, opening.prefix)


def _passage(body: Body, span: _Span, row: int, ordinal: int) -> PassageText:
    shown = unix_lines(body.shown(span.start, span.end))
    passage = Passage(
        document=row,
        ordinal=ordinal,
        section=span.anchor,
        heading_path=span.path,
        start_line=body.line_at(span.start),
        end_line=body.line_at(span.end - 1),
        start_byte=span.start,
        end_byte=span.end,
        span_sha256=sha256_hex(body.raw[span.start : span.end]),
        tokens=estimate_tokens(shown),
        prefix=span.prefix,
        context_prefix=span.context_prefix,
    )
    context = f"{span.context_prefix}\n\n" if span.context_prefix else ""
    visible = unix_lines(body.visible(span.start, span.end))
    return PassageText(passage, span.prefix + shown, context + span.prefix + visible)


class _Anchors:
    """Names of sections, each given once, as GitHub does: `name`, `name-1`, `name-2`."""

    def __init__(self) -> None:
        # `ids.fragment_id` spells the section before any heading so
        self._taken = {"opening"}
        self._count: dict[str, int] = {}

    def claim(self, name: str) -> str:
        anchor = name
        while anchor in self._taken:
            self._count[name] = self._count.get(name, 0) + 1
            anchor = f"{name}-{self._count[name]}"
        self._taken.add(anchor)
        return anchor


def _sections(body: Body, anchors: _Anchors) -> list[_Section]:
    blocks = body.blocks
    firsts = [index for index, block in enumerate(blocks) if block.level or index == 0]
    above: list[tuple[int, str]] = []
    sections: list[_Section] = []
    for first, last in pairwise([*firsts, len(blocks)]):
        heading = blocks[first]
        start = heading.start if first else body.offset
        end = blocks[last].start if last < len(blocks) else len(body.raw)
        if heading.level:
            above = [*(each for each in above if each[0] < heading.level), (heading.level, heading.text)]
        visible = body.visible(start, end)
        sections.append(
            _Section(
                start=start,
                end=end,
                first_block=first,
                last_block=last,
                level=heading.level,
                path=tuple(text for _, text in above if text),
                anchor=anchors.claim(slugify(heading.text) or "section") if heading.level else "",
                size=len(visible),
                content=_CONTENT.search(visible) is not None,
            )
        )
    return sections


def _joined(sections: Sequence[_Section], limits: PassageLimits) -> list[_Section]:
    """Join each small section with the next when that is its child or sibling, else with the one before."""
    joined: list[_Section] = []
    for section, following in zip(sections, [*sections[1:], None], strict=True):
        if joined and _takes_in(joined[-1], section, limits):
            joined[-1] = _join(joined[-1], section)
        else:
            joined.append(section)
        if following is not None and _takes_in(joined[-1], following, limits):
            continue
        if len(joined) > 1 and _is_small(joined[-1], limits) and _fit(joined[-2], joined[-1], limits):
            last = joined.pop()
            joined[-1] = _join(joined[-1], last)
    return joined


def _takes_in(section: _Section, following: _Section, limits: PassageLimits) -> bool:
    if not (section.content and following.content):
        return True
    return _is_small(section, limits) and following.level >= section.level and _fit(section, following, limits)


def _is_small(section: _Section, limits: PassageLimits) -> bool:
    return _tokens(section.size) < limits.min_tokens


def _fit(section: _Section, following: _Section, limits: PassageLimits) -> bool:
    return _tokens(section.size + following.size) <= limits.ceiling_tokens


def _join(before: _Section, section: _Section) -> _Section:
    told = [each for each in (before, section) if each.content] or [section]
    return _Section(
        start=before.start,
        end=section.end,
        first_block=before.first_block,
        last_block=section.last_block,
        level=min(each.level for each in told),
        path=_common_prefix(told[0].path, told[-1].path),
        anchor=told[0].anchor or section.anchor,
        size=before.size + section.size,
        content=before.content or section.content,
    )


def _common_prefix(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(text for text, _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _tokens(size: int) -> int:
    return -(-size // _CHARS)


def _pieces(body: Body, section: _Section, limits: PassageLimits) -> list[_Piece]:
    if _tokens(section.size) <= limits.ceiling_tokens:
        return [_Piece(section.start, section.size)]
    blocks = body.blocks[section.first_block : section.last_block]
    return list(_pieces_between(body, blocks, section.start, section.end, limits))


def _pieces_between(
    body: Body, blocks: Sequence[Block], start: int, end: int, limits: PassageLimits
) -> Iterator[_Piece]:
    bounds = [start, *(block.start for block in blocks[1:]), end]
    for block, (first, last) in zip(blocks, pairwise(bounds), strict=True):
        if _tokens(len(body.visible(block.start, block.end))) <= limits.ceiling_tokens:
            yield _Piece(first, _size(body.visible(first, last)))
        elif block.children:
            yield from _pieces_between(body, block.children, first, last, limits)
        else:
            yield from _pieces_within(body, block, first, last, limits)


def _size(visible: str) -> int:
    return 0 if visible.isspace() else len(visible)


def _pieces_within(body: Body, block: Block, start: int, end: int, limits: PassageLimits) -> Iterator[_Piece]:
    parts = list(body.visible_parts(start, end))
    # one character for each byte that is not UTF-8, so that characters count back into bytes
    text = "".join(body.raw[a:b].decode("utf-8", "surrogateescape") + marker for a, b, marker in parts)
    prefix = unix_lines(body.visible(block.start, block.head)) if block.head else ""
    prefix += "\n" if prefix and not prefix.endswith("\n") else ""
    repeated = _tokens(len(prefix)) <= limits.target_tokens
    prefix = prefix if repeated else ""

    by_line = block.kind in ("table", "fence", "code")
    cuts, forced = _cuts(text, len(prefix), by_line, limits)
    if block.kind in ("fence", "code"):
        oversized = f"a code block of {_tokens(len(text))} tokens"
    elif forced or not repeated:
        oversized = "a long table row" if block.kind == "table" else "a long word"
    else:
        oversized = ""
    places = [start, *_places(body.raw, parts, cuts)]
    for place, (first, last) in zip(places, pairwise([0, *cuts, len(text)]), strict=True):
        opens_line = first > 0 and text[first - 1] in "\r\n"
        yield _Piece(place, _size(text[first:last]), prefix if opens_line else "", "" if first else oversized)


def _cuts(text: str, head: int, by_line: bool, limits: PassageLimits) -> tuple[list[int], bool]:
    """Where to cut `text`, of which `head` characters stand before every piece, and whether a place was forced.

    `by_line` says that the end of a line is the only good place: in a table, in code.
    """
    step = max(limits.target_tokens * _CHARS - head, limits.target_tokens * _CHARS // 2)
    reach = max(step, limits.ceiling_tokens * _CHARS - head)
    cuts: list[int] = []
    forced = False
    position = head
    while len(text) - position > step:
        near, far = position + step, position + reach
        place = _line_cut(text, position, near, far) if by_line else _prose_cut(text, position, near, far)
        if place is None and by_line:
            forced = True
            place = _prose_cut(text, position, near, far)
        if place is None:
            forced = True
            place = _last_grapheme(text, position, near)
        if text[place - 1] in "\r\n":
            place = _after_blank_lines(text, place)
        if place < len(text):
            cuts.append(place)
        position = place
    return cuts, forced


def _after_blank_lines(text: str, line: int) -> int:
    blank = text[line : _end(_SPACES.match(text, line))]
    return line + 1 + max(blank.rfind("\n"), blank.rfind("\r"))


def _line_cut(text: str, start: int, near: int, far: int) -> int | None:
    return _search(_LAST_LINE_END, text, start, near) or _search(_LINE_END, text, near, far)


def _prose_cut(text: str, start: int, near: int, far: int) -> int | None:
    middle = (start + near) // 2
    return (
        _search(_LAST_LINE_END, text, middle, near)
        or _search(_LAST_SENTENCE_END, text, middle, near)
        or _search(_LAST_SPACE, text, start, near)
        or _search(_SPACE, text, near, far)
    )


def _search(pattern: regex.Pattern[str], text: str, start: int, stop: int) -> int | None:
    # one character more, for what a pattern looks ahead to
    return _end(pattern.search(text, start, stop + 1))


def _end(match: regex.Match[str] | None) -> int | None:
    return match.end() if match else None


def _last_grapheme(text: str, start: int, stop: int) -> int:
    """Start of the grapheme that holds the character at `stop`, or `stop` where that is too far back."""
    begin = max(start, stop - _LOOK_BACK)
    # flags are pairs of regional indicators, so that where a run of them began decides
    flags = _FLAGS_BEFORE.match(text, start, begin)
    begin -= len(flags.group()) % 2 if flags else 0
    # of a copy, for `regex` counts regional indicators back to the start of the whole text
    graphemes = _ALL_BUT_LAST_GRAPHEME.match(text[begin : stop + 1])
    return begin + graphemes.end() if graphemes and graphemes.end() else stop


def _places(raw: bytes, parts: Iterable[tuple[int, int, str]], cuts: Iterable[int]) -> Iterator[int]:
    """Byte offsets of the places `cuts` in the text that `parts` make; inside a marker, of what it stands for."""
    remaining = iter(cuts)
    cut = next(remaining, None)
    position = 0
    for start, end, marker in parts:
        text = raw[start:end].decode("utf-8", "surrogateescape")
        done = 0
        place = start
        while cut is not None and cut <= position + len(text):
            place += len(text[done : cut - position].encode("utf-8", "surrogateescape"))
            done = cut - position
            yield place
            cut = next(remaining, None)
        position += len(text) + len(marker)
        while cut is not None and cut < position:
            yield end
            cut = next(remaining, None)


def _packed(pieces: Iterable[_Piece], limits: PassageLimits) -> list[_Piece]:
    """Those of the pieces that open passages, when each passage takes in pieces up to the target."""
    openings: list[_Piece] = []
    sizes: list[int] = []
    for piece in pieces:
        if openings and not (piece.size and _is_full(sizes[-1], piece, limits)):
            sizes[-1] += piece.size
        else:
            openings.append(piece)
            sizes.append(len(piece.prefix) + piece.size)
    last_is_small = len(openings) > 1 and _tokens(sizes[-1]) < limits.min_tokens
    if last_is_small and _tokens(sizes[-2] + sizes[-1]) <= limits.ceiling_tokens:
        openings.pop()
    return openings


def _is_full(size: int, piece: _Piece, limits: PassageLimits) -> bool:
    together = _tokens(size + piece.size)
    return together > limits.ceiling_tokens or (together > limits.target_tokens and _tokens(size) >= limits.min_tokens)
