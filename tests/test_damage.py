"""A release with one wrong byte is refused by the name of the file, and the other packs are served."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from octavo_serve import catalog
from octavo_serve.cli import main
from octavo_serve.encoder import Encoder, open_encoder
from running import octavo, serving

FILES = [
    "manifest.json",
    "report.json",
    "documents.parquet",
    "passages.parquet",
    "sections.parquet",
    "edges.parquet",
    "nodes.parquet",
    "resources.parquet",
    "vectors.lance/_versions/*.manifest",
    "vectors.lance/data/*.lance",
    "lexical/.managed.json",
    "lexical/meta.json",
    *(f"lexical/*.{part}" for part in "fast fieldnorm idx pos store term".split()),
]
"""Every file of an artifact; some are named by their content."""


def artifact(dist: Path, slug: str = "tiny") -> Path:
    return dist / slug / json.loads((dist / slug / "latest.json").read_bytes())["digest"]


def find(root: Path, pattern: str) -> Path:
    (path,) = [path for path in root.rglob("*") if fnmatch(path.relative_to(root).as_posix(), pattern)]
    return path


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.unlink()
    path.write_bytes(data)


def truncate(path: Path) -> None:
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data[:-1])


def empty(path: Path) -> None:
    path.unlink()
    path.touch()


def link(path: Path) -> None:
    """The same bytes, but not in the artifact."""
    dist = next(parent for parent in path.parents if parent.name == "dist")
    path.symlink_to(path.rename(dist.parent / path.name))


DAMAGES: list[Callable[[Path], None]] = [flip, truncate, empty, Path.unlink, link]


@pytest.fixture
def dist(built: Path, tmp_path: Path) -> Path:
    """As in conftest, but the large files of the encoder are shared: replace them, never write to them."""

    def copy(source: str, target: str) -> None:
        Path(target).hardlink_to(source)

    shutil.copytree(built, tmp_path / "dist", ignore=shutil.ignore_patterns("encoders"))
    shutil.copytree(built / "encoders", tmp_path / "dist" / "encoders", copy_function=copy)
    return tmp_path / "dist"


@pytest.fixture(scope="module")
def encoder(built: Path) -> Encoder:
    (directory,) = (built / "encoders").iterdir()
    return open_encoder(directory, directory.name)


def loaded(encoder: Encoder) -> Callable[..., Encoder]:
    def load(directory: Path, name: str, *, trusting: bool) -> Encoder:
        return encoder

    return load


@pytest.fixture
def refused(
    dist: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[], str]:
    """Why the server and `octavo verify` refuse `tiny`; both must, with the same words, and serve `notes`."""

    def look() -> str:
        with monkeypatch.context() as patch:
            # loading the model takes longer than all the rest
            patch.setattr(catalog, "open_encoder", loaded(encoder))
            opened = catalog.open_catalog(dist)
        assert list(opened.packs) == ["notes"]
        assert list(opened.refused) == ["tiny"]
        reason = opened.refused["tiny"]
        assert str(dist.parent) not in reason
        assert main(["verify", str(dist)]) == 1
        verified = capsys.readouterr()
        assert verified.err == f"octavo: {reason}\n"
        assert verified.out.startswith("notes ")
        return reason

    return look


def test_the_list_names_every_file_of_an_artifact(built: Path) -> None:
    root = artifact(built)
    found = {path for path in root.rglob("*") if path.is_file()}
    assert {find(root, pattern) for pattern in FILES} == found


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("pattern", FILES)
def test_a_damaged_file_is_refused_by_its_name(
    dist: Path, refused: Callable[[], str], pattern: str, damage: Callable[[Path], None]
) -> None:
    root = artifact(dist)
    path = find(root, pattern)
    damage(path)
    assert refused().startswith(f"tiny/{root.name[:12]}/{path.relative_to(root).as_posix()}: ")


@pytest.mark.parametrize(
    "name", ["README.md", "lexical/.tantivy-meta.lock", "vectors.lance/_transactions/0.txn", "new/page.md"]
)
def test_an_extra_file_is_refused_by_its_name(dist: Path, refused: Callable[[], str], name: str) -> None:
    root = artifact(dist)
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).touch()
    assert refused() == f"tiny/{root.name[:12]}/{name}: not named by the manifest"


def test_a_folder_that_became_a_link_is_refused(dist: Path, refused: Callable[[], str]) -> None:
    root = artifact(dist)
    (root / "lexical").symlink_to((root / "lexical").rename(dist.parent / "lexical"))
    assert refused().startswith(f"tiny/{root.name[:12]}/lexical")


def test_a_renamed_release_is_refused(dist: Path, refused: Callable[[], str]) -> None:
    root = artifact(dist)
    root.rename(root.with_name("0" * 64))
    (dist / "tiny" / "latest.json").write_text(json.dumps({"digest": "0" * 64}))
    assert refused().startswith("tiny/000000000000/manifest.json: ")


def test_a_release_of_another_pack_is_refused(dist: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(dist / "tiny")
    shutil.copytree(dist / "notes", dist / "tiny")
    monkeypatch.setattr(catalog, "open_encoder", loaded(encoder))
    opened = catalog.open_catalog(dist)
    assert (list(opened.packs), dict(opened.refused)) == (
        ["notes"],
        {"tiny": "tiny/manifest.json: is of the pack notes"},
    )


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xff{", id="no JSON"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b"{}", id="no digest"),
        pytest.param(b'{"digest": "../../notes"}', id="a path"),
        pytest.param(b'{"digest": 1}', id="a number"),
        pytest.param(b"[" * 100_000, id="nested without end"),
    ],
)
def test_a_bad_pointer_is_refused_by_its_name(dist: Path, refused: Callable[[], str], content: bytes) -> None:
    (dist / "tiny" / "latest.json").write_bytes(content)
    assert refused().startswith("tiny/latest.json: ")


def dangle(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def become_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("damage", [Path.unlink, dangle, become_a_folder], ids=lambda damage: damage.__name__)
def test_a_pointer_that_is_no_file_is_refused_by_its_name(
    dist: Path, refused: Callable[[], str], damage: Callable[[Path], None]
) -> None:
    damage(dist / "tiny" / "latest.json")
    assert refused().startswith("tiny/latest.json: ")


def test_a_pointer_to_nothing_is_refused_by_the_release_s_name(dist: Path, refused: Callable[[], str]) -> None:
    root = artifact(dist)
    shutil.rmtree(root)
    assert refused().startswith(f"tiny/{root.name[:12]}/manifest.json: ")


def respecified(directory: Path, **changes: object) -> None:
    spec = json.loads((directory / "encoder.json").read_bytes())
    (directory / "encoder.json").unlink()
    (directory / "encoder.json").write_text(json.dumps(spec | changes))


ENCODERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "other dimensions": (lambda directory: respecified(directory, dimensions=768), "encoder.json"),
    "other limit": (lambda directory: respecified(directory, max_tokens=512), "encoder.json"),
    "other weights": (lambda directory: respecified(directory, model_sha256="0" * 64), "encoder.json"),
    "unknown field": (lambda directory: respecified(directory, colour="red"), "encoder.json"),
    "model flipped": (lambda directory: flip(directory / "model.onnx"), "model.onnx"),
    "model missing": (lambda directory: (directory / "model.onnx").unlink(), "model.onnx"),
    "tokenizer truncated": (lambda directory: truncate(directory / "tokenizer.json"), "tokenizer.json"),
    "spec missing": (lambda directory: (directory / "encoder.json").unlink(), "encoder.json"),
    "folder missing": (shutil.rmtree, "encoder.json"),
}


@pytest.mark.parametrize("damage", ENCODERS)
def test_a_release_whose_encoder_is_another_or_damaged_is_refused(
    dist: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory,) = (dist / "encoders").iterdir()
    change, file = ENCODERS[damage]
    change(directory)
    opened = catalog.open_catalog(dist)
    assert list(opened.packs) == []
    assert list(opened.refused) == ["notes", "tiny"]
    assert main(["verify", str(dist)]) == 1
    for reason in (*opened.refused.values(), *capsys.readouterr().err.splitlines()):
        assert reason.removeprefix("octavo: ").startswith(f"encoders/{directory.name}/{file}: "), reason
        assert str(dist.parent) not in reason


def test_an_encoder_is_known_by_its_fingerprint_and_not_by_its_name(dist: Path) -> None:
    (directory,) = (dist / "encoders").iterdir()
    respecified(directory, name="what-others-call-it")
    opened = catalog.open_catalog(dist)
    assert (list(opened.packs), dict(opened.refused)) == (["notes", "tiny"], {})


def get(url: str) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_the_server_is_degraded_and_serves_the_other_pack(dist: Path) -> None:
    root = artifact(dist)
    flip(root / "passages.parquet")
    with serving(dist) as running:
        status, health = get(f"{running.address}/healthz")
        assert (status, health["status"], list(health["packs"])) == (200, "degraded", ["notes"])
        assert health["refused"]["tiny"].startswith(f"tiny/{root.name[:12]}/passages.parquet: ")
        status, found = get(f"{running.address}/search?q=black+tea&pack=notes")
        assert (status, found["results"][0]["source_file"]) == (200, "tea time.md")
        assert get(f"{running.address}/search?q=hard+water&pack=tiny")[0] == 404


COMMANDS = {
    "serve": ["--port", "0"],
    "stdio": [],
    "search": ["hard water", "--pack", "tiny"],
    "read": ["overview.md"],
    "verify": [],
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("file", ["lexical/meta.json", "latest.json"])
def test_a_command_that_has_only_a_damaged_pack_names_the_file_in_one_line(dist: Path, command: str, file: str) -> None:
    shutil.rmtree(dist / "notes")
    root = artifact(dist)
    path = dist / "tiny" / file if file == "latest.json" else root / file
    path.unlink()
    done = octavo(command, dist, *COMMANDS[command], input="")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert f"{path.relative_to(dist).as_posix().replace(root.name, root.name[:12])}: " in line
    assert str(dist.parent) not in line
