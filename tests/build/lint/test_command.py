from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from shutil import copytree

import pytest
import yaml

from octavo_artifact.errors import ConfigError
from octavo_build.commands import LINT
from running import ROOT, TINY


def run(*arguments: object) -> int:
    parser = ArgumentParser()
    LINT.add_arguments(parser)
    return LINT.run(parser.parse_args([*map(str, arguments)]))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the command, with the pack `tiny` in it: warnings and no error."""
    copytree(TINY, tmp_path / "packs" / "tiny")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_warnings_pass_unless_asked_for(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("packs/tiny") == 0
    assert run("packs/tiny", "--strict") == run("packs/tiny", "--fail-on", "warning") == 1
    leave_out = [f"--except={code}" for code in ("orphaned", "missing-index", "W-AUTH-01")]
    assert run("packs/tiny", "--strict", *leave_out) == 0
    assert run("packs/tiny", "--fail-on", "note", "--only", "bom") == 0
    assert run("packs/tiny", "--strict", "--aks", *leave_out) == 1
    assert "packs/tiny/archive/brewer-2.md:1: warning orphaned" in capsys.readouterr().out


def test_errors_fail(here: Path) -> None:
    with (here / "packs/tiny/overview.md").open("a") as file:
        file.write("\n[[none]]\n")
    assert run("packs/tiny") == 1
    assert run("packs/tiny", "--except", "broken-wikilink") == 0


def test_paths_are_those_of_where_the_command_ran(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for argument in ("packs/tiny", here / "packs/tiny", "packs/../packs/tiny/"):
        run(argument, "--format", "json")
        assert json.loads(capsys.readouterr().out)["packs"][0]["folder"] == "packs/tiny"
    run(ROOT / "packs/octavo", "--format", "sarif")
    assert str(ROOT) not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["text", "json", "sarif", "github", "junit"])
def test_the_same_pack_gives_the_same_bytes(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("packs/tiny", "--format", name) == run("packs/tiny", "--format", name)
    out = capsys.readouterr().out
    assert out[: len(out) // 2] == out[len(out) // 2 :] != ""


@pytest.mark.parametrize(
    "arguments",
    [(), ("none",), ("packs/tiny", "--only", "x"), ("packs/tiny", "--except", "x"), ("packs/tiny", "--today", "now")],
)
def test_wrong_arguments_are_a_config_error(here: Path, arguments: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as raised:
        run(*arguments)
    assert raised.value.exit_code == 2


def test_a_file_among_the_packs_is_told_and_left_out(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "packs/README.md").write_text("x")
    assert run("packs/README.md", "packs/tiny") == 0
    assert "README.md: a file, not a pack" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["manifest", "frontmatter"])
def test_a_schema_is_printed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--schema", name) == 0
    assert json.loads(capsys.readouterr().out)["$schema"].startswith("https://json-schema.org/")


def test_the_handbook_has_no_lint_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(ROOT / "packs/octavo", "--provenance", "--today", "2026-12-01", "--fail-on", "note") == 0


def test_the_pre_commit_hook_runs_the_command() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert (hook["entry"], hook["language"], hook["pass_filenames"]) == ("octavo lint", "python", False)
    assert hook["additional_dependencies"] == [".[build]"]
