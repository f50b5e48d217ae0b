from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_build.bodies.body import Facts
from octavo_build.bodies.rst import facts, parse_body


def visible(text: str) -> str:
    raw = text.encode()
    return parse_body(raw, 0).visible(0, len(raw))


def blocks(text: str) -> list[tuple[str, str]]:
    raw = text.encode()
    return [(block.kind, raw[block.start : block.end].decode()) for block in parse_body(raw, 0).blocks]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("A\n=\n\nB\n-\n\nC\n=\n", [(1, "A"), (2, "B"), (1, "C")], id="levels by order of appearance"),
        pytest.param("===\n A\n===\n\nB\n===\n", [(1, "A"), (2, "B")], id="with an overline it is another style"),
        pytest.param("``c`` *e* :ref:`r <t>`\n======================\n", [(1, "c e r")], id="inline marks"),
        pytest.param("Längere\n=======\n漢字\n----\n", [(1, "Längere"), (2, "漢字")], id="width, not bytes"),
        pytest.param("Too long a title\n===\n", [], id="an underline too short"),
        pytest.param("Long enough a title\n====\n", [(1, "Long enough a title")], id="four signs always do"),
        pytest.param("para\n\n====\n\npara\n", [], id="transition"),
        pytest.param("A\r\n=\r\n\r\nB\r-\r", [(1, "A"), (2, "B")], id="line ends"),
        pytest.param("::\n\n  A\n  =\n", [], id="in a literal block"),
        pytest.param("  A\n  =\n", [], id="indented"),
        pytest.param("=====  =====\nA      B\n=====  =====\n1      2\n=====  =====\n", [], id="table"),
        pytest.param(".. code::\n\n   A\n   =\n\nB\n=\n", [(1, "B")], id="code"),
        pytest.param("..\n   A\n   =\n\nB\n=\n", [(1, "B")], id="comment"),
        pytest.param(".. _x:\n\nB\n=\n", [(1, "B")], id="target before"),
        pytest.param("".join(f"{c}\n{c}\n\n" for c in "=-~^*+#"), [], id="adornment alone"),
    ],
)
def test_sections_are_those_of_adorned_titles(text: str, found: list[tuple[int, str]]) -> None:
    raw = text.encode()
    assert [(block.level, block.text) for block in parse_body(raw, 0).blocks if block.level] == found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a :ref:`text <x>` b", "a text b", id="role with a target"),
        pytest.param("a :py:class:`~m.C`, `t`_ b", "a ~m.C, t b", id="roles and references"),
        pytest.param("`the docs <https://e.org>`__ x", "the docs x", id="link"),
        pytest.param(":doc:`<x>`", "x", id="only a target"),
        pytest.param("``a :b:`c` d``", "``a c d``", id="a literal with backticks"),
        pytest.param("``literal <x>`` `", "literal <x> `", id="literal"),
        pytest.param(".. hidden\n   too\n\nb", "\nb", id="comment"),
        pytest.param("..\n\n   quote", "\n   quote", id="an empty comment takes nothing"),
        pytest.param(".. _a b: http://x\n\nc", "\nc", id="target"),
        pytest.param(".. [1] A note.", "[1] A note.", id="footnote"),
        pytest.param(".. note:: Take\n   care\n\n   now", "note Take\n   care\n\n   now", id="directive"),
        pytest.param("* .. comment\n", "* .. comment\n", id="no comment inside a line"),
        pytest.param("A\n=\nb", "A\nb", id="adornment"),
        pytest.param("x data:image/png;base64,AAAA y", "x data:… y", id="data URI"),
    ],
)
def test_marks_are_hidden_and_what_they_say_is_not(text: str, expected: str) -> None:
    assert visible(text) == expected


def test_users_are_shown_the_text_as_written() -> None:
    raw = b".. comment\n\n:ref:`x <y>`\n"
    assert parse_body(raw, 0).shown(0, len(raw)).encode() == raw


def test_blocks_are_known_by_kind_and_bytes() -> None:
    literal = "Text::\n\n   code\n\n   more\n\n"
    grid = "+---+---+\n| a | b |\n+===+===+\n| 1 | 2 |\n+---+---+\n"
    simple = "==  ==\na   b\n==  ==\n1\n\n2\n==  ==\n"
    text = f"{literal}.. code-block:: c\n   :linenos:\n\n   x\n\nend\n\n{grid}\n{simple}\n* item\n"
    assert blocks(text) == [
        ("paragraph", "Text::\n"),
        ("code", "   code\n\n   more\n"),
        ("code", ".. code-block:: c\n   :linenos:\n\n   x\n"),
        ("paragraph", "end\n"),
        ("table", grid),
        ("table", simple),
        ("paragraph", "* item\n"),
    ]
    raw = text.encode()
    heads = [raw[b.start : b.head].decode() for b in parse_body(raw, 0).blocks if b.kind == "table"]
    assert heads == ["".join(table.splitlines(keepends=True)[:3]) for table in (grid, simple)]


def test_a_table_that_nothing_ends_is_text() -> None:
    assert [kind for kind, _ in blocks("==  ==\na   b\n\nc\n")] == ["paragraph", "paragraph"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(".. c\n\nThe title\n=========\n", Facts("The title"), id="title"),
        pytest.param(".. meta::\n   :description lang=en: What it is\n\nT\n=\n", Facts("T", "What it is"), id="meta"),
        pytest.param("text\n", Facts(), id="none"),
    ],
)
def test_a_document_says_what_it_is_called(text: str, found: Facts) -> None:
    assert facts(text.encode(), 0) == found


WORDS = ("alpha", "beta", "inner", "deep", "item", "Title", "noted", "ends", "cell")
LINES = st.sampled_from(
    "alpha¦beta `c`_¦  inner¦    deep¦¦¦Title¦=====¦* item¦.. note:: noted¦ends::¦-----¦+-+¦| cell |¦== ==¦"
    "   :ref:`alpha <x>`".split("¦")
)


@given(st.lists(LINES, max_size=30).map("\n".join))
def test_every_word_outside_comments_and_targets_is_visible(text: str) -> None:
    found = visible(text)
    assert [found.count(word) for word in WORDS] == [text.count(word) for word in WORDS]
