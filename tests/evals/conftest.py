"""Two releases that are compared, and what the comparison says."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamp import CASES, NEW, OLD, release
from octavo_evals.diff.comparison import Comparison, compare


@pytest.fixture(scope="session")
def releases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    root = tmp_path_factory.mktemp("diff")
    return release(root, "old", OLD), release(root, "new", NEW)


@pytest.fixture(scope="session")
def comparison(releases: tuple[Path, Path]) -> Comparison:
    return compare(*releases, cases=CASES, sampled=20)
