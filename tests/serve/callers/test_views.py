"""Which packs are there for one caller, when any set of them may be asked for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from octavo_serve.callers.views import View
from octavo_serve.faces import Library

PACKS = {"a": 1, "b": 2, "c": 3}
REFUSED = {"d": "damaged"}
LIBRARY = cast(Library, SimpleNamespace(packs=PACKS, refused=REFUSED))


def test_a_view_shows_the_packs_of_its_set_and_no_others():
    sets = (None, frozenset({"a", "c", "z"}), frozenset[str]())
    seen: list[Any] = [dict(View(LIBRARY, slugs).packs) for slugs in sets]
    assert seen == [PACKS, {"a": 1, "c": 3}, {}]
    assert View(LIBRARY, frozenset({"a"})).refused == {}
    assert View(LIBRARY, frozenset({"d"})).refused == REFUSED
