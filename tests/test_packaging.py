"""What a user installs: the wheel alone serves, and the README's first command starts from nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
import venv
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from running import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)]
    subprocess.run(command, check=True, timeout=300)
    return next(folder.glob("octavo-*.whl"))


def test_the_wheel_holds_the_packages_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "octavo_artifact",
        "octavo_build",
        "octavo_deploy",
        "octavo_evals",
        "octavo_serve",
    }
    assert "octavo_build/encoders/minilm-tokenizer.json" in names
    assert {"octavo_build/lint/schemas/manifest.json", "octavo_build/lint/schemas/frontmatter.json"} < {*names}
    templates = ("diff.html", "page.html", "page.js", "parts.html", "report.html", "style.css")
    assert {f"octavo_evals/templates/{name}" for name in templates} < {*names}
    assert not [name for name in names if "__pycache__" in name or "test" in name.rpartition("/")[2]]


@pytest.fixture(scope="module")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands of an environment with the base install only."""
    root = tmp_path_factory.mktemp("base")
    venv.create(root, with_pip=True)
    command = [str(root / "bin/pip"), "install", "-q", "-c", str(ROOT / "constraints.txt"), str(wheel)]
    subprocess.run(command, check=True, timeout=600)
    return root / "bin"


def test_the_base_install_serves_without_the_compiler(base: Path, built: Path) -> None:
    missing = (
        "import importlib.util as u; print([n for n in ('lance', 'doit', 'markdown_it', 'duckdb') if u.find_spec(n)])"
    )
    done = subprocess.run([base / "python", "-c", missing], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    with process([str(base / "octavo"), "serve", str(built), "--port", "0"], ROOT) as address:
        assert get(f"{address}/search?pack=tiny&q=hard+water")["results"]
    found = subprocess.run(
        [base / "octavo", "search", built, "E-17", "--pack", "tiny"], capture_output=True, check=False
    )
    assert found.returncode == 0


def test_the_base_install_carries_a_release_and_examines_the_machine(base: Path, built: Path, tmp_path: Path) -> None:
    for arguments in (
        ["bundle", built / "tiny", "--out", tmp_path / "file"],
        ["unbundle", tmp_path / "file", tmp_path / "dist"],
        ["rollback", "tiny", "--dist", tmp_path / "dist", "--list"],
        ["doctor", tmp_path / "dist"],
    ):
        environment = {**os.environ, "OCTAVO_PORT": "0"}
        done = subprocess.run(
            [base / "octavo", *arguments], capture_output=True, text=True, env=environment, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_command_of_an_extra_says_which_to_install(base: Path, tmp_path: Path) -> None:
    done = subprocess.run([base / "octavo", "build", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'octavo[build]'" in done.stderr


def test_the_readmes_first_command_serves_a_fresh_clone(tmp_path: Path) -> None:
    subprocess.run(["git", "clone", "-q", str(ROOT), str(tmp_path / "clone")], check=True)
    readme = (tmp_path / "clone" / "README.md").read_text()
    found = re.search(r"<!-- serve command -->\n```sh\n(.*?)\n```", readme, re.DOTALL)
    assert found
    with process(["bash", "-c", found.group(1)], tmp_path / "clone") as address:
        assert get(f"{address}/healthz")["status"] == "ok"


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


@contextmanager
def process(command: list[str], cwd: Path) -> Generator[str]:
    """A server started by `command`: the address it announces. Its whole process group ends with the context."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("VIRTUAL_ENV")}
    running = subprocess.Popen(
        command, cwd=cwd, env=clean, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    assert running.stdout is not None
    said: list[str] = []
    try:
        for line in running.stdout:
            said.append(line)
            if match := re.search(r"^Octavo serves .* on (http://\S+)", line):
                yield match.group(1)
                return
        pytest.fail("".join(said))
    finally:
        os.killpg(running.pid, signal.SIGTERM)
        running.communicate(timeout=30)
