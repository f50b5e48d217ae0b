"""Inputs that broke other systems of cited answers (cases.md, layer A): row by row the tests that hold us to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from running import is_test

OVER_HTTP = "serve/answering/test_ask_over_http.py::"
ANSWERER = "serve/answering/test_answerer.py::"
MARKERS = "serve/answering/test_markers.py::"

ROWS = {
    "B34": [
        OVER_HTTP + "test_b34_what_the_pack_does_not_speak_of_is_refused_without_the_model",
        OVER_HTTP + "test_b34_what_the_sources_do_not_answer_is_refused_as_the_model_says",
        ANSWERER + "test_what_the_pack_does_not_speak_of_is_refused_without_the_model",
        ANSWERER + "test_the_sentence_of_refusal_is_a_refusal",
        ANSWERER + "test_a_pack_that_flags_what_it_doubts_is_refused_all_the_same",
        "test_local_answers.py::test_what_the_pack_does_not_speak_of_is_refused_without_a_call_of_the_model",
    ],
    "B35": [
        MARKERS + "test_b35_markers_are_normalised_and_invalid_ones_reported_however_they_are_split",
        MARKERS + "test_b35_what_only_looks_like_a_marker_stays_as_it_is",
        MARKERS + "test_b35_no_half_marker_is_shown_when_it_comes_in_three_events",
        ANSWERER + "test_numbers_that_point_nowhere_are_left_out_and_told",
    ],
    "B38": [
        OVER_HTTP + "test_b38_a_client_that_closes_its_connection_stops_the_model",
        OVER_HTTP + "test_b38_a_client_that_leaves_leaves_no_task",
        OVER_HTTP + "test_b38_a_client_that_does_not_read_is_left",
        OVER_HTTP + "test_b38_what_is_over_the_limit_is_refused_at_once",
        "test_local_answers.py::test_a_client_that_leaves_frees_the_slot_within_a_second",
    ],
    "B39": [
        OVER_HTTP + "test_b39_a_model_that_fails_ends_the_stream_with_an_error",
        OVER_HTTP + "test_b39_silence_is_broken_by_comments_and_ends_with_an_error",
        ANSWERER + "test_a_stream_that_breaks_is_an_error_with_what_came_before",
    ],
}


@pytest.mark.parametrize("row", ROWS)
def test_a_row_names_tests_that_exist(row: str) -> None:
    assert [name for name in ROWS[row] if not is_test(name)] == []


@pytest.mark.shared
def test_every_row_about_answers_is_held(shared: Path) -> None:
    rows = re.findall(r"^\| (B\d+) \|[^|]*\| [A-Z,]*A[A-Z,]* \|", (shared / "cases.md").read_text(), re.MULTILINE)
    assert rows == list(ROWS)
