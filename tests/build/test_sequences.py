from __future__ import annotations

from pathlib import Path

import pytest

from octavo_build.graph import build_graph
from octavo_build.sources import read


def sequence(root: Path, marks: dict[str, str]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The edges of kind sequence between files, and the findings, of files with these marks."""
    (root / "manifest.yaml").write_text("slug: p\nname: P\ntype: product\n")
    (root / "overview.md").write_text("---\nid: o\n---\nHello.\n")
    for name, mark in marks.items():
        (root / f"{name}.md").write_text(f"---\nid: {name}\n---\n<!-- sequence: {mark} -->\n\nText.\n")
    graph = build_graph(read(root).documents)
    return [(edge.source, edge.target) for edge in graph.edges if edge.kind == "sequence"], [
        (finding.path, finding.message) for finding in graph.findings if finding.code == "sequence-broken"
    ]


def test_parts_lead_to_the_next_part(tmp_path: Path) -> None:
    marks = {"z": "x-*.md | part: 1 of 3", "a": "x-*.md | part: 2/3", "m": "x-*.md | part: 3 of 3"}
    assert sequence(tmp_path, marks) == ([("a", "m"), ("z", "a")], [])


def test_two_sequences_stay_apart(tmp_path: Path) -> None:
    marks = {"a": "x | part: 1 of 1", "b": "y | part: 1 of 1"}
    assert sequence(tmp_path, marks) == ([], [])


@pytest.mark.parametrize(
    ("marks", "edges", "finding"),
    [
        pytest.param({"a": "x"}, [], ("a.md", "part: found '', expected such as '2 of 5'"), id="no part"),
        pytest.param(
            {"a": "x | part: 3 of 2"}, [], ("a.md", "part: found '3 of 2', expected such as '2 of 5'"), id="beyond"
        ),
        pytest.param(
            {"a": "x | part: 1 of 1", "b": "x | part: 1 of 1"}, [], ("b.md", "a.md is part 1 too"), id="twice"
        ),
        pytest.param(
            {"a": "x | part: 1 of 3", "b": "x | part: 3 of 3"},
            [("a", "b")],
            ("a.md", "of 'x' no document is part 2"),
            id="a gap",
        ),
    ],
)
def test_a_broken_sequence_is_told(
    tmp_path: Path, marks: dict[str, str], edges: list[tuple[str, str]], finding: tuple[str, str]
) -> None:
    assert sequence(tmp_path, marks) == (edges, [finding])
