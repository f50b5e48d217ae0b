from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from octavo_artifact.errors import ConfigError
from octavo_artifact.layout import ENCODERS
from octavo_artifact.manifest import fingerprint, read_encoder
from octavo_build.encoders import DEFAULT_ENCODER, install_encoder, package, wanted_encoder


@pytest.fixture(scope="module")
def encoder_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    dist = tmp_path_factory.mktemp("dist")
    return dist / ENCODERS / install_encoder(dist)


def test_the_encoder_is_installed_with_its_spec(tmp_path: Path):
    name = install_encoder(tmp_path)

    assert name == wanted_encoder() == fingerprint(DEFAULT_ENCODER)
    assert read_encoder(tmp_path / ENCODERS / name, name) == DEFAULT_ENCODER
    assert [path.name for path in (tmp_path / ENCODERS).iterdir()] == [name]
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / ENCODERS / name).iterdir()} == {
        "encoder.json": 0o644,
        "model.onnx": 0o644,
        "tokenizer.json": 0o644,
    }


def test_an_installed_encoder_is_left_alone(encoder_dir: Path):
    before = {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in encoder_dir.iterdir()}
    install_encoder(encoder_dir.parent.parent)

    assert {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in encoder_dir.iterdir()} == before


def test_a_damaged_encoder_is_repaired(tmp_path: Path):
    encoder = tmp_path / ENCODERS / install_encoder(tmp_path)
    (encoder / "tokenizer.json").write_bytes(b"{}")
    (encoder / "model.onnx").unlink()

    assert install_encoder(tmp_path) == encoder.name
    assert read_encoder(encoder, encoder.name) == DEFAULT_ENCODER
    assert [path.name for path in encoder.parent.iterdir()] == [encoder.name]


def test_what_a_killed_install_left_is_removed(tmp_path: Path):
    (tmp_path / ENCODERS / ".staging-new").mkdir(parents=True)
    (tmp_path / ENCODERS / ".staging-new" / "model.onnx").write_bytes(b"half")

    name = install_encoder(tmp_path)

    assert [path.name for path in (tmp_path / ENCODERS).iterdir()] == [name]


def test_builds_side_by_side_install_one_encoder(tmp_path: Path):
    with ThreadPoolExecutor(4) as threads:
        names = set(threads.map(install_encoder, [tmp_path] * 4))

    assert [path.name for path in (tmp_path / ENCODERS).iterdir()] == [*names]


def test_another_model_in_the_package_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "another_model").mkdir()
    (tmp_path / "another_model" / "__init__.py").touch()
    (tmp_path / "another_model" / "model.onnx").write_bytes(b"other weights")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(package, "PACKAGE", "another_model")

    with pytest.raises(ConfigError, match=r"model\.onnx of another_model has sha256 .* expected 8199be6f"):
        install_encoder(tmp_path / "dist")


def test_libraries_that_make_another_model_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("octavo_build.encoders.repack.BLOCK", 64)

    with pytest.raises(ConfigError, match=r"onnx \d.*protobuf \d.* made a model of sha256 .* constraints\.txt"):
        install_encoder(tmp_path)
    assert not list((tmp_path / ENCODERS).iterdir())


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(package, "PACKAGE", "no_such_model")

    with pytest.raises(ConfigError, match=r"no_such_model is not installed, expected that of octavo\[build\]"):
        install_encoder(tmp_path)
