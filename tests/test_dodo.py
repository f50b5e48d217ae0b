"""The project's own tasks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from running import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("task", ["test", "slow"])
def test_a_task_of_tests_fails_when_they_do(task: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTEST_ADDOPTS": "tests/no_such_test.py -p no:cacheprovider"}
    # a database of its own: the doit that may be running these tests has the other one open
    command = [str(Path(sys.executable).parent / "doit"), "run", "--db-file", str(tmp_path / "dodo.sqlite"), task]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, "TaskFailed" in done.stdout) == (1, True)
