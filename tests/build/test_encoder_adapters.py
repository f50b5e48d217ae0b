"""Encoders of every kind, prepared and used by real builds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Generator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pyarrow.parquet as pq
import pytest

from models import FakeEndpoint, endpoint, hub, model_folder, sentence_model
from octavo_artifact import endpoint as client
from octavo_artifact.errors import ConfigError
from octavo_artifact.ids import canonical_json, sha256_hex
from octavo_artifact.layout import ENCODERS
from octavo_artifact.manifest import fingerprint, read_encoder, read_manifest, read_pointer
from octavo_build.content_cache import ContentCache
from octavo_build.encode import Vectors, encode_windows
from octavo_build.encoders import install_encoder, package, prepare
from octavo_build.encoders.adapter import Places, Prepared
from octavo_build.windows import limits_for, load_tokenizer
from octavo_build.workers import Workers
from octavo_serve.encoder import open_encoder
from running import octavo

REVISION = "0123456789abcdef0123456789abcdef01234567"
TEXTS = ["how do I descale the boiler", "black tea", "every four minutes " * 100, "nothing known"]


BEFORE = ("model_sha256", "tokenizer_sha256", "dimensions", "max_tokens", "pooling", "normalize")
"""What decided a vector when there was one encoder."""


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path / "dist", tmp_path / "state")


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> Generator[FakeEndpoint]:
    def at_once(seconds: float) -> None:
        """Do not wait between attempts."""

    monkeypatch.setattr(client.time, "sleep", at_once)
    with endpoint() as fake:
        yield fake


def prepared(folder: Path, places: Places, options: str = "") -> Prepared:
    return prepare(f"path:{folder.name}{options}", folder.parent, places)


def installed(encoder: Prepared, places: Places) -> Path:
    return places.dist / ENCODERS / install_encoder(places.dist, encoder)


def encoded(directory: Path, texts: list[str], *, as_queries: bool = False) -> Vectors:
    cache = ContentCache(directory.parent.parent / "cache.sqlite")
    with Workers(1) as workers:
        return encode_windows(texts, directory, workers, cache, {}, lambda _: None, as_queries=as_queries)


def make_pack(root: Path, encoder: str | None = None) -> Path:
    root.mkdir()
    chosen = f"encoder: {json.dumps(encoder)}\n" if encoder else ""
    (root / "pack.yaml").write_text(f"slug: {root.name}\nname: Tea\n{chosen}")
    (root / "tea.md").write_text("# Tea\n\nBlack tea steeps four minutes in boiling water.\n")
    return root


def spec_of(dist: Path, slug: str) -> Any:
    return read_manifest(dist / slug / read_pointer(dist / slug)).encoder


# --- path:


def test_a_folder_says_what_its_encoder_is(tmp_path: Path, places: Places):
    prompts = {"prompts": {"query": "query: ", "passage": "passage: "}}
    folder = model_folder(tmp_path / "small", 8, files={"config_sentence_transformers.json": prompts})
    spec = prepared(folder, places).spec

    assert (spec.name, spec.dimensions, spec.max_tokens, spec.pooling) == ("small", 8, 128, "mean")
    assert (spec.query_prefix, spec.passage_prefix, spec.model) == ("query: ", "passage: ", "")


def test_options_go_before_what_the_folder_says(tmp_path: Path, places: Places):
    folder = model_folder(tmp_path / "small")
    spec = prepared(folder, places, "?pooling=last&max_tokens=64&query_prefix=ask%3A+&passage_prefix=").spec

    assert (spec.pooling, spec.max_tokens, spec.query_prefix, spec.passage_prefix) == ("last", 64, "ask: ", "")


@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
def test_queries_and_windows_agree_to_the_bit(tmp_path: Path, places: Places, pooling: str):
    directory = installed(prepared(model_folder(tmp_path / "small"), places, f"?pooling={pooling}"), places)
    windows, query = encoded(directory, TEXTS), open_encoder(directory, directory.name)

    assert np.array_equal(windows, np.stack([query.encode(text) for text in TEXTS]))
    assert np.allclose(np.linalg.norm(windows, axis=1), 1, atol=1e-6)


def test_pooling_is_what_it_is_called(tmp_path: Path, places: Places):
    folder = model_folder(tmp_path / "small")
    table = onnx.numpy_helper.to_array(onnx.load(str(folder / "onnx/model.onnx")).graph.initializer[0])
    rows = table[[1, 10, 2]]  # [CLS] how [SEP]
    for pooling, expected in (("mean", rows.mean(axis=0)), ("cls", rows[0]), ("last", rows[2])):
        directory = installed(prepared(folder, places, f"?pooling={pooling}"), places)
        assert np.allclose(encoded(directory, ["how"])[0], expected / np.linalg.norm(expected), atol=1e-6)


def test_each_side_has_its_prefix(tmp_path: Path, places: Places):
    folder = model_folder(tmp_path / "small")
    plain = installed(prepared(folder, places), places)
    prefixed = installed(prepared(folder, places, "?query_prefix=query+&passage_prefix=passage+"), places)

    assert np.array_equal(encoded(prefixed, ["tea"]), encoded(plain, ["passage tea"]))
    assert np.array_equal(encoded(prefixed, ["tea"], as_queries=True), encoded(plain, ["query tea"]))
    query = open_encoder(prefixed, prefixed.name).encode("tea")
    assert np.array_equal(query, encoded(plain, ["query tea"])[0])


def test_all_that_decides_a_vector_is_in_the_fingerprint_and_the_name_is_not(tmp_path: Path, places: Places):
    folder = model_folder(tmp_path / "small")
    other = model_folder(tmp_path / "other", seed=1)
    options = ("", "?pooling=cls", "?max_tokens=64", "?query_prefix=q", "?passage_prefix=q")
    specs = [prepared(folder, places, each).spec for each in options] + [prepared(other, places).spec]

    assert len({fingerprint(spec) for spec in specs}) == len(specs)
    renamed = prepared(shutil.copytree(folder, tmp_path / "renamed"), places).spec
    assert (renamed.name, fingerprint(renamed)) == ("renamed", fingerprint(specs[0]))


def test_a_field_that_has_its_default_does_not_rename_an_encoder():
    spec = asdict(package.DEFAULT_ENCODER)
    before = {name: value for name, value in spec.items() if name in BEFORE}

    assert fingerprint(package.DEFAULT_ENCODER) == sha256_hex(canonical_json(before))
    assert fingerprint(replace(package.DEFAULT_ENCODER, query_prefix="q")) != fingerprint(package.DEFAULT_ENCODER)


def test_windows_are_as_long_as_the_encoder_takes(tmp_path: Path, places: Places):
    folder = model_folder(tmp_path / "small")
    tokenizer = load_tokenizer(folder / "tokenizer.json")
    default = limits_for(package.DEFAULT_ENCODER, tokenizer)
    short = limits_for(prepared(folder, places, "?passage_prefix=the+a+of+").spec, tokenizer)
    long = limits_for(prepared(folder, places, "?max_tokens=8192").spec, tokenizer)

    assert (default.piece_tokens, default.overlap_tokens, default.heading_tokens, default.window_tokens) == (
        200, 30, 50, 256,
    )  # fmt: skip
    assert (short.window_tokens, long.window_tokens) == (125, 512)


def test_a_build_cuts_windows_for_its_encoder(tmp_path: Path):
    folder = model_folder(tmp_path / "small")
    pack = make_pack(tmp_path / "own", "path:../small?max_tokens=32")
    (pack / "long.md").write_text("# Long\n\n" + "every four minutes " * 40 + "\n")
    done = octavo("build", pack, "--out", tmp_path / "dist", "--state", tmp_path / "state", "-q")
    assert done.returncode == 0, done.stderr

    tokenizer = load_tokenizer(folder / "tokenizer.json")
    texts = pq.read_table(tmp_path / "state/work/own/windows.parquet")["text"].to_pylist()
    assert max(len(tokenizer.encode(text)) for text in texts) in range(20, 33)
    manifest = read_manifest(tmp_path / "dist/own" / read_pointer(tmp_path / "dist/own"))
    assert manifest.parameters["windows"]["window_tokens"] == 32


def test_weights_beside_the_model_are_taken_in(tmp_path: Path, places: Places):
    folder = model_folder(tmp_path / "small")
    whole = installed(prepared(folder, places), places)
    model = onnx.load_model_from_string(sentence_model(8))
    (folder / "onnx/model.onnx").unlink()
    onnx.save(model, str(folder / "onnx/model.onnx"), save_as_external_data=True, location="model.onnx_data",
              size_threshold=0)  # fmt: skip
    parted = installed(prepared(folder, places), places)

    assert sorted(path.name for path in parted.iterdir()) == ["encoder.json", "model.onnx", "tokenizer.json"]
    assert np.array_equal(encoded(parted, TEXTS), encoded(whole, TEXTS))


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        pytest.param({"1_Pooling/config.json": None}, "", r"give it, as \?pooling=mean", id="no pooling"),
        pytest.param({"1_Pooling/config.json": {"pooling_mode_max_tokens": True}}, "", "one pooling of", id="max"),
        pytest.param({"sentence_bert_config.json": None}, "", r"as \?max_tokens=512", id="no limit"),
        pytest.param({"modules.json": [{"type": "sentence_transformers.models.Dense"}]}, "", "found Dense", id="dense"),
        pytest.param({}, "?pooling=max", "pooling: found 'max'", id="unknown pooling"),
        pytest.param({}, "?max_tokens=no", "max_tokens: found 'no'", id="no number"),
        pytest.param({}, "?poling=mean", "option 'poling', expected one of: max_tokens", id="unknown option"),
        pytest.param({}, "?pooling=mean&pooling=cls", "each option once", id="twice"),
        pytest.param({"tokenizer.json": {}}, "", "does not load", id="no tokenizer"),
    ],
)
def test_a_folder_that_cannot_be_used_is_refused(
    tmp_path: Path, places: Places, files: dict[str, object], options: str, message: str
):
    with pytest.raises(ConfigError, match=message) as refused:
        prepared(model_folder(tmp_path / "small", files=files), places, options)
    assert str(tmp_path) not in str(refused.value)


def test_a_folder_without_a_model_is_refused(tmp_path: Path, places: Places):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"path:empty: no model.onnx or onnx/model.onnx there"):
        prepared(tmp_path / "empty", places)


def test_what_is_not_a_sentence_encoder_is_refused(tmp_path: Path, places: Places):
    folder = model_folder(tmp_path / "small")
    model = onnx.load_model_from_string(sentence_model(8))
    model.graph.input[1].name = "past_key_values"
    (folder / "onnx/model.onnx").write_bytes(model.SerializeToString())

    with pytest.raises(ConfigError, match="inputs input_ids, past_key_values, expected int64 of"):
        prepared(folder, places)


def test_a_limit_beyond_the_model_s_is_refused(tmp_path: Path, places: Places):
    folder = model_folder(tmp_path / "small")
    model = onnx.load_model_from_string(sentence_model(8))
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 128
    (folder / "onnx/model.onnx").write_bytes(model.SerializeToString())

    assert prepared(folder, places).spec.max_tokens == 128
    with pytest.raises(ConfigError, match=r"model\.onnx does not run on 200 tokens"):
        prepared(folder, places, "?max_tokens=200")


def test_an_unknown_kind_is_refused(places: Places):
    with pytest.raises(ConfigError, match="kind 'bge', expected one of package, path, openai, hub"):
        prepare("bge:small", Path(), places)
    with pytest.raises(ConfigError, match="expected KIND:LOCATION"):
        prepare("bge-small", Path(), places)


# --- whose choice it is


@pytest.mark.slow
def test_a_pack_chooses_its_encoder_and_several_live_in_one_dist(tmp_path: Path):
    model_folder(tmp_path / "small", 8)
    own, plain = make_pack(tmp_path / "own", "path:../small"), make_pack(tmp_path / "plain")
    dist = tmp_path / "dist"
    done = octavo("build", own, plain, "--out", dist, "--state", tmp_path / "state", "-q")
    assert done.returncode == 0, done.stderr

    specs = [spec_of(dist, slug) for slug in ("own", "plain")]
    assert [spec.dimensions for spec in specs] == [8, 384]
    assert sorted(path.name for path in (dist / ENCODERS).iterdir()) == sorted(map(fingerprint, specs))
    found = octavo("search", dist, "tea", "--pack", "own", "--gate", "off", "--json")
    assert json.loads(found.stdout)["degraded"] is False


@pytest.mark.slow
def test_who_builds_overrules_the_pack(tmp_path: Path):
    model_folder(tmp_path / "small", 8)
    model_folder(tmp_path / "other", 6)
    pack, dist, state = make_pack(tmp_path / "own", "path:../small"), tmp_path / "dist", tmp_path / "state"
    for encoder, flags, dimensions in (
        ("path:other", [], 6),
        ("path:other", ["--encoder", "package:"], 384),
        ("", [], 8),
    ):
        done = octavo("build", pack, "--out", dist, "--state", state, "-q", *flags, cwd=tmp_path,
                      env={"OCTAVO_ENCODER": encoder})  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert spec_of(dist, "own").dimensions == dimensions


def test_a_pack_cannot_choose_an_endpoint(tmp_path: Path):
    pack = make_pack(tmp_path / "own", "openai:https://example.org/v1#m?key_env=SECRET")
    done = octavo("build", pack, "--out", tmp_path / "dist", "--state", tmp_path / "state", "-q")

    assert (done.returncode, done.stderr) == (
        2, "octavo: own: encoder: a pack cannot choose an endpoint; give it with --encoder or OCTAVO_ENCODER\n",
    )  # fmt: skip


# --- openai:


def test_an_endpoint_gives_the_vectors(remote: FakeEndpoint, places: Places, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MY_KEY", "0p3n-s3same")
    remote.key = "0p3n-s3same"
    text = f"openai:{remote.url}#small?key_env=MY_KEY&passage_prefix=passage%3A+&query_prefix=query%3A+"
    directory = installed(prepare(text, Path(), places), places)
    texts = [f"text {number}" for number in range(100)]
    remote.requests.clear()
    vectors = encoded(directory, texts)

    expected = np.array([remote.vector(f"passage: {each}") for each in texts])
    assert np.allclose(vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)
    assert [len(each["input"]) for each in remote.requests] == [64, 36]
    assert {(each["path"], each["model"], "dimensions" in each) for each in remote.requests} == {
        ("/v1/embeddings", "small", False)
    }
    query = np.array(remote.vector("query: text 1"))
    found = open_encoder(directory, directory.name).encode("text 1")
    assert np.allclose(found, query / np.linalg.norm(query), atol=1e-6)
    assert not any(b"0p3n-s3same" in path.read_bytes() for path in directory.iterdir())


def test_dimensions_are_asked_for_when_they_are_given(remote: FakeEndpoint, places: Places):
    spec = prepare(f"openai:{remote.url}#small?dimensions=12", Path(), places).spec

    assert (spec.dimensions, {each.get("dimensions") for each in remote.requests}) == (12, {12})
    with pytest.raises(ConfigError, match="found 12 dimensions, expected 13"):
        prepare(f"openai:{remote.url}#small?dimensions=13", Path(), places)


def test_other_weights_behind_the_same_name_are_another_encoder(remote: FakeEndpoint, places: Places):
    text = f"openai:{remote.url}#small"
    first = installed(prepare(text, Path(), places), places).name
    assert fingerprint(prepare(text, Path(), places).spec) == first
    remote.weights = "second"
    assert fingerprint(prepare(text, Path(), places).spec) != first


def test_a_little_noise_is_not_another_encoder(remote: FakeEndpoint, places: Places):
    first = installed(prepare(f"openai:{remote.url}#small", Path(), places), places).name
    remote.noise = 0.002

    assert fingerprint(prepare(f"openai:{remote.url}#small", Path(), places).spec) == first


def test_where_an_endpoint_is_decides_no_vector(remote: FakeEndpoint, places: Places):
    directory = installed(prepare(f"openai:{remote.url}#small", Path(), places), places)
    with endpoint() as moved:
        assert installed(prepare(f"openai:{moved.url}#small", Path(), places), places) == directory
        assert json.loads((directory / "endpoint.json").read_bytes())["url"] == moved.url
    assert read_encoder(directory, directory.name).model == "small"


def test_what_may_pass_is_tried_again(remote: FakeEndpoint, places: Places):
    remote.statuses = [503, 429, 500]
    assert prepare(f"openai:{remote.url}#small", Path(), places).spec.dimensions == 12
    assert len(remote.requests) == 5
    remote.statuses = [503] * 4
    with pytest.raises(ConfigError, match="the endpoint answered 503, tried 4 times"):
        prepare(f"openai:{remote.url}#small", Path(), places)


def test_what_will_not_pass_is_told_at_once(remote: FakeEndpoint, places: Places, monkeypatch: pytest.MonkeyPatch):
    remote.key = "0p3n-s3same"
    monkeypatch.setenv("MY_KEY", "wrong-key")
    with pytest.raises(ConfigError, match="the endpoint answered 401") as refused:
        prepare(f"openai:{remote.url}#small?key_env=MY_KEY", Path(), places)
    assert "wrong-key" not in str(refused.value)
    assert len(remote.requests) == 1
    with pytest.raises(ConfigError, match="the environment variable NO_KEY holds no key"):
        prepare(f"openai:{remote.url}#small?key_env=NO_KEY", Path(), places)


def test_a_redirect_is_not_followed(remote: FakeEndpoint, places: Places):
    remote.statuses = [302]
    with pytest.raises(ConfigError, match="the endpoint answered 302"):
        prepare(f"openai:{remote.url}#small", Path(), places)
    assert [each["path"] for each in remote.requests] == ["/v1/embeddings"]


@pytest.mark.parametrize(
    "text",
    [
        "openai:https://me:secret@host/v1#m",
        "openai:ftp://host#m",
        "openai:https://host/v1",
        "openai:#m",
        "openai:host#m",
    ],
)
def test_an_address_that_cannot_be_used_is_refused_and_not_repeated(places: Places, text: str):
    with pytest.raises(ConfigError, match="expected openai:URL#MODEL") as refused:
        prepare(text, Path(), places)
    assert "secret" not in str(refused.value)


# --- hub:


def test_a_hub_is_asked_for_the_files_needed_once(tmp_path: Path, places: Places, monkeypatch: pytest.MonkeyPatch):
    folder = model_folder(tmp_path / "small")
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    more = {"pytorch_model.bin": b"large", "onnx/model_int8.onnx": b"another", "README.md": b"# Small"}
    text = f"hub:me/small@{REVISION}"
    with hub("me/small", REVISION, {**files, **more}) as (address, fetched):
        monkeypatch.setenv("HF_ENDPOINT", address)
        spec = prepare(text, Path(), places).spec
        assert sorted(fetched) == sorted(files)
        with pytest.raises(ConfigError, match="the hub answered 404"):
            prepare(f"hub:me/gone@{REVISION}", Path(), places)
    assert prepare(text, Path(), places).spec == spec  # the hub is gone
    assert replace(spec, name="small") == prepared(folder, places).spec
    assert spec.name == f"me/small@{REVISION}"


@pytest.mark.parametrize("location", ["me/small", "me/small@main", f"me/small@{REVISION[:12]}", f"../x@{REVISION}/y"])
def test_a_revision_must_be_a_commit(places: Places, location: str):
    with pytest.raises(ConfigError, match="expected OWNER/NAME@REVISION, 40 hex digits"):
        prepare(f"hub:{location}", Path(), places)


def test_a_repository_without_a_model_is_refused(places: Places, monkeypatch: pytest.MonkeyPatch):
    with hub("me/small", REVISION, {"tokenizer.json": b"{}"}) as (address, fetched):
        monkeypatch.setenv("HF_ENDPOINT", address)
        with pytest.raises(ConfigError, match=r"the repository lacks what is needed: model.onnx or onnx/model.onnx"):
            prepare(f"hub:me/small@{REVISION}", Path(), places)
        assert not fetched
