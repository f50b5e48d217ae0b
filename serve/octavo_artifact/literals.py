"""Literals: what is meant letter by letter, such as identifiers, error codes, versions, paths and flags.

Stemming and splitting lose them (`filter_dicts_by_key` becomes four common words), so they are indexed whole beside
the words, by the same rule on both sides. Only what nobody writes by chance: names such as `IL-6`, `mRNAs` or
`Wi-Fi` and decimal numbers are words like others, and putting them first cost SciFact .02 nDCG@10.
"""

from __future__ import annotations

import re

from octavo_artifact.text import normalise

MAX_LENGTH = 120
"""Longer ones are no names that anybody would type."""

MAX_LITERALS = 16
"""Of one query."""

_CHUNK = re.compile(r"[^\s\"'`“”‘’«»()\[\]{}<>|,;!?…*=、。「」]+")
_EDGES = ".:/-"
_SHAPES = re.compile(
    r"""
    \w*[^\W_]_\w+ | __\w+                      # snake_case, ERR_42, __init__
    | [a-z]{2,}(?:[A-Z][a-z][a-z0-9]*)+        # camelCase
    | (?:[A-Z][a-z][a-z0-9]*){2,}              # PascalCase
    | \d+(?:\.\d+){2,}[-+.\w]* | v\d+(?:\.\d+)+[-+.\w]*    # 2026.4.10, v1.2-rc1
    | [A-Z]{2,}-?\d{3,}[\w.-]* | [A-Z]\d{4,}    # SHA256, EIP-1559, E0308
    | [A-Z]\w*(?:-[A-Z0-9]\w*){2,}             # X-Accel-Buffering
    | --?[A-Za-z][\w-]*                        # --error-on-warnings, -v
    | [\w.@~+-]*(?:/[\w.@~+-]+)+\.\w+          # a/b/c.md, ./x/y.py
    | [\w.@~+-]*(?:/[\w.@~+-]+){2,}            # /etc/ssl, a/b/c
    | [^\W\d][\w-]*(?:\.\w[\w-]+)+             # pack.yaml, os.path.join
    | \w+(?:::\w+)+                            # std::vector
    | [A-Za-z]\#|[A-Za-z]\+\+                  # C#, C++
    """,
    re.VERBOSE,
)
_QUOTED = re.compile(r"\"([^\"]+)\"|“([^“”]+)”|«([^«»]+)»|`([^`]+)`")
_PHRASE = range(2, 201)
"""Lengths of what can be meant word by word."""


def literals_of(text: str) -> list[str]:
    """The literals of a text in lower case, each once, in text order."""
    found: dict[str, None] = {}
    for match in _CHUNK.finditer(text):
        chunk = match.group().rstrip(_EDGES)
        if not chunk.startswith("./"):
            chunk = chunk.lstrip(".:")
        if 1 < len(chunk) <= MAX_LENGTH and _SHAPES.fullmatch(chunk):
            found[chunk.lower()] = None
    return list(found)


def phrases_of(query: str) -> list[str]:
    """What a query has in quotation marks or as code: texts that are meant word by word, in order."""
    quoted = (match.group(match.lastindex or 0).strip() for match in _QUOTED.finditer(query))
    return [phrase for phrase in quoted if len(phrase) in _PHRASE][:MAX_LITERALS]


def folded(text: str) -> str:
    """A text in which a phrase, folded too, is found however lines are broken, letters capitalised, accents written."""
    return " ".join(normalise(text).split()).casefold()
