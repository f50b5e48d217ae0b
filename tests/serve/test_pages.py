"""Answers within their budget: what does not fit follows on the next page, with no gap and no overlap."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from models import model_folder
from octavo_artifact.errors import RequestError
from octavo_serve.catalog import OpenPack, open_catalog
from octavo_serve.faces import compact_json
from octavo_serve.over_mcp.app import answered
from octavo_serve.over_mcp.tools import TOOLS, described
from octavo_serve.pages import BYTES_PER_TOKEN, page_of_bytes
from octavo_serve.reconstruct import prove
from octavo_serve.requests import (
    DEFAULT_TOKENS,
    MAX_RESULTS,
    MIN_TOKENS,
    ReadRequest,
    SearchRequest,
    TopicsRequest,
    TraverseRequest,
    parse_request,
)
from running import octavo

DOCUMENTS = 60
LONG = "".join(f"line {number} of a long book on ferries, ß 油\r\n" for number in range(45_000)).encode()
"""Two megabytes."""
ONE_LINE = ("油 is oil, " * 5_000).encode()
HEAD = "---\ntitle: {0}\ntype: {1}\nretrieval_strategy: {2}\nrelated: [{3}]\n---\n\n"


def ferry(number: int) -> str:
    """A document of about 700 tokens."""
    neighbours = ", ".join(f"ferry-{(number + step) % DOCUMENTS:02}.md" for step in (1, 7))
    sentences = "".join(f"The ferry number {number} carries load {n} over the river.\n" for n in range(50))
    kind = ("boat", "guide")[number % 2]
    return HEAD.format(f"Ferry {number}", kind, "standard", neighbours) + f"# Ferry {number}\n\n{sentences}"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pages")
    source = root / "ferries"
    source.mkdir()
    manifest = "name: Ferries\nslug: ferries\ntype: product\nversion: '1'\n"
    (source / "manifest.yaml").write_text(manifest + "context:\n  on_demand: [book.md, line.md, empty.md]\n")
    for number in range(DOCUMENTS):
        (source / f"ferry-{number:02}.md").write_text(ferry(number))
    atom = HEAD.format("Timetable", "atom", "atomic", "")
    rows = "".join(f"At {n} minutes the zeppelin leaves pier {n % 7}.\n" for n in range(2_000))
    (source / "timetable.md").write_text(f"{atom}# Timetable\n\n{rows}")
    (source / "book.md").write_bytes(LONG)
    (source / "line.md").write_bytes(ONE_LINE)
    (source / "empty.md").write_bytes(b"")
    encoder = f"path:{model_folder(root / 'encoder')}"  # 70,000 tokens, of whose meaning nothing here depends
    done = octavo("build", source, "--encoder", encoder, "--out", root / "dist", "--state", root / "state", "-q")
    assert done.returncode == 0, done.stderr
    return root / "dist"


@pytest.fixture(scope="module")
def pack(dist: Path) -> OpenPack:
    return open_catalog(dist).choose(None)


def pages(work: Callable[[Any], Any], model: Any, max_tokens: int, **asked: Any) -> list[Any]:
    """Every page of an answer, each within its budget but for the fields around its items, and what JSON escapes."""
    found: list[Any] = []
    cursor = None
    while True:
        values = {**asked, "max_tokens": max_tokens, "cursor": cursor}
        found.append(work(parse_request(model, values, strict=True)))
        assert len(compact_json(found[-1])) <= 1.1 * BYTES_PER_TOKEN * max_tokens + 2_000
        cursor = found[-1]["next_cursor"]
        assert found[-1]["truncated"] or cursor is None
        if cursor is None:
            return found


def test_pages_of_a_search_join_to_the_whole_answer(pack: OpenPack) -> None:
    asked: dict[str, Any] = {"query": "the", "max_results": MAX_RESULTS, "retrieval": {"gate": "off"}}
    whole = pack.search(SearchRequest.model_validate(asked))
    found = pages(pack.search, SearchRequest, 2_500, **asked)
    assert len(found) > 10
    joined = [hit for page in found for hit in page["results"]]
    assert [hit["fragment_id"] for hit in joined] == [hit["fragment_id"] for hit in whole["results"]]
    assert [hit for hit in joined if "shown_range" not in hit] == [h for h in whole["results"] if h["type"] != "atom"]
    assert {page["total"] for page in found} == {len(whole["results"])} == {whole["total"]}
    assert (len(whole["results"]), whole["truncated"], whole["next_cursor"]) == (MAX_RESULTS, False, None)


def test_the_most_common_word_with_most_results_stays_below_what_clients_cut(pack: OpenPack) -> None:
    asked: dict[str, Any] = {"query": "the", "max_results": MAX_RESULTS, "retrieval": {"gate": "off"}}
    answer = pack.search(parse_request(SearchRequest, asked, strict=True))
    assert answer["truncated"]
    assert len(compact_json(answer)) < BYTES_PER_TOKEN * DEFAULT_TOKENS + 2_000 < BYTES_PER_TOKEN * 25_000 / 2


@pytest.mark.parametrize("compact", [False, True])
def test_a_passage_that_is_larger_than_an_answer_is_cut_and_says_so(dist: Path, pack: OpenPack, compact: bool) -> None:
    asked = {"query": "zeppelin timetable", "compact": compact, "retrieval": {"gate": "off"}}
    first, *others = pages(pack.search, SearchRequest, MIN_TOKENS, **asked)
    (hit,) = first["results"]
    whole: Any = pack.search(SearchRequest(query="zeppelin timetable", compact=compact, gate="off"))["results"][0]
    assert hit["source_file"] == "timetable.md"
    assert (first["truncated"], hit["line_range"]) == (True, whole["line_range"])
    assert whole["text"].startswith(hit["text"])
    assert hit["text"].endswith(".\n")
    begin, end = hit["shown_range"]
    lines = (pack.read(ReadRequest(path="timetable.md"))["content"]).splitlines(keepends=True)
    assert hit["text"] == "".join(lines[begin - 1 : end])
    assert [each["fragment_id"] for page in others for each in page["results"]].count(hit["fragment_id"]) == 0
    if not compact:
        assert prove(dist, hit)
        with pytest.raises(Exception, match="text is not what bytes"):
            prove(dist, {**hit, "text": "Another" + hit["text"]})


@pytest.mark.parametrize(
    ("path", "max_tokens", "content"),
    [
        pytest.param("book.md", 10_000, LONG, id="two megabytes"),
        pytest.param("line.md", 1_000, ONE_LINE, id="one long line"),
        pytest.param("empty.md", 1_000, b"", id="nothing"),
    ],
)
def test_pages_of_a_document_join_to_its_bytes(pack: OpenPack, path: str, max_tokens: int, content: bytes) -> None:
    found = pages(pack.read, ReadRequest, max_tokens, path=path)
    assert "".join(page["content"] for page in found).encode() == content
    lines = content.decode().splitlines(keepends=True)
    for page in found:
        first, last = page["line_range"]
        assert page["content"] in "".join(lines[first - 1 : last])
        assert page["content"][:20] in lines[first - 1] if lines else (first, last) == (1, 0)


def test_pages_of_a_part_end_where_it_ends(pack: OpenPack) -> None:
    found = pages(pack.read, ReadRequest, 500, path="ferry-03.md", start_line=10)
    whole = pack.read(ReadRequest(path="ferry-03.md", start_line=10))
    assert len(found) > 1
    assert "".join(page["content"] for page in found) == whole["content"]
    assert (found[0]["line_range"][0], found[-1]["line_range"][1]) == (10, whole["total_lines"])


@pytest.mark.parametrize("asked", [{}, {"type": "guide"}])
def test_pages_of_topics_join_to_the_whole_list(pack: OpenPack, asked: dict[str, Any]) -> None:
    whole = pack.topics(TopicsRequest.model_validate(asked))
    found = pages(pack.topics, TopicsRequest, MIN_TOKENS, **asked)
    joined: dict[str, list[Any]] = {}
    for page in found:
        for kind, topics in page["topics"].items():
            joined.setdefault(kind, []).extend(topics)
    assert len(found) > 2
    assert (joined, list(joined)) == (whole["topics"], list(whole["topics"]))
    assert {page["total"] for page in found} == {sum(map(len, joined.values()))}


def test_pages_of_a_walk_join_to_the_whole_walk(pack: OpenPack) -> None:
    asked: dict[str, Any] = {"path": "ferry-00.md", "depth": 3, "max_nodes": 40}
    whole = pack.traverse(TraverseRequest.model_validate(asked))
    found = pages(pack.traverse, TraverseRequest, MIN_TOKENS, **asked)
    assert len(found) > 2
    for name in ("nodes", "edges"):
        assert [item for page in found for item in page[name]] == whole[name]
    seen: set[str] = set()
    for page in found:
        seen |= {node["id"] for node in page["nodes"]}
        assert all({edge["source"], edge["target"]} <= seen for edge in page["edges"])
    assert {page["total"] for page in found} == {len(whole["nodes"])}


def test_a_cursor_is_of_one_question_of_one_release(pack: OpenPack, built: Path) -> None:
    asked = {"query": "the", "retrieval": {"gate": "off"}, "max_tokens": MIN_TOKENS}
    cursor = pack.search(parse_request(SearchRequest, asked, strict=True))["next_cursor"]
    topics = pack.topics(parse_request(TopicsRequest, {"max_tokens": MIN_TOKENS}, strict=True))["next_cursor"]
    position, _, seal = str(cursor).partition("-")
    other = open_catalog(built).choose("tiny")
    assert pack.search(SearchRequest.model_validate({**asked, "max_tokens": 900, "cursor": cursor}))["results"]
    for release, changed in (
        (other, {"cursor": cursor}),
        (pack, {"cursor": cursor, "query": "a"}),
        (pack, {"cursor": cursor, "max_results": 11}),
        (pack, {"cursor": topics}),
        (pack, {"cursor": f"{int(position) + 1}-{seal}"}),
        *((pack, {"cursor": made}) for made in ("", "0", "-1-" + seal, "٣-" + seal, "9" * 200, "x\0")),
    ):
        with pytest.raises(RequestError, match=r"cursor: of another release, or of another question"):
            release.search(SearchRequest.model_validate({**asked, **changed}))
    with pytest.raises(RequestError, match="cursor: "):
        pack.read(ReadRequest(path="ferry-00.md", cursor=cursor))
    with pytest.raises(RequestError, match="cursor: "):
        pack.traverse(TraverseRequest(path="ferry-00.md", cursor=cursor))


@pytest.mark.parametrize(
    ("tool", "asked"),
    [
        pytest.param("ep_search", {"query": "which load does ferry 9 carry", "gate": "off"}, id="hits"),
        pytest.param("ep_search", {"query": "zeppelin", "max_tokens": MIN_TOKENS, "gate": "off"}, id="cut"),
        pytest.param("ep_search", {"query": "the", "max_tokens": 2_000, "compact": True, "gate": "off"}, id="compact"),
        pytest.param("ep_search", {"query": "ferry", "reconstruct": True, "explain": True, "gate": "off"}, id="all"),
        pytest.param("ep_search", {"query": "  "}, id="none"),
        pytest.param("ep_search", {"query": "ferry", "type": "nothing"}, id="filtered"),
        pytest.param("ep_read", {"path": "book.md"}, id="part"),
        pytest.param("ep_read", {"path": "empty.md"}, id="empty"),
        pytest.param("ep_list_topics", {"max_tokens": MIN_TOKENS}, id="topics"),
        pytest.param("ep_graph_traverse", {"path": "ferry-00.md", "max_tokens": MIN_TOKENS}, id="walk"),
    ],
)
def test_every_answer_fits_its_schema_and_reads_as_text(pack: OpenPack, tool: str, asked: dict[str, Any]) -> None:
    known = TOOLS[tool]
    (schema,) = (each["outputSchema"] for each in described(tuple(TOOLS.values()), ()) if each["name"] == tool)
    (arguments,) = (each["inputSchema"] for each in described(tuple(TOOLS.values()), ()) if each["name"] == tool)
    Draft202012Validator(arguments).validate(asked)
    request = parse_request(known.request, asked, strict=True)
    answer = answered(known, request, known.work(pack)(request))
    Draft202012Validator(schema).validate(answer["structuredContent"])
    text, *links = answer["content"]
    assert answer["structuredContent"]["digest"] in text["text"]
    assert len(links) <= 3
    if asked.get("compact"):
        assert all("text" not in hit for hit in answer["structuredContent"]["results"])
    for hit in answer["structuredContent"].get("results", ()):
        assert hit["fragment_id"] in text["text"]
        assert hit.get("text", "").strip() in text["text"]


@pytest.mark.parametrize(
    ("data", "room", "page"),
    [
        pytest.param(b"one\ntwo\n", 5, b"one\n", id="whole lines"),
        pytest.param(b"one\r\ntwo", 4, b"one", id="a line end stays whole"),
        pytest.param(b"\r\rab", 3, b"\r\r", id="carriage returns"),
        pytest.param("ab油c".encode(), 4, b"ab", id="a character stays whole"),
        pytest.param("ab油c".encode(), 5, "ab油".encode(), id="a character that fits"),
        pytest.param(b"\x80" * 9, 5, b"\x80" * 5, id="no character at all"),
    ],
)
def test_a_page_of_a_text_ends_well(data: bytes, room: int, page: bytes) -> None:
    assert page_of_bytes(data, 0, room) == page


def test_a_compact_answer_has_what_cites_a_passage_and_no_more(pack: OpenPack) -> None:
    whole = pack.search(SearchRequest(query="which load does ferry 9 carry", gate="off"))
    compact = pack.search(SearchRequest(query="which load does ferry 9 carry", gate="off", compact=True))
    names = ("pack", "fragment_id", "title", "heading_path", "source_file", "line_range", "score", "expired")
    hits: Any = whole["results"]
    expected = [{name: hit[name] for name in (*names, "age_stale", "text")} for hit in hits]
    assert compact["results"] == expected != []
    with pytest.raises(RequestError, match="compact: not together with reconstruct"):
        pack.search(SearchRequest(query="ferry", compact=True, reconstruct=True))
