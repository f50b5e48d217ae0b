"""The shell: every command's help, exit codes, and JSON."""

from __future__ import annotations

import json
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from octavo_artifact.command import GROUP, Command
from running import TINY, octavo

COMMANDS = sorted(point.name for point in entry_points(group=GROUP))


def test_help_lists_every_command() -> None:
    shown = octavo("--help")
    assert shown.returncode == 0
    assert [name for name in COMMANDS if f"\n  {name} " not in shown.stdout] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples_of_itself(name: str) -> None:
    shown = octavo(name, "--help")
    assert shown.returncode == 0
    assert "examples:" in shown.stdout
    (point,) = (point for point in entry_points(group=GROUP) if point.name == name)
    command = point.load()
    assert isinstance(command, Command)
    assert all("octavo" in example and name in example for example in command.examples)


@pytest.mark.parametrize(
    "arguments", [("wrong",), ("search",), ("build",), ("serve", "a", "b"), ("search", "x", "y", "-z")]
)
def test_a_wrong_command_line_is_exit_2(arguments: tuple[str, ...]) -> None:
    assert octavo(*arguments).returncode == 2


def test_search_prints_what_the_server_answers(built: Path) -> None:
    done = octavo("search", built, "the display shows E-17", "--pack", "tiny", "--n", "2", "--json")
    result = json.loads(done.stdout)
    found = [hit for hit in result["results"] if not hit["requires_expanded"]]
    assert (done.returncode, done.stderr, len(found)) == (0, "", 2)
    shown = octavo("search", built, "the display shows E-17", "--pack", "tiny", "-n", "2")
    assert all(hit["fragment_id"] in shown.stdout for hit in result["results"])
    assert "\x1b" not in shown.stdout


def test_search_without_a_hit_is_exit_1(built: Path) -> None:
    done = octavo("search", built, "water", "--pack", "tiny", "--type", "none")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no_relevant_passage" in done.stderr


def test_reading_in_several_packs_asks_which_and_searching_asks_all(built: Path) -> None:
    done = octavo("read", built, "concepts/water.md")
    assert done.returncode == 2
    assert "notes, tiny" in done.stderr
    assert "tiny: " in octavo("search", built, "the display shows E-17").stdout


def test_read_writes_the_file_as_it_is(built: Path) -> None:
    done = octavo("read", built, "tiny/concepts/water", "--pack", "tiny")
    assert done.stdout == (TINY / "concepts/water.md").read_text()
    assert octavo("read", built, "none", "--pack", "tiny").returncode == 1


def test_verify_and_inspect_take_a_dist_a_pack_or_an_artifact(built: Path) -> None:
    digest = json.loads((built / "tiny/latest.json").read_bytes())["digest"]
    for path, slugs in ((built, ["notes", "tiny"]), (built / "tiny", ["tiny"]), (built / "tiny" / digest, ["tiny"])):
        verified = json.loads(octavo("verify", path, "--json").stdout)["artifacts"]
        assert [(one["slug"], one["error"]) for one in verified] == [(slug, None) for slug in slugs]
        inspected = json.loads(octavo("inspect", path, "--json").stdout)["artifacts"]
        assert [one["pack"]["slug"] for one in inspected] == slugs
    assert octavo("inspect", built).stdout.count("digest") == 2


@pytest.mark.parametrize("command", ["serve", "stdio", "verify", "inspect"])
def test_a_folder_without_packs_says_what_to_do(command: str, tmp_path: Path) -> None:
    done = octavo(command, tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_build_reports_findings_and_releases_all_the_same(tmp_path: Path) -> None:
    source = tmp_path / "guide"
    source.mkdir()
    (source / "a.md").write_text("---\na: b: c\n---\n# A\n\ntext\n")
    done = octavo("build", source, "--out", tmp_path / "d", "--state", tmp_path / "s")
    assert done.returncode == 0
    assert "guide: error yaml-invalid (1)" in done.stderr
    assert "a.md:2:" in done.stderr
    report = json.loads(octavo("build", source, "--out", tmp_path / "d", "--state", tmp_path / "s", "--json").stdout)
    assert [(f["code"], f["path"], f["line"]) for f in report["packs"][0]["findings"]] == [("yaml-invalid", "a.md", 2)]


@pytest.mark.slow
def test_strict_releases_nothing_and_says_why(tmp_path: Path) -> None:
    source = tmp_path / "guide"
    source.mkdir()
    (source / "a.md").write_bytes(b"\xef\xbb\xbf# A\n\ntext\n")
    done = octavo("build", source, "--out", tmp_path / "d", "--state", tmp_path / "s", "--strict", "--json")
    outcome = json.loads(done.stdout)["packs"][0]
    assert (done.returncode, [finding["code"] for finding in outcome["findings"]]) == (1, ["bom"])
    assert "--strict" in outcome["error"]
    assert not (tmp_path / "d" / "guide" / "latest.json").exists()


@pytest.mark.slow
def test_a_failing_pack_does_not_stop_the_others(tmp_path: Path) -> None:
    for name, raw in (("good", b"# A\n\ntext\n"), ("bad", b"\xef\xbb\xbf# A\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_bytes(raw)
    packs = (tmp_path / "bad", tmp_path / "good")
    done = octavo("build", *packs, "--out", tmp_path / "d", "--state", tmp_path / "s", "--strict", "-q")
    assert done.returncode == 1
    assert done.stdout.startswith("good ")


def test_two_packs_with_one_slug_are_refused(tmp_path: Path) -> None:
    for name in ("a/guide", "b/guide"):
        (tmp_path / name).mkdir(parents=True)
    done = octavo(
        "build", tmp_path / "a/guide", tmp_path / "b/guide", "--out", tmp_path / "d", "--state", tmp_path / "s"
    )
    assert done.returncode == 2
    assert "both packs with the slug 'guide'" in done.stderr


def test_files_that_a_shell_brings_along_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "guide").mkdir()
    (tmp_path / "guide/a.md").write_text("# A\n\ntext\n")
    (tmp_path / "README.md").write_text("about the packs")
    done = octavo(
        "build", tmp_path / "README.md", tmp_path / "guide", "--out", tmp_path / "d", "--state", tmp_path / "s"
    )
    assert done.returncode == 0
    assert "a file, not a pack; left out" in done.stderr


def test_a_port_in_use_is_one_line(built: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = octavo("serve", built, "--port", taken.getsockname()[1])
    assert done.returncode == 2
    assert "cannot listen on host 127.0.0.1" in done.stderr


def test_a_damaged_memory_of_the_build_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s/doit.sqlite").write_bytes(b"no database" * 1000)
    done = octavo("build", TINY, "--out", tmp_path / "d", "--state", tmp_path / "s", "-q")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "doit.sqlite: the build's memory cannot be used" in done.stderr


@pytest.mark.slow
def test_what_is_private_is_in_no_file_of_a_release(tmp_path: Path) -> None:
    source = tmp_path / "life"
    source.mkdir()
    (source / "manifest.yaml").write_text("slug: life\nname: Life\ntype: person\n")
    (source / "overview.md").write_text("---\ntitle: O\n---\nBorn by the sea.\n")
    (source / "diary-of-march.md").write_text("---\ntitle: Diary\nsensitivity: self\n---\nA zebra came to tea.\n")
    done = octavo("build", source, "--out", tmp_path / "d", "--state", tmp_path / "s", "--json")
    (outcome,) = json.loads(done.stdout)["packs"]
    assert [finding["code"] for finding in outcome["findings"] if not finding["path"]] == ["audience-withheld"]
    files = [path for path in (tmp_path / "d" / "life").rglob("*") if path.is_file()]
    assert not [path for path in files if b"zebra" in path.read_bytes() or b"diary-of-march" in path.read_bytes()]
    found = octavo("sql", tmp_path / "d/life", "select path from documents", "--json")
    assert json.loads(found.stdout) == [{"path": "overview.md"}]


@pytest.mark.slow
def test_a_private_release_is_served_only_to_whom_it_is_for(tmp_path: Path) -> None:
    source = tmp_path / "life"
    source.mkdir()
    (source / "manifest.yaml").write_text("slug: life\nname: Life\ntype: person\n")
    (source / "overview.md").write_text("---\ntitle: O\n---\nBorn by the sea.\n")
    (source / "diary.md").write_text("---\ntitle: Diary\nsensitivity: family\n---\nA zebra came to tea.\n")
    octavo("build", source, "--audience", "family", "--out", tmp_path / "d", "--state", tmp_path / "s", "-q")
    refused = octavo("search", tmp_path / "d", "zebra")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "withheld life: the release is for family; --audience family serves it" in refused.stderr
    found = octavo("search", tmp_path / "d", "zebra", "--audience", "self", "--json")
    assert json.loads(found.stdout)["results"][0]["source_file"] == "diary.md"
