"""A pack whose encoder is another one, or gone, or fails: refused by one line, or searched by words and told."""

from __future__ import annotations

import json
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from models import FakeEndpoint, endpoint, model_folder
from octavo_artifact.errors import ConfigError
from octavo_artifact.layout import ENCODERS
from octavo_artifact.manifest import fingerprint, read_spec
from octavo_serve import encoder
from octavo_serve.catalog import open_catalog
from octavo_serve.configuration import configure
from octavo_serve.encoder import open_encoder
from octavo_serve.requests import SearchRequest
from octavo_serve.search import Operator
from running import octavo, serving

QUESTION = "how do I descale the boiler"


def make(root: Path, chosen: str) -> Path:
    """A dist with one pack, `tea`, made with an encoder."""
    pack = root / "tea"
    pack.mkdir(exist_ok=True)
    (pack / "boiler.md").write_text("# Boiler\n\nDescale the boiler with acid.\n\n# Tea\n\nBlack tea steeps.\n")
    done = octavo("build", pack, "--out", root / "dist", "--state", root / "state", "-q", "--encoder", chosen, cwd=root)
    assert done.returncode == 0, done.stderr
    return root / "dist"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    model_folder(root / "small", 8)
    return make(root, "path:small")


@pytest.fixture
def dist(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "dist")


@pytest.fixture(scope="module")
def made_remotely(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with endpoint() as fake:
        return make(tmp_path_factory.mktemp("remotely"), f"openai:{fake.url}#small")


@pytest.fixture
def remote() -> Generator[FakeEndpoint]:
    with endpoint() as fake:
        yield fake


@pytest.fixture
def behind(made_remotely: Path, remote: FakeEndpoint, tmp_path: Path) -> Path:
    """A dist with one pack, `tea`, whose encoder is `remote`."""
    dist = shutil.copytree(made_remotely, tmp_path / "behind")
    move(dist, remote)
    return dist


def move(dist: Path, fake: FakeEndpoint) -> None:
    file = encoder_of(dist) / "endpoint.json"
    file.write_text(json.dumps({**json.loads(file.read_bytes()), "url": fake.url}))


def encoder_of(dist: Path) -> Path:
    (directory,) = (dist / ENCODERS).iterdir()
    return directory


def replaced(dist: Path, tmp_path: Path, dimensions: int, seed: int) -> None:
    """Put another encoder's files in the place of the right one's, spec and all."""
    other = tmp_path / "of-another"
    other.mkdir()
    model_folder(other / "small", dimensions, seed)
    strange = encoder_of(make(other, "path:small"))
    right = encoder_of(dist)
    shutil.rmtree(right)
    shutil.copytree(strange, right)


def refusal(dist: Path) -> str:
    done = octavo("serve", dist, "--port", "0")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert str(dist.parent) not in line
    return line


def get(address: str, path: str) -> Any:
    try:
        with urllib.request.urlopen(f"{address}{path}", timeout=20) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        return json.load(error)


@pytest.mark.parametrize(("dimensions", "seed"), [(6, 0), (8, 1)], ids=["other dimensions", "other weights"])
def test_an_encoder_that_is_another_one_is_refused_in_one_line(dist: Path, tmp_path: Path, dimensions: int, seed: int):
    right = encoder_of(dist).name
    replaced(dist, tmp_path, dimensions, seed)
    strange = fingerprint(read_spec(json.loads((encoder_of(dist) / "encoder.json").read_bytes())))

    assert refusal(dist) == (
        f"octavo: no pack can be served: encoders/{right}/encoder.json: fingerprint is {strange}, expected {right}"
    )


def test_a_missing_encoder_is_refused_in_one_line(dist: Path):
    directory = encoder_of(dist)
    shutil.rmtree(directory)

    assert refusal(dist) == (
        f"octavo: no pack can be served: encoders/{directory.name}/encoder.json: missing; "
        "expected the encoder that the release was built with"
    )


def test_the_same_weights_under_another_name_are_the_encoder(dist: Path):
    file = encoder_of(dist) / "encoder.json"
    file.write_text(json.dumps({**json.loads(file.read_bytes()), "name": "what others call it"}))

    assert not open_catalog(dist).refused


def test_the_operator_may_have_words_only(dist: Path):
    with serving(dist) as server:
        assert get(server.address, "/healthz")["packs"]["tea"]["degraded"] is False
    directory = encoder_of(dist)
    shutil.rmtree(directory)
    with serving(dist, "--lexical-only") as server:
        answer = get(server.address, "/search?q=descale&gate=off")
        assert (answer["degraded"], answer["results"][0]["source_file"]) == (True, "boiler.md")
        health = get(server.address, "/healthz")
        assert (health["status"], health["packs"]["tea"]["degraded"]) == ("degraded", True)
        assert health["packs"]["tea"]["reason"].startswith(f"encoders/{directory.name}/encoder.json: missing")


def test_words_only_can_be_said_in_the_environment_and_for_stdio(dist: Path):
    shutil.rmtree(encoder_of(dist))
    environment = {**os.environ, "OCTAVO_LEXICAL_ONLY": "true", "OCTAVO_ENCODER": "path:small"}
    done = octavo("config", env=environment)
    assert json.loads(done.stdout)["lexical_only"] is True
    done = octavo("stdio", dist, "--lexical-only", input="")
    assert (done.returncode, "octavo: tea is searched by words only: encoders/" in done.stderr) == (0, True)


def test_words_only_serves_a_damaged_encoder_but_no_damaged_artifact(dist: Path):
    (encoder_of(dist) / "model.onnx").write_bytes(b"not a model")
    assert open_catalog(dist, operator=Operator(lexical_only=True)).packs["tea"].degraded
    (artifact,) = (path for path in (dist / "tea").iterdir() if path.is_dir())
    (artifact / "passages.parquet").write_bytes(b"")
    assert "passages.parquet: 0 bytes" in open_catalog(dist, operator=Operator(lexical_only=True)).refused["tea"]


# --- behind an endpoint


def test_an_endpoint_that_fails_is_told_until_it_works_again(
    behind: Path, remote: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
):
    pack = open_catalog(behind).packs["tea"]
    assert (pack.search(SearchRequest(query="descale", gate="off"))["degraded"], pack.degraded) == (False, None)
    remote.down = True
    assert pack.search(SearchRequest(query="acid", gate="off"))["degraded"]
    assert pack.degraded == "encoder small: the endpoint answered 503"
    asked = len(remote.requests)
    remote.down = False
    assert pack.search(SearchRequest(query="acid", gate="off"))["degraded"]
    assert len(remote.requests) == asked  # it is left alone for a while
    monkeypatch.setattr(encoder, "COOL_DOWN", 0.0)
    monkeypatch.setattr(encoder.time, "monotonic", lambda: float("inf"))
    assert (pack.search(SearchRequest(query="acid", gate="off"))["degraded"], pack.degraded) == (False, None)


def test_a_query_is_asked_for_once(behind: Path, remote: FakeEndpoint):
    directory = encoder_of(behind)
    opened = open_encoder(directory, directory.name)
    remote.requests.clear()
    assert (opened.encode(QUESTION) == opened.encode(QUESTION)).all()
    assert [each["input"] for each in remote.requests] == [[QUESTION]]


def test_other_weights_behind_the_endpoint_are_refused_in_one_line(behind: Path, remote: FakeEndpoint):
    remote.weights = "second"
    assert "encoder small: the endpoint has other weights under this name" in refusal(behind)
    pack = open_catalog(behind, operator=Operator(lexical_only=True)).packs["tea"]
    assert pack.search(SearchRequest(query="descale", gate="off"))["degraded"]


def test_an_endpoint_that_is_down_at_the_start_may_come_back(
    behind: Path, remote: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(encoder, "COOL_DOWN", 0.0)
    remote.down = True
    assert refusal(behind) == "octavo: no pack can be served: encoder small: the endpoint answered 503"
    pack = open_catalog(behind, operator=Operator(lexical_only=True)).packs["tea"]
    assert pack.degraded
    remote.down = False
    assert not pack.search(SearchRequest(query="descale", gate="off"))["degraded"]
    assert pack.degraded is None


def test_an_endpoint_may_move(behind: Path):
    with endpoint() as moved:
        move(behind, moved)
        assert not open_catalog(behind).refused
        assert len(moved.requests) == 1


@pytest.mark.parametrize("content", ["", "{}", '{"url": "ftp://x", "key_env": "", "send_dimensions": false}', "null"])
def test_a_damaged_endpoint_file_is_named(behind: Path, content: str):
    (encoder_of(behind) / "endpoint.json").write_text(content)
    assert open_catalog(behind).refused["tea"].startswith(f"encoders/{encoder_of(behind).name}/endpoint.json: ")


def test_a_setting_that_is_no_truth_value_is_refused():
    with pytest.raises(ConfigError, match="OCTAVO_LEXICAL_ONLY: found 'maybe', expected to be"):
        configure(None, {"OCTAVO_LEXICAL_ONLY": "maybe"}, {})
