"""A release with its encoder is one file, the same wherever it is made."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pyarrow as pa
import pytest

from octavo_artifact.errors import ArtifactError
from octavo_artifact.ids import sha256_hex
from octavo_artifact.manifest import fingerprint
from octavo_deploy.archive import header, parse_contents
from octavo_deploy.bundle import write_bundle
from octavo_deploy.unbundle import unbundle
from octavo_serve.cli import main
from releasing import FILES, REMOTE, SPEC, released, tree
from running import octavo


def bundled(artifact: Path, *, with_encoder: bool = True) -> bytes:
    target = io.BytesIO()
    write_bundle(artifact, target, with_encoder=with_encoder)
    return target.getvalue()


def opened(bundle: bytes) -> tarfile.TarFile:
    data = pa.CompressedInputStream(pa.BufferReader(bundle), "zstd").read()
    return tarfile.open(fileobj=io.BytesIO(data))


def test_a_bundle_is_a_tar_in_the_order_in_which_it_is_trusted(tmp_path: Path) -> None:
    artifact = released(tmp_path / "dist")
    digest, encoder = artifact.name, fingerprint(SPEC)
    assert opened(bundled(artifact)).getnames() == [
        "bundle.json",
        f"p/{digest}/manifest.json",
        *(f"p/{digest}/{path}" for path in sorted(FILES)),
        *(f"encoders/{encoder}/{name}" for name in ("encoder.json", "model.onnx", "tokenizer.json")),
    ]


def test_entries_say_nothing_of_the_machine(tmp_path: Path) -> None:
    entries = opened(bundled(released(tmp_path / "dist"))).getmembers()
    said = {(each.mtime, each.uid, each.gid, each.uname, each.gname, each.mode, each.type) for each in entries}
    assert said == {(0, 0, 0, "", "", 0o644, tarfile.REGTYPE)}


def test_tar_alone_makes_a_dist_of_a_bundle(tmp_path: Path) -> None:
    artifact = released(tmp_path / "dist")
    opened(bundled(artifact)).extractall(tmp_path / "other", filter="data")
    assert main(["verify", str(tmp_path / "other/p" / artifact.name)]) == 0


def test_what_is_inside_stands_at_the_beginning(tmp_path: Path) -> None:
    artifact = released(tmp_path / "dist")
    entry = opened(bundled(artifact)).extractfile("bundle.json")
    assert entry is not None
    assert json.loads(entry.read()) == {
        "format": 1,
        "slug": "p",
        "digest": artifact.name,
        "encoder": {
            "fingerprint": fingerprint(SPEC),
            "files": {"encoder.json": 309, "model.onnx": 2100, "tokenizer.json": 2},
        },
    }


def test_the_bytes_depend_on_nothing_around_a_release(tmp_path: Path) -> None:
    here = released(tmp_path / "dist")
    there = Path(shutil.copytree(tmp_path / "dist", tmp_path / "der/ä ort"), "p", here.name)
    for path in there.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.utime(path, (915_148_800, 915_148_800))
    (there.parent / ("0" * 64)).mkdir()
    surroundings = {**os.environ, "TZ": "Asia/Kolkata", "LC_ALL": "C", "OMP_NUM_THREADS": "7", "ARROW_IO_THREADS": "7"}
    made: list[bytes] = []
    for artifact, out, umask, env in ((here, "a", 0o022, None), (there, "b", 0o077, surroundings)):
        done = octavo("bundle", artifact, "--out", tmp_path / out, "--json", umask=umask, env=env)
        assert done.returncode == 0, done.stderr
        made.append((tmp_path / out).read_bytes())
        assert json.loads(done.stdout)["sha256"] == sha256_hex(made[-1])
    assert made[0] == made[1]


def test_only_what_the_release_needs_is_carried(tmp_path: Path) -> None:
    artifact = released(tmp_path / "dist")
    (tmp_path / "dist/encoders" / fingerprint(SPEC) / "README").write_text("mine")
    released(tmp_path / "dist", slug="q", spec=REMOTE)
    names = opened(bundled(artifact)).getnames()
    assert not [name for name in names if "README" in name or name.startswith("q/") or fingerprint(REMOTE) in name]


def test_an_encoder_behind_an_endpoint_is_its_spec_and_its_address(tmp_path: Path) -> None:
    names = opened(bundled(released(tmp_path / "dist", spec=REMOTE))).getnames()
    assert [name.rpartition("/")[2] for name in names if "encoders/" in name] == ["encoder.json", "endpoint.json"]


def test_without_the_encoder_it_is_left_out(tmp_path: Path) -> None:
    bundle = bundled(released(tmp_path / "dist"), with_encoder=False)
    assert not [name for name in opened(bundle).getnames() if "encoders/" in name]


@pytest.mark.parametrize("file", ["documents.parquet", "manifest.json", "lexical/meta.json"])
def test_a_damaged_release_is_not_bundled(tmp_path: Path, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    artifact = released(tmp_path / "dist")
    (artifact / file).write_bytes(b"damage")
    assert main(["bundle", str(artifact), "--out", str(tmp_path / "out")]) == 1
    assert f"p/{artifact.name[:12]}/{file}: " in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["dist"]


def test_a_release_without_its_encoder_is_not_bundled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifact = released(tmp_path / "dist")
    (tmp_path / "dist/encoders" / fingerprint(SPEC) / "model.onnx").write_bytes(b"another")
    assert main(["bundle", str(artifact), "--out", str(tmp_path / "out")]) == 1
    assert "model.onnx: sha256 is not" in capsys.readouterr().err


def test_a_bundle_goes_through_a_pipe(tmp_path: Path) -> None:
    artifact = released(tmp_path / "dist")
    command = f"{sys.executable} -m octavo_serve"
    pipe = f"{command} bundle dist p --out - | {command} unbundle - other --expect {artifact.name[:12]}"
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", pipe], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert tree(tmp_path / "other") == tree(tmp_path / "dist")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["nowhere"], "no pack, expected dist/SLUG", id="nothing there"),
        pytest.param(["dist"], "no pack, expected dist/SLUG", id="a dist"),
        pytest.param(["dist", "q"], "q: no such pack in dist, expected one of: p", id="another pack"),
        pytest.param(["dist", "../dist/p"], "no such pack in dist", id="a path for a slug"),
        pytest.param(["dist/p", "--release", "0" * 12], "p: 0 releases begin with", id="no such release"),
        pytest.param(["dist/p", "--release", "abc"], "expected a digest or the first 12", id="too short"),
        pytest.param(["{artifact}", "--release", "0" * 12], "is a release already", id="twice"),
        pytest.param(["dist/p", "--out", "no/folder/file"], "cannot be written (No such file", id="no folder"),
    ],
)
def test_wrong_arguments_are_exit_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    artifact = released(tmp_path / "dist")
    monkeypatch.chdir(tmp_path)
    written = [each.format(artifact=f"dist/p/{artifact.name}") for each in arguments]
    out = [] if "--out" in written else ["--out", "file"]
    assert main(["bundle", *written, *out]) == 2
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["dist"]


@pytest.mark.parametrize(
    "name", ["ä", "a\nb", "a/" * 90 + "x" * 100, "x" * 101], ids=["not ASCII", "control", "long path", "long name"]
)
def test_a_name_that_has_no_room_in_a_header_is_told(name: str) -> None:
    with pytest.raises(ArtifactError, match="cannot be in a bundle"):
        header(name, 1)


@pytest.mark.parametrize("size", [-1, 8 * 2**30])
def test_a_size_that_has_no_room_in_a_header_is_told(size: int) -> None:
    assert len(header("a", 8 * 2**30 - 1)) == 512
    with pytest.raises(ArtifactError, match="cannot be in a bundle"):
        header("a", size)


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"null", b"[" * 9999, b'{"format": 2}', b"\xff", b'{"format":1,"slug":7}']
)
def test_what_are_no_contents_is_refused(data: bytes) -> None:
    with pytest.raises(ArtifactError, match=r"^bundle\.json: "):
        parse_contents(data)


PEAK = """
import resource, sys
from pathlib import Path
from octavo_serve.cli import main
assert main(sys.argv[1:]) == 0
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_release(tmp_path: Path) -> None:
    """256 MiB more in a file are less than 32 MiB more in memory, on either side."""
    big = tmp_path / "big"
    artifact = released(tmp_path / "dist")
    with big.open("wb") as file:
        file.truncate(256 * 2**20)
    large = released(tmp_path / "dist", {**FILES, "big": big.read_bytes()}, slug="q")
    peaks: dict[tuple[str, str], int] = {}
    for name, release in (("small", artifact), ("large", large)):
        for command in (
            ["bundle", str(release), "--out", str(tmp_path / name)],
            ["unbundle", str(tmp_path / name), str(tmp_path / "other")],
        ):
            done = subprocess.run(
                [sys.executable, "-c", PEAK, *command], capture_output=True, text=True, timeout=300, check=True
            )
            peaks[name, command[0]] = int(done.stderr)
    assert all(peaks["large", each] - peaks["small", each] < 32 for each in ("bundle", "unbundle")), peaks
    assert (tmp_path / "large").stat().st_size < 2**20
    assert tree(tmp_path / "other") == tree(tmp_path / "dist")


def test_what_was_bundled_comes_out_of_a_real_release(built: Path, tmp_path: Path) -> None:
    digest = json.loads((built / "tiny/latest.json").read_bytes())["digest"]
    unbundle(io.BytesIO(bundled(built / "tiny" / digest)), tmp_path / "dist")
    assert tree(tmp_path / "dist/tiny") == tree(built / "tiny")
    assert tree(tmp_path / "dist/encoders") == tree(built / "encoders")
    done = octavo("search", tmp_path / "dist", "hard water", "--json")
    assert json.loads(done.stdout)["results"][0]["source_file"] == "concepts/water.md"
