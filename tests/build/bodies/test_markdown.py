from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from octavo_build.bodies import markdown
from octavo_build.bodies.body import Block, Body, decode, elide_data_uris
from octavo_build.bodies.markdown import parse_body


def body_of(text: str, offset: int = 0) -> Body:
    return parse_body(text.encode(), offset)


def visible(text: str) -> str:
    body = body_of(text)
    return body.visible(0, len(body.raw))


def shown(text: str) -> str:
    body = body_of(text)
    return body.shown(0, len(body.raw))


def headings(text: str) -> list[tuple[int, str]]:
    return [(block.level, block.text) for block in body_of(text).blocks if block.level]


def tree(blocks: Iterable[Block], raw: bytes) -> list[tuple[str, str, list[object]]]:
    return [
        (block.kind, raw[block.start : block.end].decode(), list(tree(block.children, raw)) if block.children else [])
        for block in blocks
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("# One\n\n###### Six ##\n", [(1, "One"), (6, "Six")], id="hash signs"),
        pytest.param("One\n===\n\nTwo\nlines\n---\n", [(1, "One"), (2, "Two lines")], id="underlines"),
        pytest.param("#\n", [(1, "")], id="empty"),
        pytest.param("#hashtag\n", [], id="no space, no heading"),
        pytest.param("```python\n# comment\n```\n# Real\n", [(1, "Real")], id="fence"),
        pytest.param("~~~\n## not a heading\n~~~\n# Real\n", [(1, "Real")], id="tilde fence"),
        pytest.param("````\n```\n# no\n```\n````\n# Real\n", [(1, "Real")], id="fence in a longer fence"),
        pytest.param("- item\n\n  ```\n  # no\n  ```\n\n# Real\n", [(1, "Real")], id="fence in a list item"),
        pytest.param("- # no\n\n> # no\n\n# Real\n", [(1, "Real")], id="lists and quotes"),
        pytest.param("<!--\n# no\n\n# no\n-->\n# Real\n", [(1, "Real")], id="comment"),
        pytest.param("# A\r\n\r\n# B\r\r# C\n", [(1, "A"), (1, "B"), (1, "C")], id="mixed line ends"),
        pytest.param(
            "# The `code` *and* **bold** [link](x) &amp; \\*\n", [(1, "The code and bold link & *")], id="inline"
        ),
        pytest.param("# See [the spec][s] <!-- c -->\n\n[s]: x\n", [(1, "See the spec")], id="reference and comment"),
        pytest.param("# ![logo](logo.png) Tool\n", [(1, "logo Tool")], id="image"),
    ],
)
def test_only_top_level_headings_are_headings(text: str, found: list[tuple[int, str]]) -> None:
    assert headings(text) == found


def test_blocks_are_known_by_kind_and_bytes() -> None:
    text = "Té\n\n- a\n\n  b\n- c\n\n> q\n\n| h |\n|---|\n| r |\n\n    code\n\n[d]: x\n\n***\n"
    body = body_of(text)
    assert tree(body.blocks, body.raw) == [
        ("paragraph", "Té\n", []),
        (
            "list",
            "- a\n\n  b\n- c\n\n",
            [
                ("item", "- a\n\n  b\n", [("paragraph", "- a\n", []), ("paragraph", "  b\n", [])]),
                ("item", "- c\n\n", [("paragraph", "- c\n", [])]),
            ],
        ),
        ("quote", "> q\n", [("paragraph", "> q\n", [])]),
        ("table", "| h |\n|---|\n| r |\n", []),
        ("code", "    code\n", []),
        ("definition", "[d]: x\n", []),
        ("rule", "***\n", []),
    ]


def test_lines_are_counted_in_the_whole_file() -> None:
    raw = b"\xef\xbb\xbf---\r\na: b\r---\n# T\r\rx\n"
    body = parse_body(raw, raw.index(b"#"))
    assert [body.line_at(block.start) for block in body.blocks] == [4, 6]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a <!-- b --> c\n", "a  c\n", id="in a paragraph"),
        pytest.param("<!-- a\n\nb --> c\n\nd\n", " c\n\nd\n", id="a block"),
        pytest.param("<!-- a\n\nb\n", "", id="a block without an end"),
        pytest.param("a <!-- b\n\nc -->\n", "a <!-- b\n\nc -->\n", id="text without an end"),
        pytest.param("a <!--> b <!---> c\n", "a  b  c\n", id="the two shortest"),
        pytest.param("`<!-- a -->` ``<!-- ` -->``\n", "`<!-- a -->` ``<!-- ` -->``\n", id="code span"),
        pytest.param("` <!-- a -->\n", "` \n", id="a lone backtick"),
        pytest.param("\\` <!-- a --> `\n", "\\`  `\n", id="an escaped backtick"),
        pytest.param("\\<!-- a -->\n", "\\<!-- a -->\n", id="escaped"),
        pytest.param("```\n<!-- a -->\n```\n", "```\n<!-- a -->\n```\n", id="fence"),
        pytest.param("- x\n\n      <!-- a -->\n", "- x\n\n      <!-- a -->\n", id="indented code"),
        pytest.param("- x\n  <!-- a -->\n", "- x\n  \n", id="in a list"),
        pytest.param("|a|\n|-|\n|b <!-- c -->|\n", "|a|\n|-|\n|b |\n", id="in a table"),
        pytest.param("<div><!-- a\n--></div>\n", "<div></div>\n", id="in html"),
        pytest.param("a <!-- ![x](data:image/png;base64,AA) --> b\n", "a  b\n", id="a data URI inside"),
    ],
)
def test_html_comments_are_not_visible(text: str, expected: str) -> None:
    assert visible(text) == expected
    assert "<!--" not in text or shown(text).count("<!--") == text.count("<!--")


PAYLOAD = "iVBORw0KGgo" * 20_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"![alt text](data:image/png;base64,{PAYLOAD}==)", "![alt text](data:…)", id="inline image"),
        pytest.param(
            f'![a](data:image/png;base64,{PAYLOAD} "title")', '![a](data:… "title")', id="inline image, title"
        ),
        pytest.param(f"[logo]: data:image/png;base64,{PAYLOAD}\n", "[logo]: data:…\n", id="reference definition"),
        pytest.param(f"[l]: <data:image/png;base64,{PAYLOAD}>\n", "[l]: <data:…>\n", id="in angle brackets"),
        pytest.param(f'<img alt="a" src="data:image/png;base64,{PAYLOAD}">', '<img alt="a" src="data:…">', id="html"),
        pytest.param("<img src='data:image/svg+xml;utf8,<svg w=\"1\"/>'>", "<img src='data:…'>", id="quoted payload"),
        pytest.param("![](data:image/svg+xml,%3Cg%20t='r(1)'%3E) x", "![](data:…) x", id="parentheses in the payload"),
        pytest.param("![](DATA:image/gif;base64,AAAA)", "![](data:…)", id="capitals"),
        pytest.param('{"a": "data:,x"} {data:x, y:1}', '{"a": "data:,x"} {data:x, y:1}', id="fields called data"),
        pytest.param("metadata:text/plain,x", "metadata:text/plain,x", id="part of a word"),
        pytest.param('"data:text/plain,a b\n\nmore "text"', '"data:… b\n\nmore "text"', id="unclosed quote"),
        pytest.param("no such thing", "no such thing", id="none"),
    ],
)
def test_data_uris_become_a_marker(text: str, expected: str) -> None:
    assert elide_data_uris(text) == expected
    assert shown(text) == expected
    assert visible(text) == expected


def test_bytes_that_are_not_utf8_and_nul_are_replacement_characters() -> None:
    body = parse_body(b"# a\xff\0\r\nb\xe2\x82\n", 0)
    assert body.blocks[0].text == "a\ufffd\ufffd"
    assert body.visible(0, len(body.raw)) == "# a\ufffd\ufffd\r\nb\ufffd\n"


def test_a_long_heading_is_cut() -> None:
    (heading,) = body_of("# " + "word " * 10_000).blocks
    assert len(heading.text) == markdown.MAX_HEADING


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(">" * 10_000 + " a\n", id="quotes on a line"),
        pytest.param((">" * 100 + " a\n\n") * 100, id="quotes on many lines"),
        pytest.param("- " * 10_000 + "a\n", id="lists on a line"),
        pytest.param("".join("  " * depth + "- a\n" for depth in range(500)), id="lists, a line each"),
        pytest.param("> - " * 5_000 + "a\n", id="quotes and lists"),
        pytest.param("[" * 100_000 + "\n", id="brackets"),
        pytest.param("# " + "[" * 100_000 + "\n", id="brackets in a heading"),
        pytest.param("# " + "*a _b " * 20_000 + "\n", id="emphasis in a heading"),
        pytest.param("a <!-- " * 100_000 + "\n", id="comments without an end"),
        pytest.param("<!-- x --> " + "".join("`" * (i % 500) + "a" for i in range(2_000)) + "\n", id="backticks"),
        pytest.param('"data:image/png;base64,' * 20_000 + "\n", id="data URIs"),
        pytest.param("![a](data:image/png;base64," + "(" * 1_000_000 + "\n", id="parentheses"),
    ],
)
def test_hostile_nesting_hides_nothing_that_follows(text: str) -> None:
    assert headings(text + "\n# After\n")[-1] == (1, "After")


def test_a_body_of_too_many_lines_is_one_paragraph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markdown, "MAX_LINES", 4)
    body = body_of("# a\n\nb\n\n- c\n")
    assert [(block.kind, block.start, block.end) for block in body.blocks] == [("paragraph", 0, 12)]


LINES = st.sampled_from(
    (
        *("# a", "## b `c`", "===", "---", "", "  ", "text", "- i", "  - j", "1. k", "> q", "```", "~~~", "    code"),
        *("|a|b|", "|-|-|", "<!-- c -->", "<!--", "-->", "[x]: y", "<div>", "\ttab", "é 漢 👩‍🚀", "`<!-- c", "\\"),
    )
)
TEXTS = st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r\n", "\r"])), max_size=30).map(
    lambda lines: "".join(line + end for line, end in lines)
)


def leaves(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        yield from leaves(block.children) if block.children else (block,)


@given(TEXTS)
def test_headings_are_those_of_markdown_it(text: str) -> None:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    tokens = MarkdownIt("commonmark").enable("table").parse("\n".join(lines))
    expected = [(token.map or [])[0] + 1 for token in tokens if token.type == "heading_open" and token.level == 0]
    body = body_of(text)
    assert [body.line_at(block.start) for block in body.blocks if block.level] == expected


@given(TEXTS | st.binary(max_size=200).map(decode))
def test_all_but_blank_lines_lies_in_blocks_in_order(text: str) -> None:
    body = body_of(text)
    place = 0
    for block in body.blocks:
        assert body.raw[place : block.start].isspace() or place == block.start
        assert block.start < block.end
        place = block.end
    assert body.raw[place:].isspace() or place == len(body.raw)
    assert sorted(leaves(body.blocks), key=lambda block: block.start) == list(leaves(body.blocks))


@given(st.binary(max_size=300), st.data())
def test_shown_text_of_parts_is_shown_text_of_the_whole(raw: bytes, data: st.DataObject) -> None:
    body = parse_body(raw, 0)
    line = data.draw(st.sampled_from(body.line_starts))
    assert body.shown(0, line) + body.shown(line, len(raw)) == decode(raw)


@given(st.text(max_size=200))
def test_text_without_data_uris_is_left_alone(text: str) -> None:
    assert elide_data_uris(text) == text
