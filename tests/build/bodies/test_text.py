from __future__ import annotations

import pytest

from octavo_build.bodies.text import facts, parse_body


def test_paragraphs_lie_between_blank_lines() -> None:
    raw = b"\n# a\nb\r\n\r\n \t\n- c\r\rd"
    assert [raw[block.start : block.end] for block in parse_body(raw, 0).blocks] == [b"# a\nb\r\n", b"- c\r", b"d"]
    assert {block.kind for block in parse_body(raw, 0).blocks} == {"paragraph"}


def test_text_is_shown_as_written_but_for_data_uris() -> None:
    raw = "*a* <b> data:image/png;base64,AAAA é\n".encode()
    body = parse_body(raw, 0)
    assert body.shown(0, len(raw)) == body.visible(0, len(raw)) == "*a* <b> data:… é\n"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        pytest.param("\n\nRelease notes\n\ntext", "Release notes", id="a blank line follows"),
        pytest.param("Release notes\n=============\ntext", "Release notes", id="a rule follows"),
        pytest.param("Only this", "Only this", id="nothing follows"),
        pytest.param("Some text\nthat goes on", "", id="text follows"),
        pytest.param("A sentence.\n\ntext", "", id="a sentence"),
        pytest.param("As follows:\n\ntext", "", id="a colon"),
        pytest.param("- item\n\ntext", "", id="an item"),
        pytest.param("word " * 40, "", id="too long"),
        pytest.param("=====\n\ntext", "", id="no word"),
        pytest.param("", "", id="empty"),
    ],
)
def test_a_first_line_that_looks_like_a_title_is_one(text: str, title: str) -> None:
    assert facts(text.encode(), 0).title == title
