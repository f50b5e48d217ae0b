"""What the benchmarks share: releases to serve, a server to ask, and its CPU time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
OCTAVO = Path(sys.executable).parent / "octavo"
BENCH = ROOT / ".octavo" / "bench"
COMMUNITY = ("blender-3d", "home-assistant", "solar-diy")
TICKS = os.sysconf("SC_CLK_TCK")


def releases() -> Path:
    """A dist of four packs: the handbook, and the community packs where they are at hand."""
    packs = [ROOT / "packs" / "octavo", *(SHARED / "packs" / name for name in COMMUNITY)]
    here = [str(pack) for pack in packs if pack.is_dir()]
    if len(here) < len(packs):
        print(f"only {len(here)} of {len(packs)} packs are at hand", file=sys.stderr)
    dist = BENCH / "dist"
    subprocess.run([OCTAVO, "build", *here, "--out", dist, "--state", BENCH / "state", "-q"], check=True, stdout=2)
    return dist


@contextmanager
def server(
    dist: Path, *options: str, stderr: int | None = None, **env: str
) -> Generator[tuple[str, subprocess.Popen[str]]]:
    """A server of `dist` on a free port: its address and process. `env` is added to the environment."""
    command = [OCTAVO, "serve", dist, "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, env={**os.environ, **env})
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found, "the server did not say where it listens"
        yield found.group(), process
    finally:
        process.terminate()
        process.wait(10)


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far, its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def precise_cpu_milliseconds(pid: int) -> float:
    """CPU time of the threads that a process has now, to the nanosecond; those that ended are not in it."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e6


def family(pid: int) -> list[int]:
    """A process and its children."""
    return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def get(url: str) -> bytes:
    """The body of a GET."""
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read()
