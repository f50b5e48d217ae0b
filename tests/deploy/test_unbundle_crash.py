"""An unbundling that is killed, or whose disk is full, leaves the old release current or the new one."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from octavo_artifact.manifest import read_pointer
from octavo_deploy.bundle import write_bundle
from octavo_serve.cli import main
from releasing import FILES, released, tree
from running import OCTAVO

SYSCALLS = ("rename", "renameat", "renameat2", "fsync", "mkdir", "unlink", "rmdir", "fchmod", "chmod")
CALL = re.compile(rf"\d+ +(?P<syscall>{'|'.join(SYSCALLS)})\((?P<arguments>.*)")

pytestmark = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")


@dataclass(frozen=True, slots=True)
class Bench:
    """A bundle of a new release, and a dist with an old one, whose encoder is damaged."""

    root: Path
    old: str
    new: str

    def begin(self, place: Path) -> Path:
        return shutil.copytree(self.root / "dist", place / "dist")

    def command(self, dist: Path) -> list[str]:
        return [str(OCTAVO), "unbundle", str(self.root / "file"), str(dist)]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    root = tmp_path_factory.mktemp("crash")
    new = released(root / "from", {**FILES, "documents.parquet": b"new"}, version="2")
    with (root / "file").open("wb") as file:
        write_bundle(new, file)
    old = released(root / "dist")
    shutil.rmtree(root / "dist/encoders")
    return Bench(root, old.name, new.name)


def moments(bench: Bench, place: Path) -> Iterator[tuple[str, int, str]]:
    """All system calls of an unbundling at which strace can kill it: name, number of that name, arguments."""
    dist = bench.begin(place)
    watch = ["strace", "-f", "-y", "-s", "300", "-o", str(place / "log"), "-e", f"trace={','.join(SYSCALLS)}"]
    subprocess.run([*watch, *bench.command(dist)], check=True, capture_output=True, timeout=120)
    counts: Counter[str] = Counter()
    for line in (place / "log").read_text().splitlines():
        if call := CALL.match(line):
            counts[call["syscall"]] += 1
            yield call["syscall"], counts[call["syscall"]], call["arguments"]


def kill_at(bench: Bench, syscall: str, number: int, place: Path) -> None:
    """Kill an unbundling at a moment, look at what it left, and unbundle again."""
    dist = bench.begin(place)
    inject = f"inject={syscall}:signal=SIGKILL:when={number}"
    watch = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={syscall}", "-e", inject]
    killed = subprocess.run([*watch, *bench.command(dist)], capture_output=True, timeout=120, check=False)
    assert killed.returncode == -9, (syscall, number, killed)

    current = read_pointer(dist / "p")
    visible = {path.name for path in (dist / "p").iterdir() if not path.name.startswith(".")} - {"latest.json"}
    assert {bench.old, current} <= visible <= {bench.old, bench.new}, (syscall, number)
    if current == bench.new:
        assert main(["verify", str(dist)]) == 0, (syscall, number)
    # what is visible is whole; the old release has no encoder until the new one brings it
    if bench.new in visible:
        assert main(["verify", str(dist / "p" / bench.new)]) == 0, (syscall, number)

    subprocess.run(bench.command(dist), check=True, capture_output=True, timeout=120)
    assert read_pointer(dist / "p") == bench.new
    assert main(["verify", str(dist / "p" / bench.old)]) == 0
    assert not list(dist.rglob(".staging-*"))
    finished = {
        path: content for path, content in tree(bench.root / "from").items() if not path.endswith("latest.json")
    }
    assert finished.items() <= tree(dist).items(), (syscall, number)


TOLD = {
    "a file is staged": ("fsync", "/documents.parquet"),
    "the encoder becomes visible": ("rename", "/encoders/"),
    "the release becomes visible": ("rename", "/release"),
    "the pointer is staged": ("fsync", ".staging-latest.json"),
    "the pointer moves": ("rename", "/latest.json"),
}


@pytest.mark.parametrize("moment", TOLD)
def test_a_kill_leaves_the_old_release_or_the_new_one(bench: Bench, moment: str, tmp_path: Path) -> None:
    syscall, text = TOLD[moment]
    (tmp_path / "watched").mkdir()
    found = [each for each in moments(bench, tmp_path / "watched") if each[0].startswith(syscall) and text in each[2]]
    assert found, f"no {syscall} of {text}"
    kill_at(bench, found[0][0], found[0][1], tmp_path)


@pytest.mark.slow
def test_a_kill_at_any_change_leaves_the_old_release_or_the_new_one(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "watched").mkdir()
    found = list(moments(bench, tmp_path / "watched"))
    assert len(found) > 40
    for number, (syscall, count, _) in enumerate(found):
        kill_at(bench, syscall, count, tmp_path / str(number))
        shutil.rmtree(tmp_path / str(number))


def test_a_full_disk_is_one_clear_line_and_leaves_the_old_release(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Full while it is written, for what the disk had at first somebody else took meanwhile."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        dist = bench.begin(disk)
        (disk / "ballast").write_bytes(bytes(shutil.disk_usage(disk).free - 12 * 1024))
        before = tree(dist)
        assert main(["unbundle", str(bench.root / "file"), str(dist)]) == 2
        assert re.search(r"^octavo: p: the disk is full; no release is damaged", capsys.readouterr().err)
        assert {path: data for path, data in tree(dist).items() if path != "encoders"} == before
    finally:
        subprocess.run(["umount", disk], check=True)
