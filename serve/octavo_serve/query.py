"""A query taken apart: its terms, its literals and quoted words, and what kind of question it is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from octavo_artifact.literals import MAX_LITERALS, literals_of, phrases_of
from octavo_artifact.text import Term, phrase_terms, topics, words_of
from octavo_serve.lexical import stem

Intent = str
"""`when`, `how`, `why`, `entity` or `general`."""

_INTENTS: Sequence[tuple[Intent, re.Pattern[str]]] = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        (
            "when",
            r"\bwhen (?:was|is|are|did|does|do|will|should)\b|\b(?:what|which) version\b|\brelease (?:date|notes)\b"
            r"|\b(?:added|deprecated|removed|introduced|available) (?:in|since)\b|\bsince version\b|\bchangelog\b"
            r"|\bhistory of\b|\bhow long ago\b",
        ),
        (
            "how",
            r"\bhow (?:do|does|did|can|could|should|would|to)\b|\bsteps? (?:to|for)\b"
            r"|\b(?:guide|instructions?) (?:to|for)\b|^(?:please )?(?:configure|set ?up|enable|disable|install|deploy"
            r"|create|build|implement|integrate|connect|replace|add|remove|change|fix|update|upgrade|migrate)\b",
        ),
        (
            "why",
            r"\bwhy\b|\breasons? (?:for|why|behind)\b|\b(?:purpose|benefits?|advantages?) of\b"
            r"|\bdifference between\b|\bcompared? (?:to|with)\b|\bvs\b",
        ),
        (
            "entity",
            r"\bwhat(?:'s| is| are| does| do)\b|\bdefin(?:e|ition)\b|^(?:explain|describe)\b|\btell me about\b"
            r"|\boverview of\b|\bintroduction to\b|\bmeaning of\b|\bconcept of\b|\bwhat means\b",
        ),
    )
)


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked, as the stages need it."""

    text: str
    words: tuple[tuple[str, Term], ...]
    """In lower case, each with the stems that it may have."""
    terms: Counter[Term]
    """Words that say what it is about, in their possible stems; all words when none does."""
    literals: tuple[str, ...]
    """In lower case."""
    phrases: tuple[str, ...]
    """Quoted words, as they were written."""
    phrase_terms: tuple[tuple[Term, ...], ...]
    """Those as terms in their order, in each language in which they differ."""
    intent: Intent
    latin: bool
    """Whether most of its letters are Latin ones."""


def analyse(text: str, languages: Sequence[str]) -> Query:
    """Take a query apart, for passages in these languages."""
    words = words_of(text, languages, stem)
    phrases = phrases_of(text)
    return Query(
        text=text,
        words=tuple(words),
        terms=topics(words, languages),
        literals=tuple(literals_of(text)[:MAX_LITERALS]),
        phrases=tuple(phrases),
        phrase_terms=tuple(tuple(phrase_terms(phrase, languages, stem)) for phrase in phrases),
        intent=intent_of(text),
        latin=_is_latin(text),
    )


def _is_latin(text: str) -> bool:
    letters = [character for character in text if character.isalpha()]
    return 2 * sum(character < "\u0250" for character in letters) >= len(letters)


def intent_of(text: str) -> Intent:
    """The first kind whose words the query has (English); `general` without any."""
    return next((intent for intent, pattern in _INTENTS if pattern.search(text)), "general")
