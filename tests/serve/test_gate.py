from __future__ import annotations

from pathlib import Path

import pytest

from octavo_artifact.text import query_terms
from octavo_build import lexical
from octavo_serve.catalog import OpenPack, open_catalog
from octavo_serve.encoder import OnnxEncoder
from octavo_serve.requests import SearchRequest
from octavo_serve.results import SearchResult
from running import LIGHTHOUSE, octavo

UNRELATED = "Which vaccine is given against yellow fever?"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack that refuses what it cannot answer, and one that wants it flagged."""
    root = tmp_path_factory.mktemp("gate")
    soft = root / "soft"
    soft.mkdir()
    (soft / "manifest.yaml").write_text(
        "slug: soft\nname: Soft\ntype: product\nversion: 1.0.0\ndescription: d\nentry_point: a.md\n"
        "retrieval: {gate: flag}\n"
    )
    (soft / "a.md").write_text("# Oil\n\nThe lamp burns rape oil. It is filled at noon, and the wick is cut.\n")
    done = octavo("build", LIGHTHOUSE, soft, "--out", root / "dist", "--state", root / "state", "-q")
    assert done.returncode == 0, done.stderr
    return root / "dist"


@pytest.fixture(scope="module")
def pack(dist: Path) -> OpenPack:
    return open_catalog(dist).choose("lighthouse")


def ask(pack: OpenPack, query: str, **options: object) -> SearchResult:
    return pack.search(SearchRequest.model_validate({"query": query, **options}))


def probability(pack: OpenPack, query: str) -> float:
    found = ask(pack, query, gate="flag")["answer_probability"]
    assert found is not None
    return found


def test_a_question_about_something_else_is_refused_with_what_was_nearest(pack: OpenPack) -> None:
    result = ask(pack, UNRELATED)
    assert (result["refused"], result["reason"]) == (True, "no_relevant_passage")
    assert result["results"] == []
    assert result["doubtful"]
    assert pack.manifest.gate
    assert result["answer_probability"] is not None
    assert result["answer_probability"] < pack.manifest.gate.refuse_below
    nearest = result["nearest"]
    assert len({near["id"] for near in nearest}) == 3
    assert {key for near in nearest for key in near} == {"pack", "id", "title", "score"}


def test_a_question_that_the_pack_answers_passes(pack: OpenPack) -> None:
    result = ask(pack, "how is the lamp cleaned?")
    assert not result["refused"]
    assert not result["doubtful"]
    assert result["nearest"] == []
    assert result["results"]


def test_a_flagged_answer_keeps_its_passages(pack: OpenPack) -> None:
    result = ask(pack, UNRELATED, gate="flag")
    assert (result["refused"], result["reason"], result["doubtful"]) == (False, None, True)
    assert result["results"]


def test_without_the_gate_nothing_is_judged(pack: OpenPack) -> None:
    result = ask(pack, UNRELATED, gate="off")
    assert (result["refused"], result["doubtful"], result["answer_probability"]) == (False, False, None)
    assert result["results"]


def test_the_gate_changes_no_answer_that_passes(pack: OpenPack) -> None:
    judged, unjudged = (ask(pack, "how is the lamp cleaned?", gate=gate) for gate in ("refuse", "off"))
    assert judged["results"] == unjudged["results"]


def test_a_pack_may_want_its_answers_flagged(dist: Path) -> None:
    soft = open_catalog(dist).choose("soft")
    assert ask(soft, UNRELATED)["doubtful"]
    assert not ask(soft, UNRELATED)["refused"]


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("Wie oft muss ich denn nachts Petroleum nachfüllen?", id="German"),
        pytest.param("灯塔的灯多久清洗一次", id="Chinese"),
        pytest.param("Как часто чистят лампу маяка?", id="Russian"),
        pytest.param("what is this about", id="no topic"),
    ],
)
def test_what_shares_no_words_for_its_language_is_not_judged(pack: OpenPack, query: str) -> None:
    result = ask(pack, query)
    assert (result["refused"], result["answer_probability"]) == (False, None)


def test_a_slip_of_the_pen_is_not_a_missing_word(pack: OpenPack) -> None:
    slipped, missing = (probability(pack, f"how do I wind the {word}?") for word in ("clokwork", "xylofone"))
    assert slipped > 0.5 > missing


def test_a_name_that_is_not_there_counts_against_an_answer(pack: OpenPack) -> None:
    named, plain = (probability(pack, f"how is the lamp cleaned in {place}?") for place in ("Norway", "norway"))
    assert named < plain


def test_words_that_are_indexed_and_not_shown_are_evidence(pack: OpenPack) -> None:
    assert probability(pack, "Fresnel of the first order") > 0.5


def test_an_answer_by_words_only_is_not_judged(pack: OpenPack, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: OnnxEncoder, text: str) -> None:
        raise RuntimeError(text)

    monkeypatch.setattr(OnnxEncoder, "encode", fail)
    result = ask(pack, "the lamp of the Panama canal")
    assert (result["degraded"], result["refused"], result["answer_probability"]) == (True, False, None)


@pytest.mark.parametrize(
    "question",
    [
        "How do I wind the clockwork?",
        "what is this",
        "電池の容量",
        "multi-agent C++ lamp lamp",
        "lamps " + "x" * 50,
    ],
)
def test_compiler_and_server_take_a_question_apart_alike(pack: OpenPack, question: str) -> None:
    assert query_terms(question, ("en",), lexical.stem) == pack.index.lexical.terms(question)


def test_the_shell_says_what_was_nearest(dist: Path) -> None:
    refused = octavo("search", dist, UNRELATED, "--pack", "lighthouse")
    assert refused.returncode == 1
    assert refused.stderr.startswith("nothing found (no_relevant_passage); nearest: ")
    flagged = octavo("search", dist, UNRELATED, "--pack", "lighthouse", "--gate", "flag")
    assert flagged.returncode == 0
    assert flagged.stderr.startswith("doubtful (answer_probability 0.0")
