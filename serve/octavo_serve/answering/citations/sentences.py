"""The sentences of an answer."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """A sentence and the sources that it cites."""

    text: str
    start: int
    end: int
    numbers: tuple[int, ...]


def cited_sentences(answer: str) -> tuple[CitedSentence, ...]:
    """Placeholder."""
    found: list[CitedSentence] = []
    for match in re.finditer(r"[^.]*\.(?:\s*\[[0-9]+\])*", answer):
        numbers = tuple(sorted({int(each) for each in re.findall(r"\[([0-9]+)\]", match[0])}))
        found.append(CitedSentence(re.sub(r"\[[0-9]+\]", "", match[0]).strip(), *match.span(), numbers))
    return tuple(found)
