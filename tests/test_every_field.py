"""`packs/lighthouse` says everything an ExpertPack can say: each field with its right value and with a wrong one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from octavo_artifact.schema import Document, Edge
from octavo_build.graph import build_graph
from octavo_build.lint.checks import Options, lint
from octavo_build.lint.subject import read_subject
from octavo_build.pack import Pack
from octavo_build.passages import passages_of
from octavo_build.sources import read
from octavo_build.sources.audience import released
from octavo_serve.catalog import OpenPack, open_catalog
from octavo_serve.requests import ReadRequest, SearchRequest, TopicsRequest
from running import LIGHTHOUSE, octavo

TODAY = date(2026, 6, 20)
LAMP, LENS, TIDES = "station/concepts/lamp.md", "station/concepts/lens.md", "station/volatile/tides.md"
LIGHT, STORM, LETTERS = "station/workflows/wf-light-the-lamp.md", "keeper/stories/storm.md", "keeper/stories/letters.md"
STATION = "station/manifest.yaml"
SIDECAR = "station/concepts/lens.chunks.yaml"


@pytest.fixture(scope="module")
def lighthouse() -> Pack:
    return read(LIGHTHOUSE)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("lighthouse")
    done = octavo("build", LIGHTHOUSE, "--out", root / "dist", "--state", root / "state", "-q")
    assert done.returncode == 0, done.stderr
    return root / "dist"


@pytest.fixture(scope="module")
def served(dist: Path) -> OpenPack:
    return open_catalog(dist, TODAY).choose(None)


def document(pack: Pack, path: str) -> Document:
    return next(document for document in pack.documents if document.path == path)


def edges(pack: Pack, kind: str) -> list[tuple[str, str]]:
    found = (edge for edge in build_graph(pack.documents, pack.extras).edges if edge.kind == kind)
    return [tuple(end.removeprefix("lighthouse/station/") for end in (edge.source, edge.target)) for edge in found]  # type: ignore[misc]  # two of them


def codes(root: Path) -> set[tuple[str, str]]:
    """Path and code of everything that build and lint find."""
    subject = read_subject(root)
    found = [*build_graph(subject.pack.documents, subject.pack.extras).findings]
    found += lint(subject, Options(TODAY, provenance=True))
    found += [each for row, one in enumerate(subject.pack.documents) for each in passages_of(one, row)[1]]
    return {(finding.path, finding.code) for finding in found}


def changed(root: Path, path: str, old: str, new: str) -> Path:
    """A copy of the pack in which a text stands for another."""
    shutil.copytree(LIGHTHOUSE, root, dirs_exist_ok=True)
    text = (root / path).read_text()
    assert old in text
    (root / path).write_text(text.replace(old, new))
    return root


RIGHT: dict[str, tuple[Callable[[Pack], Any], Any]] = {
    "requires": (
        lambda pack: edges(pack, "requires"),
        [("concepts/lamp", "concepts/lens"), ("workflows/wf-light-the-lamp", "concepts/lamp")],
    ),
    "related": (
        lambda pack: edges(pack, "related"),
        [("concepts/lamp", "concepts/lens"), ("concepts/lens", "concepts/lamp")],
    ),
    "context comment": (lambda pack: edges(pack, "context"), [("concepts/lens", "concepts/lamp")]),
    "sequence": (
        lambda pack: edges(pack, "sequence"),
        [("workflows/wf-light-the-lamp", "workflows/wf-wind-the-clockwork")],
    ),
    "ontology mention": (lambda pack: edges(pack, "entity_mention"), [("concepts/lamp", "entity:rock")]),
    "ontology relation": (lambda pack: edges(pack, "carries"), [("entity:rock", "concepts/lens")]),
    "refresh": (lambda pack: document(pack, LAMP).refresh, "P2W"),
    "refresh of the manifest": (lambda pack: document(pack, LENS).refresh, "P90D"),
    "volatile": (lambda pack: document(pack, TIDES).expires_at, "2026-06-08"),
    "refresh comment": (
        lambda pack: [each.passage.expires_at for each in _cut(pack)],
        [None, "2026-08-01"],
    ),
    "confidence": (lambda pack: document(pack, LAMP).confidence, "expert-verified"),
    "verified_by": (lambda pack: document(pack, LAMP).verified_by, "human"),
    "activation": (
        lambda pack: document(pack, LIGHT).activation,
        '{"constraints":["never in fog without the horn"],"next":["wf-wind-the-clockwork"],'
        '"tools":["matches","oil can"]}',
    ),
    "sensitivity": (lambda pack: document(pack, STORM).audience, "family"),
    "access file": (lambda pack: document(pack, LETTERS).audience, "self"),
    "override by slug": (lambda pack: document(pack, "station/archive/oil.md").tier, "on_demand"),
    "override by path": (lambda pack: document(pack, LETTERS).tier, "always"),
    "tier by pattern": (lambda pack: document(pack, LENS).tier, "always"),
    "role": (lambda pack: document(pack, "keeper/presentation/speech-patterns.md").tier, "always"),
    "second frontmatter": (lambda pack: _cut(pack)[0].text.lstrip().split("\n")[0], "# The lens"),
    "sidecar": (lambda pack: [each.passage.section for each in _cut(pack)], ["rings", "care"]),
    "context_prefix": (lambda pack: _cut(pack)[0].passage.context_prefix, "A Fresnel design of the first order."),
    "conflicts": (lambda pack: pack.metadata["conflicts"]["strategy"], "flag"),
    "unknown key": (lambda pack: pack.metadata["house_style"], "plain"),
    "version": (lambda pack: pack.version, "1.2"),
    "retrieval": (lambda pack: pack.retrieval["freshness_penalty"], 0.25),
}


def _cut(pack: Pack) -> list[Any]:
    from octavo_build.freshness import with_expiry

    lens = document(pack, LENS)
    return with_expiry(lens, passages_of(lens, 0)[0])


@pytest.mark.parametrize("field", RIGHT)
def test_a_field_is_what_it_says(lighthouse: Pack, field: str) -> None:
    probe, value = RIGHT[field]
    assert probe(lighthouse) == value


WRONG = {
    # field: file, its text, the wrong one, where and as what it is told
    "requires": (LAMP, "requires: [lens.md]", "requires: [lenses.md]", LAMP, "W-V41-04"),
    "related": (LAMP, "related: [lens.md]", "related: [lense.md]", LAMP, "broken-related"),
    "context comment": (LENS, "related=lamp", "related=lampion", LENS, "hint-unresolved"),
    "sequence": (LIGHT, "part: 1 of 2", "part: 1 of 3", LIGHT, "sequence-broken"),
    "ontology": ("station/ontology.yaml", "evidence: [c", "evidence: [x", "station/ontology.yaml", "ontology-invalid"),
    "content_hash": (LAMP, "sha256:", "sha256:0", LAMP, "W-PROV-02"),
    "verified_at": (LAMP, "verified_at: 2026-05-20", "verified_at: 20 May", LAMP, "date-invalid"),
    "valid_from": (LAMP, "valid_from: 2026-01-01", "valid_from: 2026-06-01", LAMP, "W-PROV-05"),
    "refresh": (LAMP, "refresh: P2W", "refresh: 2 weeks", LAMP, "duration-invalid"),
    "refresh cycle": (STATION, "refresh_cycle: P90D", "refresh_cycle: 90", STATION, "duration-invalid"),
    "volatile": (TIDES, "refresh: P7D", "refresh: P7X", TIDES, "duration-invalid"),
    "volatile of another kind": (TIDES, "volatile: {", "volatile: now #{", TIDES, "frontmatter-value"),
    "refresh comment": (LENS, "decay: volatile", "decay: often", LENS, "refresh-invalid"),
    "confidence": (LAMP, "confidence: expert-verified", "confidence: sure", LAMP, "W-PROV-06"),
    "activation": (LIGHT, "tools: [matches, oil can]", "tools: matches", LIGHT, "frontmatter-value"),
    "activation of a concept": (LIGHT, "type: workflow", "type: concept", LIGHT, "activation-type"),
    "sensitivity": (STORM, "sensitivity: family", "sensitivity: kin", STORM, "access-invalid"),
    "access file": ("keeper/_access.json", '"self"', '"me"', "keeper/_access.json", "access-invalid"),
    "overrides": ("manifest.yaml", "    keeper:", "    keepers:", "manifest.yaml", "manifest-path"),
    "child": ("manifest.yaml", "path: keeper,", "path: keep,", "manifest.yaml", "manifest-path"),
    "role": ("manifest.yaml", "role: knowledge", "role: voice", "manifest.yaml", "composite-packs"),
    "conflicts": ("manifest.yaml", "priority: [station", "priority: [statio", "manifest.yaml", "composite-packs"),
    "sidecar": (SIDECAR, "[21, 29]", "[20, 29]", SIDECAR, "sidecar-invalid"),
    "sidecar of an older text": (LENS, "Rings of glass", "Four rings", SIDECAR, "sidecar-stale"),
    "second frontmatter": (LENS, "sources:\n", "sources: [\n", LENS, "yaml-invalid"),
    "prompt": ("manifest.yaml", "/wf-light", "/wf-lit", "manifest.yaml", "E-MCP-01"),
    "type": ("manifest.yaml", "type: composite", "type: house", "manifest.yaml", "manifest-type"),
    "slug": ("manifest.yaml", "slug: lighthouse\n", "slug: Light House\n", "manifest.yaml", "manifest-slug"),
    "entry_point": ("manifest.yaml", "point: overview.md", "point: a.md", "manifest.yaml", "manifest-entry"),
    "retrieval": ("manifest.yaml", "penalty: 0.25", "penalty: 25", "manifest.yaml", "manifest-field"),
}  # fmt: skip


@pytest.fixture(scope="module")
def found() -> set[tuple[str, str]]:
    return codes(LIGHTHOUSE)


@pytest.mark.parametrize("field", WRONG)
def test_a_wrong_value_is_told_where_it_stands(tmp_path: Path, found: set[tuple[str, str]], field: str) -> None:
    path, old, new, place, code = WRONG[field]
    assert (place, code) not in found
    assert (place, code) in codes(changed(tmp_path, path, old, new))


def graph_yaml(nodes: str = "") -> str:
    rows = "".join(
        f"- {{id: {each.id}, file: {each.path}, title: T}}\n"
        for each in read(LIGHTHOUSE).documents
        if each.path in (LAMP, LENS)
    )
    ends = "source: lighthouse/station/concepts/lens, target: lighthouse/station/concepts/lamp"
    return f"nodes:\n{rows}{nodes}edges:\n- {{{ends}, kind: shines_through}}\n"


def test_a_graph_that_is_true_stands_for_the_documents_links(tmp_path: Path) -> None:
    shutil.copytree(LIGHTHOUSE, tmp_path, dirs_exist_ok=True)
    (tmp_path / "_graph.yaml").write_text(graph_yaml())
    pack = read(tmp_path)
    assert edges(pack, "shines_through") == [("concepts/lens", "concepts/lamp")]
    assert (edges(pack, "related"), len(edges(pack, "requires"))) == ([], 2)


def test_a_graph_that_is_not_true_is_told_and_not_used(tmp_path: Path) -> None:
    shutil.copytree(LIGHTHOUSE, tmp_path, dirs_exist_ok=True)
    (tmp_path / "_graph.yaml").write_text(graph_yaml("- {id: lighthouse/gone, file: gone.md}\n"))
    assert (edges(read(tmp_path), "shines_through"), len(edges(read(tmp_path), "related"))) == ([], 2)
    assert ("_graph.yaml", "graph-stale") in codes(tmp_path)


def search(pack: OpenPack, query: str, **options: object) -> list[Any]:
    return pack.search(SearchRequest.model_validate({"query": query, **options}))["results"]


def test_a_context_prefix_finds_a_passage_and_is_no_part_of_it(served: OpenPack) -> None:
    hit = search(served, "Fresnel of the first order", reconstruct=True)[0]
    assert (hit["source_file"], hit["fragment_id"].partition("#")[2].partition(":")[0]) == (LENS, "rings")
    assert "Fresnel" not in f"{hit['text']}{hit['reconstruction']}{hit['heading_path']}"
    raw = (LIGHTHOUSE / LENS).read_bytes()
    assert hit["reconstruction"]["original_markdown"].encode() == raw[slice(*hit["byte_range"])]


def test_what_a_workflow_requires_comes_with_it(served: OpenPack) -> None:
    hits = search(served, "Trim the wick at dusk", max_results=1)
    assert [(hit["source_file"], hit["requires_expanded"]) for hit in hits] == [
        (LIGHT, False), (LAMP, True), (LENS, True),
    ]  # fmt: skip


def test_a_hit_says_how_fresh_and_how_sure_it_is(served: OpenPack) -> None:
    tides = search(served, "high water")[0]
    assert (tides["source_file"], tides["expired"], tides["expires_at"]) == (TIDES, True, "2026-06-08")
    lamp = search(served, "how many watts has the lamp")[0]
    assert (lamp["confidence"], lamp["verified_age_days"], lamp["age_stale"]) == ("expert-verified", 31, True)


def test_reading_a_workflow_says_what_it_activates_and_what_follows(served: OpenPack) -> None:
    read_ = served.read(ReadRequest(path=LIGHT))
    assert read_["activation"] == {
        "tools": ["matches", "oil can"],
        "constraints": ["never in fog without the horn"],
        "next": ["wf-wind-the-clockwork"],
    }
    assert read_["next"] == "lighthouse/station/workflows/wf-wind-the-clockwork"


def test_topics_say_what_the_pack_may_be_relied_on_for(served: OpenPack) -> None:
    topics = served.topics(TopicsRequest())
    assert topics["pack"]["authority_boundary"] == {
        "in_scope": "Lamps, lenses and tides of this station",
        "out_of_scope": ["other stations", "sailing"],
        "refuse_when": ["a life is in danger"],
        "no_source_no_claim": True,
    }
    assert topics["pack"]["freshness"]["coverage_pct"] == 77.8  # counted: the manifest says 12
    assert {topic["path"]: topic["tier"] for topic in topics["topics"]["concept"]} == {
        LAMP: "always", LENS: "always", "station/archive/oil.md": "on_demand",
    }  # fmt: skip


def test_prompts_say_what_they_activate(served: OpenPack) -> None:
    (prompt,) = served.prompts()
    assert (prompt.name, prompt.description) == (
        "light_the_lamp",
        "Light it. Constraints: never in fog without the horn. Next: wf-wind-the-clockwork. Tools: matches, oil can.",
    )


@pytest.mark.parametrize("word", [b"albatross", b"camphor", b"storm.md", b"letters.md"])
def test_what_is_for_others_is_in_no_file_of_the_release(dist: Path, word: bytes) -> None:
    assert not [path for path in (dist / "lighthouse").rglob("*") if path.is_file() and word in path.read_bytes()]


def test_edges_to_what_is_for_others_are_not_there(lighthouse: Pack) -> None:
    public = released(lighthouse)
    nodes = {node.id for node in build_graph(public.documents, public.extras).nodes}
    assert not {each for each in nodes if "storm" in each or "letters" in each}
    assert Edge("lighthouse/station/concepts/lamp", "lighthouse/station/concepts/lens", "requires") in set(
        build_graph(public.documents, public.extras).edges
    )
