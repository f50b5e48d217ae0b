from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_build.bodies.mdx import facts, parse_body


def visible(text: str) -> str:
    raw = text.encode()
    return parse_body(raw, 0).visible(0, len(raw))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("import A from 'a'\nimport {B} from 'b'\n\ntext\n", "\ntext\n", id="imports"),
        pytest.param(
            "export const a = {\n  b: '}',\n\n  c: [1]\n}\n\ntext\n", "\ntext\n", id="an export with blank lines"
        ),
        pytest.param("export const a = {\n\ntext\n", "\ntext\n", id="an export never closed"),
        pytest.param(
            "export your data\n\nimport duties rise\n", "export your data\n\nimport duties rise\n", id="prose"
        ),
        pytest.param("a <b>bold</b> <br/> <></> c", "a bold   c", id="tags"),
        pytest.param("<A b={() => <c d='}'/>}>x</A>", "x", id="a tag in a tag"),
        pytest.param('<Card title="Set up" icon="x">Go</Card>', " Set up Go", id="a title"),
        pytest.param("<Tab label='One' /> <a title='no'>x</a>", " One  x", id="a label; not of plain elements"),
        pytest.param("<A\n  b='1'\n/>x", "x", id="on several lines"),
        pytest.param("a {/* b */} c", "a  c", id="comment"),
        pytest.param("{/*\na\n\nb\n*/}\n\nc\n", "\n\nc\n", id="a comment with a blank line"),
        pytest.param("a {/* b", "a {/* b", id="a comment never closed"),
        pytest.param("`<A/>` ``{/* ` */}``", "`<A/>` ``{/* ` */}``", id="code span"),
        pytest.param(
            "```\n<A/> {/* b */}\nimport A from 'a'\n```\n", "```\n<A/> {/* b */}\nimport A from 'a'\n```\n", id="fence"
        ),
        pytest.param("a < b, <https://x.org>, \\<c>", "a < b, <https://x.org>, \\<c>", id="no tags"),
        pytest.param("a <B c='never closed", "a <B c='never closed", id="a tag never closed"),
        pytest.param("<Tabs>\n    <Tab>\n    text\n    </Tab>\n</Tabs>\n", "\n    \n    text\n    \n\n", id="indented"),
    ],
)
def test_jsx_is_hidden_and_the_text_between_is_not(text: str, expected: str) -> None:
    assert visible(text) == expected


def test_users_are_shown_the_text_as_written() -> None:
    raw = b"import A from 'a'\n\n<A>text</A>\n"
    assert parse_body(raw, 0).shown(0, len(raw)).encode() == raw


def test_headings_inside_jsx_are_headings() -> None:
    raw = b"<Tabs>\n# One\n  <Tab>\n\n      ## Two <Badge/>\n\n  </Tab>\n</Tabs>\n"
    assert [(block.level, block.text) for block in parse_body(raw, 0).blocks if block.level] == [(1, "One"), (2, "Two")]
    assert facts(raw, 0).title == "One"


WORDS = ("alpha ", "beta ", "gamma ")
PIECES = st.sampled_from(
    ["<A>", "</A>", "<B c='d'/>", "{/* hid */}", "\n\n", "\n", "`x`", "{e}", "- ", "# ", "```\n", *WORDS]
)


@given(st.lists(PIECES, max_size=30).map("".join))
def test_every_word_between_tags_is_visible(text: str) -> None:
    found = visible(text)
    assert [found.count(word) for word in WORDS] == [text.count(word) for word in WORDS]
