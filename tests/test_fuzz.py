"""Folders of hostile files, compiled by every adapter: whatever they hold, what comes out is exact, whole and the same
each time.
"""

from __future__ import annotations

import json
import operator
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import octavo_build
from exactness import check_addresses, check_documents, check_passages, compiled, contents
from octavo_artifact.layout import DOCUMENTS
from octavo_artifact.schema import Document
from octavo_build import stages
from octavo_build.findings import CODES
from octavo_build.lint.checks import Options, lint
from octavo_build.lint.codes import LINT_CODES
from octavo_build.lint.subject import read_subject
from octavo_build.sources import ADAPTERS
from octavo_build.stages import Work
from octavo_build.tables import read_table
from octavo_build.windows import load_tokenizer

NOWHERE = Path("encoder")
"""The tokenizer is loaded once, and not from a folder."""

TOKENIZER = Path(octavo_build.__file__).parent / "encoders" / "minilm-tokenizer.json"

Files = dict[str, bytes]

WORDS = st.text(
    st.sampled_from("ab7 .!?,;:#*-_|`'\"é漢字。한👩‍🚀🇩🇪\u0301\u200b\ufeff\x00\x0b\u2028\t<>&[](){}=~+^$\\/%@"),
    max_size=30,
)
NAMES = [
    "a.md", "b.md", "c d.md", "sub/a.md", "sub/_index.md", "index.md", "log.md", "README", "x#y?z%.md", "n\nl.md",
    "é.md", "e\u0301.md", "A.md", "page.mdx", "page.html", "page.rst", "page.txt", "page.ipynb", "sub/deep/Ü.markdown",
    "concepts/x.md", "volatile/y.md", "SKILL.md",
]  # fmt: skip
TARGETS = st.sampled_from(
    [*NAMES, *"a x ../a.md ../../etc/passwd #a /sub/a a.md#t pack/a https://e.org/ % a|b".split(), ""]
)
KEYS = (
    "title id type tags export description requires related aliases retrieval_strategy concept_scope verified_at"
    " refresh content_hash chunks_sidecar activation sensitivity status stale_after verified sources okf_version lang"
    " draft unlisted sequence name confidence expires_at"
).split()
VALUES = st.one_of(
    WORDS,
    TARGETS.map(lambda target: target.replace("\n", " ")),
    st.sampled_from("true yes no null ~ 1.10 0123 12:30 2026-02-30 2026-01-02T03:04:05Z P1M 1e999 .inf 0x1F".split()),
    st.sampled_from("atomic navigation public self concept Table source workflow sha256:00 [[x]] [[x]]tail".split()),
    st.sampled_from(["[a, b]", "{a: b}", "*a", "&a b", "C: d: e", "'", '"', "!!python/object:x y", "!!binary a", "<<"]),
    st.sampled_from(["{tools: [x], next: [a.md]}", "[{id: x, resource: a.md}]", ">", "|", "-", "- a"]),
)
FRONTS = st.builds(
    "{}\n{}\n{}".format,
    st.sampled_from(["---", "---  ", "\ufeff---", "+++", "----"]),
    st.lists(st.builds("{}: {}".format, st.sampled_from(KEYS), VALUES), max_size=6).map("\n".join),
    st.sampled_from(["---\n", "---", "--- \n", "...\n", "+++\n", "", "---\n---\nsources: []\n---\n"]),
)
SOUND_FRONTS = st.builds(
    "---\nexport: true\ntype: {}\nid: {}\n---\n".format,
    st.sampled_from(["Note", "concept", "注"]),
    st.sampled_from(["x", "y", "pack/a", "ü z"]),
)
UNITS = [
    "x", "word ", "> ", "- a\n", "# a\n\n", "漢字。", "👩‍🚀", "e\u0301", '{"a":1},', "`", "[", "![a](", "<div>", "</p>",
    "*a ", "<!-- ", "$", "{", "import a\n", "| a |\n", "\u0301", "\n", "\\", "&amp;",
]  # fmt: skip
MARKDOWN = [
    f"![alt](data:image/png;base64,{'iVBOR' * 400})", "[i]: data:image/gif;base64,R0lG", "<!-- context: a.md -->",
    "<!-- refresh\ndecay: P1M\nas_of: 2026-01-01\n-->", "<!-- never closed", "-->", "%%\nx", "$$\nx\n$$", "\\", "***",
    "> > > a", "1. a\n   1. b", "\t\tcode", "[^1]: note", "Term\n: def", ":::note\nx\n:::",
    "import A from 'a'", "export const a = {\n  b: `c`\n}", "<Tab label={`x${1}`}>\n\ntext\n\n</Tab>", "{/* c */}",
    "{a",
]  # fmt: skip
HTML = [
    "<img src='data:a/b,c' alt=x>", "<script>if (a < b) {}</script>", "<table><tr><td>a<td>b</table>",
    "<h1>T<h2>U</h1>", "<pre>\n a\n</pre><p>b", "<![CDATA[", "<?x", "<a href=",
    "<html lang=x><head><title>t</title><meta name=description content=d></head><body><p>x",
]  # fmt: skip
RST = [
    ".. note:: x\n   :opt: y\n\n   body", ".. code-block:: py\n\n   # x", ".. _t:\n", ".. meta::\n   :description: d",
    "+---+---+\n| a | b |\n+===+===+\n| c | d |\n+---+---+", "=== ===\na   b\n=== ===", "text::\n\n   literal",
    "`a <b>`_ :ref:`c <d>` ``e``",
]  # fmt: skip


def table(row: str, rows: int) -> str:
    return "| a | b |\n|:--|--:|\n" + f"| {row} |\n" * rows


def joined(front: str, blocks: list[str], gap: str) -> str:
    return front + gap.join(blocks)


def notebook(cells: list[dict[str, object]], indent: int | None) -> str:
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}, indent=indent)


BLOCKS = st.one_of(
    WORDS,
    st.builds(operator.mul, st.sampled_from(UNITS), st.sampled_from([1, 30, 300, 3_000])),
    st.builds("{} {}".format, st.sampled_from(["#", "##", "######", "   #", "#######"]), WORDS),
    st.builds("{}\n{}".format, WORDS, st.sampled_from(["===", "---", "~~~~~~~~~~", "=", "^^^^"])),
    st.builds("{0}py\n# {1}\n{0}".format, st.sampled_from(["```", "~~~", "````", "   ```"]), WORDS),
    st.builds("- {0}\n\n      # {0}\n  ```\n  ## {0}\n".format, WORDS),
    st.builds(table, WORDS, st.sampled_from([0, 3, 200])),
    st.builds("[{}]({}) [[{}|x]] ![[{}]]".format, WORDS, TARGETS, TARGETS, TARGETS),
    st.builds("[r]: {}\n\n[t][r] <{}>".format, TARGETS, TARGETS),
    st.sampled_from([*MARKDOWN, *HTML, *RST]),
)
TEXTS = st.builds(
    joined,
    st.one_of(st.just(""), FRONTS, SOUND_FRONTS, SOUND_FRONTS),
    st.lists(BLOCKS, max_size=7),
    st.sampled_from(["\n\n", "\n", "\n \n\n"]),
)
NOTEBOOKS = st.builds(
    notebook,
    st.lists(
        st.fixed_dictionaries(
            {
                "cell_type": st.sampled_from(["markdown", "code", "raw", "x"]),
                "source": st.one_of(TEXTS, st.lists(TEXTS, max_size=3), st.none()),
                "outputs": st.just([{"data": {"image/png": "AAAA"}, "text": ["out"]}]),
            }
        ),
        max_size=4,
    ),
    st.sampled_from([None, 1]),
)
MANIFESTS = st.builds(
    "slug: {}\nname: {}\ntype: {}\npacks: [{}]\ncontext: {}\nroots: {}\n{}: {}\n".format,
    st.sampled_from(["pack", "Ü b", "[]", "../x"]), VALUES, VALUES, TARGETS,
    st.sampled_from(["{always: [a.md], on_demand: [volatile/, '*.md']}", "[]", "{overrides: {sub: {always: x}}}"]),
    st.sampled_from(["[.]", ".", "[sub, ../..]"]),
    st.sampled_from("include exclude ignore format skills mcp freshness language retrieval".split()), VALUES,
)  # fmt: skip
SIDE_FILES = st.sampled_from(
    [
        ("a.chunks.yaml", "content_hash: sha256:0\nchunks:\n  - {chunk_id: x, line_range: [1, 2]}\n"),
        ("a.chunks.yaml", "chunks: [{chunk_id: x, line_range: [1, 99], context_prefix: far}]\n"),
        ("_graph.yaml", "nodes: [{id: x, title: X, file: a.md}]\nedges: [{source: x, target: y, kind: related}]\n"),
        ("ontology.yaml", "entities: [{id: e, name: E, kind: tool, mentions: [a.md]}]\nrelations: [{from: e}]\n"),
        ("_access.json", '{"default_access": "friends", "overrides": {"a.md": "public"}}'),
        ("_access.json", "["),
        ("mkdocs.yml", "site_name: !!python/name:x y\nnav: [{A: a.md}, b.md]\n"),
        (".gitignore", "*.txt\n!\n[z-a]\n/sub\n"),
        (".okfignore", "b*\n!b.md\n[\n"),
    ]
)
ENCODINGS = st.sampled_from(["utf-8"] * 6 + ["utf-8-sig", "utf-16", "utf-16-be", "latin-1", "cp1252", "shift-jis"])
ENDS = st.sampled_from(["\n"] * 4 + ["\r\n", "\r", "\n\r"])


@st.composite
def a_file(draw: st.DrawFn, text: st.SearchStrategy[str]) -> bytes:
    raw = draw(text).replace("\n", draw(ENDS)).encode(draw(ENCODINGS), "replace")
    if draw(st.integers(0, 5)) == 0:
        place = draw(st.integers(0, len(raw)))
        raw = raw[:place] + draw(st.binary(max_size=4)) + raw[place:]
    return raw


@st.composite
def folders(draw: st.DrawFn) -> Files:
    files: Files = {}
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True)):
        text = NOTEBOOKS | TEXTS if name.endswith(".ipynb") else TEXTS
        files[name] = draw(st.one_of(a_file(text), a_file(text), st.binary(max_size=200)))
    for name, text in draw(st.lists(SIDE_FILES, max_size=2)):
        files[name] = text.encode()
    for name in draw(st.sets(st.sampled_from(["manifest.yaml", "pack.yaml"]))):
        files[name] = draw(a_file(MANIFESTS))
    return files


def write(root: Path, files: Files) -> Path:
    for name, raw in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
    return root


def check(files: Files, adapter: str, *, is_indexed: bool = False) -> None:
    """All that holds for every folder."""
    with tempfile.TemporaryDirectory() as folder:
        one, other = Path(folder, "one"), Path(folder, "other")
        work = compiled(write(one / "pack", files), one, adapter, NOWHERE)
        again = compiled(write(other / "pack", dict(reversed(files.items()))), other, adapter, NOWHERE)
        assert contents(work) == contents(again)
        documents = read_table(work.parts / DOCUMENTS.file, Document)
        check_documents(documents, set(files.values()))
        check_passages(documents, work)
        check_addresses(documents, work, adapter)
        check_findings(work, one / "pack", adapter)
        if is_indexed:
            stages.lexical(work)


def check_findings(work: Work, root: Path, adapter: str) -> None:
    told = lint(read_subject(root, {"format": adapter, "owner": "me", "roots": "."}), Options(provenance=True))
    assert {finding.code for finding in told} <= CODES.keys() | LINT_CODES.keys()
    built = [*json.loads(work.pack.read_bytes())["findings"], *json.loads(work.graph_findings.read_bytes())]
    assert {finding["code"] for finding in built} <= CODES.keys()
    messages = [finding.message for finding in told] + [finding["message"] for finding in built]
    assert not any(str(root) in message for message in messages)


QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.large_base_example]


@pytest.fixture(autouse=True, scope="module")
def _loaded_once() -> Generator[None]:
    tokenizer = load_tokenizer(TOKENIZER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "load_tokenizer", lambda _: tokenizer)  # pyright: ignore[reportUnknownLambdaType]
        yield


@pytest.mark.parametrize("adapter", ADAPTERS)
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=QUIET)
@given(files=folders())
def test_whatever_a_folder_holds_compiles_exactly(adapter: str, files: Files) -> None:
    check(files, adapter)


@pytest.mark.slow
@pytest.mark.parametrize("adapter", ADAPTERS)
@settings(max_examples=200, deadline=None, suppress_health_check=QUIET)
@given(files=folders())
def test_whatever_many_folders_hold_compiles_exactly(adapter: str, files: Files) -> None:
    check(files, adapter, is_indexed=True)
