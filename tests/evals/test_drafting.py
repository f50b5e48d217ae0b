from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path

import pytest
import yaml

from octavo_artifact.errors import ConfigError, PackError
from octavo_evals import drafting
from octavo_evals.drafting import logged, normalised, read_log
from octavo_evals.queries import read_query_set


def draft(*arguments: object) -> int:
    parser = ArgumentParser()
    drafting.add_arguments(parser)
    return drafting.run(parser.parse_args([*map(str, arguments)]))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    records = [
        {"query": "How hard may the water be?", "pack": "tiny", "ms": 3},
        {"query": "how hard  may the water be"},
        {"query": "How hard may the water be?"},
        {"query": "descale\x1b[2J", "pack": "tiny"},
        {"query": "of another pack", "pack": "other"},
        {"query": 7},
        {"query": "x" * 5000},
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records) + "no json\n[1]\n")
    return path


def test_the_log_gives_each_question_once_the_most_frequent_first(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drafts = logged(read_log(log), "tiny")
    assert [one.text for one in drafts] == ["How hard may the water be?", "descale [2J"]
    assert drafts[0].source == "the log, 3 times"
    assert "2 lines are no JSON objects" in capsys.readouterr().err


def test_spelling_that_makes_no_difference_makes_none() -> None:
    assert normalised("  What's  Ｅ-17? ") == normalised("what's e-17")
    assert normalised("E-17") != normalised("E-18")


def test_a_draft_is_a_query_set_without_labels(built: Path, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "draft.yaml"
    assert draft(built, "--pack", "tiny", "--log", log, "--n", 8, "--out", out) == 0
    text = out.read_text()
    data = yaml.safe_load(text)
    assert data["pack"] == "tiny"
    assert 0 < len(data["queries"]) <= 8
    assert data["queries"][0]["query"] == "How hard may the water be?"
    assert {"log", "heading"} <= {item["category"] for item in data["queries"]}
    assert len({item["id"] for item in data["queries"]}) == len(data["queries"])
    assert "# candidates: concepts/water.md" in text
    with pytest.raises(PackError, match="no 'expected'"):
        read_query_set(out)


def test_the_same_release_and_log_give_the_same_draft(
    built: Path, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drafts: list[str] = []
    for _ in range(2):
        draft(built, "--pack", "tiny", "--log", log)
        drafts.append(capsys.readouterr().out)
    assert drafts[0] == drafts[1] != ""


def test_a_file_with_labels_is_not_overwritten(built: Path, tmp_path: Path) -> None:
    (tmp_path / "draft.yaml").write_text("kept")
    with pytest.raises(ConfigError, match="exists"):
        draft(built, "--pack", "tiny", "--out", tmp_path / "draft.yaml")
    assert (tmp_path / "draft.yaml").read_text() == "kept"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--pack", "tiny", "--n", "0"], "--n", id="no question"),
        pytest.param(["--pack", "none"], "not an artifact", id="no such pack"),
        pytest.param(["--pack", "tiny", "--log", "none.jsonl"], "none.jsonl: cannot be read", id="no such log"),
    ],
)
def test_what_cannot_be_drafted_is_refused(built: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        draft(built, *arguments)
