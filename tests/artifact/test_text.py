from __future__ import annotations

import pytest

from octavo_artifact.text import estimate_tokens, heading_line, lexical_text, prepare


@pytest.mark.parametrize(
    ("text", "prepared"),
    [
        pytest.param("plain text", "plain text", id="unchanged"),
        pytest.param("電池容量", " 電池 池容 容量 ", id="bigrams"),
        pytest.param("の", " の ", id="one character"),
        pytest.param("v2の設定", "v2 の設 設定 ", id="mixed"),
        pytest.param("ﬁle Ａ１", "file A1", id="compatibility forms"),
        pytest.param("\ufeffin\u200bvis\u00adible 電\u2060池", "invisible  電池 ", id="invisible characters"),
        pytest.param("สวัสดี"[:4], " สว วั ัส ", id="thai"),
    ],
)
def test_text_is_prepared_alike_for_index_and_query(text: str, prepared: str) -> None:
    assert prepare(text) == prepared


def test_the_title_opens_the_heading_line_unless_it_is_the_first_heading() -> None:
    assert heading_line("Guide", ["Setup", "Water"]) == "Guide > Setup > Water"
    assert heading_line("Setup", ["SETUP", "Water"]) == "SETUP > Water"
    assert heading_line("", []) == ""


def test_headings_count_twice_in_the_one_field() -> None:
    assert lexical_text("Guide", ["Water"], ("a", "b"), "body") == "Guide > Water\nGuide > Water\na b\nbody"


def test_tokens_are_estimated_by_quarters_rounded_up() -> None:
    assert [estimate_tokens("x" * n) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]
