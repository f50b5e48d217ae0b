"""What is measured of a citation checker, with a checker of the test's own: it supports what has no number."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from octavo_artifact.errors import ConfigError, PackError
from octavo_evals.answering import support
from octavo_evals.answering.support import Encode, Figures, Judged, Packs, Pair, Place, present, read_pairs, split_of
from octavo_serve.cli import main

WATER = {"file": "concepts/water.md", "section": "water-and-scale"}
GRINDER = {"file": "concepts/grinder.md", "section": "grinder"}


@dataclass(frozen=True, slots=True)
class Said:
    supported: bool
    reason: str | None
    score: float


def no_numbers(sentence: str, passage: str, encode: Encode | None, context: str) -> Said:
    return Said(False, "number", 0.25) if re.search(r"\d", sentence) else Said(True, None, 1.0)


@pytest.fixture
def spans(built: Path) -> dict[str, str]:
    """First digits of the hashes of the water page's passages, by section."""
    packs = Packs(built)
    wrong = [packs.find("tiny", Place(**each, span="?")) for each in (WATER, GRINDER)]
    found = [re.search(r"span: (\w{12})", str(each)) for each in wrong]
    return {each["section"]: match[1] for each, match in zip((WATER, GRINDER), found, strict=True) if match}


Writer = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    """Writes pairs, each with a field or two of its own."""

    def written(*pairs: dict[str, Any]) -> Path:
        basis = {
            **WATER,
            "pack": "tiny",
            "span": "0" * 12,
            "kind": "supported",
            "sentence": "Hard water leaves limescale.",
        }
        rows = [{"id": f"p{row}", "split": split_of(f"p{row}"), **basis, **pair} for row, pair in enumerate(pairs)]
        path = tmp_path / "pairs.yaml"
        path.write_text(yaml.safe_dump({"pairs": rows}))
        return path

    return written


@pytest.fixture
def pairs(write: Writer, spans: dict[str, str]) -> Path:
    """Pairs over `tiny`, and one over a pack that is not there."""
    water = {**WATER, "span": spans["water-and-scale"]}
    grinder = {**GRINDER, "span": spans["grinder"]}
    return write(
        water,
        {**water, "sentence": "Soft water below 7 °dH needs it once a year."},
        {**water, "kind": "number_changed", "sentence": "Above 10 °dH it needs descaling."},
        {**water, "kind": "negated", "sentence": "Hard water leaves no limescale."},
        {**water, "kind": "other_passage", "sentence": "There are 11 steps.", "supported_by": grinder},
        {**grinder, "kind": "fabricated", "sentence": "The burrs are made of steel."},
        {"pack": "absent"},
    )


def judged(kind: str, *supported: bool) -> list[Judged]:
    place = Place("a.md", "a", "0" * 12)
    return [Judged(Pair("a", "tiny", place, kind, "dev", "A."), each, None, 0.5) for each in supported]


def test_precision_of_a_kind_is_of_what_is_called_unsupported_in_it_and_in_supported() -> None:
    found = support.figures(
        [*judged("supported", True, True, False), *judged("negated", False, True), *judged("fabricated", False)]
    )
    assert found["supported"] == Figures(3, 1, 2)
    assert found["negated"] == Figures(2, 1, 1, 1 / 2, 1 / 2)
    assert found["fabricated"] == Figures(1, 1, 1, 1 / 2, 1.0)
    assert found["number_changed"] == Figures(0, 0, 0, 0.0, None)
    assert found["all"] == Figures(6, 3, 4, 2 / 3, 2 / 3)


def test_there_is_no_precision_when_nothing_is_called_unsupported() -> None:
    assert support.figures([*judged("supported", True), *judged("negated", True)])["all"] == Figures(2, 0, 1, None, 0.0)


def test_a_line_of_the_table_a_kind() -> None:
    table = support.table([*judged("supported", True, False), *judged("negated", False, True)])
    assert [line.split() for line in table.splitlines()] == [
        ["pairs", "unsupported", "right", "wrong", "precision", "recall"],
        ["supported", "2", "1", "1", "1"],
        ["other_passage", "0", "0", "0", "0", "0.000"],
        ["number_changed", "0", "0", "0", "0", "0.000"],
        ["negated", "2", "1", "1", "1", "0.500", "0.500"],
        ["fabricated", "0", "0", "0", "0", "0.000"],
        ["all", "4", "2", "2", "2", "0.500", "0.500"],
    ]


def test_a_checker_gets_the_passage_as_it_is_shown_its_headings_and_the_packs_encoder(built: Path, pairs: Path) -> None:
    packs, given = Packs(built), list[tuple[str, str, Encode | None, str]]()

    def check(sentence: str, passage: str, encode: Encode | None, context: str) -> Said:
        given.append((sentence, passage, encode, context))
        return Said(True, None, 1.0)

    there, left_out = present(read_pairs(pairs), packs)
    support.judge(there, packs, check)
    sentence, passage, encode, context = given[5]
    assert (sentence, context) == ("The burrs are made of steel.", "Grinder")
    assert passage.startswith("# Grinder\n\nThe burr grinder has eleven steps.")
    assert encode is not None
    assert encode(sentence).shape == (384,)
    assert left_out == {"absent": 1}
    support.judge(there[:1], packs, check, lexical=True)
    assert given[6][2] is None


def test_every_pair_whose_passage_is_not_as_it_was_is_named(built: Path, write: Writer, spans: dict[str, str]) -> None:
    pairs = write(
        {**WATER, "span": spans["water-and-scale"]},
        {},
        {"section": "softening", "span": "1" * 12},
        {"kind": "other_passage", "span": spans["water-and-scale"], "supported_by": {**GRINDER, "span": "2" * 12}},
    )
    with pytest.raises(PackError) as raised:
        present(read_pairs(pairs), Packs(built))
    assert str(raised.value).splitlines() == [
        "3 passages are not as they were when the pairs were labelled:",
        "p1: tiny/concepts/water.md#water-and-scale: edited since it was read; read both again, then write "
        f"`span: {spans['water-and-scale']}`",
        "p2: tiny/concepts/water.md#softening: no such passage; it was moved or renamed",
        "p3: tiny/concepts/grinder.md#grinder: edited since it was read; read both again, then write "
        f"`span: {spans['grinder']}`",
    ]


def test_a_dist_without_any_of_the_packs_judges_nothing(built: Path, write: Writer) -> None:
    with pytest.raises(ConfigError, match="expected one of the packs absent in the dist"):
        present(read_pairs(write({"pack": "absent"})), Packs(built))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param({"kind": "true"}, "p0: kind 'true', expected one of supported, other_passage", id="kind"),
        pytest.param({"split": "train"}, f"p0: split 'train', expected {split_of('p0')}", id="split"),
        pytest.param({"kind": "other_passage"}, "p0: expected `supported_by` of an other_passage", id="no other"),
        pytest.param({"supported_by": {**GRINDER, "span": "0"}}, "and of no other kind", id="needless other"),
        pytest.param(
            {"kind": "other_passage", "supported_by": GRINDER},
            "has file, section; expected file",
            id="half of a place",
        ),
        pytest.param({"supported_by": "b.md"}, "p0: `supported_by` is not a mapping", id="no place"),
        pytest.param({"note": "x"}, "p0: 'note' is unknown", id="unknown field"),
        pytest.param({"sentence": " "}, "p0: an empty sentence", id="empty sentence"),
        pytest.param({"sentence": ["a"]}, "p0: sentence is no text", id="a list for a sentence"),
    ],
)
def test_a_wrong_pair_is_refused_by_its_name(write: Writer, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(PackError, match=re.escape(message)):
        read_pairs(write(fields))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("pairs: []", "expected a mapping with a list `pairs`", id="none"),
        pytest.param("- a", "expected a mapping with a list `pairs`", id="a list"),
        pytest.param("pairs: [", "pairs.yaml:1: not YAML", id="no YAML"),
        pytest.param("pairs: [{id: a}]", "a: 'file' is missing", id="half a pair"),
        pytest.param("pairs: [a]", "a pair is not a mapping", id="a word"),
    ],
)
def test_a_file_that_holds_no_pairs_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "pairs.yaml"
    path.write_text(text)
    with pytest.raises(PackError, match=re.escape(message)):
        read_pairs(path)


def test_an_id_stands_once(write: Writer) -> None:
    with pytest.raises(PackError, match="the id 'a' stands twice"):
        read_pairs(write({"id": "a", "split": split_of("a")}, {"id": "a", "split": split_of("a")}))


@pytest.fixture
def command(built: Path, pairs: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """`octavo eval citations` over the pairs, with the checker of this module."""
    monkeypatch.setattr(support, "checker", lambda: no_numbers)
    return lambda *options: main(["eval", "citations", str(pairs), "--dist", str(built), *options])


def test_the_command_prints_a_table_and_the_pairs_that_are_judged_wrongly(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("--wrong") == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[6].split() == ["all", "6", "3", "3", "3", "0.667", "0.500"]
    assert lines[7:] == [
        "p1 supported: called unsupported (number), 0.25  concepts/water.md#water-and-scale  "
        "Soft water below 7 °dH needs it once a year.",
        "p3 negated: called supported, 1.00  concepts/water.md#water-and-scale  Hard water leaves no limescale.",
        "p5 fabricated: called supported, 1.00  concepts/grinder.md#grinder  The burrs are made of steel.",
    ]
    assert shown.err == "octavo: absent: not in dist; 1 pairs are left out\n"


def test_the_command_prints_json_of_one_split(command: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--json", "--lexical", "--split", split_of("p1"), "--wrong") == 0
    shown = json.loads(capsys.readouterr().out)
    here = [name for name in ("p0", "p1", "p2", "p3", "p4", "p5") if split_of(name) == split_of("p1")]
    assert (shown["pairs"], shown["lexical"]) == (len(here), True)
    assert [each["id"] for each in shown["wrong"]] == [name for name in here if name in ("p1", "p3", "p5")]
    assert shown["figures"]["all"]["pairs"] == len(here)
    assert shown["figures"]["supported"]["recall"] is None


def test_a_dist_that_is_no_folder_is_refused(pairs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "citations", str(pairs), "--dist", "nowhere"]) == 2
    assert "nowhere: not a folder" in capsys.readouterr().err
