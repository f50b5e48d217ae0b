"""A build that is killed, or whose disk is full, leaves the old release or the new one, and nothing in between."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from octavo_artifact.layout import POINTER
from octavo_artifact.manifest import read_previous
from octavo_serve.cli import main
from running import OCTAVO, TINY, octavo

SYSCALLS = ("rename", "renameat", "renameat2", "fsync", "fdatasync", "mkdir")
CALL = re.compile(rf"(?P<thread>\d+) +(?P<syscall>{'|'.join(SYSCALLS)})\((?P<arguments>.*)")


@dataclass(frozen=True, slots=True)
class Moment:
    """A system call of a build, as strace counts them: the first time a thread makes it for the n-th time."""

    syscall: str
    n: int
    arguments: str


@dataclass(frozen=True, slots=True)
class Bench:
    """An old release, the source of a new one, and vectors for both."""

    root: Path
    old: str
    new: str
    moments: tuple[Moment, ...]

    def begin(self, place: Path) -> tuple[Path, Path]:
        """A dist with the old release, and a state that remembers texts and vectors, and no task."""
        dist, state = place / "dist", place / "state"
        shutil.copytree(self.root / "dist", dist)
        state.mkdir()
        for memory in (self.root / "state").glob("*.sqlite"):
            if memory.name != "doit.sqlite":
                shutil.copy(memory, state)
        return dist, state

    def command(self, dist: Path, state: Path) -> list[str]:
        return ["build", str(self.root / "source"), "--out", str(dist), "--state", str(state), "-q"]


def digest(dist: Path) -> str:
    return json.loads((dist / "tiny" / "latest.json").read_bytes())["digest"]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    root = tmp_path_factory.mktemp("crash")
    source = shutil.copytree(TINY, root / "source")

    def build(dist: Path) -> str:
        done = octavo("build", source, "--out", dist, "--state", root / "state", "-q")
        assert done.returncode == 0, done.stderr
        return digest(dist)

    old = build(root / "dist")
    page = source / "concepts" / "grinder.md"
    page.write_text(page.read_text().replace("eleven", "twelve"))
    new = build(root / "new")
    assert old != new
    unhurt = Bench(root, old, new, ())
    return Bench(root, old, new, tuple(moments(unhurt, root / "watched")) if shutil.which("strace") else ())


def moments(bench: Bench, place: Path) -> Iterator[Moment]:
    """All moments of a build at which strace can kill it, in the order of time."""
    log = place / "strace"
    place.mkdir()
    dist, state = bench.begin(place)
    watch = ["strace", "-f", "-y", "-s", "300", "-o", log, "-e", f"trace={','.join(SYSCALLS)}", "--seccomp-bpf"]
    subprocess.run([*watch, OCTAVO, *bench.command(dist, state)], check=True, capture_output=True, timeout=120)
    counts: Counter[tuple[str, str]] = Counter()
    seen: set[tuple[str, int]] = set()
    for line in log.read_text().splitlines():
        if call := CALL.match(line):
            counts[call["thread"], call["syscall"]] += 1
            key = (call["syscall"], counts[call["thread"], call["syscall"]])
            if key not in seen:
                seen.add(key)
                yield Moment(*key, call["arguments"])


def kill_at(bench: Bench, moment: Moment, place: Path) -> None:
    """Kill a build at a moment, look at what it left, and build again."""
    dist, state = bench.begin(place)
    inject = f"inject={moment.syscall}:signal=SIGKILL:when={moment.n}"
    # not with --seccomp-bpf, as above: strace 6.1 then loses count and kills at 1 only
    watch = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={moment.syscall}", "-e", inject]
    command = bench.command(dist, state)
    killed = subprocess.run([*watch, OCTAVO, *command], capture_output=True, timeout=120, check=False)
    assert killed.returncode == -9, (moment, killed)

    current = digest(dist)
    visible = {path.name for path in (dist / "tiny").iterdir() if not path.name.startswith(".")}
    assert visible - {"latest.json", bench.new} == {bench.old}, moment
    assert current in visible & {bench.old, bench.new}, moment
    for release in [dist, *(dist / "tiny" / name for name in visible - {"latest.json"})]:
        assert main(["verify", str(release)]) == 0, moment

    again = octavo(*command)
    assert again.returncode == 0, (moment, again.stderr)
    assert files(dist) == files(bench.root / "new") | files(bench.root / "dist", "tiny", bench.old), moment
    assert (digest(dist), read_previous(dist / "tiny")) == (bench.new, (bench.old,)), moment


def files(dist: Path, *below: str) -> dict[str, bytes]:
    """All files of a dist but its pointers, of staging folders too, or of a folder in it."""
    found = sorted(path for path in dist.joinpath(*below).rglob("*") if path.is_file() and path.name != POINTER)
    return {path.relative_to(dist).as_posix(): path.read_bytes() for path in found}


SLOW = pytest.mark.slow
TOLD = {
    "the word index is written": ("renameat", ".managed.json"),
    "the manifest is staged": ("fsync", "/manifest.json"),
    "the release becomes visible": ("rename", "/.staging-"),
    "the pointer is staged": ("fsync", ".staging-latest.json"),
    "the pointer moves": ("rename", "/latest.json"),
    "doit remembers": ("fdatasync", "doit.sqlite"),
}


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.parametrize(
    "moment", [pytest.param(moment, marks=() if "becomes" in moment or "moves" in moment else SLOW) for moment in TOLD]
)
def test_a_kill_leaves_the_old_release_or_the_new_one(bench: Bench, moment: str, tmp_path: Path) -> None:
    syscall, text = TOLD[moment]
    found = [one for one in bench.moments if one.syscall == syscall and text in one.arguments]
    assert found, f"no {syscall} of {text}; the build has {bench.moments}"
    kill_at(bench, found[0], tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_a_kill_at_any_rename_sync_or_new_folder_leaves_the_old_release_or_the_new_one(
    bench: Bench, tmp_path: Path
) -> None:
    assert len(bench.moments) > 50
    for number, moment in enumerate(bench.moments):
        kill_at(bench, moment, tmp_path / str(number))
        shutil.rmtree(tmp_path / str(number))


@contextmanager
def small_disk(place: Path, megabytes: int) -> Generator[Path]:
    """A file system of its own; skips the test where that is not allowed."""
    place.mkdir()
    try:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", place], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a tmpfs cannot be mounted here ({error})")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def fill(disk: Path, spare: int) -> Path:
    """Leave `spare` KiB on the disk."""
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(shutil.disk_usage(disk).free - spare * 1024))
    return ballast


# KiB: a build of `tiny` takes 140 in its state and 90 in dist; each number stops it in another library
FULL = [
    *(pytest.param("state", spare, marks=() if spare == 48 else SLOW) for spare in range(0, 136, 12)),
    *(pytest.param("dist", spare, marks=() if spare == 84 else SLOW) for spare in range(0, 88, 12)),
]


@pytest.mark.parametrize(("full", "spare"), FULL)
def test_a_full_disk_is_one_clear_line_and_leaves_a_whole_release(
    bench: Bench, full: str, spare: int, tmp_path: Path
) -> None:
    dist, state = bench.begin(tmp_path)
    with small_disk(tmp_path / "disk", 32) as disk:
        if full == "state":
            state = shutil.copytree(state, disk / "state")
        else:
            dist = shutil.copytree(dist, disk / "dist")
        before = files(dist)
        ballast = fill(disk, spare)
        command = bench.command(dist, state)
        failed = octavo(*command)
        assert failed.returncode != 0
        assert failed.stdout == ""
        assert len(failed.stderr.splitlines()) == 1, failed.stderr
        assert "the disk is full" in failed.stderr
        assert "/" not in failed.stderr
        assert main(["verify", str(dist)]) == 0
        assert digest(dist) in (bench.old, bench.new), "the new one when only the build's own memory found no room"
        left = {path for path in files(dist) if bench.new not in path}
        assert left == before.keys(), "half a release stays on the full disk"

        ballast.unlink()
        again = octavo(*command)
        assert again.returncode == 0, again.stderr
        assert digest(dist) == bench.new
