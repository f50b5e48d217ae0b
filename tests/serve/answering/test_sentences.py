from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_serve.answering.citations.markers import scan
from octavo_serve.answering.citations.sentences import CitedSentence, cited_sentences, sentences, split_passage


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param("One [1]. Two.[2] Three. [3]", {"One.": (1,), "Two.": (2,), "Three.": (3,)}, id="full stops"),
        pytest.param("One. [3][1] Two [2][2].", {"One.": (1, 3), "Two.": (2,)}, id="ascending and once"),
        pytest.param("- One is a. [1]\n- Two [2]\n- Three", {"One is a.": (1,), "Two": (2,), "Three": ()}, id="items"),
        pytest.param("1. One\n2) Two [1]\n- [x] Three", {"One": (), "Two": (1,), "Three": ()}, id="marks of items"),
        pytest.param("One. Two.\n[1][2]", {"One.": (), "Two.": (1, 2)}, id="a line of markers"),
        pytest.param("- One\n\n  [1]\n\nTwo", {"One": (1,), "Two": ()}, id="a paragraph of markers"),
        pytest.param("[1] One is a. Two", {"One is a.": (1,), "Two": ()}, id="marker before the first sentence"),
        pytest.param("One. [2] says so. Two", {"One.": (), "says so.": (2,), "Two": ()}, id="marker as a subject"),
        pytest.param("One [1]\nTwo [2]", {"One": (1,), "Two": (2,)}, id="lines"),
        pytest.param("| a | `b|c` [1] |\n|---|---|\n| d | e |", {"a, `b|c`": (1,), "d, e": ()}, id="rows of a table"),
        pytest.param("# One\n\nTwo\n\n## Three [1] ##", {"Two": (), "Three ##": (1,)}, id="headings"),
        pytest.param("> One. Two [1].\n\n---\n\n***", {"One.": (), "Two.": (1,)}, id="quotes and rules"),
        pytest.param("One [1]:\n```\nx = [2]. Y.\n```\n\n    z [3]\n", {"One:": (1,)}, id="code blocks are none"),
        pytest.param(
            "Use e.g. No. 5 at 3.5 kW, v1.2. Yes", {"Use e.g. No. 5 at 3.5 kW, v1.2.": (), "Yes": ()}, id="dots"
        ),
        pytest.param(
            "In a.md and x.org/y. Dr. D. Knuth. So",
            {"In a.md and x.org/y.": (), "Dr. D. Knuth.": (), "So": ()},
            id="names",
        ),
        pytest.param(
            "Has vitamin C. It is 2024. Yes? No!",
            dict.fromkeys(["Has vitamin C.", "It is 2024.", "Yes?", "No!"], ()),
            id="ends",
        ),
        pytest.param(
            "Run `a. B`. `c` follows. “So.” Yes",
            dict.fromkeys(["Run `a. B`.", "`c` follows.", "“So.”", "Yes"], ()),
            id="code",
        ),
        pytest.param("茶は四分。[1]次は水。[2]", {"茶は四分。": (1,), "次は水。": (2,)}, id="no spaces"),
        pytest.param(
            "**One.** *Two* __x__ my_var ~~y~~ [z](u) [1]", {"One.": (), "Two x my_var y z": (1,)}, id="marks"
        ),
        pytest.param("One ([1]). Two (see [2]).", {"One.": (1,), "Two.": (2,)}, id="brackets around markers"),
        pytest.param("The array a[1] and `b[2]` [3].", {"The array a[1] and `b[2]`.": (3,)}, id="indices"),
        pytest.param("[1][2]", {}, id="markers only"),
        pytest.param("", {}, id="empty"),
    ],
)
def test_sentences_with_the_sources_they_cite(answer: str, said: dict[str, tuple[int, ...]]) -> None:
    assert {each.text: each.numbers for each in sentences(answer)} == said


def test_a_sentence_is_where_it_says_with_its_markers() -> None:
    answer = "Tea is hot. Water **boils** at 100 °C. [1] [2] Ice\n"
    assert cited_sentences(answer) == (CitedSentence("Water boils at 100 °C.", 12, 46, (1, 2)),)
    assert answer[12:46] == "Water **boils** at 100 °C. [1] [2]"


def test_a_passage_is_taken_apart_to_the_line_of_code() -> None:
    passage = (
        "## Tea\n\nBlack tea steeps\nfor *four* minutes. Green tea for two.\n- hot\n- or cold\n\n"
        "| tea | time |\n|---|---|\n| black | 4 |\n\n```\nbrew --black\n\nbrew --green\n```\n> Enjoy."
    )
    assert [passage[start:end] for start, end in split_passage(passage)] == [
        "Black tea steeps\nfor *four* minutes.",
        "Green tea for two.",
        "hot",
        "or cold",
        "| tea | time |",
        "| black | 4 |",
        "brew --black",
        "brew --green",
        "Enjoy.",
    ]


TEXTS = st.lists(
    st.sampled_from(
        [*"ab.!?`*_|#>- \n\t。", "[1]", "[2, 3]", " [1]", "```\n", "\n\n", "- ", "1. ", "e.g. ", "A. ", "    "]
    ),
    max_size=30,
).map("".join)


@given(TEXTS)
def test_sentences_are_in_order_and_lose_no_citation_but_those_before_the_first(answer: str) -> None:
    found = sentences(answer)
    places = [place for each in found for place in (each.start, each.end)]
    assert places == sorted(places)
    assert all(each.text and 0 <= each.start < each.end <= len(answer) for each in found)
    assert not any("\x01" in each.text or "\x02" in each.text or "\n" in each.text for each in found)
    cited = [
        number for each in scan(answer).citations if found and each.start > found[0].end for number in each.numbers
    ]
    assert {number for each in found for number in each.numbers} >= set(cited)


@given(TEXTS)
def test_the_parts_of_a_passage_are_in_order_and_hold_all_its_words(passage: str) -> None:
    parts = split_passage(passage)
    places = [place for part in parts for place in part]
    assert places == sorted(places)
    assert all(start < end for start, end in parts)


@pytest.mark.slow
@pytest.mark.parametrize(
    "hostile", ["[", "`", ". [1] ", ".  ", "*", "_a", "> ", "- ", "[a](", "|", "A. B. ", " (see", "a\n", "```\n"]
)
def test_hostile_text_is_taken_apart_in_one_pass(hostile: str) -> None:
    text = hostile * (100_000 // len(hostile))
    assert len(sentences(text)) <= len(text)
    assert len(split_passage(text)) <= len(text)
