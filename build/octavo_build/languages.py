"""Which language a passage is in, by its commonest words, where neither author nor folder says so.

Only languages in Latin letters need it: the others are told by their script. A wrong guess costs little, since both
the passage and the queries are then stemmed by that language's rules; so few words decide nothing.
"""

from __future__ import annotations

import re

from octavo_artifact.text import DEFAULT_LANGUAGE

ENOUGH = 5
VARIED = 4
"""Common words of a language that a text must have at least, and different ones; and twice as many as of any other
language that is no near relative."""
SHARE = 1 / 10
"""Of all its words that these must be: prose has three times as many, code and tables may have some by chance."""

_COMMON = {
    "da": "og i at det er en til af den på som med de ikke der et han har jeg fra blev også efter kan",
    "de": "der die und das ist nicht ein eine zu den mit von auf für im dem des sich auch werden wird oder wie sie",
    "en": "the and of to is in that for it with as are this be on by or from which not you can will has",
    "es": "el la de que y los las en un una por con para es del se no al lo como más su está son",
    "fi": "ja on ei se että oli ovat mutta kun tai myös joka hän voi niin kuin sen ole sekä mukaan",
    "fr": "le la les de des et est un une du dans que pour qui sur au avec pas vous par sont ce cette ou",
    "hu": "a az és hogy nem is egy van meg ez de csak volt vagy mint már ha még kell lehet azt",
    "it": "il la di che e un una per non è del della sono con le dei gli nel alla più si come questo anche",
    "nb": "og i det er en til av den på som med de ikke et har jeg fra ble også etter kan eller skal",
    "nl": "de het een en van is dat op te niet met voor zijn aan er ook als bij door worden wordt naar om",
    "pt": "o a de que e os as do da em um uma para com não por mais dos se na no é ao pelo são",
    "ro": "și de la în cu pe nu un o care este sau din pentru sunt mai ca să se prin fi acest",
    "sv": "och i att det är en som på för med av den till inte har de ett om kan eller från också efter",
    "tr": "ve bir bu için ile da de olarak daha çok gibi ne olan kadar sonra ya değil veya her ise",
}
_WORDS = {language: frozenset(word for word in words.split() if len(word) > 1) for language, words in _COMMON.items()}
"""Single letters are left out: they are variables in code."""
_NORTH = frozenset({"da", "nb", "sv"})
_WORD = re.compile(r"[^\W\d_]+")
_LOOKED_AT = 4_000
"""Characters at the head of a text."""


def guess(text: str) -> str | None:
    """The language of a text in Latin letters, as a BCP-47 primary subtag; None when its words do not tell."""
    words = _WORD.findall(text[:_LOOKED_AT].lower())
    counts = {language: sum(word in common for word in words) for language, common in _WORDS.items()}
    best = max(counts, key=counts.__getitem__)
    near = _NORTH if best in _NORTH else {best}
    rival = max(count for language, count in counts.items() if language not in near)
    enough = counts[best] >= max(ENOUGH, SHARE * len(words), 2 * rival)
    return best if enough and len(_WORDS[best].intersection(words)) >= VARIED else None


def language_of(declared: str | None, *texts: str) -> str:
    """The language to stem by: what is declared, else what the first of `texts` that tells says, else English.

    `texts` go from the passage to what it is part of.
    """
    if declared:
        return declared.partition("-")[0]
    return next((found for text in texts if (found := guess(text))), DEFAULT_LANGUAGE)
