from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from octavo_artifact.errors import ConfigError
from octavo_evals import ablation
from octavo_evals.ablation import (
    DEFAULT,
    STAGES,
    Ablation,
    Variation,
    ablate,
    ablation_bytes,
    certain,
    read_ablation,
    read_variations,
)
from octavo_evals.bootstrap import paired
from octavo_evals.commands import EVAL
from octavo_evals.queries import Query, QuerySet
from octavo_evals.results import Estimate, Qrel
from octavo_evals.retrieval import evaluate
from octavo_evals.targets import Release, open_target

TODAY = "2026-11-30"
QUERIES = (
    Query("a", "the display shows E-17", (Qrel("workflows/descale.md", 1), Qrel("concepts/water.md", 1))),
    Query("b", "how fine should I grind", (Qrel("concepts/grinder.md", 1),)),
    Query("c", "cleaning a machine that is full of chalk", (Qrel("workflows/descale.md", 1),)),
    Query("d", "who painted the Sistine Chapel", (), answerable=False),
)
CASES = QuerySet("questions.yaml", "tiny", TODAY, QUERIES)
VARIATIONS = {"words only": {"passage_weight": 0, "document_weight": 0}, "no gate": {"gate": "off"}}


def release(dist: Path) -> Release:
    return open_target(dist, "tiny", None, date.fromisoformat(TODAY))


@pytest.fixture(scope="module")
def found(built: Path) -> Ablation:
    return ablate([(release(built), CASES)], VARIATIONS, TODAY)


def of(found: Ablation, name: str) -> Variation:
    return next(each for each in found.variations if each.name == name)


def test_the_default_is_the_release_as_it_stands(built: Path, found: Ablation) -> None:
    first = found.variations[0]
    assert (first.name, first.retrieval, first.differences) == (DEFAULT, {}, {})
    assert first.measures == evaluate(release(built), CASES, TODAY).measures


def test_a_variation_is_the_release_searched_with_its_parameters(built: Path, found: Ablation) -> None:
    alone = evaluate(release(built).varied(VARIATIONS["words only"]), CASES, TODAY)
    assert of(found, "words only").measures == alone.measures
    assert alone.configuration.parameters["retrieval"]["passage_weight"] == 0
    assert (
        of(found, "no gate").measures["right_refusal"].mean,
        found.variations[0].measures["right_refusal"].mean,
    ) == (
        0.0,
        1.0,
    )


def test_differences_are_paired_by_question(built: Path, found: Ablation) -> None:
    base = [query.measures for query in evaluate(release(built), CASES, TODAY).queries]
    words = [query.measures for query in evaluate(release(built).varied(STAGES["vector off"]), CASES, TODAY).queries]
    pairs = [(old["RR"], new["RR"]) for old, new in zip(base, words, strict=True) if "RR" in old]
    assert of(found, "words only").differences["RR"] == paired(*zip(*pairs, strict=True))
    assert of(found, "words only").differences["RR"].count == 3
    assert of(found, "no gate").differences["right_refusal"] == Estimate(-1.0, -1.0, -1.0, 1)


def test_a_variation_that_changes_nothing_is_left_out(built: Path) -> None:
    same = {"as before": {"candidates": 100}, "no gate": {"gate": "off"}, "cap": {"passages_per_document": 1}}
    found = ablate([(release(built), CASES)], same, TODAY, gate="off")
    assert [each.name for each in found.variations] == [DEFAULT, "cap"]
    assert of(found, "cap").retrieval == same["cap"]


def test_the_questions_of_several_releases_count_together(built: Path, found: Ablation) -> None:
    notes = open_target(built, "notes", None, date.fromisoformat(TODAY))
    tea = QuerySet("tea.yaml", "notes", TODAY, (Query("a", "how long does tea steep", (Qrel("tea time.md", 1),)),))
    both = ablate([(release(built), CASES), (notes, tea)], VARIATIONS, TODAY)
    assert [each.slug for each in both.artifacts] == ["tiny", "notes"]
    assert both.variations[0].measures["RR"].count == found.variations[0].measures["RR"].count + 1


def test_in_batches_the_figures_are_the_same(built: Path, found: Ablation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ablation, "CACHED_QUERIES", 2)
    assert ablate([(release(built), CASES)], VARIATIONS, TODAY) == found


def test_an_ablation_has_the_same_bytes_and_reads_back(built: Path, found: Ablation, tmp_path: Path) -> None:
    path = tmp_path / "ablation.json"
    path.write_bytes(ablation_bytes(found))
    assert path.read_bytes() == ablation_bytes(ablate([(release(built), CASES)], VARIATIONS, TODAY))
    assert read_ablation(path) == found


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"format": 1, "kind": "retrieval"}', b'{"format": 1}'])
def test_what_is_no_ablation_is_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(data)
    with pytest.raises(ConfigError, match=r"^a\.json: expected"):
        read_ablation(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("measure", "low", "high", "sign"),
    [
        pytest.param("RR", 0.1, 0.2, 1, id="better"),
        pytest.param("RR", -0.2, -0.1, -1, id="worse"),
        pytest.param("RR", -0.1, 0.2, 0, id="maybe chance"),
        pytest.param("RR", 0.0, 0.2, 0, id="an interval that ends at zero"),
        pytest.param("false_refusal", 0.1, 0.2, -1, id="more of what should not be"),
    ],
)
def test_a_difference_is_certain_when_its_interval_has_no_zero(
    measure: str, low: float, high: float, sign: int
) -> None:
    assert certain(measure, Estimate((low + high) / 2, low, high, 9)) == sign


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("[", "not YAML", id="no YAML"),
        pytest.param("- a", "expected a mapping of names", id="a list"),
        pytest.param("", "expected a mapping of names", id="nothing"),
        pytest.param("a: {none: 1}", "a: none: unknown", id="an unknown parameter"),
        pytest.param("a: 1", "a: expected a mapping such as", id="no parameters"),
    ],
)
def test_variations_are_a_mapping_of_mappings(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "v.yaml").write_text(text)
    with pytest.raises(ConfigError, match=rf"^v\.yaml: {message}"):
        read_variations(tmp_path / "v.yaml")


def test_an_unknown_parameter_is_an_error(built: Path) -> None:
    with pytest.raises(ConfigError, match="no_such: unknown"):
        ablate([(release(built), CASES)], {"x": {"no_such": 1}}, TODAY)


def run(*arguments: object) -> int:
    parser = ArgumentParser()
    EVAL.add_arguments(parser)
    return EVAL.run(parser.parse_args(list(map(str, arguments))))


def test_the_verb_prints_a_line_a_measure_and_variation(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], found: Ablation
) -> None:
    cases, variations, out = (tmp_path / name for name in ("q.yaml", "v.yaml", "a.json"))
    cases.write_text(
        "pack: tiny\ntoday: '2026-11-30'\nqueries:\n"
        + "".join(f"- {{id: {one.id}, query: {one.text}, expected: [{', '.join(one.files)}]}}\n" for one in QUERIES)
    )
    variations.write_text("words only: {passage_weight: 0, document_weight: 0}\nno gate: {gate: off}\n")
    shown = ("--measures", "RR,right_refusal", "--only", "no gate")
    assert run("ablate", cases, "--dist", built, "--variations", variations, "--out", out, *shown) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"tiny {found.artifacts[0].digest[:12]}: 4 questions"
    assert lines[-1].split() == "right_refusal no gate 0.000 -1.000 -1.000 to -1.000 -".split()
    assert len(lines) == 5
    written = read_ablation(out)
    assert written.variations == (found.variations[0], replace(of(found, "no gate"), retrieval={"gate": "off"}))
    with pytest.raises(ConfigError, match="--only: 'none', expected one of words only, no gate"):
        run("ablate", cases, "--dist", built, "--variations", variations, "--only", "none")
