from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from octavo_build.findings import Finding
from octavo_build.frontmatter import read_frontmatter
from octavo_build.marks import read_marks
from octavo_build.sources import read


def marks(text: str, findings: list[Finding] | None = None) -> list[dict[str, Any]]:
    raw = text.encode()
    front = read_frontmatter("a.md", raw, second_block=True)
    return json.loads(read_marks("a.md", raw, front, [] if findings is None else findings))


@pytest.mark.parametrize(
    ("comment", "kind", "data"),
    [
        pytest.param(
            "<!-- context: section=process, topic=a b, related=one, two,three -->",
            "context",
            {"section": "process", "topic": "a b", "related": ["one", "two", "three"]},
            id="context",
        ),
        pytest.param("<!--context : pack/page-->", "context", {"context": "pack/page"}, id="context without a key"),
        pytest.param("<!-- context: related= -->", "context", {}, id="context of nothing"),
        pytest.param(
            "<!-- refresh\n  decay: volatile\n  as_of: 2026-Q1\n  fields: [a, b]\n-->",
            "refresh",
            {"decay": "volatile", "as_of": "2026-Q1", "fields": ["a", "b"]},
            id="refresh",
        ),
        pytest.param("<!-- refresh: {decay: permanent} -->", "refresh", {"decay": "permanent"}, id="refresh in a line"),
        pytest.param("<!-- refresh\r\n  a: 1\r\n  b: 2\r\n-->", "refresh", {"a": "1", "b": "2"}, id="CRLF"),
        pytest.param("<!-- refresh soon -->", "refresh", "soon", id="refresh without YAML keys"),
        pytest.param("<!-- refresh -->", "refresh", None, id="refresh of nothing"),
        pytest.param(
            "<!-- sequence: manuals/*.md | part: 2 of 5 -->",
            "sequence",
            {"sequence": "manuals/*.md", "part": "2 of 5"},
            id="sequence",
        ),
    ],
)
def test_a_mark_is_found_with_its_data_and_its_place(comment: str, kind: str, data: object) -> None:
    text = f"---\ntitle: T\n---\n# T\n\nÖl.\n\n{comment}\n\nMore.\n"
    (mark,) = marks(text)
    assert (mark["kind"], mark["line"], mark["data"]) == (kind, 8, data)
    assert text.encode()[mark["start_byte"] : mark["end_byte"]] == comment.encode()


@pytest.mark.parametrize(
    "text",
    [
        "```\n<!-- refresh\ndecay: volatile\n-->\n```\n",
        "    <!-- context: a=b -->\n",
        "`<!-- context: a=b -->`\n",
        "\\<!-- context: a=b -->\n",
        "<!-- refreshing: a -->\n",
        "<!-- refresh-rate: a -->\n",
        "<!-- context menus are large -->\n",
        "<!-- a sequence: b -->\n",
        "context: a=b\n",
        "",
    ],
)
def test_code_prose_and_other_comments_are_no_marks(text: str) -> None:
    assert marks(text) == []


def test_a_mark_between_the_frontmatter_blocks_is_found_and_one_inside_them_is_not() -> None:
    text = (
        "---\ntitle: '<!-- context: a=no -->'\n---\n\n<!-- context: a=yes -->\n"
        "---\nsources: '<!-- context: a=no -->'\n---\nB\n"
    )
    assert [(mark["line"], mark["data"]) for mark in marks(text)] == [(5, {"a": "yes"})]


def test_marks_stand_in_the_order_of_the_file() -> None:
    head = "---\na: b\n---\n<!-- context: n=0 -->\n---\nc: d\n---\n"
    text = head + "x <!-- context: n=1 --> y\n\n- i\n\n  <!-- context: n=2 -->\n"
    assert [mark["data"]["n"] for mark in marks(text)] == ["0", "1", "2"]


def test_a_refresh_that_is_no_yaml_is_told_with_its_line() -> None:
    findings: list[Finding] = []
    assert marks("# T\n\nText\n\n<!-- refresh\n  decay: volatile\n  as_of: [2026\n-->\n", findings) == []
    (finding,) = findings
    assert (finding.code, finding.path, finding.line) == ("refresh-invalid", "a.md", 8)


def test_a_comment_that_is_never_closed_ends_with_the_file() -> None:
    (mark,) = marks("<!-- context: a=b\n")
    assert (mark["data"], mark["end_byte"]) == ({"a": "b"}, 18)


PIECES = (
    "<!-- context: a=b -->", "<!-- refresh\ndecay: volatile\n-->", "<!-- other -->", "`", "``", "```", "~~~", "\n",
    "\n", "\n\n", "- ", "> ", "    ", "text", "# ", "|a|\n|-|\n", "<pre>", "</pre>", "<div>", "<!--", "-->", "\\",
    "\r\n\r\n", "data:a/b,", "[x]: ", "===\n",
)  # fmt: skip


def test_what_follows_the_last_mark_s_paragraph_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = random.Random(3)
    texts = ["".join(sample.choices(PIECES, k=sample.randint(1, 25))) for _ in range(1500)]
    found = [marks(text) for text in texts]
    monkeypatch.setattr("octavo_build.marks._reach", len)
    assert found == [marks(text) for text in texts]
    assert sum(map(len, found)) > 500


def test_hostile_comments_cost_linear_time() -> None:
    assert marks("<!-- context: " + "a" * 500_000 + "," * 500_000 + " -->")[0]["kind"] == "context"
    assert len(marks("<!-- context: a=b -->" + " " * 200_000 + "<!-- context: a=b -->\n" * 20_000)) == 20_001


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "context", "refresh"), [("blender-3d", 10, 0), ("home-assistant", 19, 2), ("solar-diy", 25, 18)]
)
def test_the_real_packs_have_the_marks_that_were_counted(shared: Path, name: str, context: int, refresh: int) -> None:
    pack = read(shared / "packs" / name)
    found = [mark for document in pack.documents for mark in json.loads(document.marks)]
    assert Counter(mark["kind"] for mark in found) == Counter(context=context, refresh=refresh)
    assert all(mark["data"] for mark in found)
    assert not {"date-invalid", "duration-invalid", "refresh-invalid"} & {finding.code for finding in pack.findings}
