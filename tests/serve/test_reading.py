from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from octavo_artifact.errors import NotFoundError, RequestError
from octavo_serve.catalog import OpenPack, open_catalog
from octavo_serve.requests import ReadRequest, SearchRequest, TopicsRequest, TraverseRequest
from running import TINY, octavo


@pytest.fixture(scope="module")
def tiny(built: Path) -> OpenPack:
    return open_catalog(built).choose("tiny")


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> OpenPack:
    """Documents with names that URIs must encode, and one too long for one answer."""
    root = tmp_path_factory.mktemp("odd")
    source = root / "odd"
    source.mkdir()
    for name in ("a b.md", "c#d.md", "100%.md", "e?f.md", "日本.md"):
        (source / name).write_text(f"# About\n\nThis is {name}.\n")
    lines = "".join(f"line {number} of a long document about patience\r\n" for number in range(400))
    (source / "long.md").write_bytes(lines.encode())
    (source / "bad.md").write_bytes(b"# Bad\n\nbyte \xff here\n")
    assert octavo("build", source, "--out", root / "dist", "--state", root / "state", "-q").returncode == 0
    return open_catalog(root / "dist").choose(None)


@pytest.mark.parametrize(
    "name",
    [
        "tiny/concepts/water",
        "concepts/water.md",
        "ep://tiny/file/concepts/water.md",
        "tiny/concepts/water#measuring-hardness:0123456789ab",
    ],
)
def test_any_name_of_a_document_reads_it(tiny: OpenPack, name: str) -> None:
    result = tiny.read(ReadRequest(id=name))
    assert result["path"] == "concepts/water.md"
    assert result["content"] == (TINY / "concepts/water.md").read_text()
    assert (result["requires"], result["related"]) == (["tiny/concepts/grinder"], ["grinder.md"])
    assert (result["verified_at"], result["verified_by"], result["truncated"]) == ("2026-11-02", "human", False)


@pytest.mark.parametrize(
    "name", ["none", "../overview.md", "/etc/passwd", "ep://tiny/file/../x.md", "%2e%2e/overview.md"]
)
def test_an_unknown_name_is_not_found(tiny: OpenPack, name: str) -> None:
    with pytest.raises(NotFoundError, match="no document of the pack"):
        tiny.read(ReadRequest(id=name))


def test_a_read_without_a_name_says_what_to_give(tiny: OpenPack) -> None:
    with pytest.raises(RequestError, match="give the id, path, uri or fragment_id"):
        tiny.read(ReadRequest())


def test_every_hit_resolves_by_each_of_its_names(odd: OpenPack) -> None:
    hits = odd.search(SearchRequest(query="what is this about", max_results=50))["results"]
    assert {hit["source_file"] for hit in hits} >= {"a b.md", "c#d.md", "100%.md", "e?f.md", "日本.md"}
    for hit in hits:
        for name in (hit["id"], hit["uri"], hit["fragment_id"], hit["source_file"]):
            assert odd.read(ReadRequest(id=name))["path"] == hit["source_file"]
        assert odd.resource(hit["uri"])[0].name == hit["source_file"]


def test_every_name_that_any_answer_gives_is_read(tiny: OpenPack) -> None:
    found = tiny.search(SearchRequest(query="hard water", max_results=1))
    refused = tiny.search(SearchRequest(query="who won the cup final in 1974", retrieval={"refuse_below": 1.0}))
    walk = tiny.traverse(TraverseRequest(path="workflows/descale.md", depth=3))
    assert any(hit["requires_expanded"] or hit["graph_expanded"] for hit in found["results"])
    assert refused["nearest"]
    names = {hit[name] for hit in found["results"] for name in ("id", "uri", "fragment_id", "source_file")}
    names |= {name for hit in found["results"] for name in hit["duplicates"]}
    names |= {near["id"] for near in refused["nearest"]} | {node["id"] for node in walk["nodes"]}
    topics = [topic for topics in tiny.topics(TopicsRequest()).get("topics").values() for topic in topics]
    names |= {name for topic in topics for name in (topic["id"], topic["path"])}
    for name in names:
        assert tiny.read(ReadRequest(id=name))["content"]
    for uri in {hit["uri"] for hit in found["results"]} | {node["uri"] for node in walk["nodes"] if node["uri"]}:
        assert tiny.resource(uri)[1]


def test_every_resource_reads_as_the_bytes_it_promises(odd: OpenPack) -> None:
    from hashlib import sha256

    for listed in odd.resources():
        resource, data = odd.resource(listed.uri)
        assert (resource, len(data), sha256(data).hexdigest()) == (listed, listed.size, listed.sha256)


def test_a_file_uri_is_understood_without_its_encoding(odd: OpenPack) -> None:
    assert odd.resource("ep://odd/file/a b.md")[1] == b"# About\n\nThis is a b.md.\n"


def test_a_long_document_reads_in_pages_that_join(odd: OpenPack) -> None:
    start, pages, whole = 1, 0, ""
    while True:
        result = odd.read(ReadRequest(path="long.md", start_line=start, max_tokens=1_600))
        assert len(result["content"]) <= 6_400
        assert result["line_range"][0] == start
        whole, pages = whole + result["content"], pages + 1
        if not result["truncated"]:
            break
        start = result["line_range"][1] + 1
    assert whole.encode() == odd.resource("ep://odd/file/long.md")[1]
    assert pages == 3


def test_a_start_beyond_the_end_says_how_long_the_document_is(odd: OpenPack) -> None:
    with pytest.raises(RequestError, match="start_line: what was asked for ends at line 400"):
        odd.read(ReadRequest(path="long.md", start_line=401))


def test_bad_bytes_are_shown_as_replacements(odd: OpenPack) -> None:
    assert "byte \ufffd here" in odd.read(ReadRequest(path="bad.md"))["content"]


def test_topics_are_grouped_by_type_and_can_be_one(tiny: OpenPack) -> None:
    result = tiny.topics(TopicsRequest())
    assert list(result["topics"]) == ["concept", "index", "overview", "workflow"]
    assert result["pack"]["version"] == "1.10"
    assert list(tiny.topics(TopicsRequest(type="concept"))["topics"]) == ["concept"]
    assert tiny.topics(TopicsRequest(type="none"))["topics"] == {}


@pytest.mark.parametrize(
    ("wanted", "first", "last"),
    [
        pytest.param("Measuring hardness", 24, 34, id="heading"),
        pytest.param("measuring-hardness", 24, 34, id="anchor"),
        pytest.param("MEASURING HARDNESS", 24, 34, id="whatever its case"),
        pytest.param("Water and scale", 17, 34, id="with what stands below it"),
    ],
)
def test_a_section_reads_by_its_heading(tiny: OpenPack, wanted: str, first: int, last: int) -> None:
    result = tiny.read(ReadRequest(id="tiny/concepts/water", section=wanted))
    assert (result["line_range"], result["truncated"]) == ([first, last], False)
    lines = (TINY / "concepts/water.md").read_text().splitlines(keepends=True)
    assert result["content"] == "".join(lines[first - 1 : last])


def test_neighbors_bring_the_sections_around(tiny: OpenPack) -> None:
    wider = tiny.read(ReadRequest(id="tiny/concepts/water", section="measuring-hardness", neighbors=True))
    assert wider["line_range"] == [17, 34]


def test_a_section_of_an_atomic_document_reads_alone(tiny: OpenPack) -> None:
    result = tiny.read(ReadRequest(id="tiny/workflows/descale", section="When the code stays"))
    assert result["content"].startswith("## When the code stays")


def test_an_unknown_section_names_those_there_are(tiny: OpenPack) -> None:
    with pytest.raises(NotFoundError, match="there are water-and-scale, measuring-hardness"):
        tiny.read(ReadRequest(id="tiny/concepts/water", section="none"))


def test_every_passage_under_a_heading_reads_by_its_anchor(odd: OpenPack) -> None:
    for hit in odd.search(SearchRequest(query="what is this about", max_results=50))["results"]:
        anchor = hit["fragment_id"].rpartition("#")[2].partition(":")[0]
        if anchor != "opening":
            section = odd.read(ReadRequest(id=hit["id"], section=anchor))
            assert section["line_range"][0] == hit["line_range"][0]


def ask_everything_at_once(pack: OpenPack) -> None:
    asks = (
        lambda: pack.topics(TopicsRequest()),
        lambda: pack.read(ReadRequest(id="tiny/concepts/water", section="measuring-hardness")),
        lambda: pack.resource("ep://tiny/file/concepts/water.md"),
        lambda: pack.search(SearchRequest(query="water", type="concept")),
    )
    with ThreadPoolExecutor(8) as threads:
        for asked in [threads.submit(ask) for ask in asks * 2]:
            asked.result(timeout=30)


@pytest.mark.slow
def test_threads_that_ask_at_once_do_not_wait_for_each_other_for_ever(built: Path) -> None:
    for _ in range(20):
        ask_everything_at_once(open_catalog(built).choose("tiny"))
