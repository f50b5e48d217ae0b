"""The labelled sentences by which the citation checker is judged, and how well it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from octavo_build.passages import passages_of
from octavo_build.sources import read
from octavo_evals.answering.support import (
    DIGITS,
    KINDS,
    NEGATIVES,
    SPLITS,
    SUPPORTED,
    Figures,
    Packs,
    Pair,
    checker,
    figures,
    judge,
    present,
    read_pairs,
)
from running import ROOT, octavo

PAIRS = read_pairs(ROOT / "evals/answers/support.yaml")
HANDBOOK = ROOT / "packs/octavo"
COMMUNITY = ("blender-3d", "home-assistant", "solar-diy")
LEAST = {SUPPORTED: 80, **dict.fromkeys(NEGATIVES, 45)}


def unresolved(pack: Path, slug: str) -> list[str]:
    """The pairs over a pack that name a passage which its source does not have, or has otherwise."""
    there = {
        (document.path, passage.section or "opening", passage.span_sha256[:DIGITS])
        for row, document in enumerate(read(pack).documents)
        for passage in (each.passage for each in passages_of(document, row)[0])
    }
    return [
        f"{pair.id}: {place}"
        for pair in PAIRS
        if pair.pack == slug
        for place in (pair.place, pair.supported_by)
        if place and (place.file, place.section, place.span) not in there
    ]


def test_every_passage_of_the_handbook_is_as_it_was_when_its_sentences_were_labelled() -> None:
    assert unresolved(HANDBOOK, "octavo") == [], "read these and their passages again; see the page check-citations"


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("slug", COMMUNITY)
def test_every_passage_of_a_community_pack_is_as_it_was(slug: str, shared: Path) -> None:
    assert unresolved(shared / "packs" / slug, slug) == []


def test_the_pair_that_the_handbook_shows_is_one(tmp_path: Path) -> None:
    page = (HANDBOOK / "workflows/check-citations.md").read_text()
    shown = tmp_path / "shown.yaml"
    shown.write_text(page.partition("```yaml\n")[2].partition("```")[0])
    pair = {pair.id: pair for pair in PAIRS}["octavo-011"]
    assert [(each.id, each.place, each.kind) for each in read_pairs(shown)] == [(pair.id, pair.place, pair.kind)]


def test_there_are_sentences_enough_of_every_kind() -> None:
    counts = Counter(pair.kind for pair in PAIRS)
    assert counts.keys() == set(KINDS)
    assert {kind: count for kind, count in counts.items() if count < LEAST[kind]} == {}


def test_each_split_has_every_kind_and_about_half_of_the_sentences() -> None:
    counts = Counter((pair.split, pair.kind) for pair in PAIRS)
    assert all(counts[split, kind] >= 20 for split in SPLITS for kind in KINDS)
    assert all(0.4 <= sum(pair.split == split for pair in PAIRS) / len(PAIRS) <= 0.6 for split in SPLITS)


def test_about_half_of_the_sentences_are_over_the_handbook_and_the_rest_over_other_packs() -> None:
    packs = Counter(pair.pack for pair in PAIRS)
    assert packs.keys() == {"octavo", *COMMUNITY}
    assert 0.4 <= packs["octavo"] / len(PAIRS) <= 0.6


def test_no_sentence_stands_twice() -> None:
    assert [sentence for sentence, count in Counter(pair.sentence for pair in PAIRS).items() if count > 1] == []


def test_a_sentence_that_another_passage_supports_does_not_cite_that_one() -> None:
    assert [pair.id for pair in PAIRS if pair.place == pair.supported_by] == []


def built(root: Path, *packs: Path) -> Path:
    done = octavo("build", *packs, "--out", root / "dist", "--state", root / "state", "-q", timeout=1200)
    assert done.returncode == 0, done.stderr
    return root / "dist"


@pytest.fixture(scope="module")
def dist(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The releases of all packs that the pairs are over."""
    return built(tmp_path_factory.mktemp("labelled"), HANDBOOK, *(shared / "packs" / slug for slug in COMMUNITY))


def told(pairs: Iterable[Pair], dist: Path) -> Figures:
    """How well the checker tells what is unsupported, with the packs' encoder."""
    packs = Packs(dist)
    there, _ = present(list(pairs), packs)
    return figures(judge(there, packs, checker()))["all"]


def holds(found: Figures, precision: float, recall: float) -> bool:
    return (found.precision or 0) >= precision and (found.recall or 0) >= recall


@pytest.mark.slow
@pytest.mark.shared
def test_the_checker_tells_what_a_passage_does_not_say(dist: Path) -> None:
    assert holds(told(PAIRS, dist), precision=0.9, recall=0.8)


@pytest.mark.slow
@pytest.mark.shared
def test_it_tells_so_of_sentences_that_it_was_not_made_with(dist: Path) -> None:
    # As measured: .906 and .777. The pairs for development are easier for it, as they should be.
    assert holds(told((pair for pair in PAIRS if pair.split == "test"), dist), precision=0.88, recall=0.75)


@pytest.mark.slow
def test_the_checker_tells_what_the_handbook_does_not_say(tmp_path: Path) -> None:
    handbook = (pair for pair in PAIRS if pair.pack == "octavo")
    assert holds(told(handbook, built(tmp_path, HANDBOOK)), precision=0.9, recall=0.8)
