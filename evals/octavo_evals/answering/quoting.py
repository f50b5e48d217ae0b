"""A model that only quotes: of the sources that it is shown, the sentences that have the most of the question's words.

It answers the same each time, cites what it says, and is no better than looking up words: the baseline of every
language model, and what makes committed results reproducible. It reads nothing but the messages, as a model does.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from octavo_artifact.text import DEFAULT_LANGUAGE
from octavo_serve.answering.model import Ended, Message, Sampling, Text
from octavo_serve.answering.prompt import REFUSAL
from octavo_serve.query import analyse

NAME = "quoting"

MOST = 5
"""Sentences of an answer."""

ENOUGH = 0.5
FIRST = 3
"""Share of the question's words, rare ones counting more, that so many sentences must have between them."""

AGAIN = 0.25
"""What a word counts that a sentence before has, beside a new one."""

LEAST = 0.1
"""Share of the question's words that a sentence must add."""

ABOVE = 0.5
"""What a word of the title and headings counts, beside one of the sentence itself."""

_HEAD = re.compile(r"\[([0-9]+)\] (.*)")
_FENCE = re.compile(r"\s*(```|~~~)")
_HEADING = re.compile(r"#{1,6}\s+(.*)")
_RULE = re.compile(r"[\s|:-]+")
_BULLET = re.compile(r"^\s*(?:[-*+]|[0-9]+[.)])\s+")
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"*\[(])")
_WIKILINK = re.compile(r"\[\[(?:[^\]|]*\|)?([^\]|]*)\]\]")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Quotable:
    """A sentence of a source."""

    number: int
    """Of the source."""
    text: str
    above: str
    """Title and headings."""


class Quoting:
    """The model, in process."""

    async def stream(self, messages: Sequence[Message], sampling: Sampling) -> AsyncGenerator[Text | Ended]:
        """The answer in one piece, whatever the sampling."""
        yield Text(quote(messages))
        yield Ended(truncated=False, usage=None, model=NAME)

    async def warm_up(self) -> None:
        """Always ready."""

    async def close(self) -> None:
        """Nothing is open."""


def quote(messages: Sequence[Message]) -> str:
    """The answer to a prompt of `octavo_serve.answering.prompt`."""
    sources, question = read_prompt(messages[-1]["content"])
    sentences = list(dict.fromkeys(each for number, text in sources for each in quotable(number, text)))
    return " ".join(f"{each.text} [{each.number}]." for each in best(question, sentences)) or REFUSAL


def read_prompt(content: str) -> tuple[list[tuple[int, str]], str]:
    """The numbered sources, each below the line that tells its title, and the question."""
    fence = content.split(maxsplit=1)[0]
    sources: list[tuple[int, str]] = []
    question = ""
    for block in content.split(f"{fence} ")[1:]:
        head, _, text = block.partition("\n")
        if found := _HEAD.fullmatch(head):
            sources.append((int(found[1]), f"{found[2]}\n{text}"))
        elif head == "QUESTION":
            question = text.strip()
    return sources, question


def quotable(number: int, text: str) -> Iterator[Quotable]:
    """The sentences of a source: of its prose, list items and rows of tables; code has none."""
    head, *lines = text.splitlines()
    title = head.partition(";")[0].replace(" > ", " ")
    heading, columns, code = "", list[str](), False
    for line in lines:
        if _FENCE.match(line):
            code = not code
        elif code or not line.strip():
            columns = []
        elif found := _HEADING.match(line):
            heading = _plain(found[1])
        elif line.lstrip().startswith("|"):
            cells = [_plain(cell) for cell in line.strip().strip("|").split("|")]
            if _RULE.fullmatch(line):
                continue
            if columns:
                row = ": ".join([cells[0], ", ".join(cell for cell in cells[1:] if cell)])
                yield Quotable(number, _ended(row), f"{title} {heading} {' '.join(columns)}")
            else:
                columns = cells
        else:
            for sentence in _END.split(_BULLET.sub("", line)):
                if (plain := _ended(_plain(sentence))) and not plain.endswith(":"):
                    yield Quotable(number, plain, f"{title} {heading}")


def best(question: str, sentences: Sequence[Quotable]) -> list[Quotable]:
    """The sentences that together have most of the question's words, in their order in the sources.

    One after the other, that which adds most; none at all where the first three have too little.
    """
    asked = sorted(_terms(question))
    own = [_terms(each.text) for each in sentences]
    above = [_terms(each.above) for each in sentences]
    rows = [row for row, words in enumerate(own) if words.intersection(asked)]
    frequency = Counter(term for row in rows for term in own[row])
    weights = np.array([math.log(1 + len(sentences) / (1 + frequency[term])) for term in asked])
    counts = [[1.0 if term in own[row] else ABOVE if term in above[row] else 0.0 for term in asked] for row in rows]
    table = np.array(counts).reshape(len(rows), len(asked)) * weights
    covered, chosen = np.zeros(len(asked)), list[int]()
    while len(chosen) < min(MOST, len(rows)):
        gains = (np.maximum(table - covered, 0) + AGAIN * np.minimum(table, covered)).sum(axis=1)
        gains[chosen] = 0
        place = int(gains.argmax())
        if gains[place] < LEAST * weights.sum():
            break
        chosen.append(place)
        covered = np.maximum(covered, table[place])
    enough = table[chosen[:FIRST]].max(axis=0, initial=0).sum() >= ENOUGH * weights.sum()
    return [sentences[rows[place]] for place in sorted(chosen)] if chosen and enough else []


def _terms(text: str) -> frozenset[str]:
    """The stems of the words that carry a topic."""
    return frozenset(stems[0] for stems in analyse(text, (DEFAULT_LANGUAGE,)).terms)


def _plain(text: str) -> str:
    """Without marks that a quotation would break, and links as their text."""
    return _LINK.sub(r"\1", _WIKILINK.sub(r"\1", text)).replace("**", "").replace("[", "(").replace("]", ")").strip()


def _ended(sentence: str) -> str:
    """Without its full stop, which comes after the citation."""
    return sentence.strip().rstrip(".!?;,")
