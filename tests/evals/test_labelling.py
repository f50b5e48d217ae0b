from __future__ import annotations

import io
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from octavo_artifact.errors import ConfigError, PackError
from octavo_evals import labelling
from octavo_evals.labelling import Labels, press

DRAFT = """\
# the head of the file
pack: tiny   # a pack
queries:
# about a message
- id: a
  query: "the display shows E-17"
  category: log
# labelled by hand
- id: b
  query: 'how fine should I grind'   # asked often
  expected: [concepts/grinder.md]
# the third
- id: c
  query: who won the match
  category: unanswerable
# the end
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "draft.yaml"
    path.write_text(DRAFT)
    return path


def label(file: Path, dist: Path, keys: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO(keys))
    parser = ArgumentParser()
    labelling.add_arguments(parser)
    return labelling.run(parser.parse_args([str(file), "--dist", str(dist)]))


def test_labels_are_written_and_all_else_stays(
    built: Path, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert label(file, built, "1\nn\n", monkeypatch) == 0
    shown = capsys.readouterr()
    assert "1 of 2  the display shows E-17" in shown.out
    assert "2 labelled, 0 left in draft.yaml" in shown.err
    added = DRAFT.replace('E-17"\n', 'E-17"\n  expected:\n  - workflows/descale.md\n').replace(
        "the match\n", "the match\n  expected: []\n"
    )
    assert file.read_text() == added


def test_the_order_of_the_keys_is_the_order_of_the_files(
    built: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    label(file, built, "213\nq\n", monkeypatch)
    chosen = yaml.safe_load(file.read_text())["queries"][0]["expected"]
    assert len(chosen) == 3
    assert chosen[1] == "workflows/descale.md"


def test_what_is_skipped_or_left_stays_unlabelled(built: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    label(file, built, "s\nq\n", monkeypatch)
    assert file.read_text() == DRAFT
    label(file, built, "", monkeypatch)
    assert file.read_text() == DRAFT


def test_going_back_corrects_a_label(built: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    label(file, built, "n\nb\n1\nq\n", monkeypatch)
    assert yaml.safe_load(file.read_text())["queries"][0]["expected"] == ["workflows/descale.md"]


def test_lists_that_are_indented_stay_so(built: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("pack: tiny\nqueries:\n  - id: a\n    query: the display shows E-17\n    category: log\n")
    label(file, built, "1\n", monkeypatch)
    assert "    expected:\n      - workflows/descale.md\n    category: log\n" in file.read_text()


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param("12", Labels((4, 7), chosen=(0, 1)), id="choose"),
        pytest.param("121", Labels((4, 7), chosen=(1,)), id="take back"),
        pytest.param("9", Labels((4, 7)), id="no such candidate"),
        pytest.param("\n", Labels((4, 7)), id="nothing to accept"),
        pytest.param("2\n", Labels((4, 7), 1, (), {0: (1,)}), id="accept"),
        pytest.param("2\nb", Labels((4, 7), 0, (1,), {0: (1,)}), id="back to what was chosen"),
        pytest.param("b", Labels((4, 7)), id="back at the first"),
        pytest.param("nn", Labels((4, 7), 2, (), {0: (), 1: ()}), id="none answers"),
        pytest.param("q", Labels((4, 7), quit=True), id="quit"),
        pytest.param("?", Labels((4, 7)), id="no key"),
    ],
)
def test_a_key_does_one_thing(keys: str, expected: Labels) -> None:
    labels = Labels((4, 7))
    for key in keys:
        labels = press(labels, key, 3)
    assert replace(labels, done=labels.done or None) == expected


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        pytest.param("pack: [", (PackError, "not YAML"), id="no YAML"),
        pytest.param("- a\n", (PackError, "a list `queries`"), id="no query set"),
        pytest.param("pack: tiny\nqueries: [{id: a}]\n", (PackError, "`query` in each"), id="no question"),
        pytest.param("queries: []\n", (PackError, "`pack`"), id="no pack"),
        pytest.param("pack: none\nqueries: []\n", (ConfigError, "not an artifact"), id="no release"),
    ],
)
def test_a_file_that_cannot_be_labelled_is_refused(
    text: str, refusal: tuple[type[Exception], str], built: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(text)
    with pytest.raises(refusal[0], match=refusal[1]):
        label(file, built, "", monkeypatch)
