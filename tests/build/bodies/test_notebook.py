from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_build.bodies import markdown
from octavo_build.bodies.notebook import facts, parse_body


def cell(kind: str, source: str | list[str], **more: Any) -> dict[str, Any]:
    return {"cell_type": kind, "metadata": {"source": "no", "cells": []}, "source": source, **more}


def notebook(*cells: dict[str, Any], **options: Any) -> bytes:
    return json.dumps({"metadata": {"kernelspec": {"name": "x"}}, "cells": cells, "nbformat": 4}, **options).encode()


def shown(raw: bytes) -> str:
    return parse_body(raw, 0).shown(0, len(raw))


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        pytest.param([cell("markdown", ["# T\n", "\n", "text"])], "# T\n\ntext", id="a list of strings"),
        pytest.param([cell("markdown", "# T\n\ntext")], "# T\n\ntext", id="one string"),
        pytest.param([cell("code", "print('x')")], "```\nprint('x')\n```", id="code"),
        pytest.param([cell("raw", ".. rst::")], "```\n.. rst::\n```", id="raw"),
        pytest.param([cell("code", 'a = """\n````\n"""\n')], '`````\na = """\n````\n"""\n`````', id="a fence in it"),
        pytest.param([cell("markdown", 'é "q" \\ \t 😀 /')], 'é "q" \\ \t 😀 /', id="escapes"),
        pytest.param([cell("markdown", "\ud800 \0")], "\ufffd \ufffd", id="escapes of what is no character"),
        pytest.param([cell("markdown", "a"), cell("code", " "), cell("markdown", "b")], "a\n\nb", id="an empty cell"),
        pytest.param([cell("code", "a", outputs=[{"text": ["o\n"]}], execution_count=1)], "```\na\n```", id="outputs"),
        pytest.param([cell("markdown", "![a](data:image/png;base64,AAAA)")], "![a](data:…)", id="data URI"),
        pytest.param([], "", id="no cells"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"indent": 1, "ensure_ascii": False}, {"separators": (",", ":")}])
def test_a_notebook_is_shown_as_markdown(cells: list[dict[str, Any]], text: str, options: dict[str, Any]) -> None:
    raw = json.dumps({"cells": cells}, **options).encode("utf-8", "backslashreplace")
    assert shown(raw) == text


def test_blocks_are_known_by_kind_and_bytes() -> None:
    raw = notebook(
        cell("markdown", ["# T\n", "text <!-- c -->\n", "\n", "## É\n", "- a"]), cell("code", "# no heading")
    )
    body = parse_body(raw, 0)
    assert [(b.kind, b.level, b.text, body.visible(b.start, b.end)) for b in body.blocks] == [
        ("heading", 1, "T", "# T\n"),
        ("paragraph", 0, "", "text \n"),
        ("heading", 2, "É", "## É\n"),
        ("list", 0, "", "- a"),
        ("fence", 0, "", "```\n# no heading\n```"),
    ]
    assert raw[body.blocks[2].start : body.blocks[2].end] == b"## \\u00c9\\n"
    assert raw[body.blocks[4].start : body.blocks[4].end].startswith(b'{"cell_type": "code"')


def test_the_last_of_repeated_keys_counts() -> None:
    raw = b'{"cells": [{"source": "no"}], "cells": [{"source": "no", "cell_type": "markdown", "source": ["yes"]}]}'
    assert shown(raw) == "yes"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("", 1, id="empty"),
        pytest.param('{"cells": [\n\n}', 3, id="no JSON"),
        pytest.param("[]", 1, id="a list"),
        pytest.param('{"cells": {}}', 1, id="cells that are no list"),
        pytest.param('{"worksheets": []}', 1, id="format 3"),
        pytest.param('{"cells": ' + "[" * 100_000 + "]" * 100_000 + "}", 1, id="too deep"),
        pytest.param('{"cells": [{"source": "' + "\\n" * 1_000_001 + '"}]}', 1, id="too many escapes"),
        pytest.param('{"cells": [], "n": ' + "9" * 100_000 + "}", 1, id="too large a number"),
    ],
)
def test_what_is_no_notebook_is_at_fault_and_has_no_blocks(text: str, line: int) -> None:
    fault = facts(text.encode(), 0).fault
    assert fault is not None
    assert fault[0] == line
    assert parse_body(text.encode(), 0).blocks == ()
    assert shown(text.encode()) == ""


def test_the_title_is_the_first_heading_of_level_1() -> None:
    raw = notebook(cell("code", "# no"), cell("markdown", "## no"), cell("markdown", "# The *title*"))
    assert facts(raw, 0).title == "The title"


LINES = ["# h\n", "\n", "a <!-- c --> b\n", "```\n", "- i\n", "|a|\n|-|\n", "é😀\n", '"\\\n', "[x]: data:a/b,c\n"]
SOURCES = st.lists(st.sampled_from(LINES) | st.text(st.characters(exclude_categories=["Cs"]), max_size=8))


@given(SOURCES, st.booleans(), st.sampled_from([None, 1]), st.booleans())
def test_a_cell_is_the_markdown_that_it_holds(
    lines: list[str], listed: bool, indent: int | None, ascii_only: bool
) -> None:
    source = "".join(lines)
    raw = notebook(cell("markdown", lines if listed else source), indent=indent, ensure_ascii=ascii_only)
    body, expected = parse_body(raw, 0), markdown.parse_body(source.encode(), 0)
    if source.encode().strip():
        assert body.shown(0, len(raw)) == expected.shown(0, len(expected.raw))
        assert body.visible(0, len(raw)) == expected.visible(0, len(expected.raw))
        assert [(b.kind, b.level, b.text, body.visible(b.start, b.end).lstrip("\r\n")) for b in body.blocks] == [
            (b.kind, b.level, b.text, expected.visible(b.start, b.end).lstrip("\r\n")) for b in expected.blocks
        ]
    else:
        assert body.shown(0, len(raw)) == ""
