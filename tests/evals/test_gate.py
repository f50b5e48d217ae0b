from __future__ import annotations

from pathlib import Path

import pytest

from octavo_evals.gate import Judged, area, fit, main, probabilities, threshold, without_each_pack


def judged(pack: str, answerable: bool, nearness: float) -> Judged:  # a column of a table
    inputs = (nearness, nearness, nearness, nearness, 0.0, 4.0, 0.0)
    return Judged(pack, answerable, inputs, 0.5, False)


QUESTIONS = [
    judged(pack, answerable, (0.6 if answerable else 0.2) + step / 20)
    for pack in ("a", "b", "c")
    for answerable in (True, False)
    for step in range(6)
]


@pytest.mark.parametrize(
    ("answerable", "unanswerable", "expected"),
    [
        pytest.param([0.8, 0.9], [0.1, 0.2], 1.0, id="apart"),
        pytest.param([0.1], [0.9], 0.0, id="turned round"),
        pytest.param([0.5, 0.5], [0.5], 0.5, id="ties"),
    ],
)
def test_the_area_is_how_often_an_answer_scores_above_none(
    answerable: list[float], unanswerable: list[float], expected: float
) -> None:
    assert area(answerable, unanswerable) == expected


def test_fitted_weights_tell_the_questions_apart() -> None:
    found = probabilities(fit(QUESTIONS), QUESTIONS)
    assert all((value > 0.5) is each.answerable for each, value in zip(QUESTIONS, found, strict=True))


def test_a_pack_is_judged_by_the_others() -> None:
    turned = [judged("d", not each.answerable, each.inputs[0]) for each in QUESTIONS]
    found = without_each_pack([*QUESTIONS, *turned])[len(QUESTIONS) :]
    assert all((value < 0.5) is each.answerable for each, value in zip(turned, found, strict=True))


def test_a_threshold_refuses_at_most_its_share() -> None:
    found = [number / len(QUESTIONS) for number in range(len(QUESTIONS))]
    below = threshold(QUESTIONS, found, 0.1)
    refused = [value < below for each, value in zip(QUESTIONS, found, strict=True) if each.answerable]
    assert sum(refused) == 1


def test_refusals_are_counted_a_line_a_pack(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    questions = tmp_path / "questions.yaml"
    questions.write_text(
        "pack: tiny\nqueries:\n- {id: a, query: the display shows E-17, expected: [workflows/descale.md]}\n"
        "- {id: b, query: who won the match, expected: []}\n"
    )
    assert main([str(built), str(questions)]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["tiny", "1", "1.000", "1", "0.000", "1.000"]
