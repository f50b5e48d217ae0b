"""What each stage of a search does to an answer, and what is told of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from octavo_artifact.errors import RequestError
from octavo_artifact.parameters import SWITCHED_OFF
from octavo_serve.catalog import OpenPack, open_catalog
from octavo_serve.filters import Filters, filters_of
from octavo_serve.query import intent_of
from octavo_serve.ranking import Ranking, ranked
from octavo_serve.requests import SearchRequest
from octavo_serve.results import SearchResult
from octavo_serve.search import STAGES, Operator, search
from octavo_serve.stages.fuse import FUSIONS, Signal
from running import octavo

TODAY = date(2026, 11, 30)
MANIFEST = (
    "slug: keeper\nname: Keeper\ntype: product\nversion: 1.0.0\ndescription: d\nentry_point: a.md\n"
    "context:\n  always: [always]\nretrieval: {passages_per_document: 3}\n"
)
SAME = "# Wick\n\nThe wick of the lamp is trimmed with scissors, and then the lamp is lit again.\n"
GLASS = "# Glass\n\nThe glass is polished each week with chalk.\n"
FILES = {
    # alike but for what documents are
    "kinds/a.md": ("type: concept\ntags: [x]", SAME.replace("again", "once more")),
    "kinds/b.md": ("type: workflow\ntags: [x, y]", SAME.replace("again", "anew, by hand")),
    "always/c.md": ("type: concept\ntags: [y]", SAME.replace("again", "without delay or haste")),
    # alike but for age
    "ages/new.md": ("verified_at: 2026-11-20\nrefresh: P1Y", GLASS),
    "ages/old.md": ("verified_at: 2020-01-01\nrefresh: P1Y", GLASS.replace("chalk", "chalk and a cloth")),
    "ages/none.md": ("", "# Brass\n\nThe brass rail is rubbed with sand and vinegar.\n"),
    # near-duplicates, and two that differ in a number
    **{f"twins/{n}.md": ("", "# Anchor\n\nThe anchor chain is oiled before winter comes.\n") for n in range(8)},
    "prices/a.md": ("", "# Fee\n\nThe harbour fee of a ship is 12 crowns for each night at the pier.\n"),
    "prices/b.md": ("", "# Fee\n\nThe harbour fee of a ship is 15 crowns for each night at the pier.\n"),
    "other/short.md": ("", "# Bell\n\nThe bell rings.\n"),
    "other/bell.md": (
        "verified_at: 2026-11-29\ntags: [y]",
        "# Bell\n\nThe bell rings when the fog comes in from the sea, and it goes on until the boats are back at the "
        "pier and the keeper has counted them all, one by one, and has written them into the book.\n",
    ),
    "other/deep/er.md": ("type: workflow\nverified_at: 2026-10-01", "# Boat\n\nThe boat is painted in spring.\n"),
    "other.md": ("tags: [other]\nrelated: [other/bell.md]", "# Rope\n\nThe rope is dried on the wall by the keeper.\n"),
}  # fmt: skip


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> OpenPack:
    root = tmp_path_factory.mktemp("stages")
    for name, (front, body) in FILES.items():
        (root / "keeper" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "keeper" / name).write_text(f"---\n{front}\n---\n{body}" if front else body)
    (root / "keeper/manifest.yaml").write_text(MANIFEST)
    done = octavo("build", root / "keeper", "--out", root / "dist", "--state", root / "state", "-q")
    assert done.returncode == 0, done.stderr
    return open_catalog(root / "dist", TODAY).choose(None)


def ask(pack: OpenPack, query: str, retrieval: dict[str, Any] | None = None, **options: object) -> SearchResult:
    values = {"query": query, "gate": "off", "retrieval": retrieval or {}, **options}
    return pack.search(SearchRequest.model_validate(values))


def files(result: SearchResult) -> list[str]:
    return [hit["source_file"] for hit in result["results"]]


@pytest.mark.parametrize(
    ("boost", "first"),
    [
        ("type:workflow", "kinds/b.md"), ("tag:y", "kinds/b.md"), ("tier:always", "always/c.md"),
        ("type:concept", "kinds/a.md"),
    ],
)  # fmt: skip
def test_a_boost_favours_a_type_a_tag_or_a_tier(pack: OpenPack, boost: str, first: str) -> None:
    def scores(**boosts: float) -> dict[str, float]:
        hits = ask(pack, "trim the wick of the lamp", {"boosts": dict(boosts)}, path=first)["results"]
        return {hit["source_file"]: hit["score"] for hit in hits}

    (before,), (above,), (below,) = (scores(**{boost: value}).values() for value in (0, 0.5, -0.5))
    assert (above, below) == (pytest.approx(min(1, before + 0.5)), pytest.approx(max(0, before - 0.5)))
    assert scores(**{f"{boost}s": 0.5}) == {first: before}


def test_boosts_move_what_they_name_before_the_others(pack: OpenPack) -> None:
    query = "trim the wick of the lamp"
    alike = {"kinds/a.md", "kinds/b.md", "always/c.md"}
    assert set(files(ask(pack, query))[:3]) == alike
    # against it, for a score that is 1 already cannot rise
    sunk = files(ask(pack, query, {"boosts": {"type:workflow": -1}}, max_results=50))
    assert set(sunk[:2]) == alike - {"kinds/b.md"}
    assert "kinds/b.md" in sunk


def test_what_is_stale_loses_its_share(pack: OpenPack) -> None:
    query = "how is the glass polished?"
    plain, less = (ask(pack, query, {"freshness_penalty": share}) for share in (0.0, 0.5))
    scores, lessened = ({hit["source_file"]: hit["score"] for hit in each["results"]} for each in (plain, less))
    assert lessened["ages/old.md"] == pytest.approx(scores["ages/old.md"] / 2, abs=1e-6)
    assert lessened["ages/new.md"] == scores["ages/new.md"]
    assert lessened["ages/none.md"] == scores["ages/none.md"]


def test_what_is_short_loses_its_share(pack: OpenPack) -> None:
    plain, less = (ask(pack, "bell rings", {"length_penalty": share}) for share in (0.0, 0.9))
    assert files(plain)[0] == "other/short.md"
    assert files(less)[0] == "other/bell.md"


def test_of_passages_that_say_the_same_one_is_shown_and_the_others_are_named(pack: OpenPack) -> None:
    (hit,) = ask(pack, "oil the anchor chain", path="twins", max_results=1)["results"]
    assert hit["source_file"] == "twins/0.md"
    assert len(hit["duplicates"]) == 7
    assert hit["fragment_id"] not in hit["duplicates"]
    assert files(ask(pack, "oil the anchor chain", max_results=5)).count("twins/1.md") == 0
    (same,) = ask(pack, "oil the anchor chain", {"duplicate_similarity": 1}, path="twins", max_results=1)["results"]
    assert same["duplicates"] == hit["duplicates"]
    every = ask(pack, "oil the anchor chain", {"duplicate_similarity": 0}, max_results=5)
    assert files(every) == [f"twins/{n}.md" for n in range(5)]
    assert [each["duplicates"] for each in every["results"]] == [[]] * 5


@pytest.mark.parametrize("k", range(1, 9))
def test_as_many_matching_passages_are_as_many_results(pack: OpenPack, k: int) -> None:
    assert len(ask(pack, "oil the anchor chain", path="twins", max_results=k)["results"]) == k


def test_other_numbers_are_another_text(pack: OpenPack) -> None:
    result = ask(pack, "what is the harbour fee of a ship?", {"duplicate_similarity": 0.5})
    assert {"prices/a.md", "prices/b.md"} <= set(files(result)[:2])


def test_diversity_prefers_what_is_unlike(pack: OpenPack) -> None:
    query = "how is the wick trimmed and the lamp lit?"
    alike = {"kinds/a.md", "kinds/b.md", "always/c.md"}
    assert set(files(ask(pack, query, max_results=3))) == alike
    diverse = ask(pack, query, {"diversity": 0.7}, max_results=3)
    assert len(alike & set(files(diverse))) == 1
    assert files(diverse)[0] == files(ask(pack, query))[0]


def test_a_graph_leaves_the_order_of_the_reranker(pack: OpenPack) -> None:
    @dataclass
    class Backwards:
        pairs: int = 50

        def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
            return np.arange(len(texts), dtype=np.float32)

        def close(self) -> None: ...

    def order(*, graph: bool) -> list[str]:
        request = SearchRequest(query="the keeper and the lamp", gate="off", graph=graph, max_results=4)
        collection = pack._collection  # pyright: ignore[reportPrivateUsage]
        return files(search(collection, request, TODAY, operator=Operator(reranker=Backwards())))

    assert order(graph=True)[:2] == order(graph=False)[:2]
    assert order(graph=False) != files(ask(pack, "the keeper and the lamp", max_results=4))


def test_parameters_of_pack_server_and_request_come_over_one_another(pack: OpenPack) -> None:
    collection, parameters = pack._collection, pack._parameters  # pyright: ignore[reportPrivateUsage]
    operator = Operator(retrieval={"gate": "off", "diversity": "0.25", "candidates": 50})

    def asked(**options: object) -> SearchResult:
        request = SearchRequest.model_validate({"query": "lamp", "explain": True, **options})
        return search(collection, request, TODAY, parameters, operator)

    result = asked(retrieval={"candidates": 60, "passages_per_document": 3})
    assert result["overrides"] == {"gate": "off", "diversity": 0.25, "candidates": 60}
    assert "explanation" in result
    in_force = result["explanation"]["parameters"]
    assert (in_force["passages_per_document"], in_force["candidates"], in_force["fusion"]) == (3, 60, "convex")
    assert asked(gate="flag", retrieval={"gate": "refuse"})["overrides"]["gate"] == "flag"
    assert ask(pack, "lamp", gate=None)["overrides"] == {}


@pytest.mark.parametrize("retrieval", [{"nothing": 1}, {"diversity": 2}, {"boosts": {"path:a": 1}}, {"gate": "no"}])
def test_a_parameter_that_is_unknown_or_out_of_range_is_named(pack: OpenPack, retrieval: dict[str, Any]) -> None:
    with pytest.raises(RequestError, match=f"^retrieval: {next(iter(retrieval))}"):
        ask(pack, "lamp", retrieval, gate=None)


def test_an_explanation_names_each_stage_once_in_order_and_agrees_with_the_answer(pack: OpenPack) -> None:
    result = ask(
        pack, 'when is "the lamp" lit?', {"diversity": 0.2, "freshness_penalty": 0.1}, explain=True, gate="flag"
    )
    assert "explanation" in result
    explanation = result["explanation"]
    assert [step["stage"] for step in explanation["stages"]] == ["analyse", *(stage.__name__ for stage in STAGES)]
    assert all(step["milliseconds"] >= 0 for step in explanation["stages"])
    assert explanation["phrases"] == ["the lamp"]
    assert explanation["intent"] == "when"
    assert list(explanation["hits"]) == [hit["fragment_id"] for hit in result["results"]]
    for rank, hit in enumerate(result["results"], 1):
        last = explanation["hits"][hit["fragment_id"]][-1]
        assert (last["stage"], last["rank"], last["score"]) == ("cut", rank, hit["score"])


def test_nothing_is_explained_without_asking(pack: OpenPack) -> None:
    assert "explanation" not in ask(pack, "lamp")


@pytest.mark.parametrize("name", SWITCHED_OFF)
def test_every_stage_can_be_switched_off(pack: OpenPack, name: str) -> None:
    result = ask(pack, 'how is the "lamp" lit?', dict(SWITCHED_OFF[name]), gate=None)
    assert files(result)
    assert set(result["overrides"]) <= set(SWITCHED_OFF[name])


def test_a_request_decides_below_which_probability_it_is_refused(pack: OpenPack) -> None:
    probability = ask(pack, "how is the glass polished?", gate="flag")["answer_probability"]
    assert probability is not None
    for threshold, refused in ((probability - 0.01, False), (min(1, probability + 0.01), True), (0, False)):
        result = ask(pack, "how is the glass polished?", {"refuse_below": threshold}, gate="refuse")
        assert (result["refused"], result["answer_probability"]) == (refused, probability)


@pytest.mark.parametrize(
    ("query", "intent"),
    [
        ("When was the lamp lit?", "when"), ("which version has it", "when"), ("how do I trim a wick", "how"),
        ("install the pump", "how"), ("please fix it", "how"), ("Why is it dark?", "why"), ("oil vs gas", "why"),
        ("What is a Fresnel lens?", "entity"), ("explain the horn", "entity"), ("fresnel lens", "general"),
        ("", "general"), ("somehow downhow", "general"), ("the fix", "general"),
        ("Was ist eine Lampe?", "general"), ("🍵", "general"),
    ],
)  # fmt: skip
def test_the_kind_of_a_question_is_told_by_its_words(query: str, intent: str) -> None:
    assert intent_of(query) == intent


FOLDERS = ["kinds", "other", "other/", "/other/deep", "other.md", "other/deep/er.md", "othe", "", "none", "ages/", "."]


@given(
    st.fixed_dictionaries(
        {
            "query": st.just("the"),
            "type": st.sampled_from([None, "concept", "workflow", "none", ""]),
            "tags": st.sets(st.sampled_from(["x", "y", "other", "none", ""]), max_size=2).map(tuple),
            "path": st.sampled_from([None, *FOLDERS]),
            "tier": st.sampled_from([None, "always", "searchable"]),
            "verified_within": st.sampled_from([None, 0, 1, 10, 60, 36_500]),
        }
    )
)
def test_words_meaning_and_documents_agree_on_what_a_filter_admits(pack: OpenPack, values: dict[str, Any]) -> None:
    filters = filters_of(SearchRequest.model_validate(values), TODAY)
    index = pack.index
    documents = index.lexical.documents(range(index.lexical.passages))
    admitted = [row for row, document in enumerate(documents) if filters.admits(index.tables.document(document))]
    by_words = index.lexical.search(index.lexical.terms("the"), 1000, filters).rows.tolist()
    assert sorted(by_words) == admitted
    assert np.flatnonzero(index.tables.passages_where(filters)).tolist() == admitted


def test_filters_hold_together(pack: OpenPack) -> None:
    result = ask(pack, "bell and boat", path="other", type="workflow", verified_within=90, tier="searchable")
    assert files(result) == ["other/deep/er.md"]
    assert files(ask(pack, "bell", path="other", tags=["y"], verified_within=1)) == ["other/bell.md"]
    assert files(ask(pack, "rope", path="other")) == [
        name for name in files(ask(pack, "rope")) if name.startswith("other/")
    ]
    assert ask(pack, "bell", path="kinds", verified_within=9)["reason"] == "no_relevant_passage"
    assert not Filters()


rankings = st.dictionaries(st.integers(0, 30), st.sampled_from([0.1, 0.25, 0.5, 1.0, 3.0]), max_size=20)


@given(
    st.lists(st.tuples(rankings, st.sampled_from([0.5, 1.0, 2.0])), max_size=3),
    st.sampled_from(sorted(FUSIONS)),
    st.data(),
)
def test_fusion_is_bounded_and_does_not_see_the_order_of_its_input(
    signals: list[tuple[dict[int, float], float]], fusion: str, data: st.DataObject
) -> None:
    def made(order: Sequence[int]) -> Ranking:
        return FUSIONS[fusion]([signal(*signals[place]) for place in order])  # type: ignore[index]

    def signal(scores: dict[int, float], weight: float) -> Signal:
        rows = np.array(list(scores), np.int64)
        return ranked(rows, np.array(list(scores.values()), np.float32)), weight, -1.0

    order = range(len(signals))
    fused, other = made(order), made(data.draw(st.permutations(order)))
    assert set(fused.rows.tolist()) == {row for scores, _ in signals for row in scores}
    assert sorted(fused.scores.tolist(), reverse=True) == fused.scores.tolist()
    assert all(0 <= score <= 1 + 1e-6 for score in fused.scores.tolist())
    assert np.allclose(np.sort(fused.scores), np.sort(other.scores), atol=1e-6)


def test_reciprocal_ranks_count_places_and_not_scores() -> None:
    near, far = (Ranking(np.array([5, 2]), np.array(scores, np.float32)) for scores in ([9, 8.9], [9, 0.1]))
    one, other = (FUSIONS["rrf"]([(each, 1.0, 0.0)]) for each in (near, far))
    assert one.scores.tolist() == other.scores.tolist() == pytest.approx([1, 61 / 62])
