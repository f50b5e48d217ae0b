"""What tests of several packages share: a small pack, its release, a server of it, and the reference data."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

from running import ROOT, TINY, Serving, build_with_skills, octavo, serving


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
def with_skills(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dist with one pack, `tiny`, that offers skills and a prompt."""
    return build_with_skills(tmp_path_factory.mktemp("skilled"))


@pytest.fixture
def dist(built: Path, tmp_path: Path) -> Path:
    """A copy of `built` that a test may damage."""
    return shutil.copytree(built, tmp_path / "dist")


@pytest.fixture(scope="session")
def server(built: Path) -> Generator[Serving]:
    """A server of `built`, shared by the tests that only ask."""
    with serving(built) as running:
        yield running
