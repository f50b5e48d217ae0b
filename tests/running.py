"""Running Octavo as a user does: the command, a server, and where the tests find their packs."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TINY = ROOT / "tests" / "packs" / "tiny"
LIGHTHOUSE = ROOT / "tests/packs/lighthouse"
OCTAVO = Path(sys.executable).parent / "octavo"


def octavo(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command; the caller looks at the exit code."""
    command = [str(OCTAVO), *map(str, arguments)]
    options.setdefault("timeout", 300)
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def build_with_skills(root: Path) -> Path:
    """A dist, in `root`, with the release of `tiny` as a pack that offers skills."""
    shutil.copytree(TINY, root / "tiny")
    with (root / "tiny/manifest.yaml").open("a") as manifest:
        manifest.write("mcp: {skills: {enabled: true}}\n")
    done = octavo("build", root / "tiny", "--out", root / "dist", "--state", root / "state", "-q")
    assert done.returncode == 0, done.stderr
    return root / "dist"


def is_test(name: str) -> bool:
    """Whether `file.py::function` (the file relative to tests/) is a test."""
    file, _, function = name.partition("::")
    path = ROOT / "tests" / file
    body = ast.parse(path.read_text()).body if path.is_file() else []
    functions = {each.name for each in body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    return function.startswith("test_") and function in functions


@dataclass(frozen=True, slots=True)
class Serving:
    """A running server."""

    address: str
    process: subprocess.Popen[str]


@contextmanager
def serving(dist: Path, *arguments: str) -> Generator[Serving]:
    """`octavo serve` on a free port, ended with the context."""
    command = [str(OCTAVO), "serve", str(dist), "--port", "0", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found, process.communicate(timeout=10)[1]
        yield Serving(found.group(), process)
    finally:
        process.terminate()
        process.communicate(timeout=20)
