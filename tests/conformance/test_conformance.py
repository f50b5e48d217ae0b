"""The official conformance suite of MCP over HTTP at each version in use: a real pack, then the names of the suite."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from clients.node import program
from running import serving

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
VERSIONS = ("2025-06-18", "2025-11-25", "2026-07-28")

OF_ANY_PACK = {
    "server-initialize": VERSIONS[:2],
    "ping": VERSIONS[:2],
    "server-session-lifecycle": VERSIONS[:2],
    "tools-list": VERSIONS,
    "resources-list": VERSIONS,
    "prompts-list": VERSIONS,
    "dns-rebinding-protection": VERSIONS[1:],
    "caching": VERSIONS[2:],
    "http-header-validation": VERSIONS[2:],
    "sep-2164-resource-not-found": VERSIONS[2:],
    "server-stateless": VERSIONS[2:],
    "sep-2640-skills-enumeration": VERSIONS[2:],
    "sep-2640-skills-manifest": VERSIONS[2:],
    "sep-2640-skills-directory": VERSIONS[2:],
}
"""Scenarios that ask for no name of their own, and the versions that have them."""

NEED_A_TOOL = (
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
)
"""Checks of server-stateless that call a tool by name; the first two are made of the diagnostic tools."""


@pytest.fixture(scope="module")
def real(with_skills: Path) -> Generator[str]:
    """The MCP endpoint of a pack, as it is served."""
    with serving(with_skills) as running:
        yield f"{running.address}/packs/tiny/mcp"


@pytest.fixture(scope="module")
def diagnostic(with_skills: Path) -> Generator[str]:
    """The MCP endpoint of a server that answers to the suite's names too."""
    command = [sys.executable, str(HERE / "diagnostics.py"), str(with_skills)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"{process.stdout.readline().strip()}/mcp"
        finally:
            process.terminate()


def suite(url: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [*program("conformance"), "server", "--url", url, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=HERE)


def said(done: subprocess.CompletedProcess[str]) -> str:
    return re.sub(r"\x1b\[\d+m", "", done.stdout + done.stderr)


@pytest.mark.parametrize(
    ("scenario", "version"), [(scenario, version) for scenario, versions in OF_ANY_PACK.items() for version in versions]
)
def test_a_pack_passes_what_asks_for_no_name(real: str, scenario: str, version: str, tmp_path: Path) -> None:
    excused = NEED_A_TOOL if scenario == "server-stateless" else ()
    baseline = tmp_path / "baseline.yml"
    baseline.write_text(json.dumps({"server": [f"{scenario}:{check}" for check in excused]}))
    asked = ("--scenario", scenario, "--spec-version", version, "--force", "--expected-failures", baseline)
    done = suite(real, *asked)
    assert done.returncode == 0, said(done)
    assert re.search(rf"Passed: \d+/\d+, {len(excused)} failed, 0 warnings", said(done)), said(done)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_server_fails_what_is_listed_with_its_reason_and_nothing_else(diagnostic: str, version: str) -> None:
    baseline = HERE / f"expected-failures.{version}.yml"
    done = suite(diagnostic, "--suite", "all", "--spec-version", version, "--expected-failures", baseline)
    assert done.returncode == 0, said(done)
    assert len(re.findall(r"^[✓✗] ", said(done), re.MULTILINE)) >= 27


def test_the_suite_notices_what_is_listed_and_passes(diagnostic: str, tmp_path: Path) -> None:
    stale = tmp_path / "stale.yml"
    stale.write_text("server:\n  - ping\n")
    done = suite(diagnostic, "--scenario", "ping", "--spec-version", "2025-11-25", "--expected-failures", stale)
    assert done.returncode == 1, said(done)
