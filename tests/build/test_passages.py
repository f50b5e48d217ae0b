from __future__ import annotations

import hashlib
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from octavo_artifact.schema import Document, Passage
from octavo_artifact.text import estimate_tokens, unix_lines
from octavo_build.bodies.body import Block, Body, decode, elide_data_uris
from octavo_build.bodies.markdown import parse_body
from octavo_build.findings import Finding
from octavo_build.passages import LIMITS, PassageLimits, PassageText, passages_of

SMALL = PassageLimits(min_tokens=4, target_tokens=16, ceiling_tokens=32)


def document_of(raw: bytes, body_offset: int = 0, strategy: str = "standard") -> Document:
    return Document(
        path="a.md",
        id="pack/a",
        uri="ep://pack/file/a.md",
        title="A",
        description=None,
        type=None,
        tags=(),
        pack="pack",
        tier="searchable",
        strategy=strategy,
        scope="single",
        searchable=True,
        mime_type="text/markdown",
        frontmatter="{}",
        raw=raw,
        body_offset=body_offset,
        file_sha256="",
        body_sha256="",
        verified_at=None,
        verified_by=None,
        confidence=None,
        requires=(),
        related=(),
    )


def cut(text: str, limits: PassageLimits = LIMITS, strategy: str = "standard") -> list[PassageText]:
    return passages_of(document_of(text.encode(), strategy=strategy), 0, limits)[0]


def findings_of(text: str, limits: PassageLimits = LIMITS) -> list[Finding]:
    return passages_of(document_of(text.encode()), 0, limits)[1]


def outline(text: str, strategy: str = "standard") -> list[tuple[str, tuple[str, ...], str]]:
    """Section, heading path and first line of each passage."""
    return [
        (each.passage.section, each.passage.heading_path, each.text.split("\n")[0])
        for each in cut(text, strategy=strategy)
    ]


LONG = "Some words that fill a line of a paragraph.\n" * 10 + "\n"


def test_each_heading_opens_a_passage_under_the_headings_above_it() -> None:
    text = f"{LONG}# Title\n{LONG}## Set up\n{LONG}#### Deep\n{LONG}## Use\n{LONG}# Other\n{LONG}"
    assert outline(text) == [
        ("", (), "Some words that fill a line of a paragraph."),
        ("title", ("Title",), "# Title"),
        ("set-up", ("Title", "Set up"), "## Set up"),
        ("deep", ("Title", "Set up", "Deep"), "#### Deep"),
        ("use", ("Title", "Use"), "## Use"),
        ("other", ("Other",), "# Other"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            f"# Title\n\n## A\n{LONG}## B\n{LONG}",
            [("title", ("Title",), "# Title"), ("b", ("Title", "B"), "## B")],
            id="into its child",
        ),
        pytest.param(
            f"# T\n{LONG}## A\n\nshort\n\n## B\n{LONG}",
            [("t", ("T",), "# T"), ("a", ("T",), "## A")],
            id="into its sibling",
        ),
        pytest.param(
            f"# T\n{LONG}## A\n\nshort\n\n# U\n{LONG}",
            [("t", ("T",), "# T"), ("u", ("U",), "# U")],
            id="into the one before when the next is neither",
        ),
        pytest.param(
            f"# T\n{LONG}## A\n\nshort\n\n## B\n\nshort\n",
            [("t", ("T",), "# T")],
            id="the last ones into the one before",
        ),
        pytest.param(
            f"## A\n\nshort\n\n## B\n{LONG * 9}and more words\n",
            [("a", ("A",), "## A"), ("b", ("B",), "## B")],
            id="into none when the two exceed the ceiling",
        ),
        pytest.param(
            f"<!-- context: x -->\n\n# T\n{LONG * 10}",
            [
                ("t", ("T",), "<!-- context: x -->"),
                *((f"t-{n}", ("T",), "Some words that fill a line of a paragraph.") for n in (1, 2)),
            ],
            id="a comment always",
        ),
        pytest.param("# Only a title\n", [("only-a-title", ("Only a title",), "# Only a title")], id="none to join"),
    ],
)
def test_a_small_section_is_joined(text: str, expected: list[tuple[str, tuple[str, ...], str]]) -> None:
    assert outline(text) == expected


def test_sections_have_names_of_their_own() -> None:
    names = [
        each.passage.section
        for each in cut(f"{LONG * 10}# A\n{LONG}# a-1\n{LONG}# A\n{LONG}# !\n{LONG}# Opening\n{LONG}")
    ]
    assert names == ["", "opening-2", "opening-3", "a", "a-1", "a-2", "section", "opening-1"]


@pytest.mark.parametrize(
    "text", ["", " \n\r\n\t\n", "#", "#\n", "# \n\n##\n", "<!-- only\n\na comment -->\n", "---\n", "\0\n", "\u200b\n"]
)
def test_a_body_that_says_nothing_has_no_passage(text: str) -> None:
    assert passages_of(document_of(text.encode()), 0) == (
        [],
        [Finding("a.md", 1, "no-content", "found nothing to index, expected text")],
    )


@pytest.mark.parametrize(
    ("text", "path"),
    [
        pytest.param(f"# Title\n{LONG * 30}## Part\n{LONG * 30}", ("Title",), id="title first"),
        pytest.param(f"\n<!-- c -->\n\n# Title\n{LONG * 30}", ("Title",), id="title after a comment"),
        pytest.param(f"{LONG * 30}# Title\n", (), id="title after text"),
        pytest.param(f"## Part\n{LONG * 30}", (), id="no title"),
    ],
)
def test_an_atomic_document_is_one_passage(text: str, path: tuple[str, ...]) -> None:
    (only,) = cut(text, strategy="atomic")
    assert (only.text, only.passage.heading_path, only.passage.ordinal) == (text, path, 0)


def test_places_are_those_of_the_raw_file() -> None:
    raw = (
        b"\xef\xbb\xbf---\r\ntitle: A\r\n---\r\n\r\n# A\r\n\r\n"
        + b"word \xc3\xa9 " * 40
        + b"\r\r# B\nlast"
        + b" word" * 60
    )
    passages, _ = passages_of(document_of(raw, body_offset=raw.index(b"\r\n\r\n#") + 2), 7)
    assert [each.passage for each in passages] == [
        Passage(7, 0, "a", ("A",), 4, 8, 23, 354, hashlib.sha256(raw[23:354]).hexdigest(), 72, ""),
        Passage(7, 1, "b", ("B",), 9, 10, 354, len(raw), hashlib.sha256(raw[354:]).hexdigest(), 77, ""),
    ]


def test_a_table_that_is_cut_repeats_its_header_and_not_its_caption() -> None:
    head = "| Name \\| alias | Size |\r\n|:---|---:|\r\n"
    rows = "".join(f"| row {number} of the table \\| x | {'word ' * 20} |\r\n" for number in range(60))
    text = f"# Sizes\r\n\r\nTable 1: a caption.\r\n\r\n{head}{rows}\r\n"
    first, *later = cut(text)
    head, shown = unix_lines(head), unix_lines(text)
    assert len(later) > 2
    assert first.text.startswith(f"# Sizes\n\nTable 1: a caption.\n\n{head}| row 0 ")
    assert first.passage.prefix == ""
    for each in later:
        assert each.passage.prefix == head
        assert each.text.startswith(f"{head}| row ")
        assert each.passage.heading_path == ("Sizes",)
        span = text.encode()[each.passage.start_byte : each.passage.end_byte]
        assert each.text.removeprefix(head) == unix_lines(span.decode())
    assert "".join(each.text.removeprefix(each.passage.prefix) for each in (first, *later)) == shown


def test_the_rest_of_a_row_that_is_cut_has_no_header() -> None:
    head = "| a | b |\n|---|---|\n"
    _, *later = cut(f"{head}| {'words ' * 1_500}| x |\n" + "| 1 | 2 |\n" * 300)
    assert {each.text.split(" ")[0]: each.passage.prefix for each in later} == {"words": "", "|": head}


@pytest.mark.slow
def test_a_table_header_longer_than_a_passage_is_not_repeated() -> None:
    text = f"|{'h|' * 3_000}\n|{'-|' * 3_000}\n" + "|a|b|\n" * 500
    assert {each.passage.prefix for each in cut(text)} == {""}
    assert [finding.code for finding in findings_of(text)] == ["passage-oversized"]


def test_a_small_rest_stays_with_the_piece_before() -> None:
    assert [each.passage.tokens for each in cut("A line of 40 characters, of ten tokens.\n\n" * 101)] == [492, 544]


def test_a_fence_that_fits_is_never_cut() -> None:
    fence = "```python\n" + "# a comment, no heading\n\n" * 150 + "```\n"
    assert 900 < estimate_tokens(fence) <= 1000
    passages = cut(f"# T\n{LONG * 3}{fence}\n{LONG * 3}- item\n\n{fence}\n\n{LONG}")
    assert sum(fence in each.text for each in passages) == 2


def test_a_fence_that_is_too_large_is_cut_at_lines_and_noted() -> None:
    text = "# T\n\n```\n" + '{"a": "line of code"}\n' * 1_000 + "```\n"
    passages, findings = passages_of(document_of(text.encode()), 0)
    assert [finding.line for finding in findings] == [3]
    assert all(each.text.endswith("\n") and each.passage.tokens <= 564 for each in passages)


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        pytest.param("Some words of one paragraph. " * 1_400, 0, id="a paragraph of 40,000 characters"),
        pytest.param(
            f"한국어 문장은 짧다 https://example.com/{'경로' * 40}\n" * 400, 0, id="Korean, URLs at line ends"
        ),
        pytest.param("漢字の文は短い。" * 5_000, 0, id="Japanese sentences"),
        pytest.param("```\n" + '{"a":1,"b":[2,3]},' * 400 + "\n```\n", 1, id="minified JSON in a fence"),
        pytest.param("x" * 12_000, 1, id="a word of 12,000 characters"),
        pytest.param("x" * 5_000_000, 1, id="a word of 5,000,000 characters"),
        pytest.param("漢" * 100_000, 1, id="Han without an end"),
        pytest.param("|a|\n|-|\n|" + "x" * 12_000 + "|\n", 1, id="a long table row"),
        pytest.param("- " + "many words " * 20_000, 0, id="one list item"),
        pytest.param("> " + "many words\n> " * 20_000, 0, id="one quote"),
        pytest.param("word " * 2_000_000, 0, id="a paragraph of 10 MB"),
        pytest.param(f"{'word ' * 20_000}\n===\n", 0, id="a long setext heading"),
        pytest.param("|a|b|\n|-|-|\n" + "|1|2|\n" * 20_000, 0, id="20,000 rows"),
        pytest.param("- item\n" * 10_000, 0, id="10,000 items"),
        pytest.param("# a\n\n" + "".join(f"{'#' * (n % 6 + 1)} a\n\n" for n in range(10_000)), 0, id="10,000 headings"),
        pytest.param("🇩🇪" * 50_000, 1, id="flags"),
        pytest.param("e" + "\u0301" * 50_000, 1, id="one grapheme of 50,000 characters"),
        pytest.param("![a](data:image/png;base64,AA)" * 10_000, 1, id="data URIs"),
        pytest.param("a" + "\n" * 1_000_000 + "b", 1, id="blank lines"),
        pytest.param("a <!-- " + "x " * 100_000 + "--> b", 1, id="a long comment"),
    ],
)
def test_oversized_text_is_cut_whatever_it_is(text: str, notes: int) -> None:
    passages, findings = passages_of(document_of(text.encode()), 0)
    assert [finding.code for finding in findings].count("passage-oversized") == notes
    assert all(estimate_tokens(each.visible.strip()) <= 1000 for each in passages)
    assert all(each.visible.strip() for each in passages)
    assert "".join(each.text.removeprefix(each.passage.prefix) for each in passages) == elide_data_uris(text)


def test_a_body_of_too_many_lines_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("octavo_build.passages.MAX_LINES", 4)
    _, findings = passages_of(document_of(b"# a\n\nb\n\nc\n"), 0)
    assert [finding.code for finding in findings] == ["structure-ignored"]


@pytest.mark.parametrize("cluster", ["👨‍👩‍👧‍👦", "e\u0301", "🇩🇪", "👍🏽", "각", "कि"])
@pytest.mark.parametrize("shift", range(8))
def test_no_cut_falls_inside_a_grapheme(cluster: str, shift: int) -> None:
    for passage in cut("x" * shift + cluster * 4_000)[1:]:
        assert (passage.text + cluster).startswith(cluster)


def test_no_cut_falls_between_a_space_and_its_combining_mark() -> None:
    assert all(not each.text.startswith("\u0301") for each in cut("word \u0301 " * 4_000))


def test_a_data_uri_is_neither_shown_nor_counted_nor_cut() -> None:
    image = f"![a diagram](data:image/png;base64,{'iVBOR' * 40_000})"
    (only,) = cut(f"# T\n\n{image}\n\n<img src='data:image/png;base64,AAAA'> [r]\n\n[r]: data:image/gif;base64,AAAA\n")
    assert only.text == only.visible == "# T\n\n![a diagram](data:…)\n\n<img src='data:…'> [r]\n\n[r]: data:…\n"
    assert only.passage.tokens == estimate_tokens(only.text)


def test_comments_are_shown_but_not_visible() -> None:
    (only,) = cut("# T\n\ntext <!-- a --> more\n\n```\n<!-- b -->\n```\n")
    assert only.text == "# T\n\ntext <!-- a --> more\n\n```\n<!-- b -->\n```\n"
    assert only.visible == "# T\n\ntext  more\n\n```\n<!-- b -->\n```\n"


def test_limits_must_rise() -> None:
    with pytest.raises(ValueError, match="target_tokens=10"):
        PassageLimits(min_tokens=20, target_tokens=10, ceiling_tokens=30)


WORDS = st.text(st.sampled_from("ab .!?,#*-|`é漢字。👩‍🚀🇩🇪\u0301\t<>&[]()"), min_size=1, max_size=60)
PROSE = st.lists(WORDS, min_size=1, max_size=8).map("\n".join)


def prefixed(first: str, later: str, text: str) -> str:
    return first + text.replace("\n", f"\n{later}")


def fenced(fence: str, text: str) -> str:
    return f"{fence}\n# {text}\n{fence}"


def table(rows: list[str]) -> str:
    return "\n".join(["| head | er |", "|:---|---:|", *(f"| {row} | x |" for row in rows)])


LEAVES = st.one_of(
    PROSE,
    st.builds("{} {}".format, st.sampled_from(["#", "##", "###", "######"]), WORDS),
    PROSE.map(lambda text: f"{text}\n==="),
    st.builds(fenced, st.sampled_from(["```", "~~~", "````"]), PROSE),
    st.lists(WORDS, max_size=12).map(table),
    st.sampled_from(["<!-- a\n\n# b -->", "![a](data:image/png;base64,AAAA)", "[r]: data:a/b,c", "***", "", "\n\n \n"]),
    st.integers(1, 300).map("x".__mul__),
)
BLOCKS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("\n\n".join),
        inner.map(lambda text: prefixed("- ", "  ", text)),
        inner.map(lambda text: prefixed("> ", "> ", text)),
    ),
    max_leaves=8,
)


@st.composite
def markdown(draw: st.DrawFn) -> bytes:
    """A Markdown file with one kind of line end or several, and perhaps bytes that are not UTF-8."""
    lines = "\n\n".join(draw(st.lists(BLOCKS, max_size=8))).split("\n")
    ends = draw(st.sampled_from([["\n"], ["\r\n"], ["\r"], ["\n", "\r\n", "\r"]]))
    raw = "".join(line + ends[index % len(ends)] for index, line in enumerate(lines)).encode()
    if draw(st.booleans()):
        place = draw(st.integers(0, len(raw)))
        raw = raw[:place] + draw(st.binary(max_size=4)) + raw[place:]
    return raw


DOCUMENTS = st.binary(max_size=400) | markdown()


def fences(blocks: tuple[Block, ...]) -> list[Block]:
    return [
        leaf
        for block in blocks
        for leaf in (fences(block.children) if block.children else [block] if block.kind == "fence" else [])
    ]


def check(raw: bytes, offset: int, limits: PassageLimits) -> None:
    """All that holds for the passages of every document."""
    document = document_of(raw, offset)
    texts, findings = passages_of(document, 3, limits)
    assert (texts, findings) == passages_of(document, 3, limits)
    passages = [each.passage for each in texts]
    if not passages:
        assert [finding.code for finding in findings] == ["no-content"]
        return
    assert [each.ordinal for each in passages] == list(range(len(passages)))
    assert len({each.section for each in passages}) == len(passages)
    assert passages[0].start_byte == offset
    assert passages[-1].end_byte == len(raw)
    assert all(one.end_byte == next_one.start_byte for one, next_one in pairwise(passages))
    for each in texts:
        check_span(raw, each)
    if not any(finding.code == "passage-oversized" for finding in findings):
        assert all(each.tokens <= limits.ceiling_tokens for each in passages)
    check_cuts(parse_body(raw, offset), {each.start_byte for each in passages[1:]}, limits)


def check_span(raw: bytes, text: PassageText) -> None:
    passage = text.passage
    span = raw[passage.start_byte : passage.end_byte]
    assert span
    assert passage.span_sha256 == hashlib.sha256(span).hexdigest()
    assert passage.start_line == 1 + line_ends(raw[: passage.start_byte])
    assert passage.end_line == 1 + line_ends(raw[: passage.end_byte]) - span.endswith((b"\n", b"\r"))
    assert text.text.startswith(passage.prefix)
    if b"data:" not in span:
        assert text.text == passage.prefix + unix_lines(decode(span))
        assert passage.tokens == estimate_tokens(unix_lines(decode(span)))


def line_ends(data: bytes) -> int:
    return len(regex.findall(rb"\r\n?|\n", data))


def check_cuts(body: Body, cuts: set[int], limits: PassageLimits) -> None:
    for fence in fences(body.blocks):
        if estimate_tokens(body.visible(fence.start, fence.end)) <= limits.ceiling_tokens:
            assert not any(fence.start < place < fence.end for place in cuts)
    for uri in body.unshown:
        assert not any(uri.start < place < uri.end for place in cuts)
    text = body.raw.decode("utf-8", "surrogateescape")
    sizes = (len(each.encode("utf-8", "surrogateescape")) for each in regex.findall(r"\X", text))
    assert cuts <= set(accumulate(sizes))


@given(DOCUMENTS, st.sampled_from([SMALL, LIMITS]))
def test_passages_partition_any_body(raw: bytes, limits: PassageLimits) -> None:
    check(raw, 0, limits)


@given(DOCUMENTS)
def test_passages_leave_out_the_frontmatter(raw: bytes) -> None:
    front = b"---\r\ntitle: x\n---\n"
    check(front + raw, len(front), SMALL)


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("folder", ["packs", "corpora/rust-book"])
def test_passages_partition_real_documents(folder: str, shared: Path) -> None:
    for path in sorted((shared / folder).rglob("*.md")):
        check(path.read_bytes(), 0, LIMITS)
