from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_artifact.literals import MAX_LENGTH, MAX_LITERALS, folded, literals_of, phrases_of


@pytest.mark.parametrize(
    ("text", "literals"),
    [
        pytest.param("where is filter_dicts_by_key defined?", ["filter_dicts_by_key"], id="snake case"),
        pytest.param("getUserById and HttpClient", ["getuserbyid", "httpclient"], id="camel case"),
        pytest.param("error ERR_42, E0308 or SHA256", ["err_42", "e0308", "sha256"], id="codes"),
        pytest.param("2026.4.10, v1.2-rc1 and 20.04.", ["2026.4.10", "v1.2-rc1"], id="versions, not numbers"),
        pytest.param('pass "--error-on-warnings" or -v', ["--error-on-warnings", "-v"], id="flags"),
        pytest.param("the X-Accel-Buffering header", ["x-accel-buffering"], id="a header"),
        pytest.param("see a/b/c.md, ./x/y.py and /etc/ssl/", ["a/b/c.md", "./x/y.py", "/etc/ssl"], id="paths"),
        pytest.param("C++, C# and std::vector<int>", ["c++", "c#", "std::vector"], id="languages"),
        pytest.param("os.path.join(pack.yaml)", ["os.path.join", "pack.yaml"], id="dotted names"),
        pytest.param("__init__ then __init__", ["__init__"], id="each once"),
        pytest.param("容量は`max_size`です。ERR_1。", ["max_size", "err_1"], id="inside another script"),
        pytest.param("The lamp is lit. It's 4 o'clock -- or later.", [], id="prose"),
        pytest.param("and/or, multi-agent, TODO: fix, don't", [], id="words that only look odd"),
        pytest.param("a_" + "b" * MAX_LENGTH, [], id="longer than a name"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_names_codes_versions_and_paths_are_literals(text: str, literals: list[str]) -> None:
    assert literals_of(text) == literals


@given(st.text(max_size=300))
def test_any_text_has_literals_that_are_in_it(text: str) -> None:
    found = literals_of(text)
    assert len(set(found)) == len(found)
    assert all(literal in text.lower() for literal in found)


@pytest.mark.parametrize(
    ("query", "phrases"),
    [
        pytest.param('find "to be lit" now', ["to be lit"], id="quotation marks"),
        pytest.param("“à la carte” «по-русски» `x = 1`", ["à la carte", "по-русски", "x = 1"], id="other marks"),
        pytest.param('a lone " mark', [], id="a lone mark"),
        pytest.param('"" "x" "  " ` `', [], id="too short"),
        pytest.param(f'"{"x" * 201}" and "y z"', ["y z"], id="too long, and the marks still pair"),
        pytest.param('"a b" ' * 40, ["a b"] * MAX_LITERALS, id="too many"),
    ],
)
def test_quoted_words_are_phrases(query: str, phrases: list[str]) -> None:
    assert phrases_of(query) == phrases


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("The lamp\n   is LIT at\tdusk.", "lamp is lit AT dusk"),
        ("Crème brûlée", "creme brulee"),
        ("Cre\u0300me", "Cr\u00e8me"),
        ("Hauptstraße", "STRASSE"),
        ("soft\u00adhyphen", "softhyphen"),
    ],
)
def test_a_phrase_is_found_however_it_is_written(text: str, phrase: str) -> None:
    assert folded(phrase) in folded(text)


def test_a_phrase_in_another_order_is_not_found() -> None:
    assert folded("lit is lamp") not in folded("The lamp is lit.")


@pytest.mark.parametrize(
    "part",
    ["a", "_", "a.", "a/", ".a", "::a", "-a", "A-", "aA", "1.", "~/", '"', "`a", "«", "؟ ", "а!", "!؟", "́", "̀e"],
)
def test_hostile_text_takes_no_longer_than_other_text(part: str) -> None:
    text = part * (100_000 // len(part))
    begun = process_time()
    literals_of(text)
    phrases_of(text)
    folded(text)
    assert process_time() - begun < 5  # of quadratic work this would be minutes
