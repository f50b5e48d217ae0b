"""Inputs that broke systems like ours, at the operator: each by its number in ../shared/cases.md, with the tests that
hold us to the right behaviour. What no other test says of a row is tested below.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from octavo_artifact.layout import ENCODERS
from running import OCTAVO, TINY, is_test, octavo, serving
from test_read_only import ALONE, by_stdio, with_tmp

CASES = {
    "B49 read-only, /tmp only, nothing writable": [
        "test_read_only.py::test_a_nobody_without_a_network_serves_a_read_only_dist",
        "test_read_only.py::test_a_nobody_serves_over_http_with_loopback_only",
        "test_read_only.py::test_without_any_place_to_write_the_message_says_what_to_set",
        "test_read_only.py::test_stdio_writes_nothing_and_calls_nobody",
        "test_read_only.py::test_serve_writes_nothing_and_calls_nobody",
        "deploy/test_operator_cases.py::test_the_doctor_says_what_a_place_without_writing_lacks",
    ],
    "B50 built under umask 077, owned by another user": [
        "test_reproducible.py::test_surroundings_do_not_change_a_byte_or_a_mode_of_dist",
        "deploy/test_operator_cases.py::test_what_was_made_under_umask_077_is_readable_to_another_user",
        "deploy/test_unbundle.py::test_modes_do_not_depend_on_the_umask",
    ],
    "B51 one wrong byte, a file less, a file more": [
        "test_damage.py::test_a_damaged_file_is_refused_by_its_name",
        "test_damage.py::test_an_extra_file_is_refused_by_its_name",
        "test_damage.py::test_the_server_is_degraded_and_serves_the_other_pack",
        "deploy/test_rollback.py::test_a_damaged_and_a_missing_release_are_passed_over_and_told",
        "deploy/test_operator_cases.py::test_a_running_server_answers_on_whatever_becomes_of_the_files_names",
    ],
    "B53 no network, with and without the model": [
        "deploy/test_operator_cases.py::test_with_the_model_no_socket_is_opened",
        "deploy/test_operator_cases.py::test_without_the_model_the_file_is_named_at_once",
        "test_encoder_missing.py::test_a_missing_encoder_is_refused_in_one_line",
    ],
}


@pytest.mark.parametrize("case", CASES)
def test_a_case_names_tests_that_exist(case: str) -> None:
    assert [name for name in CASES[case] if not is_test(name)] == []


needs_bwrap = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap (bwrap) is not installed")


@pytest.fixture(scope="module")
def alone() -> None:
    tried = subprocess.run([*ALONE, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"bwrap is not allowed to make a sandbox here: {tried.stderr.strip()}")


@needs_bwrap
@pytest.mark.usefixtures("alone")
def test_the_doctor_says_what_a_place_without_writing_lacks(built: Path) -> None:
    """B49: nothing writable fails by one finding; with /tmp none does, and the dist is as it should be."""
    for sandbox, dist, failed in ((ALONE, str(built), ["temporary files"]), (*with_tmp(built), [])):
        done = by_stdio(*sandbox, OCTAVO, "doctor", dist, "--json")
        findings = json.loads(done.stdout)["findings"]
        missing = [each["check"] for each in findings if each["status"] == "fail" and each["check"] != "search"]
        assert (missing, done.stderr) == (failed, "")
        assert [each["status"] for each in findings if each["check"] == "dist rights"] == ["ok"]


@pytest.mark.slow
@needs_bwrap
@pytest.mark.usefixtures("alone")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_what_was_made_under_umask_077_is_readable_to_another_user(tmp_path: Path) -> None:
    """B50: by a build and by an unbundling; Tantivy makes one of its files 0600 whatever the umask."""
    command = ("build", TINY, "--out", tmp_path / "dist", "--state", tmp_path / "state", "-q")
    done = octavo(*command, umask=0o077)
    assert done.returncode == 0, done.stderr
    octavo("bundle", tmp_path / "dist/tiny", "--out", tmp_path / "file", umask=0o077)
    octavo("unbundle", tmp_path / "file", tmp_path / "carried", umask=0o077)
    for dist in (tmp_path / "dist", tmp_path / "carried"):
        modes = {path.stat().st_mode & 0o7777 for path in [dist, *dist.rglob("*")]}
        assert modes == {0o644, 0o755}
        for path in [dist, *dist.rglob("*")]:
            os.chown(path, 12345, 12345)
        sandbox, inside = with_tmp(dist)
        found = by_stdio(*sandbox, OCTAVO, "search", inside, "hard water", "--json")
        assert found.returncode == 0, found.stderr
        assert json.loads(found.stdout)["results"][0]["source_file"] == "concepts/water.md"


def test_a_running_server_answers_on_whatever_becomes_of_the_files_names(dist: Path) -> None:
    """B51: what it opened it keeps; a release that is replaced by a rename, or removed, does not reach into it."""
    from urllib.request import urlopen

    shutil.rmtree(dist / "notes")
    with serving(dist) as running:

        def found() -> str:
            with urlopen(f"{running.address}/search?q=hard+water&pack=tiny", timeout=30) as answer:
                return json.loads(answer.read())["results"][0]["source_file"]

        assert found() == "concepts/water.md"
        artifact = next(path for path in (dist / "tiny").iterdir() if path.is_dir())
        artifact.rename(artifact.with_name("0" * 64))
        shutil.rmtree(artifact.with_name("0" * 64))
        assert found() == "concepts/water.md"


def bare(tmp_path: Path) -> dict[str, str]:
    """An environment without any word of a model hub, and with an empty home."""
    (tmp_path / "home").mkdir()
    unset = ("HF_", "HUGGINGFACE", "TRANSFORMERS", "SENTENCE_TRANSFORMERS", "XDG_", "OCTAVO_")
    left = {name: value for name, value in os.environ.items() if not name.startswith(unset)}
    return {**left, "HOME": str(tmp_path / "home")}


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_with_the_model_no_socket_is_opened(built: Path, tmp_path: Path) -> None:
    """B53. With a control: the watcher sees a socket."""
    log = tmp_path / "log"
    watch = ["strace", "-f", "-qq", "-o", log, "-e", "trace=socket,socketpair", "-e", "signal=none"]

    def sockets(*command: str | Path) -> list[str]:
        done = subprocess.run(
            [*watch, *command], capture_output=True, text=True, timeout=120, env=bare(tmp_path), check=False
        )
        shutil.rmtree(tmp_path / "home")
        assert done.returncode == 0, done.stderr
        return re.findall(r"socket\((\w+)", log.read_text())

    assert "AF_INET" in sockets(OCTAVO, "doctor", built)
    assert sockets(OCTAVO, "search", built, "hard water", "--pack", "tiny") == []


def test_without_the_model_the_file_is_named_at_once(dist: Path, tmp_path: Path) -> None:
    """B53: in less than 2 s of CPU, for nothing is looked for elsewhere."""
    (encoder,) = (dist / ENCODERS).iterdir()
    (encoder / "model.onnx").unlink()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = octavo("serve", dist, "--port", "0", env=bare(tmp_path), timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line == (
        f"octavo: no pack can be served: encoders/{encoder.name}/model.onnx: cannot be read (No such file or directory)"
    )
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2
    assert list((tmp_path / "home").iterdir()) == []
