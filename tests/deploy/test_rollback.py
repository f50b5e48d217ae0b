"""An earlier release becomes the current one again, and never one that is damaged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from octavo_artifact.errors import ArtifactError
from octavo_artifact.manifest import fingerprint, read_pointer, read_previous
from octavo_deploy.releases import list_releases
from octavo_deploy.rollback import roll_back
from octavo_serve.cli import main
from releasing import SPEC, released


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return tmp_path / "dist" / "p"


@pytest.fixture
def digests(pack: Path) -> list[str]:
    """Three releases, the last one current."""
    return [released(pack.parent, version=version).name for version in "123"]


def damage(pack: Path, digest: str) -> None:
    (pack / digest / "documents.parquet").write_bytes(b"damage")


def pointer(pack: Path) -> tuple[str, tuple[str, ...]]:
    return read_pointer(pack), read_previous(pack)


def test_a_rollback_goes_to_what_was_current_before(pack: Path, digests: list[str]) -> None:
    one, two, three = digests
    assert pointer(pack) == (three, (two, one))
    done = roll_back(pack)
    assert (done.digest, done.left, done.skipped) == (two, three, ())
    assert pointer(pack) == (two, (one,))


def test_twice_goes_further_back_and_not_forth(pack: Path, digests: list[str]) -> None:
    roll_back(pack)
    roll_back(pack)
    assert pointer(pack) == (digests[0], ())
    with pytest.raises(ArtifactError, match=r"p: there is no earlier release that is whole; name one with --to"):
        roll_back(pack)


def test_the_release_that_was_left_is_gone_to_by_its_name(pack: Path, digests: list[str]) -> None:
    one, two, three = digests
    roll_back(pack)
    roll_back(pack, three[:12])
    assert pointer(pack) == (three, (two, one))


def test_going_to_one_further_back_forgets_what_is_between(pack: Path, digests: list[str]) -> None:
    one, two, three = digests
    assert roll_back(pack, one).left == three
    assert pointer(pack) == (one, ())
    assert (pack / two).is_dir()


def test_to_the_current_one_changes_nothing(pack: Path, digests: list[str]) -> None:
    before = (pack / "latest.json").stat()
    assert roll_back(pack, digests[2]).left == digests[2]
    assert (pack / "latest.json").stat() == before


def test_a_damaged_and_a_missing_release_are_passed_over_and_told(
    pack: Path, digests: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    four = released(pack.parent, version="4").name
    damage(pack, digests[2])
    shutil.rmtree(pack / digests[1])
    assert main(["rollback", "p", "--dist", str(pack.parent)]) == 0
    said = capsys.readouterr()
    assert said.out == f"p {digests[0][:12]} is current, {four[:12]} was\n"
    first, second = said.err.splitlines()
    assert first.startswith(f"octavo: passed over: p/{digests[2][:12]}/documents.parquet: ")
    assert second.startswith(f"octavo: passed over: p/{digests[1][:12]}/manifest.json: cannot be read")
    assert pointer(pack) == (digests[0], ())


def test_where_none_is_whole_the_current_one_stays(
    pack: Path, digests: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = (pack / "latest.json").read_bytes()
    damage(pack, digests[0])
    damage(pack, digests[1])
    assert main(["rollback", "p", "--dist", str(pack.parent)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.count("documents.parquet") == 2
    assert (pack / "latest.json").read_bytes() == before


def test_a_damaged_release_is_not_gone_to_by_its_name(pack: Path, digests: list[str]) -> None:
    damage(pack, digests[0])
    with pytest.raises(ArtifactError, match=r"documents\.parquet: 6 bytes"):
        roll_back(pack, digests[0])
    assert read_pointer(pack) == digests[2]


def test_a_release_without_its_encoder_is_not_gone_to(pack: Path, digests: list[str]) -> None:
    (pack.parent / "encoders" / fingerprint(SPEC) / "model.onnx").unlink()
    with pytest.raises(ArtifactError, match=r"no earlier release that is whole: .*model\.onnx: cannot be read"):
        roll_back(pack)
    assert read_pointer(pack) == digests[2]


def test_a_damaged_pointer_is_mended_by_naming_a_release(pack: Path, digests: list[str]) -> None:
    (pack / "latest.json").write_bytes(b"damage")
    with pytest.raises(ArtifactError, match=r"p/latest\.json: not a pointer"):
        roll_back(pack)
    assert roll_back(pack, digests[1]).left is None
    assert pointer(pack) == (digests[1], ())


def test_a_pointer_of_before_has_no_history(pack: Path, digests: list[str]) -> None:
    (pack / "latest.json").write_text(json.dumps({"digest": digests[2]}))
    with pytest.raises(ArtifactError, match="name one with --to"):
        roll_back(pack)
    roll_back(pack, digests[0])
    assert pointer(pack) == (digests[0], (digests[2],))


def test_the_list_says_which_is_current_which_were_and_which_are_whole(pack: Path, digests: list[str]) -> None:
    one, two, three = digests
    roll_back(pack)
    damage(pack, one)
    listed = [(each.digest, each.current, each.previous, each.version) for each in list_releases(pack)]
    assert listed == [(two, True, None, "2"), (one, False, 1, None), (three, False, None, "3")]
    assert [each.error is None for each in list_releases(pack)] == [True, False, True]


def run(pack: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["rollback", "p", "--dist", str(pack.parent), *arguments]) == 0
    return capsys.readouterr().out


def test_the_list_is_for_people_and_for_scripts(
    pack: Path, digests: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = run(pack, capsys, "--list").splitlines()
    assert lines[0].split() == [digests[2][:12], "current", "3", "whole"]
    assert lines[1].split() == [digests[1][:12], "previous", "1", "2", "whole"]
    told = json.loads(run(pack, capsys, "--list", "--json"))
    assert told["slug"] == "p"
    assert told["releases"][1] == {
        "digest": digests[1],
        "version": "2",
        "current": False,
        "previous": 1,
        "error": None,
    }
    assert json.loads(run(pack, capsys, "--json")) == {
        "slug": "p",
        "digest": digests[1],
        "left": digests[2],
        "skipped": [],
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["q"], "q: no such pack in ", id="another pack"),
        pytest.param(["../dist/p"], "no such pack in ", id="a path"),
        pytest.param(["p", "--to", "0" * 64], "p: 0 releases begin with 0000", id="no such release"),
        pytest.param(["p", "--to", "latest"], "'latest', expected a digest or", id="no digest"),
    ],
)
def test_wrong_arguments_are_exit_2(
    pack: Path, digests: list[str], capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["rollback", *arguments, "--dist", str(pack.parent)]) == 2
    assert message in capsys.readouterr().err
    assert read_pointer(pack) == digests[2]
    assert sorted(path.name for path in pack.parent.iterdir()) == ["encoders", "p"]


def test_a_real_release_is_left_and_gone_to(dist: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the files and the encoder that a server opens."""
    first = read_pointer(dist / "tiny")
    (dist / "tiny/latest.json").unlink()
    assert main(["rollback", "tiny", "--dist", str(dist), "--to", first[:16]]) == 0
    assert main(["verify", str(dist)]) == 0
    assert capsys.readouterr().err == ""
