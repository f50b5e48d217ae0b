from __future__ import annotations

import random
from functools import cache
from itertools import chain, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

import octavo_build
from octavo_build.windows import WindowLimits, load_tokenizer, windows_of

TOKENIZER = Path(octavo_build.__file__).parent / "encoders" / "minilm-tokenizer.json"
SMALL = WindowLimits(piece_tokens=8, overlap_tokens=2, heading_tokens=4, window_tokens=16)


@cache
def tokenizer() -> Tokenizer:
    return load_tokenizer(TOKENIZER)


def pieces_of(visible: str, limits: WindowLimits) -> list[str]:
    return windows_of(tokenizer(), "", visible, limits)


def length(window: str) -> int:
    return len(tokenizer().encode(window).ids)


def test_the_tokenizer_neither_pads_nor_truncates() -> None:
    # the file itself asks for both, at 128
    assert length("word") == 3
    assert length("word " * 1_000) == 1_002


@pytest.mark.parametrize(
    ("heading", "visible", "windows"),
    [
        pytest.param("A > B", "some text\n", ["A > B\nsome text"], id="short"),
        pytest.param("", "some text\n", ["some text"], id="no heading"),
        pytest.param("A > B", " \n\n", ["A > B"], id="blank text"),
        pytest.param("A > B", "\ufffd\u200b", ["A > B"], id="text without a token"),
        pytest.param("", " \n", [], id="nothing"),
        pytest.param("\ufffd", "\ufffd", [], id="no token at all"),
    ],
)
def test_a_passage_becomes_windows(heading: str, visible: str, windows: list[str]) -> None:
    assert windows_of(tokenizer(), heading, visible) == windows


def test_a_long_text_becomes_overlapping_windows_under_one_heading() -> None:
    words = [f"w{number}" for number in range(1_000)]
    windows = windows_of(tokenizer(), "A > B", " ".join(words))
    pieces = [window.removeprefix("A > B\n").split() for window in windows]
    assert all(window.startswith("A > B\n") for window in windows)
    assert all(one[-1] >= two[0] and two[0] in one for one, two in pairwise(pieces))
    assert list(dict.fromkeys(chain.from_iterable(pieces))) == words


def test_a_long_heading_line_is_cut_at_a_token() -> None:
    (window,) = windows_of(tokenizer(), "heading " * 100, "text")
    assert window == f"{('heading ' * 50).strip()}\ntext"


@pytest.mark.parametrize(
    "visible",
    [
        pytest.param("Some words of one paragraph. " * 1_400, id="a paragraph"),
        pytest.param("한국어 문장은 짧다 https://example.com/경로\n" * 200, id="Korean"),
        pytest.param("漢字" * 5_000, id="Han"),
        pytest.param('{"a":1,"b":[2,3]},' * 400, id="minified JSON"),
        pytest.param("x" * 12_000, id="a word of 12,000 characters"),
        pytest.param("x" * 90 + "-" * 900, id="punctuation"),
        pytest.param("👨‍👩‍👧‍👦" * 2_000, id="emoji"),
        pytest.param("e\u0301" * 90 + " \ufffd " * 500, id="marks"),
    ],
)
def test_every_window_fits_the_encoder(visible: str) -> None:
    windows = windows_of(tokenizer(), "A heading line > of some length " * 10, visible)
    assert all(0 < length(window) <= 256 for window in windows)


def test_windows_shrink_when_a_tokenizer_makes_more_of_a_piece() -> None:
    limits = WindowLimits(piece_tokens=200, overlap_tokens=30, heading_tokens=50, window_tokens=210)
    windows = windows_of(tokenizer(), "heading " * 50, "word " * 1_000, limits)
    assert all(length(window) <= 210 for window in windows)
    assert sum(window.count("word") for window in windows) >= 1_000


def test_a_window_that_cannot_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="windows of 9 tokens"):
        windows_of(tokenizer(), "heading " * 50, "word", WindowLimits(8, 2, 50, 9))


def test_limits_must_leave_room() -> None:
    with pytest.raises(ValueError, match="overlap_tokens=100"):
        WindowLimits(overlap_tokens=100)


@given(
    st.lists(
        st.text(max_size=12) | st.sampled_from(["word", "un", "漢字", "👩‍🚀", "e\u0301", "...", "\n"]), max_size=80
    ).map("".join)
    | st.lists(st.sampled_from(["some", "longer", "words", "antidisestablishmentarianism"]), max_size=80).map(" ".join),
    st.sampled_from([SMALL, WindowLimits()]),
)
def test_pieces_hold_all_of_the_text_in_order(visible: str, limits: WindowLimits) -> None:
    pieces = pieces_of(visible, limits)
    assert pieces == pieces_of(visible, limits)
    assert all(piece == piece.strip() and piece for piece in pieces)
    assert all(length(piece) <= limits.window_tokens for piece in pieces)
    if not pieces:
        assert not tokenizer().encode(visible, add_special_tokens=False).ids
        return
    covered = 0
    for piece in pieces:
        rest = visible[covered:]
        blank = len(rest) - len(rest.lstrip())
        # of equal pieces the last that leaves no gap
        place = visible.rfind(piece, 0, covered + blank + len(piece))
        assert place >= 0
        covered = max(covered, place + len(piece))
    assert not visible[covered:].strip()


@pytest.mark.parametrize("seed", range(20))
def test_no_token_is_lost(seed: int) -> None:
    source = random.Random(seed)
    words = [f"{source.choice('abcdefgh')}{number}" for number in range(source.randrange(1, 2_000))]
    visible = "".join(word + source.choice([" ", "\n", ", ", "/"]) for word in words)
    text = " ".join(pieces_of(visible, WindowLimits()))
    assert all(word in text for word in words)
