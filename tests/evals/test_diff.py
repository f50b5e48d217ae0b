"""`octavo diff`: two releases that differ in every way one can, and what is said of them."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lamp import CASES, HOSTILE
from octavo_artifact.errors import ArtifactError, ConfigError
from octavo_evals.diff.command import DIFF
from octavo_evals.diff.comparison import Comparison, compare, comparison_json
from octavo_evals.diff.contents import Citation, DocumentChange, FieldChange
from octavo_evals.diff.lines import compare_lines
from octavo_evals.diff.questions import Question, sample
from octavo_evals.diff.releases import read_release, resolve
from octavo_evals.diff.text import arrow, markdown, printable, terminal
from octavo_evals.pages import diff_page

pytestmark = pytest.mark.slow  # it builds and measures releases of its own


def document(comparison: Comparison, path: str) -> DocumentChange:
    (found,) = (change for change in comparison.contents.documents if change.path == path)
    return found


def test_every_document_that_differs_is_told_once(comparison: Comparison) -> None:
    told = [(change.kind, change.old_path, change.path) for change in comparison.contents.documents]
    assert told == [
        ("added", None, "beam.md"),
        ("changed", "label.md", "label.md"),
        ("moved", "glass.md", "lens/glass.md"),
        ("changed", "log.md", "log.md"),
        ("removed", "storm.md", "storm.md"),
        ("moved", "oil.md", "tank/oil.md"),
        ("changed", "wick.md", "wick.md"),
    ]


def test_a_changed_document_tells_its_lines_and_fields(comparison: Comparison) -> None:
    wick = document(comparison, "wick.md")
    assert (wick.lines_added, wick.lines_removed) == (1, 5)
    assert FieldChange("verified_at", "2026-01-01", "2026-06-01") in wick.fields


def test_a_document_of_other_metadata_only_has_no_lines(comparison: Comparison) -> None:
    label = document(comparison, "label.md")
    assert label.fields == (FieldChange("type", "concept", "fact"),)
    assert label.lines == ()


def test_the_id_of_a_moved_document_is_another_unless_its_author_gave_it(comparison: Comparison) -> None:
    assert document(comparison, "lens/glass.md").fields == (FieldChange("id", "lamp/glass", "lamp/lens/glass"),)
    assert document(comparison, "tank/oil.md").fields == ()


def test_passages_are_told_by_the_hash_of_their_span(comparison: Comparison) -> None:
    kinds = [change.kind for change in comparison.contents.passages]
    assert [kinds.count(kind) for kind in ("added", "removed", "changed")] == [2, 2, 1]
    assert comparison.contents.passages_kept > 0


def test_a_passage_whose_text_moved_to_another_document_is_moved(comparison: Comparison) -> None:
    moved = [(change.old, change.new) for change in comparison.contents.passages if change.kind == "moved"]
    assert [(old[:18], new[:18]) for old, new in moved if old and new] == [("lamp/wick#turning:", "lamp/beam#turning:")]


def test_a_passage_under_another_heading_is_in_another_context(comparison: Comparison) -> None:
    (found,) = [change for change in comparison.contents.passages if change.kind == "context"]
    assert found.old == found.new
    assert (found.old or "").startswith("lamp/log#entries:")


def test_edges_that_came_and_went_are_told(comparison: Comparison) -> None:
    assert [(edge.source, edge.target) for edge in comparison.contents.edges_added] == [("lamp/beam", "lamp/wick")]
    assert [(edge.source, edge.kind) for edge in comparison.contents.edges_removed] == [("lamp/label", "related")]


def citation(comparison: Comparison, start: str) -> Citation:
    (found,) = (each for each in comparison.contents.citations if each.name.startswith(start))
    return found


@pytest.mark.parametrize(
    ("start", "kind", "now"),
    [
        pytest.param("lamp/storm#", "broken", None, id="of a removed document"),
        pytest.param("lamp/glass#", "broken", "lamp/lens/glass#glass:", id="of a moved document"),
        pytest.param("lamp/wick#wick:", "drifted", None, id="of a changed passage"),
        pytest.param("ep://lamp/file/oil.md", "broken", "ep://lamp/file/tank/oil.md", id="URI of a moved document"),
    ],
)
def test_a_citation_that_breaks_tells_where_its_bytes_are(
    comparison: Comparison, start: str, kind: str, now: str | None
) -> None:
    found = citation(comparison, start)
    assert found.kind == kind
    assert (found.now or "").startswith(now) if now else found.now is None


def test_a_citation_that_still_holds_is_not_told(comparison: Comparison) -> None:
    assert not [each for each in comparison.contents.citations if each.name.startswith("lamp/oil#")]


def test_a_question_whose_answer_is_gone_comes_first(comparison: Comparison) -> None:
    assert comparison.movements
    worst = comparison.movements.questions[0]
    assert (worst.question.id, worst.old_reciprocal_rank, worst.new_reciprocal_rank) == ("storm", 1.0, 0.0)
    (lost,) = [place for place in worst.places if place.path == "storm.md"]
    assert (lost.old_rank, lost.new_rank, lost.expected) == (1, None, True)


@pytest.mark.parametrize("path", ["glass.md", "lens/glass.md"], ids=["label of OLD", "label of NEW"])
def test_an_answer_in_a_moved_document_is_the_same_answer(releases: tuple[Path, Path], path: str) -> None:
    question = Question("glass", "vinegar for the chimney", "label", (path,))
    found = compare(*releases, cases=[question], k=1).movements
    assert found
    assert (found.moved, found.overlap, found.old_reciprocal_rank, found.new_reciprocal_rank) == (0, 1.0, 1.0, 1.0)


def test_the_sample_is_of_the_headings_of_both_and_the_same_each_time(releases: tuple[Path, Path]) -> None:
    old, new = map(read_release, releases)
    texts = [question.text for question in sample((old, new), 100)]
    assert texts == sorted({*texts})
    assert {"Storm", "Wick: Turning", f"Beam {HOSTILE}: Beam"} <= {*texts}
    assert sample((old, new), 3) == sample((new, old), 3)
    assert {question.text for question in sample((old, new), 3)} < {*texts}


def test_settings_findings_and_sizes_are_told(comparison: Comparison) -> None:
    assert FieldChange("pack.version", "1", "2") in comparison.settings
    assert FieldChange("parameters.retrieval.words_weight", 2.0, 9.0) in comparison.settings
    assert sum(amount.change for amount in comparison.findings) > 0
    assert comparison.sizes[-1].name == "total"
    assert sum(amount.old for amount in comparison.sizes[:-1]) == comparison.sizes[-1].old


def test_a_release_is_the_same_as_itself(releases: tuple[Path, Path]) -> None:
    found = compare(releases[0], releases[0], sampled=5)
    assert found.same
    assert not found.contents.documents
    assert terminal(found, colours=False).endswith("the same release\n")


@pytest.mark.parametrize("render", [comparison_json, markdown, diff_page], ids=["json", "markdown", "html"])
def test_the_same_releases_give_the_same_bytes(
    releases: tuple[Path, Path], comparison: Comparison, render: Callable[[Comparison], str | bytes]
) -> None:
    assert render(compare(*releases, cases=CASES, sampled=20)) == render(comparison)


def test_the_page_asks_nothing_of_the_network_and_runs_nothing_a_pack_says(comparison: Comparison) -> None:
    page = diff_page(comparison)
    assert HOSTILE not in page
    assert page.count("<script") == 1
    assert "http://" not in page
    assert "https://" not in page
    assert "src=" not in page.replace("src 'none'", "")


def test_a_pack_cannot_steer_the_terminal_or_the_notes(comparison: Comparison) -> None:
    hostile = replace(comparison, name="\x1b[2J<b>*Lamp*\u202e")
    assert "\x1b" not in terminal(hostile, colours=False)
    assert "\\x1b\\[2J\\<b\\>\\*Lamp\\*" in markdown(hostile).replace("\\\\", "\\")
    assert printable("a\tb\u2066") == "a\\x09b\\x2066"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        pytest.param(["a", "b"], ["b", "c"], "-a, +c", id="entries of a list"),
        pytest.param(["a", "b"], ["b", "a"], "a, b -> b, a", id="another order"),
        pytest.param(None, ["a"], "none -> a", id="no list before"),
        pytest.param(2.0, 3.0, "2.0 -> 3.0", id="a number"),
    ],
)
def test_a_field_tells_how_it_changed(old: object, new: object, told: str) -> None:
    assert arrow(FieldChange("field", old, new)) == told


def test_rewritten_lines_mark_the_words_that_differ() -> None:
    found = compare_lines("same\n\nTrim the wick weekly.\n", "same\n\nTrim the wick daily.\n")
    assert [(line.sign, line.parts) for line in found.lines] == [
        ("-", ((False, "Trim the wick "), (True, "weekly"), (False, "."))),
        ("+", ((False, "Trim the wick "), (True, "daily"), (False, "."))),
    ]


def test_texts_too_long_to_compare_are_told_as_replaced() -> None:
    found = compare_lines("a\n" * 3000, "b\n" * 3000)
    assert (found.added, found.removed, found.lines) == (3000, 3000, ())


def run(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    DIFF.add_arguments(parser)
    return DIFF.run(parser.parse_args([*map(str, arguments)]))


def test_the_exit_code_is_that_of_diff(
    releases: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = releases
    assert run(old, old, "--sample", 0) == 0
    capsys.readouterr()
    assert run(old, new, "--sample", 0, "--json", "--html", tmp_path / "diff.html") == 1
    shown = json.loads(capsys.readouterr().out)
    assert (shown["same"], shown["old"]["digest"], shown["movements"]) == (False, old.name, None)
    assert (tmp_path / "diff.html").read_text().startswith("<!doctype html>")
    with pytest.raises(ConfigError) as trouble:
        run(old, tmp_path)
    assert trouble.value.exit_code == 2


def test_a_damaged_release_is_refused(releases: tuple[Path, Path], tmp_path: Path) -> None:
    dist = shutil.copytree(releases[0].parent.parent, tmp_path / "dist")
    damaged = dist / "lamp" / releases[0].name
    (damaged / "edges.parquet").write_bytes(b"x")
    with pytest.raises(ArtifactError, match=r"edges\.parquet"):
        compare(damaged, releases[1])


def test_releases_of_two_packs_are_not_compared(releases: tuple[Path, Path], built: Path) -> None:
    with pytest.raises(ConfigError, match="releases of two packs, tiny and lamp"):
        compare(resolve(str(built / "tiny"), built), releases[0])


def test_a_release_is_named_by_path_or_by_slug_and_digest(releases: tuple[Path, Path]) -> None:
    old, new = releases
    dist = old.parent.parent
    assert [resolve(name, dist) for name in (str(old), f"lamp@{old.name}", f"lamp@{old.name[:8]}")] == [old] * 3
    assert resolve(str(dist / "lamp"), dist) == new
    with pytest.raises(ArtifactError, match="no such release in dist; there are: "):
        resolve("lamp@" + "0" * 12, dist)
    with pytest.raises(ConfigError, match="expected dist/SLUG/DIGEST"):
        resolve("lamp", dist)
