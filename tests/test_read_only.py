"""The server writes nothing, talks to nobody, and works where nothing can be written."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from running import OCTAVO, ROOT

needs_strace = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
needs_bwrap = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap (bwrap) is not installed")

INITIALIZE = {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
}  # fmt: skip
EVERYTHING: list[tuple[str, dict[str, Any]]] = [
    ("initialize", INITIALIZE),
    ("tools/list", {}),
    ("tools/call", {"name": "ep_search", "arguments": {"pack": "tiny", "query": "hard water"}}),
    ("tools/call", {"name": "ep_search", "arguments": {"pack": "tiny", "query": "E-17", "tags": ["water"]}}),
    ("tools/call", {"name": "ep_read", "arguments": {"pack": "tiny", "id": "concepts/water.md", "start_line": 3}}),
    ("tools/call", {"name": "ep_list_topics", "arguments": {"pack": "notes"}}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "ep://tiny/manifest"}),
    ("resources/read", {"uri": "ep://notes/file/tea%20time.md"}),
]
"""Every method and every tool, over both packs."""


def requests() -> list[dict[str, Any]]:
    return [
        {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        for number, (method, params) in enumerate(EVERYTHING)
    ]


def check(answers: Mapping[int, dict[str, Any]]) -> None:
    """All is answered, and with what was asked for."""
    assert sorted(answers) == list(range(len(EVERYTHING)))
    results = [answers[number]["result"] for number in sorted(answers)]
    assert not [result for result in results if result.get("isError")]
    assert len(results[1]["tools"]) == 4
    assert results[2]["structuredContent"]["results"][0]["source_file"] == "concepts/water.md"
    assert "Hard water leaves limescale" in results[4]["structuredContent"]["content"]
    assert len(results[6]["resources"]) > 8
    assert "Black tea steeps" in results[9]["contents"][0]["text"]


def by_stdio(*command: object, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """A run of `octavo stdio` that is asked everything at once, as from a file."""
    lines = "".join(json.dumps(request) + "\n" for request in requests())
    return subprocess.run(
        list(map(str, command)), input=lines, capture_output=True, text=True, timeout=120, env=env, check=False
    )


def answers(stdout: str) -> dict[int, dict[str, Any]]:
    return {answer["id"]: answer for answer in map(json.loads, stdout.splitlines())}


# bwrap: the caller's system, read-only, as somebody without any right, without a network, with nothing to write to
ALONE = [
    "bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--remount-ro", "/dev", "--proc", "/proc",
    "--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-user", "--uid", "65534",
    "--gid", "65534", "--cap-drop", "ALL", "--die-with-parent", "--new-session", "--clearenv", "--chdir", "/",
    "--setenv", "PATH", os.environ["PATH"], "--setenv", "HOME", "/nonexistent", "--setenv", "PYTHONPATH",
    os.environ.get("PYTHONPATH", ""),
]  # fmt: skip


def with_tmp(dist: Path) -> tuple[list[str], str]:
    """`ALONE`, but /tmp can be written; the artifact and Octavo itself are bound over it, in case they lie in there."""
    bound = ["--tmpfs", "/tmp", "--ro-bind", str(dist), "/tmp/dist"]
    for path in (ROOT, Path(sys.prefix), Path(sys.base_prefix)):
        if path.is_relative_to("/tmp"):
            bound += ["--ro-bind", str(path), str(path)]
    return [*ALONE, *bound], "/tmp/dist"


@pytest.fixture(scope="module")
def alone() -> None:
    tried = subprocess.run([*ALONE, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"bwrap is not allowed to make a sandbox here: {tried.stderr.strip()}")


@needs_bwrap
@pytest.mark.usefixtures("alone")
def test_a_nobody_without_a_network_serves_a_read_only_dist(built: Path) -> None:
    sandbox, dist = with_tmp(built)
    done = by_stdio(*sandbox, OCTAVO, "stdio", dist)
    assert (done.returncode, done.stderr) == (0, "")
    check(answers(done.stdout))


ASK_OVER_HTTP = """
import re, subprocess, sys, urllib.request
server = subprocess.Popen([*sys.argv[1:], "--port", "0"], stdout=subprocess.PIPE, text=True)
address = re.search(r"http://\\S+", server.stdout.readline())[0]
for path in ("/healthz", "/search?pack=tiny&q=hard+water"):
    print(urllib.request.urlopen(address + path, timeout=30).read().decode())
server.terminate()
"""


@needs_bwrap
@pytest.mark.usefixtures("alone")
def test_a_nobody_serves_over_http_with_loopback_only(built: Path) -> None:
    sandbox, dist = with_tmp(built)
    command = [*sandbox, sys.executable, "-c", ASK_OVER_HTTP, OCTAVO, "serve", dist]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    health, found = map(json.loads, done.stdout.splitlines())
    assert (health["status"], found["degraded"]) == ("ok", False)
    assert found["results"][0]["source_file"] == "concepts/water.md"


@needs_bwrap
@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("command", ["stdio", "serve", "search"])
def test_without_any_place_to_write_the_message_says_what_to_set(built: Path, command: str) -> None:
    more = {"stdio": [], "serve": ["--port", "0"], "search": ["hard water", "--pack", "tiny"]}[command]
    done = by_stdio(*ALONE, OCTAVO, command, built, *more)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "TMPDIR" in line
    assert str(built.parent) not in line


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
@pytest.mark.parametrize("path", ["tiny", "tiny/*/lexical", "tiny/*/manifest.json"])
@needs_bwrap
@pytest.mark.usefixtures("alone")
def test_what_another_user_may_not_read_is_refused_by_its_name(dist: Path, path: str) -> None:
    """A release that was copied with private modes: not a traceback, and no reason to stop the other packs."""
    (found,) = [one for one in dist.glob(path) if one.name != "latest.json"]
    found.chmod(0)
    try:
        # in its own user namespace root is nobody, without root's power to read everything
        sandbox, inside = with_tmp(dist)
        done = by_stdio(*sandbox, OCTAVO, "search", inside, "black tea", "--pack", "notes")
        assert done.returncode == 0, done.stderr
        done = by_stdio(*sandbox, OCTAVO, "search", inside, "hard water", "--pack", "tiny")
        (line,) = done.stderr.splitlines()
        name = found.relative_to(dist).parts[2:] or ("manifest.json",) if path != "tiny" else ("latest.json",)
        assert re.fullmatch(
            rf"octavo: tiny/([0-9a-f]{{12}}/)?{'/'.join(name)}: cannot be read \(Permission denied\)", line
        )
        assert done.returncode == 1
    finally:
        found.chmod(0o755)


CHANGES = (
    "creat mkdir mkdirat rmdir rename renameat renameat2 unlink unlinkat link linkat symlink symlinkat mknod mknodat "
    "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat truncate ftruncate fallocate utime utimes utimensat "
    "futimesat setxattr lsetxattr fsetxattr removexattr mount"
).split()
OPENS = ("open", "openat", "openat2")
CALLS = "execve,connect,sendto,sendmsg,sendmmsg,bind," + ",".join(f"?{name}" for name in (*OPENS, *CHANGES))
LINE = re.compile(r"\d+ +(?P<name>\w+)\((?P<arguments>.*)")
NAMED = re.compile(r'(?:(?P<at>\w+)<(?P<folder>[^>]*)>, )?"(?P<path>(?:[^"\\]|\\.)*)"|\w+<(?P<file>/[^>]*)>')


@dataclass(frozen=True, slots=True)
class Watched:
    """What a process and its children did, as strace saw it; what failed too."""

    log: Path

    def calls(self) -> Iterator[tuple[str, str]]:
        for line in self.log.read_text(errors="replace").splitlines():
            if call := LINE.match(line):
                yield call["name"], call["arguments"]

    def written(self) -> list[str]:
        """Paths that were opened for writing, made, moved, removed or changed."""
        found: list[str] = []
        for name, arguments in self.calls():
            if name in CHANGES or (name in OPENS and re.search(r"O_(WRONLY|RDWR|CREAT|TRUNC|APPEND)", arguments)):
                paths = [
                    named["file"] or str(PurePosixPath(named["folder"] or "", named["path"]))
                    for named in NAMED.finditer(arguments)
                ]
                found += paths[1:] if name.startswith("symlink") else paths
        return found

    def addressed(self) -> list[str]:
        """Internet addresses that were connected to, sent to or bound."""
        return [
            address[1]
            for name, arguments in self.calls()
            if name in ("connect", "sendto", "sendmsg", "sendmmsg", "bind")
            for address in re.finditer(r'(?:inet_addr\(|inet_pton\(AF_INET6, )"([^"]+)"', arguments)
        ]


@pytest.fixture
def surroundings(tmp_path: Path) -> dict[str, str]:
    """An environment whose home and temporary folder are empty."""
    for name in ("home", "temporary"):
        (tmp_path / name).mkdir()
    # what would keep onnxruntime quiet by itself, or send it elsewhere, is left out
    quiet = ("XDG_", "ORT_", "CI")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(quiet)},
        "HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path / "temporary"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def watch(log: Path) -> list[str]:
    return ["strace", "-f", "-y", "-qq", "-s", "4096", "-o", str(log), "-e", f"trace={CALLS}", "-e", "signal=none"]


def outside(watched: Watched, temporary: Path) -> list[str]:
    """What was written that is neither in a private folder, `octavo-…`, nor nowhere."""
    private = re.compile(rf"{re.escape(str(temporary))}/octavo-\w+(/[^/]+)?")
    return [path for path in watched.written() if not private.fullmatch(path) and path != "/dev/null"]


def snapshot(root: Path) -> dict[str, tuple[str, int, bytes]]:
    found: dict[str, tuple[str, int, bytes]] = {}
    for path in [root, *root.rglob("*")]:
        status = path.lstat()
        data = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        found[path.relative_to(root).as_posix()] = (stat.filemode(status.st_mode), status.st_mtime_ns, data)
    return found


@needs_strace
def test_the_watcher_sees_what_a_process_writes_and_whom_it_calls(tmp_path: Path) -> None:
    program = """
import os, socket, subprocess, sys
open("made", "w").close()
os.mkdir("folder")
os.symlink("/etc/passwd", "folder/link")
os.rename("made", "moved")
os.chmod("moved", 0o600)
subprocess.run([sys.executable, "-c", "open('by a child', 'w')"])
os.unlink("moved")
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.connect(("192.0.2.1", 9))
"""
    command = [*watch(tmp_path / "log"), sys.executable, "-S", "-c", program]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60, env={"PYTHONDONTWRITEBYTECODE": "1"})
    watched = Watched(tmp_path / "log")
    names = {PurePosixPath(path).name for path in watched.written()}
    assert names == {"made", "folder", "link", "moved", "by a child"}
    assert str(tmp_path / "by a child") in watched.written()
    assert watched.addressed() == ["192.0.2.1"]


@pytest.mark.slow
@needs_strace
def test_stdio_writes_nothing_and_calls_nobody(built: Path, tmp_path: Path, surroundings: dict[str, str]) -> None:
    before = snapshot(built)
    done = by_stdio(*watch(tmp_path / "log"), OCTAVO, "stdio", built, env=surroundings)
    assert (done.returncode, done.stderr) == (0, "")
    check(answers(done.stdout))
    watched = Watched(tmp_path / "log")
    assert watched.written(), "the private folder at least"
    assert outside(watched, tmp_path / "temporary") == []
    assert watched.addressed() == []
    assert snapshot(built) == before
    assert list((tmp_path / "temporary").iterdir()) == list((tmp_path / "home").iterdir()) == []


@contextmanager
def watched_server(log: Path, dist: Path, env: Mapping[str, str]) -> Generator[str]:
    """The address of an `octavo serve` under strace."""
    command = [*watch(log), str(OCTAVO), "serve", str(dist), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    try:
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found, process.communicate(timeout=10)[1]
        yield found.group()
    finally:
        # strace ends with what it watches, and keeps a signal to itself
        for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            os.kill(int(child), signal.SIGTERM)
        process.communicate(timeout=30)


def post(url: str, message: dict[str, Any]) -> dict[str, Any]:
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    request = urllib.request.Request(url, json.dumps(message).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


@needs_strace
def test_serve_writes_nothing_and_calls_nobody(built: Path, tmp_path: Path, surroundings: dict[str, str]) -> None:
    before = snapshot(built)
    with watched_server(tmp_path / "log", built, surroundings) as address:
        for path in ("/", "/healthz", "/search?pack=tiny&q=hard+water", "/search?pack=tiny&q=E-17&type=concept"):
            with urllib.request.urlopen(address + path, timeout=30) as answer:
                assert answer.status == 200
        check({request["id"]: post(f"{address}/mcp", request) for request in requests()})
    watched = Watched(tmp_path / "log")
    assert watched.written(), "the private folder at least"
    assert outside(watched, tmp_path / "temporary") == []
    assert set(watched.addressed()) == {"127.0.0.1"}
    assert snapshot(built) == before
    assert list((tmp_path / "temporary").iterdir()) == list((tmp_path / "home").iterdir()) == []
