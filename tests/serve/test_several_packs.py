"""One question to several packs: one ranking, and each pack's own gate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import numpy as np
import pytest

from octavo_artifact.errors import NotFoundError
from octavo_serve.catalog import Catalog, open_catalog
from octavo_serve.collection import Collection
from octavo_serve.encoder import Encoder, Vector
from octavo_serve.requests import SearchRequest
from octavo_serve.results import SearchResult
from octavo_serve.search import search
from running import octavo

ENGLISH = {
    "lamp.md": "# Lamp\n\nThe lamp is lit by the keeper at dusk, and it can be seen from the sea in any weather.\n",
    "oil.md": "# Oil\n\nThe tank is filled with oil in the morning, by hand, and the wick is trimmed with it.\n",
    "horn.md": "# Horn\n\nIn fog the horn is blown for five seconds of each minute by the keeper or the boy.\n",
}
GERMAN = {
    "lampe.md": "# Lampe\n\nDie Lampen werden von dem Wärter angezündet, und das Licht ist auf dem Meer zu sehen.\n",
    "nebel.md": "# Nebel\n\nBei Nebel wird das Horn geblasen, und die Schiffe werden mit der Glocke gewarnt.\n",
}
TWIN = "---\nid: twins/price\ntitle: Price\n---\n# Price\n\nA barrel of paraffin costs {} crowns at the harbour.\n"


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`ea` and `eb`, and `whole` with all that they hold; `left` and `right`, alike but for a number; `bare`, empty."""
    root = tmp_path_factory.mktemp("several")
    packs = [
        write(root / "ea", {f"a/{name}": text for name, text in ENGLISH.items()}),
        write(root / "eb", {f"b/{name}": text for name, text in GERMAN.items()}),
        write(root / "whole", {f"a/{name}": text for name, text in ENGLISH.items()}),
        write(root / "whole", {f"b/{name}": text for name, text in GERMAN.items()}),
        write(root / "left", {"price.md": TWIN.format(12)}),
        write(root / "right", {"price.md": TWIN.format(90)}),
        write(root / "bare", {"a.md": "\n"}),
    ]
    done = octavo("build", *dict.fromkeys(packs), "--out", root / "dist", "--state", root / "state", "-q")
    assert done.returncode == 0, done.stderr
    return root / "dist"


@pytest.fixture(scope="module")
def catalog(dist: Path) -> Catalog:
    return open_catalog(dist)


def ask(catalog: Catalog, query: str, *slugs: str, **options: object) -> SearchResult:
    return catalog.search(SearchRequest.model_validate({"query": query, **options}), frozenset(slugs))


QUESTIONS = ["when is the lamp lit?", "horn in fog", "Lampen im Nebel", "lampn", '"the horn is blown"', "oil", "Wärter"]


@pytest.mark.parametrize("fusion", ["convex", "tmm", "rrf"])
@pytest.mark.parametrize("query", QUESTIONS)
def test_packs_together_answer_as_one_pack_of_all_their_documents(catalog: Catalog, query: str, fusion: str) -> None:
    options = {"gate": "off", "retrieval": {"fusion": fusion}}
    several, whole = ask(catalog, query, "ea", "eb", **options), ask(catalog, query, "whole", **options)
    assert [(hit["source_file"], hit["score"]) for hit in several["results"]] == [
        (hit["source_file"], hit["score"]) for hit in whole["results"]
    ]
    assert {hit["pack"] for hit in several["results"]} <= {"ea", "eb"}


def test_an_answer_of_several_packs_names_the_pack_and_release_of_each_hit(catalog: Catalog) -> None:
    result = ask(catalog, "horn in fog", "ea", "eb", "bare", gate="off")
    assert result["pack"] is None
    for hit in result["results"]:
        pack = catalog.choose(hit["pack"])
        assert hit["digest"] == pack.digest
        assert hit["uri"].startswith(f"ep://{hit['pack']}/") or hit["pack"] in hit["uri"]
    assert len(result["digest"]) == 64
    assert result["digest"] not in {pack.digest for pack in catalog.packs.values()}
    assert (
        result["digest"]
        == ask(catalog, "oil", "bare", "ea", "eb")["digest"]
        != ask(catalog, "oil", "ea", "eb")["digest"]
    )


def test_packs_with_the_same_ids_and_paths_do_not_mix(catalog: Catalog) -> None:
    result = ask(catalog, "price of a barrel of paraffin", "left", "right", gate="off", reconstruct=True, explain=True)
    texts = {hit["pack"]: hit["text"] for hit in result["results"]}
    assert set(texts) == {"left", "right"}
    for slug, number in (("left", "12"), ("right", "90")):
        assert number in texts[slug]
    assert [hit["id"] for hit in result["results"]] == ["twins/price"] * 2
    for hit in result["results"]:
        assert "reconstruction" in hit
        assert texts[hit["pack"]][-30:].strip() in str(hit["reconstruction"])


def test_a_pack_that_its_gate_refuses_gives_nothing(catalog: Catalog) -> None:
    query = "when is the lamp lit by the keeper?"
    alone = {slug: ask(catalog, query, slug, gate="flag")["answer_probability"] or 0 for slug in ("ea", "left")}
    assert alone["left"] < alone["ea"]
    between = {"refuse_below": (alone["left"] + alone["ea"]) / 2}
    flagged = ask(catalog, query, "ea", "left", gate="flag", retrieval=between)
    refused = ask(catalog, query, "ea", "left", retrieval=between)
    assert {hit["pack"] for hit in flagged["results"]} == {"ea", "left"}
    assert {hit["pack"] for hit in refused["results"]} == {"ea"}
    assert refused["answer_probability"] == alone["ea"]
    assert refused["results"] == [hit for hit in flagged["results"] if hit["pack"] == "ea"]
    nothing = ask(catalog, query, "ea", "left", retrieval={"refuse_below": 1})
    assert (nothing["refused"], nothing["reason"], nothing["results"]) == (True, "no_relevant_passage", [])
    assert nothing["answer_probability"] == alone["ea"]
    assert {each["pack"] for each in nothing["nearest"]} <= {"ea", "left"}


@pytest.mark.parametrize("query", ["when is the lamp of the Lighters lit?", "when is the lamp lit?", "Horn bei Nebel"])
def test_a_pack_judges_alike_whatever_it_is_searched_with(catalog: Catalog, query: str) -> None:
    """Also where the other pack adds a language, so that the words of a question have other stems."""
    for other in ("eb", "bare"):
        together = ask(catalog, query, "ea", other, gate="flag")["answer_probability"]
        each = [ask(catalog, query, slug, gate="flag")["answer_probability"] for slug in ("ea", other)]
        assert together in each


def test_a_pack_without_a_passage_changes_nothing(catalog: Catalog) -> None:
    for query in QUESTIONS:
        assert (
            ask(catalog, query, "bare", "ea", gate="off")["results"] == ask(catalog, query, "ea", gate="off")["results"]
        )
    assert ask(catalog, "oil", "bare")["reason"] == "no_relevant_passage"


def test_a_caller_that_may_see_one_pack_or_none_is_told_of_no_other(catalog: Catalog) -> None:
    assert ask(catalog, "horn", "ea")["pack"] == "ea"
    with pytest.raises(NotFoundError, match="known are ea, eb"):
        ask(catalog, "horn", "ea", "eb", pack="left")
    with pytest.raises(NotFoundError, match="known are none"):
        ask(catalog, "horn")


def test_packs_are_opened_together_once_whoever_asks_at_the_same_time(dist: Path) -> None:
    catalog = open_catalog(dist)
    barrier = Barrier(8)
    answers: list[SearchResult] = []

    def run() -> None:
        barrier.wait()
        answers.append(ask(catalog, "horn in fog", "ea", "eb", "left"))

    threads = [Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [answers[0]] * 8
    assert len(catalog._collections) == 1  # pyright: ignore[reportPrivateUsage]  # nothing else shows it


@dataclass
class Other:
    """An encoder that is not the other packs': of other cosines, or of none."""

    inner: Encoder
    works: bool = True

    @property
    def spec(self) -> Any:
        return self.inner.spec

    @property
    def failure(self) -> str | None:
        return None if self.works else "gone"

    def encode(self, text: str) -> Vector:
        if not self.works:
            raise RuntimeError("gone")
        return (self.inner.encode(text) * np.float32(0.1)).astype(np.float32)


def ask_with(catalog: Catalog, other: Other, query: str) -> SearchResult:
    """Ask `ea`, and `eb` with another encoder."""
    ea, eb = catalog.choose("ea").index, catalog.choose("eb").index
    request = SearchRequest(query=query, gate="off", explain=True)
    return search(Collection([ea, replace(eb, encoder=other)]), request, date(2026, 11, 30))


def test_cosines_of_different_encoders_are_put_on_the_scale_of_each_pack(catalog: Catalog) -> None:
    encoder = catalog.choose("ea").index.encoder
    result = ask_with(catalog, Other(encoder), "horn in fog")
    assert not result["degraded"]
    assert {hit["pack"] for hit in result["results"]} == {"ea", "eb"}
    scores = [hit["score"] for hit in result["results"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert "explanation" in result
    gate = catalog.choose("ea").index.gate
    assert gate is not None
    cosines = ask(catalog, "horn in fog", "ea", gate="off", explain=True)
    assert "explanation" in cosines
    for fragment, steps in cosines["explanation"]["hits"].items():
        raw, scaled = (
            next(step["score"] for step in each if step["stage"] == "vector: nearest")
            for each in (steps, result["explanation"]["hits"][fragment])
        )
        assert raw is not None
        assert scaled == pytest.approx((raw - gate.unrelated) / (gate.own - gate.unrelated), abs=1e-4)


def test_a_pack_whose_encoder_fails_is_searched_by_words_beside_the_others(catalog: Catalog) -> None:
    encoder = catalog.choose("ea").index.encoder
    result = ask_with(catalog, Other(encoder, works=False), "Horn bei Nebel")
    assert (result["degraded"], result["missing"]) == (True, ["encoder"])
    assert {hit["pack"] for hit in result["results"]} == {"ea", "eb"}
    assert {hit["source_file"] for hit in result["results"] if hit["pack"] == "eb"} == {"b/nebel.md"}
