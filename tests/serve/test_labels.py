from __future__ import annotations

import pytest

from octavo_serve.labels import label


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("Coffee machine", "Coffee machine", id="plain"),
        pytest.param(" one\r\ntwo\t\x00three\u2028four ", "one two three four", id="one line"),
        pytest.param("a\u202eb\u2066c\u200bd\ufeff", "abcd", id="hidden and reordering"),
        pytest.param("\U000e0041\U000e0042a", "a", id="tags"),
        pytest.param("\x1b[31mred", "[31mred", id="an escape"),
        pytest.param(
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
            id="Persian",
        ),
        pytest.param("\U0001f469\u200d\U0001f52c é 水", "\U0001f469\u200d\U0001f52c é 水", id="joined emoji"),
        pytest.param("\ud800x", "x", id="half of a pair"),
    ],
)
def test_a_label_is_one_line_of_what_is_seen(text: str, shown: str) -> None:
    assert label(text) == shown


@pytest.mark.parametrize(("limit", "shown"), [(5, "abcde"), (4, "abc…"), (1, "…")])
def test_a_label_is_cut_to_its_length(limit: int, shown: str) -> None:
    assert label("abcde", limit) == shown
