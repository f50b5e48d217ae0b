from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_artifact.errors import ArtifactError
from octavo_artifact.gate import (
    Features,
    Gate,
    Weights,
    features,
    inverse_document_frequency,
    is_foreign,
    names_in,
    spelled_alike,
)

GATE = Gate(
    unrelated=0.2,
    own=0.6,
    refuse_below=0.25,
    doubt_below=0.5,
    weights=Weights(intercept=-3, nearness=2, lead=2, evidence=4, coverage=2, name=-2, terms=0.5, brief=-1),
    questions={},
    roc=(),
)
MIDDLING = Features(cosine=0.4, beyond=0.3, evidence=0.5, coverage=0.5, name=False, terms=4)


@pytest.mark.parametrize(
    ("change", "rises"),
    [
        pytest.param({"cosine": 0.5}, True, id="nearer"),
        pytest.param({"beyond": 0.35}, False, id="others are as near"),
        pytest.param({"coverage": 0.8}, True, id="another passage has more of its words"),
        pytest.param({"terms": 3}, False, id="a brief question"),
        pytest.param({"evidence": 0.8}, True, id="more evidence"),
        pytest.param({"name": True}, False, id="a name is missing"),
        pytest.param({"terms": 6}, True, id="a longer question with the same evidence"),
    ],
)
def test_an_answer_is_more_probable_by(change: dict[str, float], *, rises: bool) -> None:
    changed = replace(MIDDLING, **change)  # pyright: ignore[reportArgumentType] # the table mixes types
    assert (GATE.probability(changed) > GATE.probability(MIDDLING)) is rises


def test_only_the_place_between_the_packs_own_marks_counts() -> None:
    wider = replace(GATE, unrelated=0.5, own=0.9)
    assert wider.probability(replace(MIDDLING, cosine=0.7, beyond=0.6)) == pytest.approx(GATE.probability(MIDDLING))


def test_length_counts_up_to_eight_terms() -> None:
    assert GATE.probability(replace(MIDDLING, terms=8)) == GATE.probability(replace(MIDDLING, terms=64))


def test_a_gate_without_a_scale_is_refused() -> None:
    with pytest.raises(ArtifactError, match=r"own is 0\.2, expected more than unrelated, 0\.2"):
        replace(GATE, own=0.2)


def test_where_few_passages_are_the_nearest_leads_from_what_is_unrelated() -> None:
    assert GATE.inputs(replace(MIDDLING, beyond=None)) == GATE.inputs(replace(MIDDLING, beyond=GATE.unrelated))


def test_evidence_is_weighed_and_saturates() -> None:
    found = features(0.5, 0.4, {"lamp": 3.0, "oil": 1.0}, [], [{"lamp": 3.0}])
    assert found == Features(0.5, 0.4, evidence=3.0 * 0.75 / 4.0, coverage=0.75, name=False, terms=2)


def test_any_of_the_first_passages_may_cover_the_words() -> None:
    found = features(0.5, None, {"lamp": 3.0, "oil": 1.0}, [], [{"oil": 1.0}, {"lamp": 1.0, "oil": 2.0}])
    assert (found.coverage, found.evidence) == (1.0, 0.125)


def test_a_name_that_the_first_passage_lacks_is_told_and_covers_nothing() -> None:
    weights = {"lamp": 1.0, "vulkan": 3.0}
    found = features(0.5, None, weights, ["vulkan"], [{"lamp": 1.0}])
    assert (found.name, found.coverage) == (True, 1.0)
    assert not features(0.5, None, weights, ["vulkan"], [{"vulkan": 1.0}]).name


def test_a_name_that_most_passages_have_is_not_missed() -> None:
    assert not features(0.5, None, {"lamp": 1.0, "octavo": 0.2}, ["octavo"], [{"lamp": 1.0}]).name


def test_a_question_without_terms_has_no_evidence() -> None:
    assert features(0.5, None, {}, [], [{}]) == Features(0.5, None, 0.0, 1.0, False, 0)


def test_rare_terms_weigh_more() -> None:
    weights = [inverse_document_frequency(100, count) for count in (0, 1, 50, 100)]
    assert weights == sorted(weights, reverse=True)
    assert weights[-1] > 0


@pytest.mark.parametrize(
    ("term", "word", "alike"),
    [
        pytest.param("camra", "camera", True, id="one letter short"),
        pytest.param("cameera", "camera", True, id="one letter more"),
        pytest.param("camela", "camera", True, id="another letter"),
        pytest.param("caemra", "camera", True, id="two that changed places"),
        pytest.param("cemara", "camera", False, id="two others"),
        pytest.param("cam", "camera", False, id="much shorter"),
        pytest.param("cameras", "camer", False, id="two letters more"),
    ],
)
def test_words_one_slip_apart_are_alike(term: str, word: str, *, alike: bool) -> None:
    assert spelled_alike(term, [word]) == ([word] if alike else [])


WORDS = st.text("abc", min_size=1, max_size=9)


@given(WORDS, WORDS)
def test_one_slip_is_a_letter_more_or_less_or_other_or_two_that_changed_places(term: str, word: str) -> None:
    places = range(len(term) + 1)
    near = {
        term,
        *(term[:at] + letter + term[at:] for at in places for letter in "abc"),
        *(term[:at] + term[at + 1 :] for at in places),
        *(term[:at] + letter + term[at + 1 :] for at in places for letter in "abc"),
        *(term[:at] + term[at : at + 2][::-1] + term[at + 2 :] for at in places),
    }
    assert spelled_alike(term, [*sorted(near), word]) == [*sorted(near), *([word] if word in near else [])]


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("What does Nabu Casa earn?", "Nabu Casa"),
        ("where is iCloud, please", "iCloud,"),
        ("Photoshop plugins", ""),
        ("", ""),
    ],
)
def test_names_are_words_with_a_capital_after_the_first(question: str, names: str) -> None:
    assert names_in(question) == names


@pytest.mark.parametrize(
    ("known", "words", "foreign"),
    [
        pytest.param(0, 3, False, id="too few words to tell"),
        pytest.param(0, 4, True, id="none known"),
        pytest.param(2, 8, False, id="a quarter known"),
        pytest.param(2, 9, True, id="less than a quarter"),
    ],
)
def test_a_question_of_unknown_words_is_foreign(known: int, words: int, *, foreign: bool) -> None:
    assert is_foreign(known, words) is foreign
