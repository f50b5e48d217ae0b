"""`octavo release`: the pointer moves when the gate passes, and only then."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from running import TINY, octavo

QUESTIONS = """pack: tiny
today: '2026-11-30'
queries:
- {id: a, query: the display shows E-17, expected: [workflows/descale.md]}
- {id: b, query: how fine should I grind, expected: [concepts/grinder.md]}
- {id: c, query: how hard is the water, expected: [concepts/water.md]}
"""


@pytest.fixture(scope="module")
def both(built: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A dist whose pack has a second release, worse by all that the questions ask for, and that release in it."""
    root = tmp_path_factory.mktemp("both")
    dist = shutil.copytree(built, root / "dist")
    return dist, built_from(changed(root), root, dist).relative_to(dist)


@pytest.fixture
def worse(both: tuple[Path, Path], dist: Path) -> Path:
    """The worse release, added to `dist`."""
    made, artifact = both
    return shutil.copytree(made / artifact, dist / artifact)


@pytest.fixture
def evals(tmp_path: Path) -> Path:
    folder = tmp_path / "evals"
    folder.mkdir()
    (folder / "questions.yaml").write_text(QUESTIONS)
    (folder / "floors.yaml").write_text("R@5: 0.9\n")
    return folder


def pointed(dist: Path) -> str | None:
    path = dist / "tiny/latest.json"
    return json.loads(path.read_bytes())["digest"] if path.exists() else None


def built_from(pack: Path, tmp_path: Path, dist: Path) -> Path:
    """A release of a pack that nothing points to."""
    done = octavo("build", pack, "--out", dist, "--state", tmp_path / "state", "--no-point", "--json", "-q")
    assert done.returncode == 0, done.stderr
    return Path(json.loads(done.stdout)["packs"][0]["artifact"])


def changed(tmp_path: Path) -> Path:
    pack = Path(shutil.copytree(TINY, tmp_path / "changed"))
    for name in ("workflows/descale.md", "concepts/grinder.md", "concepts/water.md"):
        (pack / name).write_text("# Nothing\n\nThis page was emptied.\n")
    return pack


def test_a_build_may_leave_the_pointer_alone(tmp_path: Path) -> None:
    artifact = built_from(TINY, tmp_path, tmp_path / "dist")
    assert pointed(tmp_path / "dist") is None
    assert octavo("verify", artifact).returncode == 0


def test_the_first_release_has_to_clear_the_floors(dist: Path, evals: Path) -> None:
    artifact = dist / "tiny" / str(pointed(dist))
    (dist / "tiny/latest.json").unlink()
    (evals / "floors.yaml").write_text("right_refusal: 1.0\n")
    done = octavo("release", artifact, "--evals", evals)
    assert (done.returncode, pointed(dist)) == (1, None)
    assert "the gate does not pass; the current release stays" in done.stderr
    (evals / "floors.yaml").write_text("R@5: 0.9\n")
    done = octavo("release", artifact, "--evals", evals)
    assert (done.returncode, pointed(dist)) == (0, artifact.name), done.stdout
    assert "judged by its own figures only" in done.stdout


def test_a_worse_release_stays_where_it_is(dist: Path, worse: Path, evals: Path) -> None:
    before = pointed(dist)
    (evals / "floors.yaml").unlink()
    done = octavo("release", worse, "--evals", evals)
    assert (done.returncode, pointed(dist)) == (1, before), done.stdout
    assert "worse by more than chance" in done.stdout
    assert octavo("release", worse, "--ungated").returncode == 0
    assert pointed(dist) == worse.name


def test_the_current_release_may_lack_a_file_that_a_question_names(dist: Path, tmp_path: Path, evals: Path) -> None:
    pack = Path(shutil.copytree(TINY, tmp_path / "more"))
    (pack / "concepts/milk.md").write_text("# Milk\n\nSteam milk to sixty degrees and pour at once.\n")
    question = "- {id: d, query: how warm should milk be, expected: [concepts/milk.md]}\n"
    (evals / "questions.yaml").write_text(QUESTIONS + question)
    artifact = built_from(pack, tmp_path, dist)
    done = octavo("release", artifact, "--evals", evals)
    assert (done.returncode, pointed(dist)) == (0, artifact.name), done.stdout


def test_a_damaged_current_release_does_not_keep_a_good_one_away(dist: Path, worse: Path, evals: Path) -> None:
    current = dist / "tiny" / str(pointed(dist))
    (current / "documents.parquet").write_bytes(b"")
    (evals / "floors.yaml").unlink()
    done = octavo("release", worse, "--evals", evals)
    assert (done.returncode, pointed(dist)) == (0, worse.name), done.stdout


def test_a_damaged_release_is_not_pointed_to(dist: Path, worse: Path) -> None:
    before = pointed(dist)
    (worse / "documents.parquet").write_bytes(b"")
    assert octavo("release", worse, "--ungated").returncode == 1
    assert pointed(dist) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["dist/tiny"], "not a release, expected dist/SLUG/DIGEST", id="a pack"),
        pytest.param([f"dist/tiny/{'0' * 64}"], "not a release", id="not there"),
        pytest.param(["{artifact}"], "evals/tiny: no folder with questions", id="no questions"),
        pytest.param(["{artifact}", "--evals", "."], "questions.yaml: cannot be read", id="none in the folder"),
    ],
)
def test_what_cannot_be_judged_is_exit_2(dist: Path, arguments: list[str], message: str) -> None:
    artifact = f"dist/tiny/{pointed(dist)}"
    done = octavo("release", *(each.format(artifact=artifact) for each in arguments), cwd=dist.parent)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
