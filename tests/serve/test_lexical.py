from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from octavo_artifact.errors import ArtifactError
from octavo_artifact.text import phrase_terms, words_of
from octavo_build.lexical import LexicalRow, write_lexical
from octavo_serve.filters import Filters
from octavo_serve.lexical import LexicalIndex, stem


def index_of(root: Path, *texts: str, language: str = "en") -> Path:
    """An index with a passage for each text."""
    rows = (
        LexicalRow(
            text, "guide", (), f"{row}.md", row, f'{{"text": "{row}"}}', language, "searchable", date(2026, 1, 1)
        )
        for row, text in enumerate(texts)
    )
    write_lexical(root, rows)
    return root


def found(index: LexicalIndex, query: str, typo_cost: float = 1.0) -> list[int]:
    return index.search(index.terms(query), 10, typo_cost=typo_cost).rows.tolist()


def test_indexes_opened_together_count_on_and_are_one_collection(tmp_path: Path) -> None:
    one, none, other = (
        index_of(tmp_path / "a", "a lamp", "a wick"),
        index_of(tmp_path / "b"),
        index_of(tmp_path / "c", "oil lamp"),
    )
    joined = LexicalIndex([one, none, other], "several", ("en",))
    whole = LexicalIndex([index_of(tmp_path / "d", "a lamp", "a wick", "oil lamp")], "whole", ("en",))
    assert joined.starts.tolist() == [0, 2, 2, 3]
    for query in ("lamp", "oil wick", "lamp lamp oil"):
        ours, theirs = (index.search(index.terms(query), 10) for index in (joined, whole))
        assert ours.rows.tolist() == theirs.rows.tolist()
        assert ours.scores.tolist() == theirs.scores.tolist()
    assert joined.documents([0, 1, 2]) == [0, 1, 0]
    assert [joined.hit(row)["text"] for row in range(3)] == ["0", "1", "0"]
    assert list(joined.occurrences(["lamp", "wick"], [0, 2])) == [{"lamp": 1}, {"lamp": 1}]


def test_the_same_segment_may_be_in_two_packs(tmp_path: Path) -> None:
    one = index_of(tmp_path / "a", "a lamp", "a wick")
    joined = LexicalIndex([one, one], "twins", ("en",))
    assert found(joined, "wick") == [1, 3]
    assert joined.passages == 4


def test_a_slip_of_one_letter_is_forgiven_where_the_word_is_unknown(tmp_path: Path) -> None:
    index = LexicalIndex([index_of(tmp_path / "a", "the lantern burns", "the lectern stands")], "a", ("en",))
    for slip in ("lanternn", "lantrn", "lamtern", "latnern"):
        assert found(index, slip, 0.5) == [0]
        assert found(index, slip, 1.0) == []
    exact, slip = (index.search(index.terms(word), 10, typo_cost=0.5).scores[0] for word in ("lantern", "lanternn"))
    assert slip == pytest.approx(exact / 2)


def test_a_word_that_is_known_is_itself_whatever_is_near_it(tmp_path: Path) -> None:
    index = LexicalIndex([index_of(tmp_path / "a", "the lantern burns", "the lanterna burns")], "a", ("en",))
    assert found(index, "lanterna", 0.5) == [1]
    assert found(index, "lanter", 0.5) == [0]
    assert found(index, "burn", 0.5) == [0, 1]
    assert found(index, "bur", 0.5) == []  # too short to be a slip


def test_a_quoted_phrase_counts_in_the_language_of_the_passage(tmp_path: Path) -> None:
    english = index_of(tmp_path / "en", "he was lighting lamps at dusk", "lamps and other lighting", language="en")
    chinese = index_of(tmp_path / "zh", "这套电池容量很大", "池中的电和容器", language="zh")
    index = LexicalIndex([english, chinese], "both", ("de", "en", "zh"))
    for phrase, row in (("lighting lamps", 0), ("电池容量", 2)):
        terms = index.terms(phrase)
        plain = index.search(terms, 10)
        phrased = index.search(terms, 10, phrases=[phrase_terms(phrase, index.languages, stem)])
        gained = dict(zip(phrased.rows.tolist(), phrased.scores.tolist(), strict=True))
        for each, score in zip(plain.rows.tolist(), plain.scores.tolist(), strict=True):
            assert (gained[each] > score) == (each == row)


def test_a_phrase_of_one_word_or_of_none_adds_nothing(tmp_path: Path) -> None:
    index = LexicalIndex([index_of(tmp_path / "a", "the lantern burns")], "a", ("en",))
    for phrase in ("lantern", "…", ""):
        assert len(index.search(index.terms(""), 10, phrases=[phrase_terms(phrase, ("en",), stem)])) == 0


def test_an_index_that_is_not_there_is_the_artifacts_fault_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    damaged = index_of(tmp_path / "damaged", "a lamp")
    next(damaged.glob("*.idx")).unlink()
    for directory in (tmp_path / "none", damaged):
        with pytest.raises(ArtifactError, match="a pack: "):
            LexicalIndex([directory], "a pack", ("en",))
    assert list((tmp_path / "tmp").iterdir()) == []


def test_no_filter_is_no_condition_and_a_condition_that_none_meets_finds_none(tmp_path: Path) -> None:
    index = LexicalIndex([index_of(tmp_path / "a", "a lamp", "oil lamp")], "a", ("en",))
    for filters, rows in (
        (Filters(), [0, 1]),
        (Filters(type="guide"), [0, 1]),
        (Filters(type=""), []),
        (Filters(path="1.md"), [1]),
        (Filters(verified_since=date(2026, 1, 1)), [0, 1]),
        (Filters(verified_since=date(2026, 1, 2)), []),
    ):
        assert sorted(index.search(index.terms("lamp"), 10, filters).rows.tolist()) == rows


def test_terms_of_a_query_are_those_of_the_passages() -> None:
    assert words_of("Lighting", ("de", "en"), stem) == [("lighting", ("lighting", "light"))]
