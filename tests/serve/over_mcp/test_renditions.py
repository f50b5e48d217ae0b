"""What a model reads: where each passage stands, what is to be known of it, and how to go on."""

from __future__ import annotations

from typing import Any

from fakes import DIGEST, FakePack
from octavo_serve.over_mcp.renditions import answer_text, read_text, search_text, topics_text, traverse_text
from octavo_serve.requests import ReadRequest, SearchRequest, TopicsRequest, TraverseRequest

PACK = FakePack("pumps")


def found(query: str = "oil", **changed: Any) -> Any:
    return {**PACK.search(SearchRequest(query=query)), **changed}


def test_a_passage_stands_below_where_it_stands() -> None:
    assert search_text(found(total=1, results=found()["results"][:1])) == (
        f"pumps, release {DIGEST}\n\n## 1. A\na.md:1-1 - pumps/a#opening:0123456789ab\n\nÖl 油"
    )


def test_a_passage_is_told_with_what_makes_it_less_reliable() -> None:
    result = found(pack=None, doubtful=True, answer_probability=0.2, degraded=True, missing=["encoder"])
    first, second = result["results"]
    first |= {"expired": True, "heading_path": ["A", "Oil\u202e\nof"], "shown_range": [1, 7], "requires_expanded": True}
    second |= {"age_stale": True, "graph_expanded": True}
    text = search_text(result)
    assert f"Several packs, releases {DIGEST}\nDegraded: without encoder" in text
    assert "Doubtful (probability 0.2): read before you cite." in text
    assert "## 1. A > Oil of, expired 2026-12-31, required by a result\npumps/a.md:1-1 - pumps/a#" in text
    assert "[cut for its size; read on with ep_read from start_line 7]" in text
    assert "## 2. A, should have been verified again, linked with a result\n" in text


def test_passages_are_numbered_over_the_pages() -> None:
    assert "## 5. " in search_text(found(total=9, next_cursor="6-abc", truncated=True))
    assert "## 8. " in search_text(found(total=9))
    text = search_text(found(total=9, next_cursor="6-abc", truncated=True))
    assert text.endswith("More of 9 passages follow: repeat the request with cursor 6-abc")


def test_a_refusal_is_one_clear_sentence_with_what_is_near() -> None:
    near = [{"pack": "pumps", "id": "pumps/b", "title": "B", "score": 0.1}]
    assert search_text(found("nothing", nearest=near)) == (
        f"pumps, release {DIGEST}\nNothing relevant is known here.\n- near, but no answer: B - pumps/b"
    )
    assert "The query is empty" in search_text(found("nothing", reason="empty_query"))


def test_a_document_stands_below_its_place() -> None:
    result = PACK.read(ReadRequest(id="pumps/a"))
    assert read_text(result) == f"a.md:1-1 - A, of 1 lines\nRelease {DIGEST}\n\nÖl 油\n"
    assert read_text({**result, "next_cursor": "9-a"}).endswith("More follows: repeat the request with cursor 9-a")


def test_topics_and_walks_are_lists() -> None:
    assert topics_text(PACK.topics(TopicsRequest())) == (
        f"Pumps (pumps): 1 documents\nRelease {DIGEST}\n\n## guide\n- A - a.md"
    )
    walk = PACK.traverse(TraverseRequest(id="e"))
    walk["edges"] = [{"source": "e", "target": "f", "kind": "link"}]
    assert traverse_text(walk) == f"1 of 1 nodes from e\nRelease {DIGEST}\n\n- E - e (t, 0 away)\n\ne --link-> f"
    assert "raise max_nodes" in traverse_text({**walk, "truncated": True})


def answered(**changed: Any) -> Any:
    sources = [{**hit, "number": number} for number, hit in enumerate(found()["results"], 1)]
    whole = {
        "answer": "Change it [1]. It is blue [2].",
        "pack": "pumps",
        "digest": DIGEST,
        "sources": sources,
        "refused": False,
        "reason": None,
        "nearest": [],
        "truncated": False,
        "missing": [],
        "unsupported": [],
        "invalid_citations": [],
    }
    return {**whole, **changed}


def test_an_answer_stands_above_its_sources() -> None:
    assert answer_text(answered()) == (
        f"Change it [1]. It is blue [2].\n\nSources (pumps, release {DIGEST}):\n[1] a.md:1-1 - A\n[2] a.md:1-1 - A"
    )


def test_what_an_answer_should_not_be_believed_for_is_told() -> None:
    blue = {"sentence": "It is\nblue [2].", "range": [15, 30], "numbers": [2], "reason": "terms", "supported_by": 1}
    result = answered(pack=None, truncated=True, missing=["citation_check"], unsupported=[blue])
    result["invalid_citations"] = [{"number": 7, "position": 3}]
    result["sources"][0] |= {"expired": True, "heading_path": ["A", "Oil"]}
    result["sources"][1] |= {"age_stale": True}
    text = answer_text(result)
    assert "The answer is cut: the model may not write more." in text
    assert "Nobody has checked whether the sources say so." in text
    assert "Not supported by what it cites:\n- It is blue [2]. (cites 2; terms; but [1] says it)" in text
    assert "Cited, but no source: 7" in text
    assert f"Sources (Several packs, releases {DIGEST}):\n[1] pumps/a.md:1-1 - A > Oil, expired 2026-12-31\n" in text
    assert text.endswith("[2] pumps/a.md:1-1 - A, should have been verified again")


def test_a_question_that_is_not_answered_says_so_first() -> None:
    near = [{"pack": "pumps", "id": "pumps/b", "title": "B", "score": 0.1}]
    refused = answered(refused=True, reason="no_relevant_passage", nearest=near, sources=[])
    assert answer_text(refused) == (
        f"Refused: Nothing relevant is known here.\n- near, but no answer: B - pumps/b\n\npumps, release {DIGEST}"
    )
    unanswered = answer_text(answered(refused=True, reason="not_in_sources"))
    assert unanswered.startswith("Refused: The sources do not answer this.\n\nLooked at (pumps, release ")
