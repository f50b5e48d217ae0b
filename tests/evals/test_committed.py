"""The results that are committed hold: of the handbook in `doit gate`, of the community packs here."""

from __future__ import annotations

from pathlib import Path

import pytest

from running import ROOT, octavo

PACKS = ("blender-3d", "home-assistant", "solar-diy")


@pytest.fixture(scope="module")
def dist(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("community")
    packs = (shared / "packs" / slug for slug in PACKS)
    done = octavo("build", *packs, "--out", root / "dist", "--state", root / "state", "-q", timeout=900)
    assert done.returncode == 0, done.stderr
    return root / "dist"


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("slug", PACKS)
def test_a_community_pack_is_found_in_as_well_as_when_its_results_were_committed(
    slug: str, dist: Path, tmp_path: Path
) -> None:
    folder, new = ROOT / "evals" / slug, tmp_path / "new.json"
    cases = folder / "questions.yaml"
    run = octavo("eval", "run", cases, "--pack", slug, "--dist", dist, "--out", new)
    assert run.returncode == 0, run.stderr
    held = ("--cases", cases, "--dist", dist, "--floors", folder / "floors.yaml")
    for results in (folder / "results.json", new):
        checked = octavo("eval", "gate", "check", results, *held)
        assert checked.returncode == 0, checked.stdout
    compared = octavo("eval", "gate", "compare", folder / "results.json", new, "--across-releases")
    assert compared.returncode == 0, compared.stdout
