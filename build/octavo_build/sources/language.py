"""Which language a page is in, as far as its author, its name or its folders say so; nobody looks at the text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

LANGUAGES = frozenset(
    "af am ar az be bg bn bs ca cs cy da de el en eo es et eu fa fi fil fr ga gl gu he hi hr hu hy id is it ja ka kk km"
    " kn ko lt lv mk ml mn mr ms my nb ne nl nn no pa pl ps pt ro ru si sk sl sq sr sv sw ta te th tl tr uk ur uz vi"
    " yue zh".split()
)
"""Primary subtags that documentation is found translated into. Codes of small languages name other things in the
folders of software (`io`, `os`, `ts`)."""

_TAG = re.compile(r"([a-z]{2,3})((?:[-_][a-z0-9]{2,8}){0,3})", re.IGNORECASE)


def language_tag(text: str | None, *, known: bool = True) -> str | None:
    """`text` as a BCP-47 tag, its primary subtag in lower case; None when it is none.

    With `known` it must be one of LANGUAGES.
    """
    found = _TAG.fullmatch(text.strip()) if text else None
    if found is None or (known and found[1].lower() not in LANGUAGES):
        return None
    return found[1].lower() + found[2].replace("_", "-")


def languages_by_path(paths: Iterable[str]) -> dict[str, str]:
    """Path to the language that a folder or the name says: `docs/pt-BR/a.md`, `a.fr.md`.

    So short a name may mean anything else: it counts where another language stands beside it, or, in its place, the
    page that it translates.
    """
    paths = sorted(paths)
    known = set(paths)
    beside: dict[str, set[str]] = {}
    for path in paths:
        for before, code, _ in _codes(path):
            beside.setdefault(before, set()).add(code)
    return {
        path: tag
        for path in reversed(paths)
        for before, code, after in reversed(list(_codes(path)))
        if (tag := language_tag(code)) and (len(beside[before]) > 1 or before + after in known)
    }


def _codes(path: str) -> Iterator[tuple[str, str, str]]:
    """What may be a language in a path, outermost first: the path before it, it, the path without it after that."""
    *folders, name = path.split("/")
    before = ""
    for folder in folders:
        if language_tag(folder):
            yield before, folder, path[len(before) + len(folder) + 1 :]
        before += f"{folder}/"
    stem, dot, code = PurePosixPath(name).stem.rpartition(".")
    if dot and language_tag(code):
        yield f"{before}{stem}", code, PurePosixPath(name).suffix
