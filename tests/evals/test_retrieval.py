from __future__ import annotations

import json
import shutil
from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from octavo_artifact.errors import ArtifactError, ConfigError, OctavoError, PackError
from octavo_evals.commands import EVAL
from octavo_evals.queries import QuerySet, read_query_set
from octavo_evals.results import Artifact, Results, parse_results, read_results, results_bytes
from octavo_evals.retrieval import check_files, evaluate
from octavo_evals.targets import Release, open_target
from octavo_evals.trec import trec_run
from running import OCTAVO, Serving, octavo

TODAY = "2026-11-30"
QUESTIONS = """pack: tiny
today: '2026-11-30'
queries:
- {id: a, query: the display shows E-17, expected: [workflows/descale.md, concepts/water.md], category: code}
- {id: b, query: how fine should I grind, expected: [concepts/grinder.md], category: how}
- {id: c, query: who painted the Sistine Chapel, expected: [], category: unanswerable}
"""


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.yaml"
    path.write_text(QUESTIONS)
    return path


def release(dist: Path) -> Release:
    return open_target(dist, "tiny", None, date.fromisoformat(TODAY))


def results(dist: Path, cases: QuerySet, **options: Any) -> Results:
    return evaluate(release(dist), cases, TODAY, **options)


def run(*arguments: object) -> int:
    parser = ArgumentParser()
    EVAL.add_arguments(parser)
    return EVAL.run(parser.parse_args(list(map(str, arguments))))


class Silent:
    """A target that finds nothing."""

    artifact = Artifact("tiny", "d" * 64, None, "http")
    parameters: Mapping[str, Any] = {}  # never changed

    def search(self, text: str, k: int, filters: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"results": [], "refused": True}

    def has(self, path: str) -> bool:
        return True


def test_every_question_is_asked_and_measured(built: Path, questions: Path) -> None:
    found = results(built, read_query_set(questions))
    assert [query.id for query in found.queries] == ["a", "b", "c"]
    assert found.queries[1].run[0].doc_id == "concepts/grinder.md"
    assert found.queries[1].measures["RR"] == 1.0
    assert found.measures["RR"].count == 2
    assert all(0 <= (query.answer_probability or -1) <= 1 for query in found.queries)
    assert (found.measures["right_refusal"].mean, found.measures["false_refusal"].mean) == (1.0, 0.0)
    assert found.categories["unanswerable"].keys() == {"right_refusal"}


def test_a_file_counts_once_at_its_best_place(built: Path, questions: Path) -> None:
    for query in results(built, read_query_set(questions), gate="off").queries:
        files = [doc.doc_id for doc in query.run]
        assert len(files) == len(set(files))
        first = list(dict.fromkeys(passage.source_file for passage in query.passages))
        assert files[: len(first)] == first


def test_a_question_for_which_nothing_comes_back_scores_nothing_and_stays(questions: Path) -> None:
    found = evaluate(Silent(), read_query_set(questions), TODAY)
    assert (found.measures["RR"].mean, found.measures["RR"].count) == (0.0, 2)
    assert found.measures["false_refusal"].mean == 1.0


def test_without_the_relevance_gate_the_ranking_alone_is_measured(built: Path, questions: Path) -> None:
    found = results(built, read_query_set(questions), gate="off")
    assert found.measures["right_refusal"].mean == 0.0
    assert found.configuration.parameters["gate"] == "off"


def test_filters_of_a_question_reach_the_search(built: Path, questions: Path) -> None:
    questions.write_text(QUESTIONS.replace("category: how", "filters: {type: workflow}, category: how"))
    found = results(built, read_query_set(questions), gate="off").queries[1]
    assert "concepts/grinder.md" not in [doc.doc_id for doc in found.run]


def test_the_same_run_has_the_same_bytes_and_reads_back(built: Path, questions: Path) -> None:
    cases = read_query_set(questions)
    found = results(built, cases)
    data = results_bytes(found)
    assert data == results_bytes(results(built, cases))
    assert parse_results(data, "r.json") == found


def test_results_say_of_what_they_are(built: Path, questions: Path) -> None:
    found = results(built, read_query_set(questions))
    pointer = json.loads((built / "tiny/latest.json").read_bytes())
    assert (found.artifact.digest, found.artifact.source, found.date) == (pointer["digest"], "dist", TODAY)
    assert (found.cases.file, found.cases.count) == ("questions.yaml", 3)
    assert found.configuration.parameters["retrieval"]["candidates"] == 100
    assert found.libraries.keys() >= {"octavo", "ir-measures", "numpy", "tantivy"}


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"format": 1, "kind": "retrieval"}', b'{"format": 9, "kind": 1}']
)
def test_what_is_no_file_of_results_is_refused(data: bytes) -> None:
    with pytest.raises(ConfigError, match=r"^r\.json: "):
        parse_results(data, "r.json")


def test_a_question_about_a_file_the_pack_lacks_is_an_error(built: Path, questions: Path) -> None:
    questions.write_text(QUESTIONS.replace("concepts/grinder.md", "concepts/none.md"))
    with pytest.raises(PackError, match=r"questions\.yaml: b: names concepts/none\.md, which tiny does not have"):
        run("run", questions, "--dist", built)


def test_a_file_that_must_not_be_found_has_to_be_there_too(built: Path, questions: Path) -> None:
    questions.write_text(QUESTIONS.replace("category: how", "must_not: [none.md], category: how"))
    with pytest.raises(PackError, match=r"names none\.md"):
        check_files(release(built), read_query_set(questions))


def test_an_empty_pack_is_an_error(tmp_path: Path, questions: Path) -> None:
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny/pack.yaml").write_text("slug: tiny\nname: Tiny\n")
    (tmp_path / "tiny/empty.md").write_text("\n")
    assert octavo("build", "tiny", "-q", cwd=tmp_path).returncode == 0
    with pytest.raises(PackError, match="tiny: an empty pack"):
        run("run", questions, "--dist", tmp_path / "dist")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        pytest.param(["--dist", "nowhere"], ConfigError, "not a folder", id="no dist"),
        pytest.param(["--pack", "other"], ArtifactError, r"other/latest\.json", id="no such pack"),
        pytest.param(["--release", "abc"], ConfigError, "shorter than 6 digits", id="a short digest"),
        pytest.param(["--release", "0123456789"], ConfigError, "0 releases begin so", id="no such release"),
    ],
)
def test_a_release_that_is_not_there_is_an_error(
    built: Path, questions: Path, arguments: list[str], error: type[OctavoError], message: str
) -> None:
    with pytest.raises(error, match=message):
        run("run", questions, "--dist", built, *arguments)


def test_a_day_is_given_and_never_the_clocks(built: Path, questions: Path) -> None:
    questions.write_text(QUESTIONS.replace("today: '2026-11-30'\n", ""))
    with pytest.raises(ConfigError, match="today: missing"):
        run("run", questions, "--dist", built)
    assert run("run", questions, "--dist", built, "--today", TODAY) == 0


def test_a_release_is_chosen_by_its_digest(dist: Path, questions: Path, tmp_path: Path) -> None:
    digest = json.loads((dist / "tiny/latest.json").read_bytes())["digest"]
    (dist / "tiny/latest.json").unlink()
    assert run("run", questions, "--dist", dist, "--release", digest[:8], "--out", tmp_path / "r.json") == 0
    assert read_results(tmp_path / "r.json").artifact.digest == digest


def test_run_writes_results_a_trec_run_and_timings_apart(
    built: Path, questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, trec, timings = (tmp_path / name for name in ("r.json", "run.txt", "t.json"))
    assert run("run", questions, "--dist", built, "--out", out, "--run", trec, "--timings", timings) == 0
    plain = results_bytes(results(built, read_query_set(questions)))
    assert out.read_bytes() == plain
    assert json.loads(timings.read_bytes())["seconds"].keys() == {"a", "b", "c"}
    fields = [line.split() for line in trec.read_text().splitlines()]
    assert fields[0][:4] == ["a", "Q0", read_results(out).queries[0].run[0].doc_id, "1"]
    assert all(len(line) == 6 for line in fields)
    assert capsys.readouterr().out.splitlines()[1].startswith("tiny ")


def test_several_query_sets_write_a_folder(built: Path, questions: Path, tmp_path: Path) -> None:
    more = shutil.copy(questions, tmp_path / "more.yaml")
    assert run("run", questions, more, "--dist", built, "--out", tmp_path / "out") == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["tiny-more.json", "tiny-questions.json"]


def test_a_trec_run_is_in_the_order_of_the_results(built: Path, questions: Path) -> None:
    found = results(built, read_query_set(questions))
    query = replace(found.queries[0], run=(*found.queries[0].run[::-1],))
    lines = trec_run(replace(found, queries=(query,))).splitlines()
    assert [line.split()[2] for line in lines] == [doc.doc_id for doc in query.run]
    scores = [float(line.split()[4]) for line in lines]
    assert scores == sorted(scores, reverse=True)


def endpoint(face: str, server: Serving, built: Path) -> str:
    return {
        "http": server.address,
        "mcp": f"{server.address}/packs/tiny/mcp",
        "stdio": f"{OCTAVO} stdio {built} --today {TODAY}",
    }[face]


@pytest.mark.parametrize("face", ["http", "mcp", "stdio"])
def test_an_endpoint_is_measured_as_the_release_it_serves(
    face: str, server: Serving, built: Path, questions: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r.json"
    questions.write_text(QUESTIONS.replace("category: how", "filters: {tags: [grinder], graph: true}, category: how"))
    assert run("run", questions, "--url", endpoint(face, server, built), "--out", out) == 0
    found, here = read_results(out), results(built, read_query_set(questions))
    assert (found.queries, found.measures) == (here.queries, here.measures)
    assert (found.artifact.digest, found.artifact.source) == (here.artifact.digest, "http" if face == "http" else "mcp")


@pytest.mark.parametrize("face", ["http", "mcp"])
def test_an_endpoint_without_a_file_that_is_named_is_an_error(
    face: str, server: Serving, built: Path, questions: Path
) -> None:
    questions.write_text(QUESTIONS.replace("concepts/grinder.md", "concepts/none.md"))
    with pytest.raises(PackError, match=r"b: names concepts/none\.md"):
        run("run", questions, "--url", endpoint(face, server, built))


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "http://127.0.0.1:9/mcp", "no-such-command stdio"])
def test_an_address_where_nobody_answers_is_an_error(questions: Path, url: str) -> None:
    with pytest.raises(ArtifactError, match="the endpoint does not"):
        run("run", questions, "--url", url)
