from __future__ import annotations

from pathlib import Path

import pytest

from octavo_artifact.schema import Edge
from octavo_build.graph import Graph, build_graph
from octavo_build.sources import read


def graph(root: Path, requires: str, files: dict[str, str]) -> Graph:
    (root / "manifest.yaml").write_text("slug: p\nname: P\ntype: product\n")
    sources = {"a/start.md": f"---\nid: p/start\ntitle: S\nrequires: ['{requires}']\n---\nx", **files}
    for name, text in sources.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return build_graph(read(root).documents)


FILES = {
    "a/near.md": "---\nid: p/near\ntitle: N\n---\n",
    "b/near.md": "---\nid: p/far\ntitle: F\n---\n",
    "b/only.md": "---\nid: p/only\ntitle: O\n---\n",
    "b/same.md": "---\nid: p/same1\ntitle: S\n---\n",
    "c/same.md": "---\nid: p/same2\ntitle: S\n---\n",
}


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        pytest.param("p/far", "p/far", id="id"),
        pytest.param("b/near.md", "p/far", id="path"),
        pytest.param("b/near", "p/far", id="path without its ending"),
        pytest.param("near.md", "p/near", id="same folder before the rest"),
        pytest.param("../b/near.md", "p/far", id="relative path"),
        pytest.param("only.md", "p/only", id="only one of that name"),
        pytest.param("only", "p/only", id="name without its ending"),
    ],
)
def test_a_reference_resolves_by_id_path_folder_or_name(tmp_path: Path, reference: str, target: str) -> None:
    built = graph(tmp_path, reference, FILES)
    assert built.edges == (Edge("p/start", target, "requires"),)
    assert built.findings == ()


@pytest.mark.parametrize(("reference", "code"), [("same.md", "link-ambiguous"), ("none.md", "link-unresolved")])
def test_a_reference_that_means_none_or_several_is_told(tmp_path: Path, reference: str, code: str) -> None:
    built = graph(tmp_path, reference, FILES)
    assert built.edges == ()
    assert [(finding.path, finding.code) for finding in built.findings] == [("a/start.md", code)]
