"""Cases of an answer evaluation, and the key facts in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo_artifact.errors import PackError
from octavo_evals.answering.cases import Case, read_cases
from octavo_evals.answering.facts import contains, found
from running import ROOT

OURS = """
pack: tiny
today: '2026-11-30'
cases:
- id: steps
  question: How many steps has the grinder?
  files: [concepts/grinder.md]
  facts: [[eleven steps, 11 steps], '40']
  category: fact
  filters: {tags: [grinder]}
  k: 2
- {id: paris, question: 'What is the capital of France?', refusal: true}
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "answers.yaml"
    path.write_text(text)
    return path


def test_cases_are_read_as_they_are_written(tmp_path: Path) -> None:
    read = read_cases(written(tmp_path, OURS))
    assert (read.file, read.pack, read.today) == ("answers.yaml", "tiny", "2026-11-30")
    assert read.cases == (
        Case(
            id="steps",
            question="How many steps has the grinder?",
            category="fact",
            files=("concepts/grinder.md",),
            facts=(("eleven steps", "11 steps"), ("40",)),
            filters={"tags": ["grinder"]},
            k=2,
        ),
        Case(id="paris", question="What is the capital of France?", refusal=True),
    )


def test_an_expertpacks_own_questions_are_cases(tmp_path: Path) -> None:
    text = """
questions:
- id: q1
  question: How many steps?
  expected_sources: [concepts/grinder.md]
  required_facts: [eleven]
- {id: q2, question: 'What is the capital of France?', category: out-of-scope, expected_refusal: true}
"""
    first, second = read_cases(written(tmp_path, text)).cases
    assert (first.files, first.facts, first.refusal) == (("concepts/grinder.md",), (("eleven",),), False)
    assert (second.files, second.facts, second.refusal) == ((), (), True)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        pytest.param("{question: q, files: [a.md]}", "id: missing", id="no id"),
        pytest.param("{id: a, question: ' ', files: [a.md]}", "question: missing", id="an empty question"),
        pytest.param("{id: a, question: q}", "expected files or facts", id="nothing expected"),
        pytest.param("{id: a, question: q, refusal: true, files: [a.md]}", "has to be refused", id="both"),
        pytest.param("{id: a, question: q, refusal: 'no', files: [a.md]}", "true or false", id="refusal as text"),
        pytest.param("{id: a, question: q, fact: [x]}", "fact: unknown", id="a misspelled field"),
        pytest.param("{id: a, question: q, facts: [1.10]}", "quotes", id="a number that YAML would change"),
        pytest.param("{id: a, question: q, facts: ['...']}", "without a word", id="a fact of marks only"),
        pytest.param("{id: a, question: q, facts: [[]]}", "without a word", id="a fact without a phrase"),
        pytest.param("{id: a, question: q, facts: [x], k: 0}", "k: expected 1 to", id="no passages"),
        pytest.param("{id: a, question: q, facts: [x], filters: {graph: true}}", "no filter", id="an unknown filter"),
        pytest.param("{id: a, question: q, facts: [x], filters: {tier: never}}", "tier", id="a wrong filter"),
        pytest.param("text", "not a mapping", id="no mapping"),
    ],
)
def test_a_wrong_case_is_an_error_that_names_it(tmp_path: Path, case: str, message: str) -> None:
    with pytest.raises(PackError, match=message):
        read_cases(written(tmp_path, f"cases:\n- {case}\n"))


def test_an_id_stands_once(tmp_path: Path) -> None:
    case = "- {id: a, question: q, facts: [x]}\n"
    with pytest.raises(PackError, match="stands twice"):
        read_cases(written(tmp_path, "cases:\n" + 2 * case))


@pytest.mark.parametrize(
    ("answer", "fact", "said"),
    [
        pytest.param("It has Eleven STEPS.", "eleven steps", True, id="case"),
        pytest.param("It has eleven [1] steps [2].", "eleven steps", True, id="citations between"),
        pytest.param("Set `allowed_hosts`.", "allowed_hosts", True, id="code"),
        pytest.param("**Copy** the\npointer, last!", "the pointer last", True, id="marks and lines"),
        pytest.param("Use latest.json here.", "latest.json", True, id="a file name"),
        pytest.param("A café.", "cafe", True, id="accents"),
        pytest.param("eleven or more steps", "eleven steps", False, id="words between"),
        pytest.param("elevens", "eleven", False, id="part of a word"),
        pytest.param("It has 100.", "10", False, id="part of a number"),
        pytest.param("It has 10.5 of them.", "10", False, id="a decimal is one number"),
        pytest.param("It has 10.", "10", True, id="a number before a full stop"),
        pytest.param("It has 1,000 tokens.", "1,000", True, id="as written"),
        pytest.param("It has 1000 tokens.", "1,000", False, id="not as written"),
        pytest.param("16MiB", "16 MiB", True, id="a unit without a space"),
        pytest.param("See [413].", "413", False, id="a citation is no number of the answer"),
        pytest.param("", "eleven", False, id="nothing"),
    ],
)
def test_a_fact_is_matched_by_whole_words(answer: str, fact: str, said: bool) -> None:
    assert contains(answer, (fact,)) is said


def test_one_of_the_phrases_is_enough() -> None:
    assert found("It has 11 steps.", (("eleven steps", "11 steps"), ("forty",))) == (True, False)


def test_the_handbooks_cases_ask_what_they_promise() -> None:
    cases = read_cases(ROOT / "evals/octavo/answers.yaml").cases
    refused = [case for case in cases if case.refusal]
    assert len(cases) - len(refused) >= 20
    assert {case.category for case in refused} == {"off-topic", "unanswered"}
    assert len(refused) >= 6
    assert sum(len(case.files) > 1 and case.category == "two-sources" for case in cases) >= 6
    there = ROOT / "packs/octavo"
    assert [file for case in cases for file in case.files if not (there / file).is_file()] == []
