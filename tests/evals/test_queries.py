from __future__ import annotations

import json
from pathlib import Path

import pytest

from octavo_artifact.errors import ConfigError, OctavoError, PackError
from octavo_evals.queries import Query, read_query_set
from octavo_evals.results import Qrel


def written(tmp_path: Path, text: str, name: str = "questions.yaml") -> Path:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_query_set_has_questions_labels_and_filters(tmp_path: Path) -> None:
    text = """pack: tiny
today: '2026-11-30'
queries:
- {id: a, query: first, expected: [x.md, y.md], must_not: [z.md], category: how, filters: {type: concept, tags: [t]}}
- {id: b, query: second, expected: {y.md: 1, x.md: 3}}
- {id: c, query: third, expected: []}
"""
    read = read_query_set(written(tmp_path, text))
    assert (read.pack, read.today) == ("tiny", "2026-11-30")
    assert read.queries == (
        Query("a", "first", (Qrel("x.md", 1), Qrel("y.md", 1)), "how", ("z.md",), {"type": "concept", "tags": ["t"]}),
        Query("b", "second", (Qrel("x.md", 3), Qrel("y.md", 1))),
        Query("c", "third", (), answerable=False),
    )


def test_an_expertpacks_questions_name_their_sources(tmp_path: Path) -> None:
    text = """pack_slug: tiny
questions:
- {id: q1, question: first, category: concept, expected_sources: [x.md], required_facts: [two bars]}
- {id: q2, question: second, category: Out of scope, expected_sources: []}
"""
    read = read_query_set(written(tmp_path, text))
    assert read.pack == "tiny"
    assert read.queries == (
        Query("q1", "first", (Qrel("x.md", 1),), "concept", facts=("two bars",)),
        Query("q2", "second", (), "Out of scope", answerable=False),
    )


def test_an_expertpacks_benchmark_says_what_an_answer_contains(tmp_path: Path) -> None:
    text = """questions:
- {id: q1, question: first, expected_contains: [two bars], expected_refusal: false}
- {id: q2, question: second, expected_contains: [not covered], expected_refusal: true}
- {id: q3, question: third, expected_answer: Two bars., ek_dependent: true}
"""
    assert read_query_set(written(tmp_path, text)).queries == (
        Query("q1", "first", (), facts=("two bars",)),
        Query("q2", "second", (), answerable=False),
        Query("q3", "third", ()),
    )


def beir(root: Path, qrels: str = "qrels/test.tsv") -> Path:
    lines = [json.dumps({"_id": query_id, "text": f"text of {query_id}"}) for query_id in ("q1", "q2", "q3")]
    written(root, "\n".join(lines), "queries.jsonl")
    written(root, "query-id\tcorpus-id\tscore\nq2\t7\t1\nq1\t7\t1\nq1\t8\t2\nq1\t9\t0\n", qrels)
    return root


@pytest.mark.parametrize("qrels", ["qrels.tsv", "qrels/test.tsv", "qrels/dev.tsv"])
def test_a_beir_folder_is_the_questions_that_have_labels(tmp_path: Path, qrels: str) -> None:
    assert read_query_set(beir(tmp_path, qrels), document="{}.md").queries == (
        Query("q1", "text of q1", (Qrel("8.md", 2), Qrel("7.md", 1))),
        Query("q2", "text of q2", (Qrel("7.md", 1),)),
    )


def test_trec_qrels_take_their_questions_from_a_file(tmp_path: Path) -> None:
    qrels = written(tmp_path, "1 0 a.md 1\n2 0 b.md 0\n", "qrels.txt")
    topics = written(tmp_path, "1\tfirst\n2\tsecond\n3\tthird\n", "topics.tsv")
    assert read_query_set(qrels, topics).queries == (
        Query("1", "first", (Qrel("a.md", 1),)),
        Query("2", "second", (), answerable=False),
    )


def test_the_reference_collections_are_read(shared: Path) -> None:
    assert len(read_query_set(shared / "ir/scifact").queries) == 300
    assert len(read_query_set(shared / "packs/blender-3d/eval/benchmark.yaml").queries) == 24
    for path in sorted((shared / "golden").glob("*.yaml")):
        assert read_query_set(path).pack == path.stem.removesuffix("-benchmark")


QUESTION = "{id: a, query: x, expected: [x.md]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("[]", "expected a mapping", id="no mapping"),
        pytest.param("a: [", "questions.yaml:1: not YAML", id="no YAML"),
        pytest.param("queries: []", "no questions", id="no questions"),
        pytest.param("queries: [a]", "is not a mapping", id="no question"),
        pytest.param("queries: [{id: a, query: x}]", "has no 'expected'", id="no label"),
        pytest.param("questions: [{id: a}]", "has no 'question'", id="no text"),
        pytest.param(f"queries: [{QUESTION}}}, {QUESTION}}}]", "the id 'a' stands twice", id="an id twice"),
        pytest.param("queries: [{id: a, query: x, expected: x.md}]", "a: a label is not as expected", id="no list"),
        pytest.param("queries: [{id: a, query: x, expected: {x.md: 0}}]", "grades from 1", id="grade 0"),
        pytest.param(f"queries: [{QUESTION}, filters: {{kind: x}}}}]", r"filters\.kind: unknown", id="a filter"),
        pytest.param(f"queries: [{QUESTION}, must_not: [x.md]}}]", "is both expected and", id="contradiction"),
    ],
)
def test_a_bad_query_set_says_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(PackError, match=message):
        read_query_set(written(tmp_path, text))


@pytest.mark.parametrize(
    ("files", "error", "message"),
    [
        pytest.param({}, PackError, "no queries.jsonl", id="an empty folder"),
        pytest.param({"queries.jsonl": "{}"}, PackError, "expected qrels.tsv", id="no labels"),
        pytest.param({"queries.jsonl": "{}", "qrels.tsv": "1\t2\t3"}, PackError, "jsonl:1: expected", id="no query"),
        pytest.param(
            {"queries.jsonl": "", "qrels.tsv": "h\nq\td\tone"}, PackError, "qrels.tsv:2: expected", id="no grade"
        ),
        pytest.param({"queries.jsonl": "", "qrels.tsv": "q\td\t1"}, PackError, "text is nowhere", id="no text"),
    ],
)
def test_a_bad_collection_says_what_is_wrong(
    tmp_path: Path, files: dict[str, str], error: type[OctavoError], message: str
) -> None:
    for name, text in files.items():
        written(tmp_path, text, name)
    with pytest.raises(error, match=message):
        read_query_set(tmp_path)


def test_qrels_without_questions_ask_for_them(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--queries FILE"):
        read_query_set(written(tmp_path, "1 0 a 1", "qrels.txt"))
