from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from octavo_artifact.errors import ConfigError
from octavo_evals.bootstrap import estimates
from octavo_evals.commands import EVAL
from octavo_evals.judge import (
    ComparisonError,
    Verdict,
    check,
    compare,
    judged,
    noise_of,
    read_floors,
    read_noise,
)
from octavo_evals.measures import NAMES
from octavo_evals.queries import Query, QuerySet
from octavo_evals.render import FORMATS, github, junit, text
from octavo_evals.results import (
    Artifact,
    Cases,
    Configuration,
    Qrel,
    QueryResult,
    Results,
    cases_sha256,
    labels,
    write_results,
)

OLD, NEW = "a" * 64, "b" * 64
QUERIES = tuple(Query(f"q{number}", f"text {number}", (Qrel("x.md", 1),), "how") for number in range(20))
CASES = QuerySet("questions.yaml", "tiny", "2026-11-30", QUERIES)
PARAMETERS: Mapping[str, Any] = {"encoder": "e", "retrieval": {"candidates": 100}}


class Serving:
    """A release as the gate sees it."""

    def __init__(self, digest: str = OLD, parameters: Mapping[str, Any] = PARAMETERS, slug: str = "tiny") -> None:
        self.artifact = Artifact(slug, digest, "1", "dist")
        self.parameters = parameters

    def search(self, text: str, k: int, filters: Mapping[str, Any]) -> Mapping[str, Any]:
        raise AssertionError

    def has(self, path: str) -> bool:
        raise AssertionError


def results(
    values: list[float], measure: str = "RR", digest: str = OLD, queries: tuple[Query, ...] = QUERIES
) -> Results:
    """A run in which the questions have these values of one measure."""
    asked = tuple(
        QueryResult(
            id=query.id,
            text=query.text,
            category=query.category,
            expected=query.expected,
            must_not=query.must_not,
            filters=query.filters,
            answerable=query.answerable,
            facts=query.facts,
            refused=False,
            run=(),
            passages=(),
            measures={measure: value},
        )
        for query, value in zip(queries, values, strict=True)
    )
    return Results(
        cases=Cases("questions.yaml", cases_sha256(queries), len(queries)),
        artifact=Artifact("tiny", digest, "1", "dist"),
        configuration=Configuration({**PARAMETERS, "k": 50, "gate": None}),
        libraries={},
        date="2026-11-30",
        measures=estimates([query.measures for query in asked], NAMES),
        categories={},
        queries=asked,
    )


def failed(verdicts: list[Verdict]) -> dict[str, str]:
    return {verdict.subject: verdict.message for verdict in verdicts if not verdict.passed}


GOOD = [1.0] * 20
WORSE = [0.0] * 6 + [1.0] * 14


def test_results_of_the_cases_and_the_configuration_pass() -> None:
    assert failed(check(results(GOOD), CASES, Serving(), {"RR": 0.9})) == {}


def test_a_case_that_was_edited_after_its_run_fails() -> None:
    edited = replace(QUERIES[3], expected=(Qrel("y.md", 1),))
    cases = replace(CASES, queries=(*QUERIES[:3], edited, *QUERIES[4:18], replace(QUERIES[18], id="new"), QUERIES[19]))
    message = failed(check(results(GOOD), cases, None, {}))["cases"]
    assert message == "questions.yaml: new added, q18 removed, q3 edited since the run; run it again"


def test_cases_in_another_order_are_others() -> None:
    cases = replace(CASES, queries=QUERIES[::-1])
    assert "another order" in failed(check(results(GOOD), cases, None, {}))["cases"]


def test_a_parameter_that_changed_after_the_run_fails() -> None:
    serving = Serving(parameters={"encoder": "e", "retrieval": {"candidates": 200}})
    assert failed(check(results(GOOD), CASES, serving, {})) == {
        "configuration": "retrieval.candidates changed since the run; run it again"
    }


def test_an_edit_of_the_text_alone_is_told_and_passes() -> None:
    verdicts = check(results(GOOD), CASES, Serving(NEW), {})
    assert failed(verdicts) == {}
    assert verdicts[-1].message == "the run was of aaaaaaaaaaaa, this is bbbbbbbbbbbb: other text, same search"


def test_results_of_another_pack_are_an_error() -> None:
    with pytest.raises(ComparisonError, match="results are of the pack tiny, the release is of other"):
        check(results(GOOD), CASES, Serving(slug="other"), {})


@pytest.mark.parametrize(
    ("measure", "bound", "message"),
    [
        pytest.param("RR", 0.7, None, id="on the floor"),
        pytest.param("RR", 0.71, "0.700, expected at least 0.71", id="below the floor"),
        pytest.param("false_refusal", 0.7, None, id="at the ceiling"),
        pytest.param("false_refusal", 0.6, "0.700, expected at most 0.6", id="above the ceiling"),
    ],
)
def test_a_floor_is_cleared_or_not(measure: str, bound: float, message: str | None) -> None:
    found = failed(check(results(WORSE, measure), CASES, None, {measure: bound}))
    assert found == ({} if message is None else {measure: message})


def test_a_floor_for_what_no_question_measures_fails() -> None:
    assert "right_refusal" in failed(check(results(GOOD), CASES, None, {"right_refusal": 0.5}))


def test_a_drop_beyond_chance_is_a_regression_and_names_what_was_lost() -> None:
    (verdict,) = judged(compare(results(GOOD), results(WORSE)))
    assert not verdict.passed
    assert verdict.message.startswith("1.000 -> 0.700 (-0.300, ")
    assert verdict.message.endswith("lost q0, q1, q2, q3, q4 and 1 more")


@pytest.mark.parametrize(
    ("base", "new", "noise"),
    [
        pytest.param(GOOD, [0.0, *GOOD[1:]], 0.0, id="one question may be chance"),
        pytest.param(GOOD, WORSE, 0.3, id="no more than the noise"),
        pytest.param(WORSE, GOOD, 0.0, id="better"),
        pytest.param([0.0, 1.0] * 10, [1.0, 0.0] * 10, 0.0, id="as many won as lost"),
        pytest.param(WORSE, WORSE, 0.0, id="the same"),
    ],
)
def test_what_is_chance_noise_or_better_passes(base: list[float], new: list[float], noise: float) -> None:
    assert failed(judged(compare(results(base), results(new), {"RR": noise}))) == {}


@pytest.mark.parametrize("measure", ["must_not@10", "false_refusal"])
def test_more_of_what_should_not_happen_is_a_regression(measure: str) -> None:
    less, more = results([0.0] * 20, measure), results([1.0] * 10 + [0.0] * 10, measure)
    assert failed(judged(compare(less, more))).keys() == {measure}
    assert failed(judged(compare(more, less))) == {}


def test_runs_of_two_releases_are_compared_only_if_that_is_said() -> None:
    with pytest.raises(ComparisonError, match="aaaaaaaaaaaa and bbbbbbbbbbbb; if that is meant, say --across-releases"):
        compare(results(GOOD), results(GOOD, digest=NEW))
    assert len(compare(results(GOOD), results(GOOD, digest=NEW), across_releases=True)) == 1


def test_runs_over_other_questions_are_not_compared() -> None:
    edited = (replace(QUERIES[0], text="another"), *QUERIES[1:])
    with pytest.raises(ComparisonError, match="runs over different questions: q0 edited"):
        compare(results(GOOD), results(GOOD, queries=edited))


def test_runs_of_other_packs_are_not_compared() -> None:
    other = replace(results(GOOD), artifact=Artifact("other", OLD, None, "dist"))
    with pytest.raises(ComparisonError, match="different packs: tiny and other"):
        compare(results(GOOD), other)


def test_noise_is_how_far_runs_lie_apart() -> None:
    runs = [results(GOOD), results([0.9, *GOOD[1:]]), results([0.5, *GOOD[1:]])]
    assert noise_of(runs) == {"RR": 0.025}


def test_noise_needs_two_runs_of_one_configuration() -> None:
    with pytest.raises(ComparisonError, match="1 run, expected two"):
        noise_of([results(GOOD)])
    other = replace(results(GOOD), configuration=Configuration({**PARAMETERS, "k": 5, "gate": None}))
    with pytest.raises(ComparisonError, match="different configurations: k"):
        noise_of([results(GOOD), other])


@pytest.mark.parametrize(
    ("written", "message"),
    [
        pytest.param("", "expected a mapping", id="empty"),
        pytest.param("R@2: 0.5", "R@2: no measure", id="no measure"),
        pytest.param("RR: 50", "50, expected a number from 0 to 1", id="percent"),
        pytest.param("RR: yes", "True, expected a number", id="no number"),
        pytest.param("RR: [", "not YAML", id="no YAML"),
    ],
)
def test_bad_floors_say_what_is_wrong(tmp_path: Path, written: str, message: str) -> None:
    (tmp_path / "floors.yaml").write_text(written)
    with pytest.raises(ConfigError, match=rf"floors\.yaml: .*{message}"):
        read_floors(tmp_path / "floors.yaml")


def run(*arguments: object) -> int:
    parser = ArgumentParser()
    EVAL.add_arguments(parser)
    return EVAL.run(parser.parse_args(["gate", *map(str, arguments)]))


def saved(tmp_path: Path, name: str, found: Results) -> Path:
    write_results(found, tmp_path / name)
    return tmp_path / name


def test_the_commands_exit_code_says_whether_the_gate_passes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, same, worse = (
        saved(tmp_path, name, results(values))
        for name, values in (("base.json", GOOD), ("same.json", GOOD), ("worse.json", WORSE))
    )
    assert run("compare", base, same) == 0
    assert run("compare", base, worse) == 1
    assert "compare: 1 of 1 failed" in capsys.readouterr().out
    assert run("noise", base, worse, "--out", tmp_path / "noise.json") == 0
    assert read_noise(tmp_path / "noise.json") == {"RR": 0.3}
    assert run("compare", base, worse, "--noise", tmp_path / "noise.json") == 0


def test_a_comparison_refuses_cases_that_were_edited_since(tmp_path: Path) -> None:
    base = saved(tmp_path, "base.json", results(GOOD))
    rows = [{**labels(query), "query": query.text, "expected": ["x.md"]} for query in QUERIES]
    cases = tmp_path / "questions.yaml"
    cases.write_text(json.dumps({"queries": rows}))
    assert run("compare", base, base, "--cases", cases) == 0
    cases.write_text(json.dumps({"queries": [{**rows[0], "expected": ["y.md"]}, *rows[1:]]}))
    with pytest.raises(ComparisonError, match="q0 edited since the run"):
        run("compare", base, base, "--cases", cases)


@pytest.mark.parametrize("written", ["", "{}", '{"format": 1, "kind": "retrieval"}', '{"format":1,"kind":"noise"}'])
def test_what_is_no_noise_is_refused(tmp_path: Path, written: str) -> None:
    (tmp_path / "noise.json").write_text(written)
    with pytest.raises(ConfigError, match="expected what `octavo eval gate noise` writes"):
        read_noise(tmp_path / "noise.json")


VERDICTS = [Verdict("cases", True, "fine"), Verdict("R@5", False, "100% <worse>\n")]


def test_text_has_a_line_a_verdict() -> None:
    assert text("tiny", VERDICTS[:1]) == "ok   cases  fine\ntiny: passed"
    assert text("tiny", VERDICTS).splitlines()[-1] == "tiny: 1 of 2 failed"


def test_junit_has_a_test_case_a_verdict() -> None:
    suite = ElementTree.fromstring(junit("tiny", VERDICTS))[0]
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("2", "1")
    assert [(case.attrib["name"], len(case)) for case in suite] == [("cases", 0), ("R@5", 1)]
    assert suite[1][0].attrib["message"] == "100% <worse>\n"


def test_github_gets_an_annotation_for_what_failed() -> None:
    assert github("tiny", VERDICTS) == "::error title=tiny%3A R@5::100%25 <worse>%0A"
    assert github("tiny", VERDICTS[:1]) == "::notice title=tiny::passed"


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_every_format_is_one_of_the_commands(form: str, tmp_path: Path) -> None:
    base = saved(tmp_path, "base.json", results(GOOD))
    assert run("compare", base, base, "--format", form) == 0
