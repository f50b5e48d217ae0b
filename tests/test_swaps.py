"""Two hundred swaps under load (B52), by the benchmark that measures them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from running import ROOT, TINY


@pytest.mark.slow
def test_two_hundred_swaps_under_load_cost_no_answer_and_leave_nothing_behind() -> None:
    command = [sys.executable, ROOT / "evals" / "bench" / "swaps.py", TINY, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr.strip()) == (0, "")
    outcome = json.loads(done.stdout)
    assert outcome["swaps"] == 200
    assert len(outcome["answers"]) == 7
    assert len(outcome["digests"]) == 2
    assert len(outcome["streamed"]) == 2, "the model answered from both releases, from one each time"
    assert outcome["end"]["threads"] <= outcome["warm"]["threads"] + 2
    assert outcome["end"]["files"] <= outcome["warm"]["files"]
