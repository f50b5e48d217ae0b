"""Two texts line by line: what was taken out, what was put in, and which words of a rewritten line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

MAX_PAIRS = 4_000_000
"""Lines (or words) of one text times those of the other that are compared; difflib is quadratic at worst."""

CONTEXT = 1
"""Unchanged lines shown around a change, unless they are blank."""

_WORD = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a comparison."""

    sign: str
    """`-` taken out, `+` put in, a space for unchanged, `@` where lines are left out."""
    parts: tuple[tuple[bool, str], ...]
    """Its text in pieces, each with whether the other text lacks it."""


@dataclass(frozen=True, slots=True)
class LineChanges:
    """How one text became another."""

    added: int
    removed: int
    lines: tuple[Line, ...]
    """Empty when the texts are equal, or too long to compare."""


def compare_lines(old: str, new: str) -> LineChanges:
    """The changed lines with CONTEXT around them; texts beyond MAX_PAIRS are told as replaced whole."""
    before, after = old.splitlines(), new.splitlines()
    if len(before) * len(after) > MAX_PAIRS:
        return LineChanges(len(after), len(before), ())
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    added = removed = 0
    lines: list[Line] = []
    for group in matcher.get_grouped_opcodes(CONTEXT):
        if lines:
            lines.append(Line("@", ()))
        for tag, first, last, start, end in group:
            if tag == "equal":
                lines += [_whole(" ", text) for text in before[first:last] if text.strip()]
            else:
                removed += last - first
                added += end - start
                lines += _replaced(before[first:last], after[start:end])
    return LineChanges(added, removed, tuple(lines))


def _replaced(before: Sequence[str], after: Sequence[str]) -> Iterator[Line]:
    """Lines taken out, then those put in; where each has its counterpart, only the differing words are marked."""
    if len(before) != len(after):
        yield from (_whole("-", text) for text in before)
        yield from (_whole("+", text) for text in after)
        return
    pairs = [_words(*pair) for pair in zip(before, after, strict=True)]
    yield from (Line("-", old) for old, _ in pairs)
    yield from (Line("+", new) for _, new in pairs)


def _words(old: str, new: str) -> tuple[tuple[tuple[bool, str], ...], tuple[tuple[bool, str], ...]]:
    before, after = _WORD.findall(old), _WORD.findall(new)
    if len(before) * len(after) > MAX_PAIRS // 4:
        return ((False, old),), ((False, new),)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < 0.4:  # another sentence altogether: marks would be confetti
        return ((False, old),), ((False, new),)
    codes = matcher.get_opcodes()
    return (
        tuple((tag != "equal", "".join(before[first:last])) for tag, first, last, _, _ in codes if last > first),
        tuple((tag != "equal", "".join(after[start:end])) for tag, _, _, start, end in codes if end > start),
    )


def _whole(sign: str, text: str) -> Line:
    return Line(sign, ((False, text),))
