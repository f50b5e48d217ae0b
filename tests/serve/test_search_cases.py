"""Inputs that broke searches like ours: each by its number in ../shared/cases.md, with the tests that hold us to the
right behaviour. What no other test says of a row is tested below.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from octavo_serve.catalog import Catalog, open_catalog
from octavo_serve.requests import SearchRequest
from octavo_serve.results import SearchResult
from running import is_test, octavo, serving

CASES = {
    "B26 two-character inner words": ["serve/test_search_cases.py::test_a_short_inner_word_is_found_by_words"],
    "B28 queries that look like syntax, or like nothing": [
        "serve/test_search_cases.py::test_a_text_that_looks_like_syntax_finds_its_passage",
        "serve/test_search_cases.py::test_whatever_is_asked_has_an_answer_over_http",
        "serve/test_search_cases.py::test_whatever_is_asked_has_an_answer_over_mcp",
        "serve/test_search_cases.py::test_a_query_that_is_too_long_is_the_clients_fault",
        "serve/test_search.py::test_no_text_breaks_the_pipeline",
        "serve/test_search.py::test_an_empty_query_is_refused_with_its_reason",
        "serve/test_fuzz.py::test_any_question_has_an_answer_in_bounds",
    ],
    "B29 a literal among prose": ["serve/test_search_cases.py::test_a_literal_among_prose_comes_first"],
    "B30 twelve of two thousand": ["serve/test_search_cases.py::test_a_filter_that_few_meet_fills_the_answer"],
    "B32 equal scores": [
        "serve/test_search_cases.py::test_equal_scores_keep_their_order",
        "serve/test_search_cases.py::test_equal_scores_keep_their_order_after_a_restart",
    ],
    "B33 another encoder": [
        "test_damage.py::test_a_release_whose_encoder_is_another_or_damaged_is_refused",
        "test_encoder_missing.py::test_an_encoder_that_is_another_one_is_refused_in_one_line",
        "test_encoder_missing.py::test_the_same_weights_under_another_name_are_the_encoder",
    ],
}


@pytest.mark.parametrize("case", CASES)
def test_a_case_names_tests_that_exist(case: str) -> None:
    assert [name for name in CASES[case] if not is_test(name)] == []


@pytest.mark.shared
def test_every_row_of_the_search_alone_has_its_case(shared: Path) -> None:
    rows = re.findall(r"^\| (B\d+) \|[^|]*\| ([A-Z,]+) \|", (shared / "cases.md").read_text(), re.MULTILINE)
    assert {row for row, layers in rows if layers == "R"} <= {name.split()[0] for name in CASES}


INNER = {
    "chinese": ("# 储能\n\n这套电池的容量是十千瓦时。\n", "容量"),
    "japanese": ("# 蓄電\n\n電池の温度は毎日測ります。\n", "温度"),
    "korean": ("# 전기\n\n배터리전압은 매일 확인합니다.\n", "전압"),
    "thai": ("# บ้าน\n\nหลอดไฟในห้องสว่างมาก\n", "ไฟ"),
    "russian": ("# Сад\n\nВ нашем саду живёт ёж, он ест яблоки.\n", "ёж"),
    "greek": ("# Φύση\n\nΗ γη είναι ξερή το καλοκαίρι.\n", "γη"),
    "hindi": ("# घर\n\nटंकी का जल हर सुबह बदला जाता है।\n", "जल"),
    "arabic": ("# البيت\n\nيمسك المصباح بـ يد واحدة كل مساء.\n", "يد"),
    "french": ("# Gardien\n\nLe gardien est né à Brest, et il y est resté avec sa famille.\n", "né"),
}

SYNTAX = {
    "agents": "A multi-agent system is told what to do.",
    "todo": "TODO: fix the third valve before spring.",
    "flag": "The build ends with `--error-on-warnings` on the line.",
    "apostrophe": "Please don't open the lid while it spins.",
    "path": "The list stands in a/b/c.md since last year.",
    "cpp": "The driver was written in C++ by a student.",
    "vector": "The rows are a std::vector in the driver.",
    "release": "The machine runs ubuntu 20.04 without a screen.",
    "gates": "The circuit has a NOT gate, an AND gate and an OR gate.",
    "star": "The pattern foo* fits the name of the file.",
    "box": "Tick the box [x] when the tank is full.",
    "field": "A line such as title:abc opens the card.",
    "number": "In ERR_42 the pump has no water.",
    "dated": "Version 2026.4.10 brought the second tank.",
    "header": "The proxy reads X-Accel-Buffering and waits.",
    "python": "The helper is called filter_dicts_by_key there.",
    "pooled": "Keep the lamp\nburning through the night, said the Old Keeper.",
}

LANGUAGES = {
    "german": "Die Glocken werden von dem Wärter geprüft, und das Wasser wird mit der Hand in die Häuser getragen.",
    "french": "Les barques sont réparées par le pêcheur dans le port, et les crêpes brûlées sont pour les mouettes.",
    "russian": "Старые мосты через реку были построены весной, и по ним ходят рыбаки.",
    "mixed": "The manual says 絶縁抵抗 before the test, and the label says «заземление» and Schutzleiterprüfung.",
}

INFLECTED = {
    "Glocke": "german", "Haus": "german", "geprüfte": "german", "geprufte": "german", "hauser": "german",
    "réparer": "french", "reparer la barque": "french", "crepe brulee": "french", "PÊCHEURS": "french",
    "мост": "russian", "рыбак на мосту": "russian", "绝缘 絶縁": "mixed", "抵抗": "mixed", "заземления": "mixed",
    "schutzleiterprufung": "mixed", "Schutzleiterprüfugn": "mixed", "manuals": "mixed",
}  # fmt: skip
"""Query to the page that has its words in another form."""

TEXTS = {
    "multi-agent": "agents", "TODO: fix": "todo", '"--error-on-warnings"': "flag", "--error-on-warnings": "flag",
    "don't": "apostrophe", "a/b/c.md": "path", "C++": "cpp", "std::vector": "vector", "ubuntu 20.04": "release",
    "NOT": "gates", "AND OR": "gates", "foo*": "star", "[x]": "box", "title:abc": "field", "ERR_42": "number",
    "err_42": "number", "2026.4.10": "dated", "X-Accel-Buffering": "header", '"LAMP  burning through"': "pooled",
    '"old keeper"': "pooled", "burnign lamp keeper": "pooled", "agnets": "agents",
}  # fmt: skip
"""Query to the page that has it."""

HOSTILE = [
    *TEXTS, "(", "\\", '"', "'", "the and of", "🍵", "\x00", "a\x00b", "x" * 2000, "? " * 1000, "\u202e\ufeff", "%00",
    "../..",     "'; DROP TABLE x; --", "{{7*7}}", "*:*", "~1", "^2", "[* TO *]", "\U0010ffff", "e\u0301" * 900,
]  # fmt: skip


def page(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`many`, 520 passages, twelve of them of a type; `words`, of all scripts and literals; `same`, twenty alike."""
    root = tmp_path_factory.mktemp("cases")
    for number in range(520):
        kind = "howto" if number % 45 == 7 else "guide"
        text = f"---\ntype: {kind}\n---\n# Valve {number}\n\nValve {number} is opened by hand.\n"
        page(root / "many", f"{number:04}.md", text)
    for name, (text, _) in INNER.items():
        page(root / "words/inner", f"{name}.md", text)
    for name, text in LANGUAGES.items():
        page(root / "words/languages", f"{name}.md", f"# {name.title()}\n\n{text}\n")
    for name, text in SYNTAX.items():
        page(root / "words/syntax", f"{name}.md", f"# Note on {name[:3]}\n\n{text}\n")
    for number in range(10):
        prose = f"How to filter dicts by key number {number}: a filter keeps the dicts whose key is defined somewhere."
        page(root / "words/prose", f"{number}.md", f"# Filter dicts by a key\n\n{prose}\n")
    for number in range(20):
        page(root / "same", f"{number:02}.md", "# Lamp\n\nThe lamp is lit at dusk.\n")
    packs = [root / name for name in ("many", "words", "same")]
    done = octavo("build", *packs, "--out", root / "dist", "--state", root / "state", "-q")
    assert done.returncode == 0, done.stderr
    return root / "dist"


@pytest.fixture(scope="module")
def catalog(dist: Path) -> Catalog:
    return open_catalog(dist)


@pytest.fixture(scope="module")
def address(dist: Path) -> Generator[str]:
    with serving(dist) as running:
        yield running.address


def ask(catalog: Catalog, pack: str, query: str, **options: object) -> SearchResult:
    return catalog.search(SearchRequest.model_validate({"query": query, "pack": pack, "gate": "off", **options}))


def names(result: SearchResult) -> list[str]:
    return [Path(hit["source_file"]).stem for hit in result["results"]]


@pytest.mark.parametrize("language", INNER)
def test_a_short_inner_word_is_found_by_words(catalog: Catalog, language: str) -> None:
    result = ask(catalog, "words", INNER[language][1], explain=True)
    assert "explanation" in result
    hit = next(hit for hit in result["results"] if hit["source_file"] == f"inner/{language}.md")
    ranks = {step["stage"]: step["rank"] for step in result["explanation"]["hits"][hit["fragment_id"]]}
    assert ranks["lexical: words"] is not None
    assert names(result)[0] == language


@pytest.mark.parametrize("query", TEXTS)
def test_a_text_that_looks_like_syntax_finds_its_passage(catalog: Catalog, query: str) -> None:
    assert TEXTS[query] in names(ask(catalog, "words", query))[:3]


@pytest.mark.parametrize("query", INFLECTED)
def test_a_word_is_found_by_words_in_another_form_in_whichever_language(catalog: Catalog, query: str) -> None:
    by_words = {"passage_weight": 0, "document_weight": 0}
    assert names(ask(catalog, "words", query, retrieval=by_words))[0] == INFLECTED[query]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("where is filter_dicts_by_key defined", "python"),
        ("what does ERR_42 mean", "number"),
        ("what came with 2026.4.10", "dated"),
        ("which proxy reads X-Accel-Buffering", "header"),
    ],
)
def test_a_literal_among_prose_comes_first(catalog: Catalog, query: str, name: str) -> None:
    result = catalog.search(SearchRequest(query=query, pack="words"))
    assert names(result)[0] == name


def test_a_filter_that_few_meet_fills_the_answer(catalog: Catalog) -> None:
    result = ask(catalog, "many", "valve 100 is a guide", type="howto", max_results=10)
    assert [hit["type"] for hit in result["results"]] == ["howto"] * 10
    assert len(ask(catalog, "many", "valve 100 is a guide", type="howto", max_results=50)["results"]) == 12


def get(address: str, **values: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(f"{address}/search?{urllib.parse.urlencode(values)}", timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_whatever_is_asked_has_an_answer_over_http(address: str) -> None:
    for query in HOSTILE:
        status, answer = get(address, q=query, pack="words", gate="off")
        assert (status, answer["query"]) == (200, query)
        if query in TEXTS:
            assert TEXTS[query] in names(answer)[:3]
    for blank in ("", " \t"):
        status, answer = get(address, q=blank, pack="words")
        assert (status, answer["reason"], answer["results"]) == (200, "empty_query", [])


@pytest.mark.anyio
async def test_whatever_is_asked_has_an_answer_over_mcp(address: str) -> None:
    async with Client(streamable_http_client(f"{address}/mcp")) as client:
        for query in [*HOSTILE, ""]:
            called = await client.call_tool("ep_search", {"query": query, "pack": "words", "gate": "off"})
            assert not called.is_error
            assert called.structured_content is not None
            assert called.structured_content["query"] == query
            assert (called.structured_content["reason"] == "empty_query") == (not query)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
async def test_a_query_that_is_too_long_is_the_clients_fault(address: str) -> None:
    status, problem = get(address, q="x" * 10_000, pack="words")
    assert status == 422
    assert "2000" in json.dumps(problem)
    async with Client(streamable_http_client(f"{address}/mcp")) as client:
        called = await client.call_tool("ep_search", {"query": "x" * 10_000, "pack": "words"})
        assert called.is_error


WRONG: list[tuple[str, str]] = [
    ("verified_within", "9" * 30),
    ("max_results", "1e3"),
    ("tier", "on_demand"),
    *(
        ("retrieval", text)
        for text in (
            "[" * 5000, '{"boosts":' + "{" * 3000 + "}" * 3000 + "}", '{"boosts":' + '{"a":' * 500 + "1" + "}" * 501,
            '{"candidates": NaN}', '{"candidates": Infinity}', '{"candidates": 1' + "0" * 400 + "}",
            '{"words_weight": 1' + "0" * 400 + "}", '{"candidates": true}', '{"rerank": 1}', '{"diversity": null}',
            '{"boosts": {"type:\\ud800": 0.1}}', '{"boosts": {"type:a": NaN}}', '{"gate": ["off"]}', '{"none": 1}',
            '{"words_weight": 0, "passage_weight": 0, "document_weight": 0}', "[]", "1", '"a"', "null", "{",
            json.dumps({f"p{n}": 1 for n in range(200)}), json.dumps({"boosts": {f"tag:{n}": 1 for n in range(200)}}),
        )
    ),
]  # fmt: skip


def test_a_hostile_parameter_is_named_and_is_the_clients_fault(address: str) -> None:
    for name, value in WRONG:
        status, problem = get(address, q="lamp", pack="words", **{name: value})
        assert (status, name in json.dumps(problem)) == (422, True), (name, value[:60], problem)
        assert len(json.dumps(problem)) < 2000
    assert get(address, q="lamp", pack="words")[0] == 200


def test_equal_scores_keep_their_order(catalog: Catalog) -> None:
    every = {"duplicate_similarity": 0}

    def order(_: int) -> list[str]:
        return names(ask(catalog, "same", "when is the lamp lit", max_results=20, retrieval=every))

    expected = [f"{number:02}" for number in range(20)]
    for threads in (1, 8):
        with ThreadPoolExecutor(threads) as executor:
            assert list(executor.map(order, range(100))) == [expected] * 100


def test_twenty_that_say_the_same_are_twenty_results_and_nobodys_duplicates(catalog: Catalog) -> None:
    result = ask(catalog, "same", "when is the lamp lit", max_results=20)
    assert names(result) == [f"{number:02}" for number in range(20)]
    assert [hit["duplicates"] for hit in result["results"]] == [[]] * 20
    some = ask(catalog, "same", "when is the lamp lit", max_results=5)["results"]
    shown = {hit["fragment_id"] for hit in some}
    assert len(shown) == 5
    assert not shown & {each for hit in some for each in hit["duplicates"]}


ANSWER_QUERIES = """
import json, sys
from pathlib import Path
from octavo_serve.catalog import open_catalog
from octavo_serve.requests import SearchRequest
catalog = open_catalog(Path(sys.argv[1]))
for line in sys.stdin:
    hits = catalog.search(SearchRequest.model_validate_json(line))["results"]
    print(json.dumps([[hit["pack"], hit["fragment_id"], hit["score"]] for hit in hits]))
"""


def answers_of_another_process(dist: Path, requests: list[SearchRequest]) -> list[list[list[Any]]]:
    asked = "".join(request.model_dump_json() + "\n" for request in requests)
    command = [sys.executable, "-c", ANSWER_QUERIES, str(dist)]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True, timeout=120)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_equal_scores_keep_their_order_after_a_restart(dist: Path, catalog: Catalog) -> None:
    requests = [
        SearchRequest(query=query, pack=pack, gate="off", max_results=20)
        for query in ("when is the lamp lit", "lamp", "valve 7 by hand", "容量", '"old keeper"', "ERR_42 (")
        for pack in ("same", "many", "words", None)
    ]
    here = [
        [[hit["pack"], hit["fragment_id"], hit["score"]] for hit in catalog.search(request)["results"]]
        for request in requests
    ]
    assert answers_of_another_process(dist, requests) == here
