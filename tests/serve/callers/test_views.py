"""Which packs are there for one caller, when any set of them may be asked for."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace
from typing import Any, cast

from octavo_serve.callers.views import MAX_VIEWS, Views
from octavo_serve.faces import Library

PACKS = {"a": 1, "b": 2, "c": 3}
REFUSED = {"d": "damaged"}
LIBRARY = cast(Library, SimpleNamespace(packs=PACKS, refused=REFUSED))


def test_a_view_shows_the_packs_of_its_set_and_no_others():
    views = Views(LIBRARY)
    seen: list[Any] = [dict(views.of(slugs).packs) for slugs in (None, frozenset({"a", "c", "z"}), frozenset[str]())]
    assert seen == [PACKS, {"a": 1, "c": 3}, {}]
    assert views.of(frozenset({"a"})).refused == {}
    assert views.of(frozenset({"d"})).refused == REFUSED


def test_callers_with_the_same_packs_share_a_view():
    views = Views(LIBRARY)
    assert views.of(frozenset({"a", "b"})) is views.of(frozenset({"b", "a"}))


def test_only_the_views_last_asked_for_are_kept():
    views = Views(LIBRARY)
    kept, often = views.of(None), views.of(frozenset({"a"}))
    for pair in list(combinations(map(str, range(40)), 2))[: MAX_VIEWS + 10]:
        views.of(frozenset(pair))
        assert views.of(frozenset({"a"})) is often
    assert views.of(None) is not kept
