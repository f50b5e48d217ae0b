"""What tests of several packages share: a small pack, its release, a server of it, and the reference data."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

from history import History
from octavo_artifact.manifest import read_pointer
from running import ROOT, TINY, Serving, build_with_skills, octavo, serving
from smol import LocalModel, local_model

settings.register_profile("untimed", deadline=None)  # a busy machine is no defect
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The project's reference data, which a user's machine does not have."""
    path = ROOT.parent / "shared"
    if not path.is_dir():
        pytest.skip("the reference data (../shared) is not on this machine")
    return path


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dist with the releases of `tiny` and of a docs folder, `notes`; copy it before changing it."""
    root = tmp_path_factory.mktemp("built")
    notes = root / "notes"
    notes.mkdir()
    (notes / "pack.yaml").write_text("slug: notes\nname: Notes\n")
    (notes / "tea time.md").write_text("# Tea\n\nBlack tea steeps for four minutes in boiling water.\n")
    done = octavo("build", TINY, notes, "--out", root / "dist", "--state", root / "state", "-q")
    assert done.returncode == 0, done.stderr
    return root / "dist"


@pytest.fixture(scope="session")
def history(built: Path, tmp_path_factory: pytest.TempPathFactory) -> History:
    """`built` with two later releases of `tiny` beside its own, which is current; `copied` before it is changed."""
    root = tmp_path_factory.mktemp("history")
    dist = shutil.copytree(built, root / "dist")
    digests = [read_pointer(dist / "tiny")]
    for number in ("second", "third"):
        source = shutil.copytree(TINY, root / number)
        with (source / "manifest.yaml").open("a") as manifest:
            manifest.write(f"mcp:\n  instructions: The {number} edition.\n")
        with (source / "concepts" / "water.md").open("a") as water:
            water.write(f"\n## The {number} edition\n\nHard water is told of in the {number} edition too.\n")
        done = octavo("build", source, "--out", dist, "--state", root / f"{number}-state", "-q")
        assert done.returncode == 0, done.stderr
        digests.append(read_pointer(dist / "tiny"))
    history = History(dist, *digests)
    history.point(history.first)
    return history


@pytest.fixture(scope="session")
def with_skills(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dist with one pack, `tiny`, that offers skills and a prompt."""
    return build_with_skills(tmp_path_factory.mktemp("skilled"))


@pytest.fixture
def dist(built: Path, tmp_path: Path) -> Path:
    """A copy of `built` that a test may damage."""
    return shutil.copytree(built, tmp_path / "dist")


@pytest.fixture(scope="session")
def smol() -> Generator[LocalModel]:
    """A small language model that runs here, with two slots."""
    with local_model() as model:
        yield model


@pytest.fixture(scope="session")
def server(built: Path) -> Generator[Serving]:
    """A server of `built`, shared by the tests that only ask."""
    with serving(built) as running:
        yield running
