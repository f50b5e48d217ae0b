"""`octavo lint --deep`: findings of a release under lint's own formats and exit codes."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from octavo_artifact.errors import ConfigError
from octavo_build.commands import LINT
from octavo_build.lint import deep
from octavo_build.lint.codes import DEEP
from octavo_evals.deep.checks import CHECKS
from running import TINY

FOUND = {"path": "overview.md", "line": 3, "code": "deep-secret", "message": "a token: x… (20 characters)"}


def run(*arguments: object) -> int:
    parser = ArgumentParser()
    LINT.add_arguments(parser)
    return LINT.run(parser.parse_args([*map(str, arguments)]))


def find(artifact: Path, *, codes: frozenset[str], **options: Any) -> dict[str, Any]:
    """In place of the real checks: one finding, of a pack named like the folder."""
    findings = [FOUND] if FOUND["code"] in codes else []
    return {"slug": artifact.name, "documents": 7, "findings": findings}


@dataclass(frozen=True, slots=True)
class Offered:
    """An entry point as lint uses it."""

    name: str
    load: Callable[[], object]


def offer(monkeypatch: pytest.MonkeyPatch, *loads: Callable[[], object]) -> None:
    def entry_points(group: str) -> list[Offered]:
        return [Offered("search", load) for load in loads if group == "octavo.deep_lint"]

    monkeypatch.setattr(deep, "entry_points", entry_points)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copytree(TINY, tmp_path / "packs" / "tiny")
    monkeypatch.chdir(tmp_path)
    offer(monkeypatch, lambda: find)
    return tmp_path


def packs(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return json.loads(capsys.readouterr().out)["packs"]


def test_a_release_alone_is_told_under_its_slug(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--deep", "dist/tiny", "--format", "json") == 1
    (pack,) = packs(capsys)
    assert (pack["slug"], pack["folder"], pack["documents"], pack["failed"]) == ("tiny", "tiny", 7, True)
    assert pack["findings"] == [FOUND | {"severity": "error", "advice": DEEP["deep-secret"][1]}]


def test_a_release_of_a_pack_is_told_with_its_source(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("packs/tiny", "--deep", "dist/tiny", "dist/other", "--format", "json") == 1
    tiny, other = packs(capsys)
    assert tiny["folder"] == "packs/tiny"
    assert {"deep-secret", "orphaned"} <= {finding["code"] for finding in tiny["findings"]}
    assert other["slug"] == "other"


@pytest.mark.parametrize("name", ["text", "sarif", "github", "junit"])
def test_every_format_tells_it(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("--deep", "dist/tiny", "--format", name)
    out = capsys.readouterr().out
    assert "deep-secret" in out
    assert "tiny/overview.md" in out


def test_what_is_left_out_is_not_even_looked_for(here: Path) -> None:
    assert run("--deep", "dist/tiny", "--except", "deep-secret") == 0
    assert run("--deep", "dist/tiny", "--only", "deep-injection") == 0
    assert run("--deep", "dist/tiny", "--only", "deep-secret") == 1


def test_without_the_checks_it_says_what_to_install(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load() -> object:
        raise ModuleNotFoundError(name="octavo_evals")

    offer(monkeypatch, load)
    with pytest.raises(ConfigError, match=r"octavo_evals.*pip install 'octavo\[evals\]'"):
        run("--deep", "dist/tiny")
    offer(monkeypatch)
    with pytest.raises(ConfigError, match=r"not installed.*pip install 'octavo\[evals\]'"):
        run("--deep", "dist/tiny")


@pytest.mark.parametrize("arguments", [[], ["--deep", "dist/tiny", "--top", "0"], ["--deep", "x", "--top", "51"]])
def test_wrong_arguments_are_refused(arguments: list[str], here: Path) -> None:
    with pytest.raises(ConfigError):
        run(*arguments)


def test_the_checks_find_exactly_the_codes_that_lint_knows() -> None:
    assert frozenset[str]().union(*CHECKS.values()) == DEEP.keys()


def test_the_installed_checks_run(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--deep", built / "tiny", "--only", "deep-title-lost", "--only", "deep-secret", "--format", "json") == 0
    (pack,) = packs(capsys)
    assert (pack["slug"], pack["findings"]) == ("tiny", [])
