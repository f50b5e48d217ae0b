from __future__ import annotations

import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from octavo_artifact.errors import NotFoundError, RequestError
from octavo_artifact.text import estimate_tokens
from octavo_serve.catalog import OpenPack, open_catalog
from octavo_serve.graph import MAX_EDGES
from octavo_serve.requests import MAX_NODES, ReadRequest, SearchRequest, TraverseRequest, parse_request
from octavo_serve.results import Hit, TraverseResult
from running import octavo

LONG = "# Long\n\n" + "\n\n".join(f"## Part {n}\n\n" + "Turnips grow slowly in clay soil. " * 30 for n in range(5))
HUGE = "# Huge\n\n" + "\n\n".join(f"## Part {n}\n\n" + "Barley is sown in spring. " * 60 for n in range(8))

PAYLOAD = "image/png;base64,AAAA"
INLINED = f"# Inlined\n\n![dot](data:{PAYLOAD})\n\n" + LONG

FILES = {
    "kestrel.md": ("requires: [inlined]", "# Kestrel\n\nThe kestrel plan begins.\n"),
    "inlined.md": ("", INLINED),
    # a chain of requirements, one longer than is followed
    "chain.md": ("requires: [first]", "# Chain\n\nThe zephyr valve is opened by hand.\n"),
    "first.md": ("type: concept\nrequires: [second]", "# First\n\nBefore the valve.\n"),
    "second.md": ("requires: [third]", "# Second\n\nBefore that.\n"),
    "third.md": ("", "# Third\n\nEarliest.\n"),
    # more than fit an answer
    "many.md": ("requires: [n1, n2, n3, n4]", "# Many\n\nThe quokka protocol has four parts.\n"),
    **{f"n{n}.md": ("", f"# Part {n}\n\nOne of them.\n") for n in (1, 2, 3, 4)},
    # the second does not fit the budget, the third would
    "costly.md": ("requires: [a-long, b-huge, c-small]", "# Costly\n\nThe narwhal index is large.\n"),
    "a-long.md": ("", LONG),
    "b-huge.md": ("", HUGE),
    "c-small.md": ("", "# Small\n\nTiny.\n"),
    # what is not searchable stays out, and circles end
    "circle.md": ("requires: [circle-2, archive/old]", "# Circle\n\nThe ouzel loop closes.\n"),
    "circle-2.md": ("requires: [circle]", "# Circle 2\n\nThe other half.\n"),
    "archive/old.md": ("requires: [third]", "# Old\n\nRetired.\n"),
    # neighbours
    "hub.md": ("related: [petrel-far]", "# Petrel\n\nPetrel migration over the sea. [[petrel-near]]\n"),
    "petrel-near.md": ("", "# Seabirds at sea\n\nThe migration of sea birds such as the petrel.\n"),
    "petrel-far.md": ("", "# Invoices\n\nPayment terms are thirty days net.\n"),
    **{
        f"petrel-{n}.md": ("", f"# Petrel {n}\n\nPetrel migration over the sea, petrel chapter {n}.\n")
        for n in range(9)
    },
}
MANIFEST = "slug: g\nname: G\ntype: product\ncontext:\n  on_demand: [archive]\n"
ONTOLOGY = (
    "entities: [{id: 'entity:bird', label: Bird, kind: animal, evidence: [hub]}, {id: 'entity:sea', label: Sea},"
    " {id: 'entity:law', label: Law}]\n"
    "relations: [{source: 'entity:bird', target: 'entity:sea', kind: lives_at},"
    " {source: kestrel, target: 'entity:law', kind: requires}]\n"
)


def compiled(root: Path, files: dict[str, tuple[str, str]], **extras: str) -> OpenPack:
    source = root / "g"
    for name, (front, body) in files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(f"---\ntitle: {name.removesuffix('.md')}\ntags: [t]\n{front}\n---\n{body}")
    for name, text in {"manifest": MANIFEST, **extras}.items():
        (source / f"{name}.yaml").write_text(text)
    # beside it, so that the packs of this file share what was encoded
    done = octavo("build", source, "--out", root / "dist", "--state", root.parent / "state", "-q")
    assert done.returncode == 0, done.stderr
    return open_catalog(root / "dist").choose(None)


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> OpenPack:
    return compiled(tmp_path_factory.mktemp("graph"), FILES, ontology=ONTOLOGY)


def search(pack: OpenPack, query: str, n: int = 1, **options: object) -> list[Hit]:
    return pack.search(SearchRequest.model_validate({"query": query, "max_results": n, **options}))["results"]


def files(hits: list[Hit]) -> list[str]:
    return [hit["source_file"].removesuffix(".md") for hit in hits]


def test_what_a_hit_requires_follows_it_two_steps_deep(pack: OpenPack) -> None:
    hits = search(pack, "how is the zephyr valve opened")
    assert files(hits) == ["chain", "first", "second"]
    assert [hit["requires_expanded"] for hit in hits] == [False, True, True]
    best = hits[0]["score"]
    assert [hit["score"] for hit in hits] == [best, pytest.approx(best * 0.85), pytest.approx(best * 0.7225)]


def test_requirements_are_followed_in_their_direction_only(pack: OpenPack) -> None:
    assert files(search(pack, "earliest third")) == ["third"]


def test_at_most_three_atoms_are_added_to_an_answer(pack: OpenPack) -> None:
    assert files(search(pack, "quokka protocol four parts")) == ["many", "n1", "n2", "n3"]
    expanded = [hit for hit in search(pack, "quokka protocol zephyr valve", 2) if hit["requires_expanded"]]
    assert len(expanded) == 3


def test_the_first_atom_beyond_the_budget_ends_the_expansion(pack: OpenPack) -> None:
    hits = search(pack, "narwhal index")
    assert files(hits) == ["costly", "a-long"]
    assert estimate_tokens(LONG) < 3500 < estimate_tokens(LONG) + estimate_tokens(HUGE)


def test_a_required_atom_is_whole_and_its_place_is_exact(pack: OpenPack, tmp_path: Path) -> None:
    atom = search(pack, "narwhal index")[1]
    raw = f"---\ntitle: a-long\ntags: [t]\n\n---\n{LONG}".encode()
    start, end = atom["byte_range"]
    assert atom["text"] == LONG == raw[start:end].decode()
    assert atom["span_sha256"] == sha256(raw[start:end]).hexdigest()
    first, last = atom["line_range"]
    assert b"".join(raw.splitlines(keepends=True)[first - 1 : last]) == raw[start:end]
    read = pack.read(ReadRequest(id=atom["fragment_id"]))
    assert (read["path"], read["content"]) == ("a-long.md", raw.decode())


def test_a_required_atom_can_be_reconstructed(pack: OpenPack) -> None:
    found, atom = search(pack, "narwhal index", reconstruct=True)
    assert found.get("reconstruction", {}).get("stale") is False
    assert atom.get("reconstruction", {}).get("original_markdown") == LONG


def test_an_atom_that_is_not_shown_as_written_is_hashed_as_written(pack: OpenPack) -> None:
    atom = search(pack, "the kestrel plan")[1]
    raw = f"---\ntitle: inlined\ntags: [t]\n\n---\n{INLINED}".encode()
    start, end = atom["byte_range"]
    assert atom["text"] == INLINED.replace(PAYLOAD, "…")
    assert sha256(raw[start:end]).hexdigest() == atom["span_sha256"] == sha256(INLINED.encode()).hexdigest()


def test_an_atom_of_one_passage_is_the_same_hit_that_a_search_gives(pack: OpenPack) -> None:
    added = search(pack, "how is the zephyr valve opened")[1]
    found = search(pack, "first before the valve")[0]
    assert {**added, "score": 0, "requires_expanded": False} == {**found, "score": 0}


def test_an_entity_that_is_required_has_nothing_to_add(pack: OpenPack) -> None:
    assert [edge["target"] for edge in walk(pack, id="g/kestrel")["edges"]] == ["entity:law", "g/inlined"]
    assert files(search(pack, "the kestrel plan")) == ["kestrel", "inlined"]


def test_circles_end_and_what_is_not_searchable_stays_out(pack: OpenPack) -> None:
    assert files(search(pack, "ouzel loop closes")) == ["circle", "circle-2"]


def test_what_is_in_the_answer_is_not_added_again(pack: OpenPack) -> None:
    hits = search(pack, "zephyr valve opened by hand", 20)
    assert len(files(hits)) == len({hit["fragment_id"] for hit in hits})
    documents = [hit["source_file"] for hit in hits if not hit["requires_expanded"]]
    assert not {hit["source_file"] for hit in hits if hit["requires_expanded"]} & set(documents)


def test_a_filter_holds_for_what_is_added_too(pack: OpenPack) -> None:
    assert files(search(pack, "zephyr valve", tags=["t"])) == ["chain", "first", "second"]
    assert {hit["type"] for hit in search(pack, "before the valve", type="concept")} == {"concept"}


def test_without_the_flag_no_neighbour_is_added(pack: OpenPack) -> None:
    assert not any(hit["graph_expanded"] for hit in search(pack, "petrel migration over the sea", 4))


def test_a_neighbour_near_the_question_takes_a_reserved_place(pack: OpenPack) -> None:
    plain = search(pack, "petrel migration over the sea", 4)
    hits = search(pack, "petrel migration over the sea", 4, graph=True)
    assert "petrel-near" not in files(plain)
    assert "petrel-near" in files(hits)
    assert [hit["source_file"] for hit in hits if hit["graph_expanded"]] == ["petrel-near.md"]
    assert len(hits) == len(plain) == 4
    assert files(hits)[:2] == files(plain)[:2]


def test_a_neighbour_that_drifted_from_the_question_is_not_taken(pack: OpenPack) -> None:
    assert "petrel-far" not in files(search(pack, "petrel migration over the sea", 4, graph=True))


def test_scores_of_neighbours_are_those_of_the_search_itself(pack: OpenPack) -> None:
    wide = {hit["fragment_id"]: hit["score"] for hit in search(pack, "petrel migration over the sea", 50)}
    hits = search(pack, "petrel migration over the sea", 4, graph=True)
    assert [hit["score"] for hit in hits] == [wide[hit["fragment_id"]] for hit in hits]
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)


def test_one_place_is_never_given_to_a_neighbour(pack: OpenPack) -> None:
    assert search(pack, "petrel migration", 1, graph=True) == search(pack, "petrel migration", 1)


@pytest.mark.parametrize("front", ["", "related: [b]"], ids=["no edges", "no requirements"])
def test_a_search_where_nothing_is_required_opens_no_table(tmp_path: Path, front: str) -> None:
    compiled(tmp_path, {"a.md": (front, "# A\n\nText.\n"), "b.md": ("", "# B\n\nText.\n")})
    program = (
        "import sys; from pathlib import Path; from octavo_serve.catalog import open_catalog\n"
        "from octavo_serve.requests import SearchRequest\n"
        "pack = open_catalog(Path(sys.argv[1])).choose(None)\n"
        "assert pack.search(SearchRequest(query='text'))['results']\n"
        "print([name for name in sys.modules if name.startswith('pyarrow')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "dist"], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"


def walk(pack: OpenPack, **request: object) -> TraverseResult:
    return pack.traverse(parse_request(TraverseRequest, request, strict=True, bounded=False))


def reached(result: TraverseResult) -> list[tuple[str, int]]:
    return [(node["id"], node["depth"]) for node in result["nodes"]]


@pytest.mark.parametrize(
    ("request_", "nodes"),
    [
        pytest.param({}, [("g/hub", 0), ("entity:bird", 1), ("g/petrel-near", 1), ("g/petrel-far", 1)], id="default"),
        pytest.param({"kinds": ["wikilink"]}, [("g/hub", 0), ("g/petrel-near", 1)], id="one kind"),
        pytest.param({"kinds": ["none"]}, [("g/hub", 0)], id="a kind that no edge has"),
        pytest.param({"direction": "in"}, [("g/hub", 0)], id="incoming"),
        pytest.param({"max_nodes": 2}, [("g/hub", 0), ("entity:bird", 1)], id="few nodes"),
        pytest.param(
            {"depth": 2, "kinds": ["entity_mention", "lives_at"]},
            [("g/hub", 0), ("entity:bird", 1), ("entity:sea", 2)],
            id="two steps",
        ),
    ],
)
def test_a_walk_goes_breadth_first(pack: OpenPack, request_: dict[str, object], nodes: list[tuple[str, int]]) -> None:
    result = walk(pack, id="g/hub", **request_)
    assert reached(result) == nodes
    assert result["truncated"] is ("max_nodes" in request_)
    ids = {node["id"] for node in result["nodes"]}
    assert all({edge["source"], edge["target"]} <= ids for edge in result["edges"])


def scores(result: TraverseResult) -> dict[str, float]:
    return {node["id"]: node["score"] for node in result["nodes"]}


def test_nodes_score_by_their_nearness_to_the_start(pack: OpenPack) -> None:
    found = scores(walk(pack, id="g/hub"))
    assert found["g/hub"] == 1
    assert 0.4 < found["g/petrel-near"] < 0.85
    assert found["g/petrel-far"] < 0.3


def test_nodes_score_by_a_question_when_there_is_one(pack: OpenPack) -> None:
    found = scores(walk(pack, id="g/hub", query="when are invoices paid?"))
    assert found["g/petrel-far"] > 0.4 > found["g/petrel-near"]


def test_each_edge_takes_its_share_of_the_score(pack: OpenPack) -> None:
    steep, flat = (scores(walk(pack, id="entity:sea", depth=2, decay=decay)) for decay in (0.5, 1.0))
    assert (steep["entity:bird"], flat["entity:bird"]) == (0.5, 1.0)
    assert steep["g/hub"] == 0.25


def test_a_walk_does_not_go_on_from_what_drifted_off(pack: OpenPack) -> None:
    onwards = {"kinds": ["requires"], "direction": "out", "depth": 2, "decay": 1.0, "query": "The earliest of all"}
    found = scores(walk(pack, id="g/first", **onwards))
    assert found["g/second"] < found["g/third"]
    between = (found["g/second"] + found["g/third"]) / 2
    assert reached(walk(pack, id="g/first", min_score=between, **onwards)) == [("g/first", 0)]


def test_the_best_nodes_are_kept_when_there_is_no_room_for_all(pack: OpenPack) -> None:
    result = walk(pack, id="g/hub", kinds=["related", "wikilink"], max_nodes=2)
    assert (reached(result), result["truncated"]) == ([("g/hub", 0), ("g/petrel-near", 1)], True)


def test_edges_keep_their_direction_whichever_way_they_are_walked(pack: OpenPack) -> None:
    result = walk(pack, path="first.md")
    assert result["edges"] == [
        {"source": "g/chain", "target": "g/first", "kind": "requires"},
        {"source": "g/first", "target": "g/second", "kind": "requires"},
    ]


@pytest.mark.parametrize("name", ["g/hub", "hub.md", "ep://g/file/hub.md", "g/hub#opening:0123456789ab"])
def test_a_walk_begins_at_any_name_that_read_takes(pack: OpenPack, name: str) -> None:
    assert walk(pack, id=name)["start"] == "g/hub"


def test_a_walk_may_begin_at_an_entity(pack: OpenPack) -> None:
    result = walk(pack, id="entity:sea", direction="in")
    assert reached(result) == [("entity:sea", 0), ("entity:bird", 1)]
    assert result["nodes"][1] == {
        "id": "entity:bird", "title": "Bird", "type": "ontology_entity", "kind": "animal", "file": None, "uri": None,
        "depth": 1, "score": 0.85,
    }  # fmt: skip


def test_every_document_of_a_walk_can_be_read(pack: OpenPack) -> None:
    nodes = walk(pack, id="g/chain", depth=3)["nodes"]
    assert [node["id"] for node in nodes] == ["g/chain", "g/first", "g/second", "g/third"]
    for node in nodes:
        for name in ("id", "uri", "file"):
            assert pack.read(ReadRequest(id=node[name]))["id"] == node["id"]


def test_circles_are_walked_once(pack: OpenPack) -> None:
    result = walk(pack, id="g/circle", depth=3, kinds=["requires"], direction="out")
    assert reached(result)[:2] == [("g/circle", 0), ("g/archive/old", 1)]
    assert len(reached(result)) == len(set(reached(result))) == 4
    assert {"source": "g/circle-2", "target": "g/circle", "kind": "requires"} in result["edges"]


def test_a_walk_needs_a_start_that_exists(pack: OpenPack) -> None:
    with pytest.raises(RequestError, match="id: missing"):
        walk(pack)
    with pytest.raises(NotFoundError, match="path: no document"):
        walk(pack, path="none.md")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("depth", 0),
        ("depth", 4),
        ("max_nodes", 0),
        ("max_nodes", MAX_NODES + 1),
        ("direction", "up"),
        ("kinds", "x"),
        ("decay", 0.0),
        ("decay", 1.1),
        ("min_score", -0.1),
        ("min_score", 1.1),
        ("query", "x" * 2001),
    ],
)
def test_a_walk_beyond_its_limits_is_refused(pack: OpenPack, field: str, value: object) -> None:
    with pytest.raises(RequestError, match=field):
        walk(pack, id="g/hub", **{field: value})


@pytest.mark.slow
def test_a_dense_graph_gives_a_bounded_answer(tmp_path: Path) -> None:
    names = [f"d{n:02}" for n in range(60)]
    related = f"related: [{', '.join(names)}]"
    dense = compiled(tmp_path, {f"{name}.md": (related, f"# {name}\n\nText.\n") for name in names})
    result = walk(dense, id="g/d00", depth=2, max_nodes=100)
    assert (len(result["nodes"]), len(result["edges"]), result["truncated"]) == (60, MAX_EDGES, True)


MANUAL = {
    f"manual-{n}.md": ("", f"# Part {n}\n\n<!-- sequence: manual-*.md | part: {n} of 3 -->\n\nSome of it.\n")
    for n in (1, 2, 3)
}


def test_reading_a_part_of_a_sequence_names_the_parts_around_it(tmp_path: Path) -> None:
    pack = compiled(tmp_path, {**MANUAL, "other.md": ("", "# Other\n\nAlone.\n")})
    around = [(read["previous"], read["next"]) for read in map(pack.read, (ReadRequest(path=path) for path in MANUAL))]
    assert around == [(None, "g/manual-2"), ("g/manual-1", "g/manual-3"), ("g/manual-2", None)]
    assert pack.read(ReadRequest(path="other.md"))["next"] is None
    assert reached(walk(pack, path="manual-1.md", depth=2, kinds=["sequence"], direction="out")) == [
        ("g/manual-1", 0),
        ("g/manual-2", 1),
        ("g/manual-3", 2),
    ]


def test_a_pack_may_want_neighbours_in_its_answers_and_a_request_may_not(tmp_path: Path) -> None:
    wanting = compiled(tmp_path, FILES, manifest=MANIFEST + "retrieval: {graph: true}\n")
    query = "Petrel migration over the sea"

    def neighbours(graph: bool | None) -> int:
        return sum(hit["graph_expanded"] for hit in search(wanting, query, 4, graph=graph))

    assert (neighbours(None), neighbours(True), neighbours(False)) == (1, 1, 0)
