from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_build.bodies.body import Facts
from octavo_build.bodies.html import facts, parse_body


def shown(page: str) -> str:
    raw = page.encode()
    return parse_body(raw, 0).shown(0, len(raw))


@pytest.mark.parametrize(
    ("page", "text"),
    [
        pytest.param("<p>a <b>bold</b>ly <i>put</i> word</p>", "a boldly put word", id="inline tags"),
        pytest.param("<p>a</p>\n\n<p>b</p><div>c</div>d<br>e", "a\n\nb\n\nc\nd\ne", id="blocks"),
        pytest.param("<p>a</p><p>b", "a\n\nb", id="never closed"),
        pytest.param("<p>  a\n\t b  </p>", "a b", id="blank space"),
        pytest.param("&lt;p&gt; &amp; &eacute;&#233;&#xE9; &copy &nope; &", "<p> & ééé © &nope; &", id="references"),
        pytest.param("a&nbsp;b &#0; &#xD800;", "a b \ufffd \ufffd", id="references to what is no character"),
        pytest.param("a<!-- b -->c<!--> d <!-- e", "ac d", id="comments"),
        pytest.param("a<script>if (a<b) '<p>x'</script>b<style>p{}</style>c", "abc", id="scripts and styles"),
        pytest.param("a<SCRIPT>x</Script >b<script>never closed", "ab", id="capitals"),
        pytest.param("<ul><li>one<li>two<ul><li>in</ul></ul><ol><li>1</ol>", "- one\n- two\n\n- in\n\n- 1", id="lists"),
        pytest.param(
            "<table><caption>C</caption><tr><th>a<th>b</tr>\n<tr><td>1<td><p>2</p><p>3</table>",
            "C\n\na | b\n1 | 2 3",
            id="table",
        ),
        pytest.param("<table><tr><td>a</tr><tr></tr><tr><td>b</table>", "a\nb", id="an empty row"),
        pytest.param("<pre>\nif x:\n    y &lt; <b>z</b>\n</pre>after", "if x:\n    y < z\n\nafter", id="preformatted"),
        pytest.param('x <img src="data:image/png;base64,AAAA" alt="a &amp; b">', "x a & b", id="image"),
        pytest.param("a < b, a <b c", "a < b, a <b c", id="no tags"),
        pytest.param("<a title='x > y' href=\"<p>\">t</a>", "t", id="quoted attributes"),
        pytest.param("<nav>n</nav><header>h</header>a<aside>s</aside><footer>f</footer>", "a", id="boilerplate"),
        pytest.param("<nav>n</nav>a<main><header><h1>T</h1></header>b<nav>m</nav></main>c", "T\n\nb", id="main"),
        pytest.param("x<article>a<aside>note</aside></article>y<article>b</article>", "a\n\nnote\n\nb", id="articles"),
        pytest.param("x<main></main><article>a</article>", "a", id="an empty main"),
        pytest.param("a<svg><text>s</text></svg>b<nav>n</nav><p>c", "a b\n\nc", id="something left out between words"),
        pytest.param("<nav>only</nav>", "only", id="nothing but boilerplate"),
        pytest.param("<nav>never closed<p>a", "never closed\n\na", id="boilerplate never closed"),
        pytest.param("text data:image/png;base64,AAAA end", "text data:… end", id="data URI"),
        pytest.param("</p></div>a</b>", "a", id="ends alone"),
    ],
)
def test_a_page_is_shown_as_a_reader_sees_it(page: str, text: str) -> None:
    assert shown(page) == text


def test_blocks_are_known_by_kind_and_bytes() -> None:
    page = "<body><h1 id=x>A &amp; <i>B</i><a>¶</a></h1>\n<div><p>text</div><h2>C</h2>"
    raw = f"{page}<table><tr><th>h</tr><tr><td>d</table><pre>c</pre>".encode()
    assert [(b.kind, b.level, b.text, raw[b.start : b.end].decode()) for b in parse_body(raw, 0).blocks] == [
        ("heading", 1, "A & B", "<body><h1 id=x>A &amp; <i>B</i><a>¶"),
        ("paragraph", 0, "", "<div><p>text"),
        ("heading", 2, "C", "<h2>C"),
        ("table", 0, "", "<table><tr><th>h</tr><tr><td>d"),
        ("code", 0, "", "<pre>c"),
    ]


@pytest.mark.parametrize(
    ("row", "head"),
    [
        pytest.param("<tr><th>a<th>b</tr>", "a | b\n", id="header cells"),
        pytest.param("<tr><th>a<td>b</tr>", "", id="a header of the row"),
        pytest.param("<tr><td>a<td>b</tr>", "", id="no header"),
    ],
)
def test_a_row_of_header_cells_is_the_head_of_a_table(row: str, head: str) -> None:
    raw = f"<table>{row}\n<tr><td>1<td>2</tr></table>".encode()
    body = parse_body(raw, 0)
    (table,) = body.blocks
    assert body.visible(table.start, max(table.start, table.head)) == head.strip() + head[-1:]


@pytest.mark.parametrize(
    ("page", "found"),
    [
        pytest.param(
            '<html lang="de-AT"><title> A &amp;\nB </title><META content="d &lt;" NAME=Description><body>',
            Facts("A & B", "d <", "de-AT"),
            id="all",
        ),
        pytest.param("<body><h2>no</h2><h1>The <b>h</b></h1>", Facts("The h"), id="heading"),
        pytest.param("<svg><title>no</title></svg>", Facts("no"), id="a title anywhere before the body"),
        pytest.param("text", Facts(), id="none"),
        pytest.param("<title>never closed", Facts(), id="never closed"),
    ],
)
def test_a_page_says_what_it_is_called(page: str, found: Facts) -> None:
    assert facts(page.encode(), 0) == found


TAGS = (
    "<p> </p> <div> </div> <b> </b> <h2> </h2> <li> <ul> </ul> <table> </table> <tr> <td> </td> <th> <pre> </pre> <br>"
)
PIECES = st.sampled_from(
    [*TAGS.split(), "<!-- hid den -->", "<a href='q > r'>", "&amp;", "&eacute;", "\n", " ", "<script>no</script>"]
) | st.from_regex(r"[a-z]{2,9}", fullmatch=True).map(" {} ".format)


class Words(HTMLParser):
    """The words that the standard library finds in a page without scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)
        self.close()

    def handle_data(self, data: str) -> None:
        if data != "no":
            self.found += data.split()


@given(st.lists(PIECES, max_size=60).map("".join))
def test_every_word_of_the_page_is_visible_in_order(page: str) -> None:
    raw = page.encode()
    words = parse_body(raw, 0).visible(0, len(raw)).replace("|", " ").replace("- ", " ")
    assert "".join(words.split()) == "".join(Words(page).found)
