from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_artifact.text import (
    MAX_TERMS,
    estimate_tokens,
    heading_line,
    lexical_text,
    phrase_terms,
    query_terms,
    terms_of,
    words_of,
)
from octavo_serve import lexical


def stem(text: str, stemmer: str) -> list[str]:
    """A stand-in for Tantivy: words in lower case, marked with their stemmer."""
    return [f"{word}/{stemmer[:2]}" if stemmer else word for word in re.findall(r"\w+", text.lower())]


@pytest.mark.parametrize(
    ("text", "language", "terms"),
    [
        pytest.param("plain text", "en", ["plain/en", "text/en"], id="English"),
        pytest.param("Schöne Straße", "de", ["schone/ge", "strasse/ge"], id="accents are folded"),
        pytest.param("電池容量", "ja", ["電池", "池容", "容量", "電", "池", "容", "量"], id="pairs and characters"),
        pytest.param("の", "ja", ["の"], id="one character"),
        pytest.param("v2の設定", "ja", ["v2/en", "の設", "設定", "の", "設", "定"], id="mixed scripts"),
        pytest.param("Тёплый дом, Linux", "ru", ["теплый/ru", "дом/ru", "linux/en"], id="Russian and a name"),
        pytest.param("Моя кімната", "uk", ["моя", "кімната"], id="Ukrainian is not Russian"),
        pytest.param("Її дім", "en", ["її", "дім"], id="Ukrainian by its letters"),
        pytest.param("الكِتَاب", "ar", ["الكتاب/ar"], id="Arabic without vowel marks"),
        pytest.param("کتاب‌ها", "fa", ["کتاب", "ها"], id="Persian is not Arabic"),
        pytest.param("ﬁle Ａ１", "en", ["file/en", "a1/en"], id="compatibility forms"),
        pytest.param("\ufeffin\u200bvis\u00adible 電\u2060池", "en", ["invisible/en", "電池", "電", "池"], id="hidden"),
        pytest.param("สวัสดี"[:4], "th", ["สว", "วั", "ัส", "ส", "ว", "ั", "ส"], id="Thai"),
    ],
)
def test_text_becomes_terms_by_script_and_language(text: str, language: str, terms: list[str]) -> None:
    assert terms_of(text, language, stem) == terms


def test_a_query_in_a_pack_of_several_languages_has_a_stem_in_each() -> None:
    assert words_of("Haus 電", ("de", "en", "ja"), stem) == [("haus", ("haus/ge", "haus/en")), ("電", ("電",))]


def test_words_without_a_topic_are_no_terms_unless_there_are_no_others() -> None:
    assert list(query_terms("what is the lamp", ("en",), stem)) == [("lamp/en",)]
    assert list(query_terms("what is the", ("en",), stem)) == [("what/en",), ("is/en",), ("the/en",)]
    assert list(query_terms("was in", ("de",), stem)) == [("was/ge",), ("in/ge",)]


def test_a_query_has_a_limit_of_terms() -> None:
    assert len(query_terms(" ".join(f"word{n}" for n in range(500)), ("en",), stem)) == MAX_TERMS


@given(st.text(max_size=200), st.sampled_from(["en", "de", "ru", "ja", "ar", "xx"]))
def test_a_query_has_the_terms_of_a_passage_with_the_same_text(text: str, language: str) -> None:
    words = words_of(text, (language,), lexical.stem)
    assert [term for _, term in words] == [(term,) for term in terms_of(text, language, lexical.stem)]


def test_the_title_opens_the_heading_line_unless_it_is_the_first_heading() -> None:
    assert heading_line("Guide", ["Setup", "Water"]) == "Guide > Setup > Water"
    assert heading_line("Setup", ["SETUP", "Water"]) == "SETUP > Water"
    assert heading_line("", []) == ""


def test_headings_count_twice_in_the_one_field() -> None:
    assert lexical_text("Guide", ["Water"], ("a", "b"), "body") == "Guide > Water\nGuide > Water\na b\nbody"


def test_tokens_are_estimated_by_quarters_rounded_up() -> None:
    assert [estimate_tokens("x" * n) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("phrase", "terms"),
    [
        pytest.param("Zwei Lampen", [("zwei/ge", "lampen/ge"), ("zwei/en", "lampen/en")], id="in each language"),
        pytest.param("電池容量", [("電池", "池容", "容量")], id="without the characters alone"),
        pytest.param("の", [("の",)], id="one character"),
        pytest.param("Тёплый дом", [("теплый/ru", "дом/ru")], id="one way to say it"),
        pytest.param("…", [()], id="no words"),
    ],
)
def test_a_phrase_is_terms_that_stand_together_in_a_passage(phrase: str, terms: list[tuple[str, ...]]) -> None:
    assert phrase_terms(phrase, ("de", "en"), stem) == terms
