"""Any question, with any parameters, has an answer that is in bounds and the same whoever asks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from octavo_serve.catalog import Catalog, open_catalog
from octavo_serve.requests import SearchRequest
from octavo_serve.results import SearchResult
from running import LIGHTHOUSE, octavo

ANSWER = """
import sys
from pathlib import Path
from octavo_serve.catalog import open_catalog
from octavo_serve.faces import compact_json
from octavo_serve.requests import SearchRequest
catalog = open_catalog(Path(sys.argv[1]))
for line in sys.stdin:
    print(compact_json(catalog.search(SearchRequest.model_validate_json(line))).decode())
"""

WORDS = st.sampled_from(
    "lamp lamps lmap keeper horn fog oil wick the is not AND OR NOT * ? \" ' ` « » “ ” ( ) [ ] \\ / : :: - -- -x "
    "--flag ERR_42 a/b.md v1.2 C++ C# __init__ camelCase 12 über Wärter né 電池 容量 の 전압 น้ำ ёж γη يد जल 🍵 "
    "\x00 \u200b \u202e e\u0301 "
    "title:lamp tags:x id^2 {{x}} %s ' OR 1=1 lamp~2 when how".split()
)
QUERIES = st.one_of(
    st.lists(WORDS, max_size=12).map(" ".join),
    st.lists(WORDS, max_size=8).map("".join),
    st.text(max_size=60),
    st.tuples(WORDS, st.integers(1, 300)).map(lambda pair: pair[0] * min(pair[1], 2000 // len(pair[0]))),
)
SHARES = st.sampled_from([0, 0.3, 1])
PARAMETERS = st.fixed_dictionaries(
    {},
    optional={
        "candidates": st.sampled_from([10, 37, 1000]),
        "typo_cost": SHARES,
        "fusion": st.sampled_from(["convex", "tmm", "rrf"]),
        "words_weight": st.sampled_from([0, 1e-30, 1, 100]),
        "document_weight": st.sampled_from([0, 2]),
        "literal_boost": SHARES,
        "boosts": st.dictionaries(
            st.sampled_from(["type:concept", "type:guide", "tag:x", "tier:always"]), st.sampled_from([-1, -0.1, 0.5, 1])
        ),
        "freshness_penalty": SHARES,
        "length_penalty": SHARES,
        "short_passage": st.sampled_from([0, 60, 1000]),
        "duplicate_similarity": st.sampled_from([0, 0.5, 0.98, 1]),
        "diversity": SHARES,
        "passages_per_document": st.sampled_from([1, 2, 50]),
        "refuse_below": st.sampled_from([-1, 0, 0.5, 1]),
        "requires": st.booleans(),
        "intents": st.booleans(),
    },
)
REQUESTS = st.fixed_dictionaries(
    {"query": QUERIES, "max_results": st.integers(1, 50)},
    optional={
        "pack": st.sampled_from(["lighthouse", "alike"]),
        "type": st.sampled_from(["concept", "guide", "none", ""]),
        "tags": st.sampled_from([("x",), ("x", "y"), ("",)]),
        "path": st.sampled_from(["keeper", "station/", "overview.md", "..", "\x00", ""]),
        "tier": st.sampled_from(["always", "searchable"]),
        "verified_within": st.sampled_from([0, 400, 36_500]),
        "gate": st.sampled_from(["refuse", "flag", "off"]),
        "graph": st.booleans(),
        "explain": st.booleans(),
        "retrieval": PARAMETERS,
    },
).map(SearchRequest.model_validate)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack with a graph, and one of many near-duplicates in several languages."""
    root = tmp_path_factory.mktemp("fuzz")
    alike = root / "alike"
    alike.mkdir()
    for number in range(60):
        kind, tag = ("guide", "x") if number % 3 else ("concept", "y")
        language = ("The lamp is lit by the keeper.", "Die Lampe wird vom Wärter angezündet.", "電池の容量と温度。")[
            number % 3
        ]
        front = f"---\ntype: {kind}\ntags: [x, {tag}]\nverified_at: 2026-0{1 + number % 9}-01\n---\n"
        (alike / f"{number:02}.md").write_text(f"{front}# Lamp\n\n{language} `ERR_{number // 20}`\n")
    done = octavo("build", LIGHTHOUSE, alike, "--out", root / "dist", "--state", root / "state", "-q")
    assert done.returncode == 0, done.stderr
    return root / "dist"


@pytest.fixture(scope="module")
def catalog(dist: Path) -> Catalog:
    return open_catalog(dist)


def check(catalog: Catalog, request: SearchRequest, result: SearchResult) -> None:
    hits = result["results"]
    ranked = [hit for hit in hits if not hit["requires_expanded"]]
    scores = [hit["score"] for hit in ranked]
    assert len(ranked) <= request.max_results
    assert len(hits) <= request.max_results + 3
    assert all(0 <= hit["score"] <= 1 for hit in hits)
    assert scores == sorted(scores, reverse=True)
    shown = [(hit["pack"], hit["fragment_id"]) for hit in ranked]
    assert len(set(shown)) == len(shown)
    assert not set(shown) & {(hit["pack"], other) for hit in ranked for other in hit["duplicates"]}
    assert result["refused"] == (result["reason"] is not None) == (not hits)
    assert (result["reason"] == "empty_query") == (not request.query.strip())
    assert result["answer_probability"] is None or 0 <= result["answer_probability"] <= 1
    assert {hit["pack"] for hit in hits} <= ({request.pack} if request.pack else set(catalog.packs))
    for hit in hits:
        assert request.type in (None, "", hit["type"])
        assert set(filter(None, request.tags)) <= set(hit["tags"])
        folder = (request.path or "").strip("/")
        assert not folder or hit["source_file"] == folder or hit["source_file"].startswith(f"{folder}/")
        assert request.verified_within is None or (hit["verified_age_days"] or 0) <= request.verified_within
        assert (request.verified_within is None) or hit["verified_at"]
    assert ("explanation" in result) <= request.explain


def plain(result: SearchResult) -> Any:
    """All of an answer but its times."""
    answer = json.loads(json.dumps(result))
    for step in answer.get("explanation", {}).get("stages", ()):
        step["milliseconds"] = 0
    return answer


def answers(catalog: Catalog, requests: Sequence[SearchRequest], threads: int) -> list[Any]:
    with ThreadPoolExecutor(threads) as executor:
        return [plain(result) for result in executor.map(catalog.search, requests)]


def answers_of_another_process(dist: Path, requests: Sequence[SearchRequest]) -> list[Any]:
    asked = "".join(request.model_dump_json() + "\n" for request in requests)
    command = [sys.executable, "-c", ANSWER, str(dist)]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True, timeout=600)
    return [plain(json.loads(line)) for line in done.stdout.splitlines()]


QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=QUIET)
@given(request=REQUESTS)
def test_any_question_has_an_answer_in_bounds(catalog: Catalog, request: SearchRequest) -> None:
    result = catalog.search(request)
    check(catalog, request, result)
    assert plain(catalog.search(request)) == plain(result)


@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=QUIET, phases=[Phase.generate])
@given(requests=st.lists(REQUESTS, min_size=10, max_size=40))
def test_threads_change_no_answer(catalog: Catalog, requests: list[SearchRequest]) -> None:
    assert answers(catalog, requests, 8) == answers(catalog, requests, 1)


@pytest.mark.slow
@settings(max_examples=3, deadline=None, derandomize=True, suppress_health_check=QUIET, phases=[Phase.generate])
@given(requests=st.lists(REQUESTS, min_size=40, max_size=60))
def test_another_process_gives_the_same_answers(dist: Path, catalog: Catalog, requests: list[SearchRequest]) -> None:
    assert answers_of_another_process(dist, requests) == answers(catalog, requests, 1)


@given(query=QUERIES, k=st.integers(1, 50))
@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=QUIET)
def test_k_matching_passages_are_k_results(catalog: Catalog, query: str, k: int) -> None:
    result = catalog.search(SearchRequest(query=f"lamp {query}"[:2000], pack="alike", gate="off", max_results=k))
    assert len(result["results"]) == k


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None, suppress_health_check=QUIET)
@given(request=REQUESTS)
def test_ten_thousand_questions_have_an_answer_in_bounds(catalog: Catalog, request: SearchRequest) -> None:
    check(catalog, request, catalog.search(request))


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=QUIET, phases=[Phase.generate])
@given(requests=st.lists(REQUESTS, min_size=200, max_size=300))
def test_neither_threads_nor_a_restart_change_thousands_of_answers(
    dist: Path, catalog: Catalog, requests: list[SearchRequest]
) -> None:
    expected = answers(catalog, requests, 1)
    assert answers(catalog, requests, 8) == expected
    assert answers_of_another_process(dist, requests) == expected
