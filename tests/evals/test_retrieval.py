from __future__ import annotations

from pathlib import Path

import pytest

from octavo_artifact.errors import PackError
from octavo_evals.measures import files_of, recall, reciprocal_rank
from octavo_evals.queries import read_query_set
from octavo_evals.retrieval import evaluate, main
from octavo_serve.catalog import open_catalog

QUESTIONS = """pack: tiny
queries:
- {id: a, query: the display shows E-17, expected: [workflows/descale.md, concepts/water.md]}
- {id: b, query: how fine should I grind, expected: [concepts/grinder.md]}
- {id: c, query: who won the match, expected: []}
"""


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.yaml"
    path.write_text(QUESTIONS)
    return path


def test_several_passages_of_a_file_count_once() -> None:
    assert files_of(["a", "b", "a", "c", "b"]) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("k", "value"),
    [pytest.param(1, 1.0, id="1 of 1"), pytest.param(2, 0.5, id="1 of 2"), pytest.param(5, 1.0, id="all")],
)
def test_recall_is_of_what_the_top_k_could_hold(k: int, value: float) -> None:
    assert recall(["a", "x", "b"], ["a", "b"], k) == value


def test_the_first_relevant_file_decides_the_reciprocal_rank() -> None:
    assert reciprocal_rank(["x", "a", "b"], ["a", "b"]) == 0.5
    assert reciprocal_rank(["x"], ["a"]) == 0.0


def test_every_question_is_asked_and_none_is_dropped(built: Path, questions: Path) -> None:
    outcomes = evaluate(open_catalog(built).choose("tiny"), read_query_set(questions))
    assert [outcome.query.id for outcome in outcomes] == ["a", "b", "c"]
    assert outcomes[1].measures() == [1.0] * 5


def test_the_table_counts_answerable_and_unanswerable_apart(
    built: Path, questions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(built), str(questions)]) == 0
    assert "1 of 1 refused" in capsys.readouterr().out


def test_the_ranking_can_be_measured_without_the_gate(
    built: Path, questions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(built), str(questions), "--gate", "off"]) == 0
    assert "0 of 1 refused" in capsys.readouterr().out


def test_a_wrong_refusal_is_counted_and_scores_nothing(
    built: Path, questions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions.write_text(QUESTIONS.replace("how fine should I grind", "who painted the Sistine Chapel"))
    assert main([str(built), str(questions)]) == 0
    figures = capsys.readouterr().out.splitlines()[1].split()[2:]
    assert figures == "2 0.500 0.500 0.500 0.500 0.500 1 1 of 1 refused".split()


def test_a_question_about_a_file_the_pack_lacks_is_an_error(built: Path, questions: Path) -> None:
    questions.write_text(QUESTIONS.replace("concepts/grinder.md", "concepts/none.md"))
    with pytest.raises(PackError, match=r"expects concepts/none\.md, which tiny does not have"):
        evaluate(open_catalog(built).choose("tiny"), read_query_set(questions))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "expected a mapping"),
        ("pack: p\nqueries: []", "no questions"),
        ("pack: p\nqueries: [{id: a, query: x}]", "has no 'expected'"),
        ("pack: p\nqueries: [{id: a, query: x, expected: []}, {id: a, query: y, expected: []}]", "stands twice"),
    ],
)
def test_a_bad_query_set_says_what_is_wrong(questions: Path, text: str, message: str) -> None:
    questions.write_text(text)
    with pytest.raises(PackError, match=message):
        read_query_set(questions)
