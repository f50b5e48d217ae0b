"""What holds for the body of a file of any format, however hostile."""

from __future__ import annotations

import hashlib
import json
import time
from itertools import pairwise

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo_artifact.schema import Document
from octavo_build.bodies import FORMATS, MIME_TYPES, body_of
from octavo_build.findings import Finding
from octavo_build.passages import LIMITS, PassageLimits, outline, passages_of
from octavo_build.sources.documents import read_document
from octavo_build.sources.files import SourceFile

SMALL = PassageLimits(min_tokens=4, target_tokens=16, ceiling_tokens=32)
SUFFIXES = (".md", ".mdx", ".html", ".rst", ".txt", ".ipynb")


def read(path: str, raw: bytes) -> tuple[Document, list[Finding]]:
    document, _, findings = read_document(SourceFile(path, raw), "pack", second_block=False, needs_frontmatter=False)
    return document, findings


def fragments(text: str) -> st.SearchStrategy[str]:
    return st.sampled_from(text.split("¦"))


HOSTILE = {
    ".md": fragments("# a¦\n¦- ¦> ¦```¦|a|b|\n|-|-|\n¦<!-- ¦-->¦[x]: data:a/b,c"),
    ".mdx": fragments("import A from 'a'\n\n¦export {¦}¦<A title='b'>¦</A>¦{/*¦*/}¦{¦`¦```\n¦# a\n¦\n\n¦<¦'¦\""),
    ".html": fragments(
        "<p>¦</p>¦<h1>¦</h1>¦<h3 ¦<table>¦</table>¦<tr>¦<td>¦<th>¦<pre>¦</pre>¦<li>¦<nav>¦</nav>¦<main>"
        "¦</main>¦<!--¦-->¦<script>¦</script>¦<title>¦</title>¦<img alt='a'>¦&amp;¦&#x"
        "¦&nbsp;¦=\"¦='¦>¦<¦ ¦\n¦data:image/png;base64,AA"
    ),
    ".rst": fragments(
        "=\n¦===\n¦---\n¦== ==\n¦+-+\n¦| a |\n¦+=+\n¦.. ¦.. a::\n¦.. code::\n¦::\n¦\n¦  ¦    ¦:ref:`¦`¦``"
        "¦ <x>`_¦.. _t:\n"
    ),
    ".txt": fragments("\n¦ ¦-¦=====\n¦data:image/png;base64,AA"),
    ".ipynb": fragments(
        '{"cells":[¦]}¦{"cell_type":"markdown","source":¦{"source":[¦"# a\\n"¦"\\ud83d¦"¦,¦}¦]¦\\¦\\u00e9¦:'
    ),
}
WORDS = st.text(st.sampled_from("ab é漢👩‍🚀.\0"), min_size=1, max_size=12) | st.integers(1, 60).map("word ".__mul__)


@st.composite
def files(draw: st.DrawFn, suffix: str) -> bytes:
    text = "".join(draw(st.lists(HOSTILE[suffix] | WORDS, max_size=40)))
    if suffix == ".ipynb" and draw(st.booleans()):
        kinds = st.sampled_from(["markdown", "code", "raw"])
        cells = draw(st.lists(st.tuples(kinds, files(".md")), max_size=4))
        text = json.dumps(
            {"cells": [{"cell_type": kind, "source": raw.decode("utf-8", "replace")} for kind, raw in cells]}
        )
    raw = text.encode()
    place = draw(st.integers(0, len(raw)))
    return raw[:place] + draw(st.binary(max_size=3)) + raw[place:] if draw(st.booleans()) else raw


def check(suffix: str, raw: bytes, limits: PassageLimits) -> None:
    document, findings = read(f"a{suffix}", raw)
    body = body_of(document)
    for hidden in (body.unshown, body.hidden):
        assert all(one.start <= one.end <= other.start for one, other in pairwise(hidden))
    texts, told = passages_of(document, 0, limits)
    assert (texts, told) == passages_of(document, 0, limits)
    outline(document, 0)
    if not texts:
        assert [finding.code for finding in told] == ["no-content"]
        return
    passages = [each.passage for each in texts]
    assert [passages[0].start_byte, passages[-1].end_byte] == [document.body_offset, len(raw)]
    assert all(one.end_byte == other.start_byte for one, other in pairwise(passages))
    for each in texts:
        span = raw[each.passage.start_byte : each.passage.end_byte]
        assert span
        assert each.passage.span_sha256 == hashlib.sha256(span).hexdigest()
        assert each.passage.start_line == 1 + len(regex.findall(rb"\r\n?|\n", raw[: each.passage.start_byte]))
        each.text.encode()
    if "encoding-invalid" not in {finding.code for finding in findings}:
        for view, whole in (("text", body.shown), ("visible", body.visible)):
            joined = "".join(getattr(each, view).removeprefix(each.passage.prefix) for each in texts)
            assert "".join(joined.split()) == "".join(whole(document.body_offset, len(raw)).split())


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_passages_partition_any_file_and_show_all_of_it(suffix: str) -> None:
    @settings(deadline=None)
    @given(files(suffix) | st.binary(max_size=200), st.sampled_from([SMALL, LIMITS]))
    def holds(raw: bytes, limits: PassageLimits) -> None:
        check(suffix, raw, limits)

    holds()


def notebook(source: str, kind: str = "markdown") -> str:
    return json.dumps({"cells": [{"cell_type": kind, "source": source}]})


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        pytest.param(".html", "<div>" * 100_000 + "x", id="elements 100,000 deep"),
        pytest.param(".html", "<p>x<table><tr><td>" * 5_000, id="elements never closed"),
        pytest.param(".html", f"<p {'a' * 1_000_000}>x<img {'a ' * 200_000}alt=y>", id="large attributes"),
        pytest.param(".html", "<a " * 50_000, id="tags never ended"),
        pytest.param(".html", "<a ='<a' " * 30_000, id="quotes in tags never ended"),
        pytest.param(".html", "<!--" * 100_000, id="comments never ended"),
        pytest.param(".html", "<title>" * 20_000 + "x", id="titles never ended"),
        pytest.param(".html", "<nav>" * 10_000 + "x" + "</nav>" * 10_000, id="boilerplate in boilerplate"),
        pytest.param(".html", "&" * 200_000 + "&amp" * 30_000, id="references"),
        pytest.param(".rst", "".join(f"{'=' * (n % 50 + 1)} =\n" for n in range(20_000)), id="tables never ended"),
        pytest.param(".rst", "a::\n\n  b\n\n" * 10_000, id="literal blocks"),
        pytest.param(".rst", "".join(f"{' ' * (n % 2_000)}.. note::\n" for n in range(2_000)), id="nested directives"),
        pytest.param(".rst", ":a:`" * 30_000 + "`" * 50_000, id="roles never ended"),
        pytest.param(".mdx", "<A {" * 30_000, id="tags with braces never ended"),
        pytest.param(".mdx", "{/*\n\n" * 5_000, id="comments never ended"),
        pytest.param(".mdx", "export {\n\n" * 5_000, id="exports never ended"),
        pytest.param(".mdx", "export {}\n\n" * 5_000, id="exports"),
        pytest.param(".ipynb", notebook("\n" * 30_000 + "x"), id="escapes"),
        pytest.param(".ipynb", notebook("a\n" * 20_000, "code"), id="long code"),
        pytest.param(".ipynb", '"' * 1_000_000, id="quotes"),
        pytest.param(".ipynb", '{"cells":' + "[" * 500_000, id="lists without an end"),
        pytest.param(".txt", "a\n\n" * 30_000, id="paragraphs"),
    ],
)
def test_hostile_files_cost_no_more_than_their_size(suffix: str, text: str) -> None:
    started = time.process_time()
    document, _ = read(f"a{suffix}", text.encode())
    body_of(document)
    assert time.process_time() - started < 10  # each takes a second at most


@pytest.mark.parametrize(
    ("suffix", "text", "told"),
    [
        pytest.param(".html", "<title>The T</title><meta name=description content=D><p>x", ("The T", "D"), id="html"),
        pytest.param(".rst", "The T\n=====\n\nx\n", ("The T", None), id="rst"),
        pytest.param(".ipynb", notebook("# The T\n"), ("The T", None), id="ipynb"),
        pytest.param(".mdx", "---\ntitle: The T\ndescription: D\n---\n# No\n", ("The T", "D"), id="mdx"),
        pytest.param(".txt", "The T\n\nx\n", ("The T", None), id="txt"),
        pytest.param(".txt", "---\ntitle: x\n---\n", ("some file", None), id="no frontmatter in plain text"),
        pytest.param(".html", "<p>x", ("some file", None), id="no title"),
    ],
)
def test_a_file_without_frontmatter_has_its_own_title(suffix: str, text: str, told: tuple[str, str | None]) -> None:
    document, findings = read(f"some-file{suffix}", text.encode())
    assert (document.title, document.description, document.mime_type) == (*told, MIME_TYPES[suffix])
    assert document.searchable
    assert findings == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_byte_order_mark_is_no_part_of_the_body(suffix: str) -> None:
    text = notebook("# T") if suffix == ".ipynb" else "T\n=\n"
    document, findings = read(f"a{suffix}", b"\xef\xbb\xbf" + text.encode())
    assert document.body_offset == 3
    assert [finding.code for finding in findings] == ["bom"]
    assert "\ufeff" not in passages_of(document, 0)[0][0].text


def test_a_notebook_that_is_no_json_can_be_read_and_not_searched() -> None:
    document, findings = read("a.ipynb", b'{"cells": [\n')
    assert (document.searchable, document.raw) == (False, b'{"cells": [\n')
    assert [(finding.code, finding.line) for finding in findings] == [("format-invalid", 2)]


def test_every_ending_has_a_format_and_an_unknown_one_is_text() -> None:
    assert set(MIME_TYPES.values()) == set(FORMATS)
    assert read("a.HTML", b"")[0].mime_type == "text/html"
    assert read("LICENSE", b"")[0].mime_type == "text/plain"
