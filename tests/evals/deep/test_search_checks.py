"""Checks that ask the search, on two small packs: one has every fault, its twin none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest

from octavo_artifact.errors import ArtifactError, ConfigError
from octavo_evals.deep.checks import CHECKS, find
from octavo_evals.deep.contradictions import check_contradictions
from octavo_evals.deep.duplicates import check_duplicates
from octavo_evals.deep.retrievability import check_headings, check_passages, check_titles
from octavo_evals.deep.subject import Found, Subject
from running import octavo

STEAM = (
    "The boiler heats the water that the steam wand needs. Open the valve slowly, wait until the pressure falls, and "
    "wipe the wand with a damp cloth before the milk dries on it. A wand that hisses has a worn seal in its joint; "
    "order the seal by the number that is stamped on the joint and grease the new one before it is pushed in."
)
RIGHT = {
    "pump.md": "# Water pump\n\nThe vibration pump of the Brewer 3 delivers water to the boiler at 9 bar.\n",
    "grinder.md": "# Grinder burrs\n\nBurrs made of steel last longer than burrs made of ceramic.\n\n"
    "## Cleaning the hopper\n\nBrush old beans out of the hopper.\n",
    "steam.md": f"# Steam wand\n\n{STEAM}\n",
    "service.md": "# Yearly service\n\nThe vibration pump of the Brewer 3 delivers 9 bar after a service.\n",
    "tray.md": "# Drip tray\n\nEmpty the drip tray when its red float shows.\n",
}
WRONG = RIGHT | {
    "grinder.md": "# Drip tray\n\nBurrs made of steel last longer than burrs made of ceramic.\n\n"
    "## Red float of the drip tray\n\nBrush old beans out of the hopper.\n",
    "milk.md": f"# Milk foam\n\n{STEAM}\n",
    "service.md": "# Yearly service\n\nThe vibration pump of the Brewer 3 delivers 15 bar after a service.\n",
    "tea.md": "# Steam wand\n\n" + STEAM + "\n",
}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("deep")
    for name, files in (("right", RIGHT), ("wrong", WRONG)):
        (root / name).mkdir()
        (root / name / "pack.yaml").write_text(f"slug: {name}\nname: Coffee machine\n")
        for path, text in files.items():
            (root / name / path).write_text(text)
    done = octavo("build", root / "right", root / "wrong", "--out", root / "dist", "--state", root / "state", "-q")
    assert done.returncode == 0, done.stderr
    return root / "dist"


def opened(dist: Path, slug: str, top: int = 1) -> Subject:
    return Subject(dist / slug, top, lambda doing, done, total: None)


def paths(found: Sequence[Found]) -> list[str]:
    return sorted({finding.path for finding in found})


def test_a_document_that_another_ones_title_hides_is_told(dist: Path) -> None:
    found = list(check_titles(opened(dist, "wrong")))
    assert "grinder.md" in paths(found)
    assert "'Drip tray' finds tray.md in the top 1" in [finding.message for finding in found]
    assert list(check_titles(opened(dist, "right"))) == []


def test_a_heading_that_leads_to_another_document_is_told_with_its_line(dist: Path) -> None:
    found = {finding.path: finding for finding in check_headings(opened(dist, "wrong"))}
    assert "'What is Red float of the drip tray?' (line 5)" in found["grinder.md"].message
    assert list(check_headings(opened(dist, "right"))) == []


def test_a_passage_that_stands_behind_its_copy_is_unreachable(dist: Path) -> None:
    found = list(check_passages(opened(dist, "wrong")))
    assert paths(found) in (["steam.md"], ["tea.md"])
    assert list(check_passages(opened(dist, "right"))) == []


def test_more_results_reach_more(dist: Path) -> None:
    assert list(check_passages(opened(dist, "wrong", top=5))) == []
    assert list(check_titles(opened(dist, "wrong", top=5))) == []


def test_copies_are_told_at_the_later_one(dist: Path) -> None:
    found = list(check_duplicates(opened(dist, "wrong")))
    assert [(finding.path, finding.line) for finding in found] == [("steam.md", 1), ("tea.md", 1)]
    assert "milk.md:1" in found[0].message
    assert list(check_duplicates(opened(dist, "right"))) == []


def test_two_numbers_for_one_thing_are_told_once_with_both_places(dist: Path) -> None:
    (found,) = check_contradictions(opened(dist, "wrong"))
    assert (found.path, found.line) == ("pump.md", 3)
    assert "says 9 bar" in found.message
    assert "service.md:3 says 15 bar" in found.message
    assert list(check_contradictions(opened(dist, "right"))) == []


def test_findings_are_plain_data_the_same_each_time(dist: Path) -> None:
    every = frozenset[str]().union(*CHECKS.values())
    one, other = (
        find(dist / "wrong", top=1, codes=every, today=None, progress=lambda doing, done, total: None) for _ in range(2)
    )
    assert json.loads(json.dumps(one)) == one == other
    assert one["documents"] == len(WRONG)
    assert [*one["findings"][0]] == ["path", "line", "code", "message"]


def test_only_what_is_asked_for_is_checked(dist: Path) -> None:
    doings: set[str] = set()
    found = find(
        dist / "wrong",
        top=1,
        codes=frozenset({"deep-title-lost"}),
        today=date(2026, 1, 1),
        progress=lambda doing, done, total: doings.add(doing),
    )
    assert {finding["code"] for finding in found["findings"]} == {"deep-title-lost"}
    assert doings == {"titles"}


def test_a_path_that_is_no_artifact_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not an artifact"):
        opened(tmp_path, "none")


def test_a_damaged_artifact_is_refused(built: Path, tmp_path: Path) -> None:
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "latest.json").write_text((built / "tiny" / "latest.json").read_text())
    with pytest.raises(ArtifactError):
        opened(tmp_path, "tiny")
