"""Citation markers in a stream: row B35 of the cases with its kinds, and what holds for any text cut anywhere."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from octavo_serve.answering.citations.markers import MAX_MARKER, InvalidCitation, Markers, scan

SOURCES = 4


def read(*pieces: str, sources: int = SOURCES) -> tuple[str, list[int]]:
    """The answer that comes out of these pieces, and the numbers that point nowhere."""
    markers = Markers(sources)
    shown = "".join([markers.feed(piece) for piece in pieces]) + markers.finish()
    assert shown == markers.answer
    return shown, [each.number for each in markers.invalid]


WRITTEN = [
    pytest.param("Fast [1].", "Fast [1].", [], id="as asked for"),
    pytest.param("Fast [7].", "Fast.", [7], id="B35 beyond the sources"),
    pytest.param("Fast [1,2].", "Fast [1][2].", [], id="B35 list"),
    pytest.param("Fast [1, 3].", "Fast [1][3].", [], id="list with a space"),
    pytest.param("Fast [1; 3].", "Fast [1][3].", [], id="semicolon"),
    pytest.param("Fast [1 and 3].", "Fast [1][3].", [], id="and"),
    pytest.param("Fast [1-3].", "Fast [1][2][3].", [], id="B35 range"),
    pytest.param("Fast [2–4].", "Fast [2][3][4].", [], id="en dash"),
    pytest.param("Fast [2 to 4].", "Fast [2][3][4].", [], id="range in words"),
    pytest.param("Fast [1, 2-4].", "Fast [1][2][3][4].", [], id="range in a list"),
    pytest.param("Fast [1, p. 6].", "Fast [1].", [], id="B35 page"),
    pytest.param("Fast [1, pp. 6-8; 3, section Limits].", "Fast [1][3].", [], id="pages and a section"),
    pytest.param("Fast【1†x】.", "Fast[1].", [], id="B35 dagger"),
    pytest.param("Fast【4:0†source】.", "Fast[4].", [], id="dagger with a message"),
    pytest.param("Fast ［１］.", "Fast [1].", [], id="full width"),
    pytest.param("Fast [ 2 ].", "Fast [2].", [], id="B35 spaces"),
    pytest.param("Fast [source 2][Source 3].", "Fast [2][3].", [], id="the word source"),
    pytest.param("Fast [Sources 1, 3] [Source: 2].", "Fast [1][3] [2].", [], id="sources"),
    pytest.param("Fast [^1].", "Fast [1].", [], id="footnote"),
    pytest.param("Fast [[2]].", "Fast [2].", [], id="two brackets"),
    pytest.param("Fast [0].", "Fast.", [0], id="B35 nought"),
    pytest.param("Fast [3, 9].", "Fast [3].", [9], id="list that is partly valid"),
    pytest.param("Fast [3-6].", "Fast [3][4].", [5, 6], id="range that is partly valid"),
    pytest.param("Fast [8-9] and safe [2].", "Fast and safe [2].", [8, 9], id="nothing valid in it"),
    pytest.param("Fast [9][2].", "Fast[2].", [9], id="invalid before a valid one"),
    pytest.param("Fast [1, 1].", "Fast [1].", [], id="twice"),
    pytest.param("Black tea[1](2).", "Black tea[1](2).", [], id="a link though it is behind a word"),
    pytest.param("is replaced[1].", "is replaced[1].", [], id="behind a word"),
    pytest.param("is replaced[7].", "is replaced.", [7], id="behind a word, invalid"),
    pytest.param("in pack.yaml[7].", "in pack.yaml.", [7], id="behind a file name"),
    pytest.param("takes 10 ms[7].", "takes 10 ms.", [7], id="behind a unit"),
    pytest.param("by it[7] or 3.5[7]", "by it or 3.5", [7, 7], id="behind a short word and a number"),
    pytest.param("it's[7] `code`[7] **bold**[7]", "it's `code` **bold**", [7, 7, 7], id="behind marks"),
    pytest.param("- [ ] open [7]\n- [x] done [1]", "- [ ] open\n- [x] done [1]", [7], id="behind task boxes"),
    pytest.param("See [1]: yes", "See [1]: yes", [], id="before a colon"),
    pytest.param("- a\n\n    b [7]", "- a\n\n    b", [7], id="paragraph of a list item"),
    pytest.param("text\n    b [7]", "text\n    b", [7], id="indented line of a paragraph"),
    pytest.param("a ` b [1]\n\nc [7]", "a ` b [1]\n\nc", [7], id="after an unclosed span"),
    pytest.param("- a ` b\n- c [7] `", "- a ` b\n- c `", [7], id="after a span that ends with its list item"),
    pytest.param("```x``` a [7]", "```x``` a", [7], id="after a span that is no fence"),
    pytest.param("~~~\n[7]\n~~~\na [7]", "~~~\n[7]\n~~~\na", [7], id="after a fence"),
]


@pytest.mark.parametrize(("text", "shown", "invalid"), WRITTEN)
def test_b35_markers_are_normalised_and_invalid_ones_reported_however_they_are_split(
    text: str, shown: str, invalid: list[int]
) -> None:
    assert read(text) == (shown, invalid)
    assert read(*text) == (shown, invalid)
    assert {str(read(text[:at], text[at:])) for at in range(len(text))} == {str((shown, invalid))}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a[7] = 1", id="B35 array"),
        pytest.param("since [2024], [1999]", id="B35 years"),
        pytest.param("see [7](u) and ![7](u.png)", id="B35 links"),
        pytest.param("[7]: https://example.com", id="definition of a link"),
        pytest.param("see [the docs][7]", id="label of a link"),
        pytest.param("[[7], [8]] and [[7]](u)", id="brackets in brackets"),
        pytest.param("- [ ] a\n- [x] b", id="task boxes"),
        pytest.param("(7) {7} <7>", id="other brackets"),
        pytest.param("`a [7]` ``b ` [7]``", id="code spans"),
        pytest.param("`two\nlines [7]`", id="code span over a line end"),
        pytest.param("```py\nx = [7]\n```", id="fence"),
        pytest.param("1. a:\n   ```\n   [7]\n   ```\n", id="fence in a list"),
        pytest.param("> ~~~~\n> [7]\n> ~~~\n> [7]", id="fence in a quote, not closed by a shorter one"),
        pytest.param("text\n\n    [7]\n\n    [7]", id="indented code"),
        pytest.param("- a\n\n      [7]", id="indented code in a list"),
        pytest.param("items[0] and then items[7]", id="array of a plain name"),
        pytest.param("x.y[7] f()[7] my_list[7] rowCount[7] x1[7]", id="identifiers"),
        pytest.param("m[7][8]", id="index of an index"),
        pytest.param("rows[7].name, rows[8] + 1", id="an expression goes on"),
        pytest.param("`rows = []` has rows[7]", id="a variable of a code span"),
        pytest.param("```\nprint(rows[i])\n```\nwhere rows[7]", id="an array of a fence"),
        pytest.param(r"\[7\] and \[7]", id="escaped"),
        pytest.param("[0, 1] [0-9] [4-2] [1-99]", id="intervals"),
        pytest.param("[7 apples] [see 7] [-1] [1:3] [1 line] [7,]", id="other words"),
        pytest.param(f"[{' ' * MAX_MARKER}7]", id="too long"),
        pytest.param("[7\n]", id="over a line end"),
        pytest.param("[", id="only a bracket"),
    ],
)
def test_b35_what_only_looks_like_a_marker_stays_as_it_is(text: str) -> None:
    assert read(text) == (text, [])
    assert read(*text) == (text, [])


def test_b35_no_half_marker_is_shown_when_it_comes_in_three_events() -> None:
    markers = Markers(SOURCES)
    assert [markers.feed(piece) for piece in ("Fast [", "1", "]", ".")] == ["Fast", "", "", " [1]."]


def test_text_is_shown_as_soon_as_it_can_be_no_marker() -> None:
    markers = Markers(SOURCES)
    pieces = ("see [t", "he docs", "](u) [20", "24")
    assert [markers.feed(piece) for piece in pieces] == ["see [t", "he docs", "](u)", " [2024"]


def test_an_invalid_number_is_reported_where_it_stood() -> None:
    markers = Markers(2)
    shown = markers.feed("One [5]. Two [1, 6].") + markers.finish()
    assert shown == "One. Two [1]."
    assert markers.invalid == (InvalidCitation(5, 3), InvalidCitation(6, 12))


def test_without_sources_no_number_is_valid() -> None:
    assert read("Fast [1].", sources=0) == ("Fast.", [1])


def test_every_number_up_to_the_sources_is_valid() -> None:
    assert read("Fast [19-20].", sources=20) == ("Fast [19][20].", [])


PIECES = st.sampled_from(
    [
        *"[]【】［］()`~\\:.,-–#>|*_^†=+ \n\ta1270xſ",
        *("[1]", "[7]", "[1, 3]", "[source 2]", "[[1]]", " [2-4]", "```", "\n    ", "- ", "1. ", "\n\n", "word"),
        *("rows[0]", "rows", " = ", "[", "1", "]", "source", ", p. 6", "and"),
    ]
)
TEXTS = st.lists(PIECES, max_size=24).map("".join)


@st.composite
def splits(draw: st.DrawFn) -> list[str]:
    """A text in pieces."""
    text = draw(TEXTS)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@given(splits())
@example(["[[1", "]", "]"])
@example(["a[1]", " ", "="])
def test_however_a_text_is_split_the_answer_is_that_of_the_whole(pieces: list[str]) -> None:
    whole, cut = Markers(SOURCES), Markers(SOURCES)
    whole.feed("".join(pieces))
    whole.finish()
    for piece in pieces:
        cut.feed(piece)
    cut.finish()
    assert (cut.answer, cut.invalid, cut.found()) == (whole.answer, whole.invalid, whole.found())


def rendered(text: str) -> tuple[str, set[int]]:
    """What is to come out of a text by where its citations stand in it, and the places inside of markers."""
    expected, inside, end = "", set[int](), 0
    for citation in scan(text).citations:
        valid = [number for number in citation.numbers if 1 <= number <= SOURCES]
        expected += text[end : citation.start]
        if not valid and text[end : citation.start].endswith(" "):
            expected = expected[:-1]
        for number in valid:
            inside |= {len(expected) + 1, len(expected) + 2}
            expected += f"[{number}]"
        end = citation.end
    return expected + text[end:], inside


@given(TEXTS)
def test_text_outside_of_markers_is_unchanged(text: str) -> None:
    assert read(text)[0] == rendered(text)[0]


@given(TEXTS)
def test_what_is_shown_never_ends_inside_of_a_marker(text: str) -> None:
    markers = Markers(SOURCES)
    ends = set[int]()
    for character in text:
        markers.feed(character)
        ends.add(len(markers.answer))
    markers.finish()
    assert not ends & rendered(text)[1]


@given(st.text("x ", min_size=1), st.sampled_from("[【"), st.text("1, §source", max_size=3 * MAX_MARKER))
def test_no_more_than_a_marker_is_held_back(before: str, bracket: str, after: str) -> None:
    markers = Markers(SOURCES)
    markers.feed(before + bracket + after)
    held = len(before + bracket + after) - len(markers.answer)
    assert held <= MAX_MARKER + 1, "and a space before it"


@given(TEXTS)
def test_code_is_found_where_its_backticks_are(text: str) -> None:
    found = scan(text)
    assert all(text[start] == "`" for start, _ in found.spans)
    assert all(0 <= start <= end <= len(text) for start, end in found.blocks + found.spans)
    assert list(found.blocks) == sorted(found.blocks)
    assert not any(re.search("\n\n", text[start:end]) for start, end in found.spans)


@pytest.mark.slow
@pytest.mark.parametrize(
    "hostile", ["[", "`", "1", "[1", "a[1]", "[1, ", " ", "[ ", "- ", "[ source ref ", "\n    a[1]", "[[1]"]
)
def test_hostile_text_is_read_in_one_pass(hostile: str) -> None:
    text = hostile * (100_000 // len(hostile))
    assert read(text)[0]
    assert read(*text)[0]
