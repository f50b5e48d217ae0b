from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import write_formats
from octavo_artifact.errors import ArtifactError, OctavoError, RequestError
from octavo_serve.catalog import OpenPack, open_catalog
from octavo_serve.reconstruct import EXCERPT, prove, reconstruct
from octavo_serve.requests import SearchRequest
from running import TINY, octavo


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dist with documents that are split: long tables, long prose, a data URI, CRLF, bad bytes, every format."""
    root = tmp_path_factory.mktemp("split")
    source = root / "split"
    write_formats(source)
    assert octavo("build", source, "--out", root / "dist", "--state", root / "state", "-q").returncode == 0
    return root / "dist"


@pytest.fixture(scope="module")
def pack(split: Path) -> OpenPack:
    return open_catalog(split).choose(None)


QUERIES = (
    "torque of a bolt",
    "river floods the meadow",
    "sketch of a pump",
    "windows line ends",
    "broken byte",
    "valve opens at bar",
    "quokka smiles",
    "wombat digs",
    "numbat eats termites",
    "bilby ears",
)


def hits(pack: OpenPack) -> list[dict[str, Any]]:
    answers = (pack.search(SearchRequest(query=query, max_results=50, reconstruct=True)) for query in QUERIES)
    return [dict(hit) for answer in answers for hit in answer["results"]]


def test_every_hit_brings_back_its_exact_source(pack: OpenPack) -> None:
    for hit in hits(pack):
        raw = pack.resource(hit["uri"])[1]
        start, end = hit["byte_range"]
        found = hit["reconstruction"]
        assert found["original_markdown"] == raw[start:end].decode("utf-8", "replace")
        assert found["file_sha256"] == sha256(raw).hexdigest()
        assert found["stale"] is False
        assert 0 < len(found["excerpt"]) <= EXCERPT


@pytest.mark.parametrize(
    ("source", "first"),
    [
        pytest.param("valves.html", "valve | opens\nvalve ", id="html"),
        pytest.param("quokka.ipynb", '# Quokka\n\nA quokka "smiles".\n\n```\na = 1\nb\n```', id="ipynb"),
        pytest.param("wombat.rst", "Wombat\n======\n\n.. c\n\nA :ref:`wombat <w>` digs.\n", id="rst"),
        pytest.param("numbat.mdx", "import A from 'a'\n\n# Numbat\n\n<A", id="mdx"),
        pytest.param("bilby.txt", "Bilby\n\nA bilby has long ears.\n", id="txt"),
    ],
)
def test_a_hit_of_any_format_is_readable_text(pack: OpenPack, source: str, first: str) -> None:
    hit = next(hit for hit in hits(pack) if hit["source_file"] == source)
    assert hit["text"].startswith(first)
    assert hit["title"] == source.partition(".")[0].capitalize()
    if source == "valves.html":
        assert " <bar>\n" in hit["text"]
        assert "<td>" not in hit["reconstruction"]["excerpt"]


def test_a_search_reconstructs_only_when_asked(pack: OpenPack) -> None:
    answer = pack.search(SearchRequest(query="torque of a bolt"))
    assert all("reconstruction" not in hit for hit in answer["results"])


def test_every_hit_is_proven_offline(pack: OpenPack, split: Path) -> None:
    found = hits(pack)
    assert any(hit["added_text"] for hit in found)
    assert any("data:…" in hit["text"] for hit in found)
    assert {prove(split, hit) for hit in found} == {f"split/{pack.digest}"}


def change(**fields: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda hit: {**hit, **fields}


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        pytest.param(change(text="another text"), "text is not what bytes", id="text"),
        pytest.param(change(added_text="| lies |\n"), "added_text stands nowhere", id="added text"),
        pytest.param(change(span_sha256="0" * 64), "another sha256", id="hash"),
        pytest.param(change(byte_range=[0, 4]), "another sha256", id="another span"),
        pytest.param(change(byte_range=[0, 10**9]), "the file has", id="beyond the end"),
        pytest.param(change(byte_range=[9, 4]), "the file has", id="backwards"),
        pytest.param(change(source_file="other.md"), "no document of", id="file"),
        pytest.param(change(digest="0" * 64), "not in this dist", id="release"),
    ],
)
def test_a_forged_hit_is_not_proven(
    pack: OpenPack, split: Path, forge: Callable[[dict[str, Any]], dict[str, Any]], message: str
) -> None:
    hit = next(hit for hit in hits(pack) if hit["source_file"] == "prose.md")
    with pytest.raises(ArtifactError, match=message):
        prove(split, forge(hit))


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        pytest.param(change(text="another text"), "text is not what bytes", id="text"),
        pytest.param(change(added_text="lies\n"), "added_text is not what bytes", id="added text"),
        pytest.param(change(byte_range=[0, 0], span_sha256=sha256(b"").hexdigest()), "no passages", id="no passage"),
    ],
)
def test_a_forged_hit_of_a_page_is_not_proven(
    pack: OpenPack, split: Path, forge: Callable[[dict[str, Any]], dict[str, Any]], message: str
) -> None:
    hit = next(hit for hit in hits(pack) if hit["source_file"] == "valves.html" and hit["added_text"])
    with pytest.raises(ArtifactError, match=message):
        prove(split, forge(hit))


def test_a_page_is_not_proven_by_a_damaged_index(split: Path, pack: OpenPack, tmp_path: Path) -> None:
    hit = next(hit for hit in hits(pack) if hit["source_file"] == "valves.html")
    dist = shutil.copytree(split, tmp_path / "dist")
    segment = next((dist / "split" / hit["digest"] / "lexical").glob("*.store"))
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    with pytest.raises(ArtifactError, match="sha256 is not what the manifest says"):
        prove(dist, hit)


@pytest.mark.parametrize(
    "hit", [{}, {"digest": "x"}, {"digest": "../..", "source_file": "a", "byte_range": [0, 1], "span_sha256": ""}]
)
def test_what_is_no_hit_is_told(split: Path, hit: dict[str, Any]) -> None:
    with pytest.raises(RequestError):
        prove(split, hit)


@given(st.binary(max_size=200), st.integers(0, 200), st.integers(0, 200))
def test_a_span_is_stale_exactly_when_its_bytes_changed(raw: bytes, start: int, end: int) -> None:
    span = raw[start:end]
    assert reconstruct(raw, (start, end), sha256(span).hexdigest(), "")["stale"] is False
    assert reconstruct(raw + b"x", (0, len(raw) + 1), sha256(raw).hexdigest(), "")["stale"] is True


def test_the_command_proves_an_answer_and_refuses_a_forged_one(built: Path, tmp_path: Path) -> None:
    answer = json.loads(octavo("search", built, "E-17", "--pack", "tiny", "--json").stdout)
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    done = octavo("verify-hit", built, tmp_path / "answer.json")
    assert (done.returncode, done.stdout.count(" is what tiny/")) == (0, len(answer["results"]))
    answer["results"][0]["text"] = "Pour in vinegar."
    done = octavo("verify-hit", built, "--json", input=json.dumps(answer))
    assert done.returncode == 1
    assert [bool(hit["error"]) for hit in json.loads(done.stdout)["hits"]][:2] == [True, False]


@pytest.mark.parametrize("given", ["", "[]", "7", "{", '{"results": [1]}'])
def test_the_command_says_when_it_was_given_no_hit(built: Path, given: str) -> None:
    assert octavo("verify-hit", built, input=given).returncode == 2


def test_a_damaged_release_proves_nothing(dist: Path) -> None:
    hit = json.loads(octavo("search", dist, "E-17", "--pack", "tiny", "--json").stdout)["results"][0]
    table = dist / "tiny" / hit["digest"] / "documents.parquet"
    data = bytearray(table.read_bytes())
    data[len(data) // 2] ^= 1
    table.write_bytes(data)
    with pytest.raises(OctavoError, match=r"documents\.parquet: sha256"):
        prove(dist, hit)


def test_the_source_is_the_authors_file(built: Path) -> None:
    answer = open_catalog(built).choose("tiny").search(SearchRequest(query="descale", reconstruct=True))
    for hit in answer["results"]:
        raw = (TINY / hit["source_file"]).read_bytes()
        assert hit.get("reconstruction", {}).get("original_markdown") == raw[slice(*hit["byte_range"])].decode()
