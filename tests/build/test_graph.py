from __future__ import annotations

from pathlib import Path

import pytest

from octavo_artifact.schema import Edge
from octavo_build.graph import Graph, build_graph
from octavo_build.links import references_of
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


@pytest.mark.parametrize(("reference", "code"), [("same.md", "requires-ambiguous"), ("none.md", "link-unresolved")])
def test_a_reference_that_means_none_or_several_is_told(tmp_path: Path, reference: str, code: str) -> None:
    built = graph(tmp_path, reference, FILES)
    assert built.edges == ()
    assert [(finding.path, finding.line, finding.code) for finding in built.findings] == [("a/start.md", 4, code)]
    assert built.findings[0].severity == ("error" if code == "requires-ambiguous" else "warning")


def linked(root: Path, **files: str) -> Graph:
    """The graph of a pack whose files `a/b.md` are written as `a__b`, with ids after their paths."""
    (root / "manifest.yaml").write_text("slug: p\nname: P\ntype: product\n")
    for name, text in files.items():
        path = root / f"{name.replace('__', '/')}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        front = "" if text.startswith("---\n") else "---\ntitle: T\n---\n"
        path.write_text(front + text)
    pack = read(root)
    return build_graph(pack.documents, pack.extras)


def told(graph: Graph) -> list[tuple[str, int, str]]:
    return [(finding.path, finding.line, finding.code) for finding in graph.findings]


@pytest.mark.parametrize(
    ("written", "target"),
    [
        pytest.param("[[only]]", "p/b/only", id="name"),
        pytest.param("[[only.md|The only one]]", "p/b/only", id="alias"),
        pytest.param("[[only#Part two|part]]", "p/b/only", id="anchor"),
        pytest.param("[[b/near]]", "p/b/near", id="path"),
        pytest.param("[[near]]", "p/a/near", id="same folder before the rest"),
        pytest.param("[[p/b/near]]", "p/b/near", id="id"),
        pytest.param("[[Other Name]]", "p/b/only", id="a name the page gives itself"),
        pytest.param("| x | y |\n|---|---|\n| [[only|the one]] | z |\n", "p/b/only", id="a bar that cuts a cell"),
        pytest.param("| x |\n|---|\n| [[only\\|the one]] |\n", "p/b/only", id="an escaped bar in a table"),
    ],
)
def test_a_wikilink_is_a_name_before_it_is_a_path(tmp_path: Path, written: str, target: str) -> None:
    only = "---\ntitle: O\naliases: [Other name]\n---\n"
    built = linked(tmp_path, a__start=written, a__near="x", b__near="x", b__only=only)
    assert built.edges == (Edge("p/a/start", target, "wikilink"),)
    assert "link-unresolved" not in {finding.code for finding in built.findings}


def test_a_page_never_means_itself_when_others_have_its_name(tmp_path: Path) -> None:
    built = linked(tmp_path, overview="x\n\n[[overview.md|the product]]", a__overview="x", b__overview="[[overview]]")
    assert built.edges == ()
    assert [each for each in told(built) if each[2] != "id-missing"] == [
        ("b/overview.md", 4, "link-ambiguous"),
        ("overview.md", 6, "link-ambiguous"),
    ]


def test_a_link_to_the_page_itself_is_no_edge_and_no_finding(tmp_path: Path) -> None:
    built = linked(tmp_path, a="[[#part]] [[a#part]] [here](#part) [here](a.md#part)")
    assert (built.edges, built.findings) == ((), ())


@pytest.mark.parametrize(
    ("written", "target"),
    [
        pytest.param("[x](near.md)", "p/a/near", id="beside"),
        pytest.param("[x](../b/only.md#part)", "p/b/only", id="relative, with an anchor"),
        pytest.param("[x](/b/only.md)", "p/b/only", id="from the pack's root"),
        pytest.param("[x](../b/with%20space.md)", "p/b/with space", id="percent-encoded"),
        pytest.param("[x](<../b/with space.md>)", "p/b/with space", id="in angle brackets"),
        pytest.param("[x][ref]\n\n[ref]: ../b/only.md 'Title'", "p/b/only", id="by reference"),
        pytest.param("[![picture](p.png)](near.md)", "p/a/near", id="around a picture"),
        pytest.param("[x](near)", "p/a/near", id="without its ending"),
        pytest.param("[x](near.html)", "p/a/near", id="the page made of it"),
        pytest.param("[x](../B/Only.MD)", "p/b/only", id="in other letters' case"),
        pytest.param("[x](../c/)", "p/c/README", id="a folder"),
    ],
)
def test_a_link_is_a_path(tmp_path: Path, written: str, target: str) -> None:
    built = linked(tmp_path, a__start=written, a__near="x", b__only="x", c__README="x", **{"b__with space": "x"})
    assert (built.edges, built.findings) == ((Edge("p/a/start", target, "link"),), ())


@pytest.mark.parametrize(
    "written",
    [
        pytest.param("[x](https://example.org/only.md)", id="elsewhere"),
        pytest.param("[x](//example.org/only.md)", id="elsewhere, same scheme"),
        pytest.param("[x](mailto:a@example.org)", id="mail"),
        pytest.param("[x](data.csv) ![x](only.png) ![[only.png]]", id="other files"),
        pytest.param("`[[none]]` and ``[x](none.md)``", id="code"),
        pytest.param("```\n[[none]]\n<!-- context: related=none -->\n```", id="fence"),
        pytest.param("    [[none]]", id="indented code"),
        pytest.param("\\[[none]]", id="escaped"),
        pytest.param("<!-- [[none]] -->", id="comment"),
    ],
)
def test_what_is_no_reference_is_passed_by(tmp_path: Path, written: str) -> None:
    built = linked(tmp_path, start=written)
    assert (built.edges, built.findings) == ((), ())


def test_a_link_in_other_letters_case_that_may_mean_two_files_means_none(tmp_path: Path) -> None:
    built = linked(tmp_path, start="[x](OTHER.md)", other="x", Other="x")
    assert (built.edges, told(built)) == ((), [("start.md", 4, "link-unresolved")])


def test_a_link_that_leads_nowhere_is_told_with_its_line(tmp_path: Path) -> None:
    text = "x\n\n> y\n> [[none]]\n\n- a\n- b\n  [x](none.md)\n  and\n  [y](../../start.md)\n"
    built = linked(tmp_path, start=text)
    assert told(built) == [("start.md", line, "link-unresolved") for line in (7, 11, 13)]


def test_context_comments_give_hints_and_a_wrong_hint_is_only_noted(tmp_path: Path) -> None:
    hint = "<!-- context: section=s, topic=t, related=one, none -->"
    between = f"---\ntitle: T\n---\n\n{hint}\n\n---\nsources:\n  - url: x\n---\nText.\n"
    built = linked(tmp_path, one="x", a=f"Text {hint}", b=f"{hint}\n\nText", c=between)
    assert built.edges == tuple(Edge(f"p/{name}", "p/one", "context") for name in "abc")
    assert told(built) == [(f"{name}.md", line, "hint-unresolved") for name, line in (("a", 4), ("b", 4), ("c", 5))]


def test_files_that_name_everything_stand_outside_but_for_what_they_require(tmp_path: Path) -> None:
    index = "---\ntitle: I\nretrieval_strategy: navigation\nrequires: [one]\n---\n[[one]] [[none]]"
    built = linked(tmp_path, _index=index, notes="---\ntype: source\ntitle: N\n---\n[[one]]", one="[[_index]]")
    assert built.edges == (Edge("p/_index", "p/one", "requires"),)
    assert told(built) == [("_index.md", 6, "link-unresolved")]


def test_requirements_may_go_in_circles(tmp_path: Path) -> None:
    front = "---\ntitle: T\nrequires: [{}]\n---\n"
    built = linked(tmp_path, a=front.format("b"), b=front.format("a"))
    assert built.edges == (Edge("p/a", "p/b", "requires"), Edge("p/b", "p/a", "requires"))
    assert built.findings == ()


@pytest.mark.parametrize("text", ["[", "[[a|", "![", "[a][", "`a[", "[a](b", "<!-- context: related="])
def test_hostile_brackets_cost_bounded_time(tmp_path: Path, text: str) -> None:
    from time import process_time

    started = process_time()
    linked(tmp_path, a=text * 100_000)
    assert process_time() - started < 20


def test_a_paragraph_with_too_many_brackets_is_told(tmp_path: Path) -> None:
    assert told(linked(tmp_path, a="x\n\n" + "[" * 2001)) == [("a.md", 6, "links-ignored")]


@pytest.mark.shared
@pytest.mark.parametrize(
    ("pack", "counts", "ambiguous"),
    [
        pytest.param("blender-3d", {"wikilink": 9, "link": 0, "related": 50, "hinting": 6}, 0, id="blender"),
        pytest.param(
            "home-assistant", {"wikilink": 100, "link": 5, "related": 0, "hinting": 19}, 5, id="home-assistant"
        ),
        pytest.param("solar-diy", {"wikilink": 13, "link": 0, "related": 0, "hinting": 25}, 0, id="solar"),
    ],
)
def test_the_references_of_real_packs_are_all_seen(
    shared: Path, pack: str, counts: dict[str, int], ambiguous: int
) -> None:
    found = read(shared / "packs" / pack)
    references = [(d.path, each) for d in found.documents for each in references_of(d)[0]]
    seen = {kind: sum(each.kind == kind for _, each in references) for kind in ("wikilink", "link")}
    seen["related"] = sum(len(document.related) for document in found.documents)
    # of blender's ten context comments four have no `related=`
    seen["hinting"] = len({(path, each.line) for path, each in references if each.kind == "context"})
    assert seen == counts
    codes = [finding.code for finding in build_graph(found.documents).findings]
    assert codes.count("link-ambiguous") == ambiguous
    assert set(codes) <= {"link-ambiguous", "hint-unresolved"}
