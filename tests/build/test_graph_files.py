from __future__ import annotations

from pathlib import Path

import pytest

from octavo_artifact.schema import Edge, Node
from octavo_build.graph import Graph, build_graph
from octavo_build.sources import read

GRAPH = """\
meta: {slug: p, schema_version: "1.1"}
nodes:
  - {id: p/a, title: Old title, type: concept, file: a.md, verified_at: null}
  - {id: p/b, title: B, type: concept, file: b.md, aliases: [bee], status: stable}
  - {id: entity:x, title: X, type: ontology_entity, kind: term, status: accepted}
edges:
  - {source: p/b, target: p/a, kind: wikilink}
  - {source: p/b, target: "entity:x", kind: entity_mention}
  - {source: p/b, target: p/a, kind: requires}
"""

ONTOLOGY = """\
schema: expertpack.ontology.v1
entities:
  - {id: "entity:zone", label: Zone, kind: concept, aliases: [zones, area], evidence: [p/a, b.md, a]}
  - {id: "entity:map", label: Map, status: deprecated}
relations:
  - {source: "entity:zone", target: "entity:map", kind: part_of}
  - {source: p/a, target: "entity:map"}
"""


def graph(root: Path, **files: str) -> Graph:
    texts = {
        "manifest.yaml": "slug: p\nname: P\ntype: product\n",
        "a.md": "---\nid: p/a\ntitle: A\ntype: concept\nrequires: [b]\n---\n[[b]]\n",
        "b.md": "---\nid: p/b\ntitle: B\n---\nx\n",
        **files,
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    pack = read(root)
    return build_graph(pack.documents, pack.extras)


DERIVED = (Edge("p/a", "p/b", "requires"), Edge("p/a", "p/b", "wikilink"))


def test_a_true_graph_file_is_used_as_it_is_but_for_requirements(tmp_path: Path) -> None:
    built = graph(tmp_path, **{"_graph.yaml": GRAPH})
    assert built.findings == ()
    assert built.edges == (
        Edge("p/a", "p/b", "requires"),
        Edge("p/b", "entity:x", "entity_mention"),
        Edge("p/b", "p/a", "wikilink"),
    )
    assert built.nodes == (
        Node("entity:x", "X", "ontology_entity", None, "term", (), "accepted"),
        Node("p/a", "A", "concept", "a.md"),
        Node("p/b", "B", None, "b.md", aliases=("bee",), status="stable"),
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("file: b.md", "file: gone.md", id="a file that is gone"),
        pytest.param("id: p/b", "id: p/other", id="another id"),
        pytest.param("target: p/a", "target: p/c", id="an edge to no node"),
        pytest.param(", kind: wikilink", "", id="an edge without a kind"),
        pytest.param("file: a.md", "verified_by: me", id="a document without a file"),
        pytest.param("nodes:", "knots:", id="no nodes"),
        pytest.param("- {id: p/a", "- p/a\n  - {id: p/a", id="a node that is no mapping"),
    ],
)
def test_an_untrue_graph_file_is_told_and_not_used(tmp_path: Path, old: str, new: str) -> None:
    built = graph(tmp_path, **{"_graph.yaml": GRAPH.replace(old, new, 1)})
    assert [(finding.path, finding.code, finding.severity) for finding in built.findings] == [
        ("_graph.yaml", "graph-stale", "warning")
    ]
    assert built.edges == DERIVED


def test_a_graph_file_that_is_no_yaml_is_told_and_not_used(tmp_path: Path) -> None:
    built = graph(tmp_path, **{"_graph.yaml": "nodes: [\n"})
    assert [(finding.path, finding.code) for finding in built.findings] == [("_graph.yaml", "yaml-invalid")]
    assert built.edges == DERIVED


def test_accepted_entities_join_the_graph(tmp_path: Path) -> None:
    built = graph(tmp_path, **{"ontology.yaml": ONTOLOGY})
    assert built.findings == ()
    assert built.edges == (
        Edge("entity:zone", "entity:map", "part_of"),
        Edge("p/a", "entity:map", "related_to"),
        Edge("p/a", "entity:zone", "entity_mention"),
        *DERIVED,
        Edge("p/b", "entity:zone", "entity_mention"),
    )
    assert built.nodes[:2] == (
        Node("entity:map", "Map", "ontology_entity", None, "term", (), "deprecated"),
        Node("entity:zone", "Zone", "ontology_entity", None, "concept", ("zones", "area"), "accepted"),
    )


def test_suggested_entities_do_not(tmp_path: Path) -> None:
    assert graph(tmp_path, **{"ontology-suggestions.yaml": ONTOLOGY}).edges == DERIVED


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("b.md, a]", "b.md, gone.md]", id="evidence that is gone"),
        pytest.param('id: "entity:map"', "id: p/a", id="an id that a document has"),
        pytest.param('id: "entity:map"', 'id: "entity:zone"', id="an id twice"),
        pytest.param("source: p/a,", "source: p/gone,", id="a relation from nothing"),
    ],
)
def test_a_wrong_entry_of_the_ontology_is_told_and_left_out(tmp_path: Path, old: str, new: str) -> None:
    built = graph(tmp_path, **{"ontology.yaml": ONTOLOGY.replace(old, new)})
    assert {(finding.path, finding.code) for finding in built.findings} == {("ontology.yaml", "ontology-invalid")}
    assert set(DERIVED) < set(built.edges)


def test_a_child_pack_has_its_own_ontology(tmp_path: Path) -> None:
    built = graph(
        tmp_path,
        **{
            "manifest.yaml": "slug: p\nname: P\ntype: composite\npacks: [{path: child}]\n",
            "child/manifest.yaml": "slug: c\nname: C\ntype: product\n",
            "child/c.md": "---\nid: c/c\ntitle: C\n---\nx\n",
            "child/ontology.yaml": "entities: [{id: e, label: E, evidence: [c.md]}]",
            "child/notes/ontology.yaml": "entities: [{id: never}]",
        },
    )
    assert Edge("c/c", "e", "entity_mention") in built.edges
    assert "never" not in {node.id for node in built.nodes}
