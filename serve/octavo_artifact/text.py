"""Text as both sides must see it: what is indexed, what is embedded, and how a query is taken apart.

A difference here between compiler and server is this field's classic silent bug, so both call these.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

ANALYZER = "en_stem"
"""Tantivy's own tokenizer of that name: words, lower case, English stems. Being built in, it needs no
registration, so anybody can open the index."""

FIELD = "lexical"
"""The one indexed field. Summing a boosted title field lowers nDCG on every collection measured."""

# Only words that carry no topic; two-letter terms (UV, AC) matter and are never dropped for their length.
STOP_WORDS = frozenset(
    "a about all also am an and any are as at be been being but by can could did do does doing for from get had has"
    " have having he her him his how i if in into is it its just me my no nor not of off on one or our out over own"
    " please s she should so some such t than that the their them then there these they this those to too under until"
    " up us very was we were what when where which while who whom whose why will with would you your".split()
)

# Scripts written without spaces: kana, Han, Hangul, Thai, Lao, Khmer, Myanmar.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff]+"
)

# Soft hyphen and zero-width characters: a word is the same word with and without them.
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u2060\ufeff"))


def prepare(text: str) -> str:
    """Text ready for the analyser: NFKC without invisible characters, and runs of unspaced scripts as overlapping
    bigrams.

    Bigrams need no dictionary and no language guess, and find any inner word of two characters or more.
    """
    return _UNSPACED.sub(_bigrams, unicodedata.normalize("NFKC", text).translate(_INVISIBLE))


def _bigrams(match: re.Match[str]) -> str:
    run = match.group()
    pairs = [run] if len(run) < 2 else [run[i : i + 2] for i in range(len(run) - 1)]
    return f" {' '.join(pairs)} "


def heading_line(title: str, heading_path: Sequence[str]) -> str:
    """The line of context that stands before a passage in the index and in each of its windows.

    The document's title opens it unless the first heading already says the same.
    """
    headings = list(heading_path)
    if title and title.casefold() not in (heading.casefold() for heading in headings[:1]):
        headings.insert(0, title)
    return " > ".join(headings)


def lexical_text(title: str, heading_path: Sequence[str], tags: Sequence[str], body: str) -> str:
    """The text of the one field: the heading line twice, the tags, the body.

    Repetition inside the field is the measured way to weigh headings (BM25 saturates it).
    """
    line = heading_line(title, heading_path)
    return prepare("\n".join((line, line, " ".join(tags), body)))


def unix_lines(text: str) -> str:
    """`text` with a line feed for each of its line ends, so that an editor's habit changes no passage's text."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def estimate_tokens(text: str) -> int:
    """Characters / 4, rounded up: the measure ExpertPack's limits are written in."""
    return -(-len(text) // 4)
