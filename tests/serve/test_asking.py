"""`octavo search` as a person reads it in a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from octavo_serve.cli import main
from octavo_serve.search import STAGES
from running import LIGHTHOUSE, octavo


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("asking")
    (root / "tea").mkdir()
    (root / "tea/tea.md").write_text("# Tea\n\nBlack tea steeps for four minutes.\n\n" + "It is drunk hot.\n\n" * 9)
    done = octavo("build", LIGHTHOUSE, root / "tea", "--out", root / "dist", "--state", root / "state", "-q")
    assert done.returncode == 0, done.stderr
    return root / "dist"


def shown(capsys: pytest.CaptureFixture[str], dist: Path, *arguments: str, code: int = 0) -> list[str]:
    assert main(["search", str(dist), *arguments]) == code
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line != line.rstrip()] == []
    return lines


def test_a_hit_is_its_heading_its_place_and_its_first_lines(capsys: pytest.CaptureFixture[str], dist: Path) -> None:
    first, place, excerpt, *_ = shown(capsys, dist, "black tea", "--pack", "tea", "-n", "1", "--gate", "off")
    assert first.startswith("1. Tea  ")
    assert place.startswith("   tea.md:1-")
    assert excerpt == "   Black tea steeps for four minutes."


def test_of_several_packs_each_hit_names_its_own(capsys: pytest.CaptureFixture[str], dist: Path) -> None:
    lines = shown(capsys, dist, "black tea for the lighthouse keeper", "--gate", "off")
    hits = [line for line in lines if line[:1].isdigit()]
    assert {line.split()[1] for line in hits} == {"lighthouse:", "tea:"}
    assert lines[-1].startswith("several packs ")


def test_what_is_there_for_a_result_says_so(capsys: pytest.CaptureFixture[str], dist: Path) -> None:
    lines = shown(capsys, dist, "watts of the lamp", "--path", "station", "-n", "1")
    assert [line for line in lines if line.endswith("  required by a result")]


def test_an_explanation_is_a_table_of_all_stages(capsys: pytest.CaptureFixture[str], dist: Path) -> None:
    options = ["--set", "diversity=0.3", "--set", "fusion=rrf", "--explain", "-n", "1"]
    lines = shown(capsys, dist, 'how is the "lamp" lit?', *options)
    assert '   overrides          fusion="rrf", diversity=0.3' in lines
    assert "   phrases            lamp" in lines
    rows = [line.split() for line in lines if line.count(".") == 1 and line.startswith("   ")]
    assert [name for name, *_ in rows if name in {stage.__name__ for stage in STAGES}][: len(STAGES)] == [
        stage.__name__ for stage in STAGES
    ]
    table = [line for line in lines if line.startswith("   ") and line.split()[0] in {"analyse", "rerank", "annotate"}]
    assert len({len(line) for line in table}) == 1


def test_filters_of_the_shell_are_those_of_the_server(capsys: pytest.CaptureFixture[str], dist: Path) -> None:
    options = [
        "--pack",
        "lighthouse",
        "--path",
        "station",
        "--tier",
        "searchable",
        "--verified-within",
        "36500",
        "--json",
    ]
    (line,) = shown(capsys, dist, "lamp", *options, "--gate", "off")
    results = json.loads(line)["results"]
    assert results
    assert all(hit["source_file"].startswith("station/") and hit["verified_at"] for hit in results)
    assert shown(capsys, dist, "lamp", "--verified-within", "0", code=1) == []


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        (["--set", "diversity"], "--set: 'diversity', expected NAME=VALUE"),
        (["--set", "none=1"], "retrieval: none: unknown"),
        (["--set", "candidates=1e999"], "retrieval: candidates: expected a whole number"),
        (["--set", "boosts=" + "[" * 100_000], "retrieval: boosts: expected a mapping"),
        (["-n", "51"], "max_results: "),
    ],
    ids=["no value", "unknown", "infinite", "deep", "too many"],
)
def test_a_wrong_argument_is_named(
    capsys: pytest.CaptureFixture[str], dist: Path, options: list[str], wrong: str
) -> None:
    assert main(["search", str(dist), "lamp", *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"octavo: {wrong}")
