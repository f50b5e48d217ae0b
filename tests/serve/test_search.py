from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from octavo_serve.catalog import OpenPack, open_catalog
from octavo_serve.encoder import OnnxEncoder
from octavo_serve.requests import SearchRequest, TopicsRequest
from octavo_serve.results import SearchResult
from running import octavo

KINDS = ("guide", "reference", "howto")


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> OpenPack:
    """Documents alike but for their type, one with a rare name, and several languages."""
    root = tmp_path_factory.mktemp("search")
    source = root / "kinds"
    source.mkdir()
    for number in range(60):
        kind = "howto" if number < 12 else KINDS[number % 2]
        front = f"---\ntype: {kind}\ntags: [t{number % 2}, all]\n---\n"
        (source / f"{number:03}.md").write_text(front + "# Filters\n\nHow records are filtered by their keys.\n")
    (source / "literal.md").write_text("# Code\n\nThe function `filter_dicts_by_key` gives ERR_42.\n")
    (source / "long.md").write_text(
        "# Long\n\n" + "\n\n".join(f"## Part {n}\n\n" + "Turnips grow slowly in clay. " * 30 for n in range(8))
    )
    (source / "ja.md").write_text("# 電池\n\n電池の容量は十キロワット時です。\n")
    (source / "empty.md").write_text("")
    done = octavo("build", source, "--out", root / "dist", "--state", root / "state", "-q")
    assert done.returncode == 0, done.stderr
    return open_catalog(root / "dist").choose(None)


def search(pack: OpenPack, query: str, **options: object) -> SearchResult:
    return pack.search(SearchRequest.model_validate({"query": query, **options}))


def files(result: SearchResult) -> list[str]:
    return [hit["source_file"] for hit in result["results"]]


def test_a_filter_is_applied_before_the_cut(pack: OpenPack) -> None:
    result = search(pack, "filter records by key", type="howto", max_results=10)
    assert len(result["results"]) == 10
    assert {hit["type"] for hit in result["results"]} == {"howto"}


def test_all_tags_must_be_there(pack: OpenPack) -> None:
    assert len(search(pack, "filters", tags=["all", "t1"], max_results=50)["results"]) == 30
    assert search(pack, "filters", tags=["t0", "t1"])["reason"] == "no_relevant_passage"


def test_a_rare_word_is_found_first(pack: OpenPack) -> None:
    assert files(search(pack, "where is filter_dicts_by_key defined"))[0] == "literal.md"
    assert files(search(pack, "ERR_42"))[0] == "literal.md"


def test_a_word_inside_unspaced_text_is_found(pack: OpenPack) -> None:
    assert files(search(pack, "容量"))[0] == "ja.md"


def test_a_document_has_at_most_two_passages_in_an_answer(pack: OpenPack) -> None:
    assert files(search(pack, "turnips in clay", max_results=50)).count("long.md") == 2


def test_equal_scores_come_in_row_order_whoever_asks(pack: OpenPack) -> None:
    def ask(_: int) -> list[str]:
        return files(search(pack, "How records are filtered by their keys", max_results=20))

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(ask, range(40)))
    assert answers == [answers[0]] * 40
    alike = [file for file in answers[0] if file[:3].isdigit()]
    assert len(alike) > 10
    assert alike == sorted(alike)


def test_scores_never_rise(pack: OpenPack) -> None:
    scores = [hit["score"] for hit in search(pack, "filters for turnips", max_results=50)["results"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


@pytest.mark.parametrize("query", ["", " \t\n", "\u3000"])
def test_an_empty_query_is_refused_with_its_reason(pack: OpenPack, query: str) -> None:
    result = search(pack, query)
    assert (result["refused"], result["reason"], result["results"]) == (True, "empty_query", [])


@pytest.mark.parametrize(
    "query",
    ["multi-agent", "TODO: fix", '"--error', "don't", "a/b/c.md", "C++", "NOT", "AND OR", "foo*", "(", "\\", "[x]",
     "title:abc", '"', "the and of", "🍵", "\x00", "x" * 2000, "a " * 1000],
)  # fmt: skip
def test_no_text_breaks_the_pipeline(pack: OpenPack, query: str) -> None:
    assert search(pack, query)["query"] == query


def test_a_failing_encoder_degrades_to_words_and_says_so(pack: OpenPack, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: OnnxEncoder, text: str) -> None:
        raise RuntimeError("no more")

    monkeypatch.setattr(OnnxEncoder, "encode", fail)
    result = search(pack, "turnips")
    assert result["degraded"]
    assert files(result) == ["long.md", "long.md"]


def test_every_passage_has_its_own_fragment_id(pack: OpenPack) -> None:
    identifiers = [hit["fragment_id"] for hit in search(pack, "filters", max_results=50)["results"]]
    assert len(set(identifiers)) == len(identifiers) == 50


def test_a_pack_without_text_answers_that_nothing_is_there(tmp_path: Path) -> None:
    (tmp_path / "void").mkdir()
    (tmp_path / "void" / "a.md").write_text("\n\n")
    assert octavo("build", tmp_path / "void", "--out", tmp_path / "d", "--state", tmp_path / "s", "-q").returncode == 0
    void = open_catalog(tmp_path / "d").choose("void")
    assert search(void, "anything")["reason"] == "no_relevant_passage"
    assert list(void.topics(TopicsRequest())["topics"]) == ["uncategorized"]
