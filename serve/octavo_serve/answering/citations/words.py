"""The words of a text: their stems, which of them say what it is about, and in which clause they stand."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from octavo_artifact.text import DEFAULT_LANGUAGE, LATIN, STOP_WORDS, terms_of
from octavo_serve.answering.citations.quantities import NUMBER_WORDS
from octavo_serve.lexical import stem

MAX_WORD = 40
"""Bytes; longer ones are no words."""
_COMMON_PREFIX = 5
_ALIKE = 0.8
"""Of two stems that begin alike, the part of the shorter that they share if they are of one word."""

FUNCTION_WORDS = STOP_WORDS | frozenset(
    "accordingly actually additionally alone along already also although always among amount another anyone"
    " anything anyway around basically because become becomes besides between both ca cannot certainly come comes"
    " consequently each either else enough especially essentially etc even ever every everyone everything exactly"
    " example examples except far finally further furthermore generally get gets getting given gives go goes gone"
    " got happen happens hence hereby however indeed instance instead itself just keep keeps kept know known let"
    " lets like likely made make makes making many may means meant merely might mine more moreover most mostly"
    " much must namely near need needed needs neither never nevertheless none nor note nothing now often ok okay"
    " once others otherwise ought overall particular particularly per perhaps please put puts quite rather really"
    " said same say says see seem seems several shall simply since something sometimes soon specifically still"
    " sure take taken takes than therefore thing things though through throughout thus till together too toward"
    " towards typically unless unlike upon use used useful uses using usual usually various versus via want wants"
    " way ways well whatever whenever where whereas wherever whether whichever whoever whole whose within without"
    " wo yes yet yours yourself".split()
)
"""Words that carry no topic in a statement; what they say of its polarity is `polarity`'s."""

_NO_CONTENT = FUNCTION_WORDS | NUMBER_WORDS
_WORD = re.compile(
    r"(?P<breaks>[.;:,!?()\[\]{}|\n\"“”–—]+)|n['’]t(?!\w)|[^\W_]+?(?=n['’]t(?!\w))|[^\W_]+", re.IGNORECASE
)
_APOSTROPHES = frozenset("'’")
_INSIDE = re.compile(r"\w[.,:]\w")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text."""

    text: str
    """In lower case; the `n't` of `isn't` is a word, `not`."""
    stem: str
    start: int
    """Of its characters."""
    broken: bool
    """Whether punctuation stands between it and the word before it."""
    is_content: bool
    """Whether it says what the text is about. Numbers do not: they are compared as such."""


def words(text: str) -> list[Word]:
    """The words of a text in order; of scripts without spaces, pairs of characters and characters."""
    found: list[tuple[str, int, bool]] = []
    broken = False
    for match in _WORD.finditer(text):
        if match["breaks"]:
            inside = match.end() - match.start() == 1 and _INSIDE.match(text, match.start() - 1)
            broken = broken or not inside
            continue
        word = "not" if match.group()[1:2] in _APOSTROPHES else match.group()
        if len(word.encode()) < MAX_WORD or not word.isascii():
            found.append((word, match.start(), broken))
            broken = False
    stems = stem(" ".join(word if word.isascii() else "x" for word, _, _ in found), LATIN[DEFAULT_LANGUAGE])
    told: list[Word] = []
    for (word, start, cut), stemmed in zip(found, stems, strict=True):
        if word.isascii():
            lower = word.lower()
            told.append(Word(lower, stemmed, start, cut, lower not in _NO_CONTENT and not lower.isdecimal()))
        else:
            told += [
                Word(term, term, start, cut, not term.isdecimal()) for term in terms_of(word, DEFAULT_LANGUAGE, stem)
            ]
    return told


def alike(one: str, other: str) -> bool:
    """Whether two stems may be of one word: one begins the other, or they begin with most of their letters alike.

    With figures in it a stem is alike to itself only.
    """
    if one == other:
        return True
    shorter = min(len(one), len(other))
    if shorter < _COMMON_PREFIX - 1 or one[:4] != other[:4] or not (one.isalpha() and other.isalpha()):
        return False
    common = next((place for place in range(shorter) if one[place] != other[place]), shorter)
    return common == shorter or (common >= _COMMON_PREFIX and common >= _ALIKE * shorter)


def common(one: Iterable[str], other: Collection[str]) -> int:
    """How many stems of `one` are, or are alike to, one of `other`."""
    return sum(stem in other or any(alike(stem, each) for each in other) for stem in one)
