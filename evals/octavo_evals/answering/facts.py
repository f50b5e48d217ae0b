"""Key facts: what an answer has to say, and whether it does.

A fact is a phrase, or several of which one is enough. It is matched word by word: letters without their case and
accents, no marks between them (neither punctuation nor Markdown), and no stems. A number is a word as it is written:
`10` is not in `100` or `10.5`, and `1,000` is not `1000`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from octavo_artifact.text import normalise

Fact = tuple[str, ...]
"""Phrases of which one is enough."""

_CITATION = re.compile(r"\[[0-9]+\]")
_WORDS = re.compile(r"[0-9]+(?:[.,][0-9]+)*|[^\W\d_]\w*")


def words(text: str) -> list[str]:
    """The words of a text, as they are compared."""
    return _WORDS.findall(normalise(_CITATION.sub(" ", text)).casefold())


def contains(answer: str, fact: Fact) -> bool:
    """Whether an answer has one of the phrases of a fact."""
    said = _joined(words(answer))
    return any(_joined(words(phrase)) in said for phrase in fact)


def found(answer: str, facts: Sequence[Fact]) -> tuple[bool, ...]:
    """Of each fact, whether an answer has it."""
    return tuple(contains(answer, fact) for fact in facts)


def _joined(sequence: Sequence[str]) -> str:
    return f" {' '.join(sequence)} "
