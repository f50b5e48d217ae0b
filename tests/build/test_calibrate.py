from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from octavo_artifact.gate import Gate
from octavo_artifact.text import terms_of
from octavo_build.calibrate import DOUBT_BELOW, QUESTIONS, REFUSE_BELOW, UNRELATED, Searched, calibrate, own_questions
from octavo_build.lexical import stem

DIMENSIONS = 64
Vectors = NDArray[np.float32]


def encode(texts: Sequence[str]) -> Vectors:
    """Bags of stems: a stand-in that is near where words are shared."""
    rows = np.full((len(texts), DIMENSIONS), 0.05)
    for row, text in enumerate(texts):
        for word in terms_of(text, "en", stem):
            rows[row, hashlib.sha256(word.encode()).digest()[0] % DIMENSIONS] += 1
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def passage(number: int, heading: str) -> Searched:
    body = f"The {heading.lower()} of pump number{number} takes place{number} in hall{number}."
    return Searched(number, heading, body, f"{heading}\n{heading}\n{body}")


PUMPS = [passage(number, f"Service of part{number}") for number in range(60)]


def measure(passages: Sequence[Searched], encoder: Callable[[Sequence[str]], Vectors] = encode) -> Gate | None:
    return calibrate(passages, range(len(passages)), encoder([each.indexed for each in passages]), encoder)


def test_a_pack_has_a_scale_and_its_roc() -> None:
    gate = measure(PUMPS)
    assert gate is not None
    assert 0 < gate.unrelated < gate.own < 1
    assert (gate.refuse_below, gate.doubt_below) == (REFUSE_BELOW, DOUBT_BELOW)
    assert gate.questions == {"own": 60, "withheld": 60, "unrelated": len(UNRELATED)}
    assert [point["threshold"] for point in gate.roc] == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    middle = gate.roc[4]
    assert middle["own"] < middle["withheld"]
    assert middle["own"] < middle["unrelated"]


def test_sums_do_not_depend_on_the_order_in_which_a_machine_adds() -> None:
    order = np.random.default_rng(0).permutation(DIMENSIONS)
    assert measure(PUMPS, lambda texts: np.ascontiguousarray(encode(texts)[:, order])) == measure(PUMPS)


def test_a_pack_without_text_has_no_gate() -> None:
    assert calibrate([], [], np.empty((0, DIMENSIONS), np.float32), encode) is None


@pytest.mark.parametrize("text", ["###", ""])
def test_a_pack_without_words_has_no_scale(text: str) -> None:
    assert measure([Searched(0, "", text, text)]) is None


def test_a_pack_of_signs_refuses_next_to_nothing() -> None:
    gate = measure([Searched(0, "", "!!!", "!!!")])
    assert gate is not None
    assert gate.refuse_below < 0.01


def test_cosines_that_tell_nothing_apart_make_no_gate() -> None:
    def same(texts: Sequence[str]) -> Vectors:
        return np.full((len(texts), DIMENSIONS), 1 / 8, np.float32)

    assert measure(PUMPS, same) is None


def test_a_pack_of_one_passage_has_a_gate() -> None:
    gate = measure(PUMPS[:1])
    assert gate is not None
    assert gate.questions == {"own": 1, "withheld": 0, "unrelated": len(UNRELATED)}


def test_few_own_questions_lower_the_threshold() -> None:
    thresholds = [gate.refuse_below for gate in map(measure, (PUMPS[:5], PUMPS[:20], PUMPS)) if gate]
    assert thresholds == sorted(set(thresholds))


def test_a_pack_whose_own_questions_would_be_refused_has_a_lower_threshold() -> None:
    # its headings say nothing of its passages
    gate = measure([Searched(n, f"Chapter no x{n}", PUMPS[n].visible, PUMPS[n].visible) for n in range(60)])
    assert gate is None or gate.refuse_below < REFUSE_BELOW


def test_headings_of_three_words_are_questions() -> None:
    passages = [*PUMPS, Searched(60, "Overview", "All of it.", "Overview")]
    assert "Overview" not in own_questions(passages)
    assert own_questions(passages)["Service of part3"] == [3]


def test_a_heading_of_several_documents_is_one_question() -> None:
    assert own_questions([*PUMPS, passage(61, "Service of part3")])["Service of part3"] == [3, 61]


@pytest.mark.parametrize(
    ("visible", "question"),
    [
        pytest.param("# Lamp\n\nIt burns oil. Every night.", "It burns oil.", id="first sentence"),
        pytest.param("電池の容量。次の文。", "電池の容量。", id="no space between sentences"),
        pytest.param("# Lamp", "Lamp", id="a heading alone"),
        pytest.param("", "Lamp", id="no text"),
    ],
)
def test_a_pack_with_few_headings_is_asked_by_first_sentences(visible: str, question: str) -> None:
    assert list(own_questions([Searched(0, "Lamp", visible, visible)])) == [question]


def test_the_sample_changes_little_with_the_pack() -> None:
    many = [passage(number, f"Service of part{number}") for number in range(300)]
    before, after = (set(own_questions(each)) for each in (many[1:], many))
    assert len(before) == len(after) == QUESTIONS
    assert len(after - before) <= 1
