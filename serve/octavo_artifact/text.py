"""Text as both sides must see it: what is indexed, what is embedded, and how a query is taken apart.

A difference here between compiler and server is this field's classic silent bug, so both call these. Only stemming
needs a library: each side passes in the same few lines of it, and a test compares the two.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

ANALYZER = "whitespace"
"""Tantivy's own tokenizer of that name: the field holds terms that are ready, so anybody can open the index, and a
passage of any language is in the one field."""

FIELD = "lexical"
"""The one field that is ranked. Summing a boosted title field lowers nDCG on every collection measured."""

LITERALS = "literals"
"""Field of the literals of a passage: whole, in lower case."""

LATIN = {
    "da": "danish",
    "de": "german",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hu": "hungarian",
    "it": "italian",
    "nb": "norwegian",
    "nl": "dutch",
    "nn": "norwegian",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "sv": "swedish",
    "tr": "turkish",
}
"""Languages in Latin letters to the name of their stemmer in Tantivy (Snowball's)."""

DEFAULT_LANGUAGE = "en"

MAX_TERMS = 64
"""Distinct terms of a query that are looked up: the first ones in the text."""

# Only words that carry no topic; two-letter terms (UV, AC) matter and are never dropped for their length.
STOP_WORDS = frozenset(
    "a about all also am an and any are as at be been being but by can could did do does doing for from get had has"
    " have having he her him his how i if in into is it its just me my no nor not of off on one or our out over own"
    " please s she should so some such t than that the their them then there these they this those to too under until"
    " up us very was we were what when where which while who whom whose why will with would you your".split()
)

UNSPACED = "unspaced"

# Scripts written without spaces (kana, Han, Thai, Lao, Khmer, Myanmar), and Hangul, whose words are built of parts.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
_LETTERS = {
    "cyrillic": "\u0400-\u052f",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "arabic": "\u0600-\u06ff\u0750-\u077f",
    "tamil": "\u0b80-\u0bff",
}
_RUNS = re.compile(
    "|".join(
        [f"(?P<{UNSPACED}>[{_UNSPACED}]+)"]
        + [rf"(?P<{script}>[{letters}]+(?:\W+[{letters}]+)*)" for script, letters in _LETTERS.items()]
    )
)
"""Words of a script that is not treated as Latin letters are, with what stands between them."""

_BY_SCRIPT = {"cyrillic": ("russian", {"ru"}), "greek": ("greek", {"el"}), "arabic": ("arabic", {"ar"})}
"""Script to its stemmer and the languages that it is for; Tamil's letters are one language's."""
_OTHERS = frozenset({"uk", "be", "bg", "sr", "mk", "kk", "mn", "fa", "ur", "ps"})
_OTHER_LETTERS = re.compile("[іїєґўљњћђџј\u0679\u067e\u0686\u0698\u06a9\u06af\u06cc\u06d2]", re.IGNORECASE)
"""Letters of Ukrainian, Belarusian, Serbian, Macedonian; of Persian and Urdu: their words are not stemmed."""

# Soft hyphen and zero-width characters, Arabic's tatweel and vowel marks: a word is the same word without them.
_INVISIBLE = re.compile("[\u00ad\u0610-\u061a\u0640\u064b-\u065f\u0670\u200b\u2060\ufeff]")
_ACCENTS = re.compile("(?<=[A-Za-z\u0370-\u03ff])[\u0300-\u036f]+")

Term = tuple[str, ...]
"""A word of a query: the stems that it may have in the passages."""

Stem = Callable[[str, str], list[str]]
"""The words of a text in lower case, stemmed by the stemmer of that name, or as they are where it is empty. It gives
the same number of words whatever the stemmer."""


def normalise(text: str) -> str:
    """NFKC without invisible characters and without accents on Latin and Greek letters.

    Marks of other scripts are letters there and stay (й, が, the vowels of Hindi).
    """
    if text.isascii():
        return text
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    text = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", text)))
    return text.replace("ё", "е").replace("Ё", "Е").replace("ß", "ss")


def terms_of(text: str, language: str, stem: Stem) -> list[str]:
    """The terms of a text in that language, in order; it may hold words in other scripts.

    Words of scripts without spaces become overlapping pairs and then single characters: these need no dictionary, and
    find any inner word. Together they are better than pairs alone (nDCG@10 .836 to .819 of XQuAD-R in Chinese).
    """
    found: list[str] = []
    for script, run in _scripts(normalise(text)):
        found += _parts(run) if script == UNSPACED else stem(run, _stemmers(script, run, (language,))[0])
    return found


def words_of(text: str, languages: Sequence[str], stem: Stem) -> list[tuple[str, Term]]:
    """The words of a query in lower case, each with the stems that it may have in passages of these languages."""
    found: list[tuple[str, Term]] = []
    for script, run in _scripts(normalise(text)):
        if script == UNSPACED:
            found += [(part, (part,)) for part in _parts(run)]
        else:
            stems = [stem(run, name) for name in _stemmers(script, run, languages)]
            terms = (tuple(dict.fromkeys(each)) for each in zip(*stems, strict=True))
            found += list(zip(stem(run, ""), terms, strict=True))
    return found


def phrase_terms(text: str, languages: Sequence[str], stem: Stem) -> list[Term]:
    """The terms of a text in the order in which a passage that quotes it has them, in each of these languages."""
    by_language = (
        [
            term
            for script, run in _scripts(normalise(text))
            for term in (_pairs(run) or [run] if script == UNSPACED else terms_of(run, language, stem))
        ]
        for language in languages
    )
    return list(dict.fromkeys(map(tuple, by_language)))


def topics(words: Sequence[tuple[str, Term]], languages: Sequence[str]) -> Counter[Term]:
    """The terms of a query with their number of occurrences, in text order; at most MAX_TERMS.

    Words without a topic are left out, unless the query has no others.
    """
    common = STOP_WORDS if DEFAULT_LANGUAGE in languages else frozenset[str]()
    terms = [term for word, term in words if word not in common] or [term for _, term in words]
    return Counter(dict(list(Counter(terms).items())[:MAX_TERMS]))


def query_terms(text: str, languages: Sequence[str], stem: Stem) -> Counter[Term]:
    """The terms of a query in packs of these languages; see `topics`."""
    return topics(words_of(text, languages, stem), languages)


def _parts(run: str) -> list[str]:
    return [*_pairs(run), *run]


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)]


def _scripts(text: str) -> Iterator[tuple[str, str]]:
    """Runs of text with the name of their script; empty for Latin letters and for all that has no rule of its own."""
    position = 0
    if not text.isascii():
        for match in _RUNS.finditer(text):
            if match.start() > position:
                yield "", text[position : match.start()]
            yield match.lastgroup or "", match.group()
            position = match.end()
    if position < len(text):
        yield "", text[position:]


def _stemmers(script: str, run: str, languages: Sequence[str]) -> list[str]:
    """Names of the stemmers of a run's words, each once; an empty one leaves them as they are."""
    if not script:
        return list(dict.fromkeys(LATIN.get(each, LATIN[DEFAULT_LANGUAGE]) for each in languages)) or [""]
    if script == "tamil":
        return ["tamil"]
    name, own = _BY_SCRIPT[script]
    # a page that says it is in another language of the script is believed; what letters say stands for the others
    foreign = not own & set(languages) and not _OTHERS.isdisjoint(languages)
    return ["" if foreign or _OTHER_LETTERS.search(run) else name]


def heading_line(title: str, heading_path: Sequence[str]) -> str:
    """The line of context that stands before a passage in the index and in each of its windows.

    The document's title opens it unless the first heading already says the same.
    """
    headings = list(heading_path)
    if title and title.casefold() not in (heading.casefold() for heading in headings[:1]):
        headings.insert(0, title)
    return " > ".join(headings)


def lexical_text(title: str, heading_path: Sequence[str], tags: Sequence[str], body: str) -> str:
    """The text of the one field, before it is taken apart: the heading line twice, the tags, the body.

    Repetition inside the field is the measured way to weigh headings (BM25 saturates it).
    """
    line = heading_line(title, heading_path)
    return "\n".join((line, line, " ".join(tags), body))


def unix_lines(text: str) -> str:
    """`text` with a line feed for each of its line ends, so that an editor's habit changes no passage's text."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def estimate_tokens(text: str) -> int:
    """Characters / 4, rounded up: the measure ExpertPack's limits are written in."""
    return -(-len(text) // 4)
