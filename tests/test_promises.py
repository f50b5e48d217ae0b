"""What users of ExpertPacks rely on, and what failed them elsewhere: each trap of the format, each defect of the server
they come from, and the tests that hold us to it. What no other test says is tested below.
"""

from __future__ import annotations

import tomllib
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

import pytest

from octavo_build.findings import CODES
from octavo_build.frontmatter import read_frontmatter
from octavo_build.graph import build_graph
from octavo_build.links import references_of
from octavo_build.lint.checks import Options, lint
from octavo_build.lint.subject import read_subject
from octavo_build.passages import passages_of
from octavo_build.sources import read
from octavo_serve.catalog import OpenPack, open_catalog
from octavo_serve.requests import SearchRequest
from running import ROOT, Serving, is_test, octavo, serving

TRAPS = {
    "T1 a second frontmatter block": [
        "build/test_frontmatter.py::test_a_second_block_is_metadata_too",
        "test_promises.py::test_the_real_packs_hold_what_was_counted",
    ],
    "T2 declared 4.1, written as 3.x": ["test_promises.py::test_a_file_of_any_size_is_a_warning_and_never_fatal"],
    "T3 ids of children follow the composite": [
        "build/test_sources.py::test_a_composite_keeps_its_childrens_ids_and_tiers",
    ],
    "T4 two definitions of a body's hash": [
        "build/test_sidecars.py::test_a_hash_may_be_of_the_body_or_the_file",
        "test_promises.py::test_a_content_hash_may_count_the_newlines_before_the_body",
    ],
    "T5 paths in back-ticks are no links": ["build/test_graph.py::test_what_is_no_reference_is_passed_by"],
    "T6 tiers by folder, twice, in vain, by pattern": [
        "build/test_tiers.py::test_the_most_specific_entry_decides",
        "build/lint/test_checks.py::test_a_check_finds_what_is_wrong_and_nothing_in_its_twin",
    ],
    "T7 facts that contradict": ["test_promises.py::test_passages_that_contradict_are_both_shown"],
    "T8 superseded files are gone": [
        "build/lint/test_checks.py::test_a_check_finds_what_is_wrong_and_nothing_in_its_twin"
    ],
    "T9 raw notes at the root": ["test_promises.py::test_raw_notes_are_found_only_when_their_author_says_so"],
    "T10 comments of code look like headings": [
        "build/bodies/test_markdown.py::test_only_top_level_headings_are_headings"
    ],
    "T11 metadata that is missing": [
        "build/test_sources.py::test_bad_input_is_coded_and_still_a_document",
        "build/test_sources.py::test_titles_come_from_frontmatter_then_the_first_heading_then_the_name",
    ],
}

DEFECTS = {
    "1 a dependency is not declared": ["test_packaging.py::test_the_base_install_serves_without_the_compiler"],
    "2 needs extensions many builds of Python lack": [
        "test_packaging.py::test_the_base_install_serves_without_the_compiler",
    ],
    "3 no key, no start; a fall-back that fails": [
        "test_read_only.py::test_a_nobody_without_a_network_serves_a_read_only_dist",
        "serve/test_search.py::test_a_failing_encoder_degrades_to_words_and_says_so",
    ],
    "4 banners on stdout": ["test_client.py::test_nothing_but_the_protocol_is_on_stdout"],
    "5 one bad value stops the server": ["test_promises.py::test_a_bad_value_costs_only_itself"],
    "6 another dimension is not noticed": [
        "test_damage.py::test_a_release_whose_encoder_is_another_or_damaged_is_refused",
    ],
    "7 filters that only boost": [
        "test_client.py::test_filters_are_filters",
        "serve/test_search.py::test_a_filter_is_applied_before_the_cut",
    ],
    "8 places of split files are wrong": ["serve/test_reconstruct.py::test_every_hit_brings_back_its_exact_source"],
    "9 edits of frontmatter or sidecar are not seen": [
        "test_reproducible.py::test_an_incremental_build_is_a_clean_build",
        "build/test_cuts.py::test_whatever_decides_a_cut_makes_a_new_one",
    ],
    "10 atoms are split, headings lost or alone": [
        "build/test_passages.py::test_an_atomic_document_is_one_passage",
        "build/test_passages.py::test_each_heading_opens_a_passage_under_the_headings_above_it",
        "build/test_passages.py::test_a_small_section_is_joined",
    ],
    "11 the sources block is indexed": ["build/test_frontmatter.py::test_a_second_block_is_metadata_too"],
    "12 all words or nothing; short words dropped": [
        "test_promises.py::test_words_that_are_nowhere_and_short_words_do_not_empty_an_answer",
    ],
    "13 nothing is ever refused": [
        "serve/test_gate.py::test_a_question_about_something_else_is_refused_with_what_was_nearest",
        "serve/test_gate.py::test_a_question_that_the_pack_answers_passes",
    ],
    "14 what is required exceeds its budget": [
        "serve/test_graph.py::test_the_first_atom_beyond_the_budget_ends_the_expansion",
        "serve/test_graph.py::test_at_most_three_atoms_are_added_to_an_answer",
        "serve/test_graph.py::test_a_required_atom_is_whole_and_its_place_is_exact",
    ],
    "15 scores of two kinds in one ranking": [
        "serve/test_graph.py::test_scores_of_neighbours_are_those_of_the_search_itself",
        "serve/test_search.py::test_scores_never_rise",
    ],
    "16 folders in tiers, nested strategy, sidecars' hash and order": [
        "build/test_tiers.py::test_the_most_specific_entry_decides",
        "build/test_sources.py::test_strategy_and_tier_decide_what_is_searchable",
        "build/test_sidecars.py::test_a_sidecar_that_does_not_fit_is_told_and_not_used",
        "build/test_sidecars.py::test_chunks_in_any_order_stand_in_the_documents",
    ],
    "17 a watcher that never starts": ["test_reproducible.py::test_an_incremental_build_is_a_clean_build"],
    "18 shared state under concurrency": [
        "serve/test_search.py::test_equal_scores_come_in_row_order_whoever_asks",
        "serve/test_reading.py::test_threads_that_ask_at_once_do_not_wait_for_each_other_for_ever",
    ],
    "19 work on the event loop": [
        "serve/over_http/test_app.py::test_a_pack_that_hangs_is_given_up_and_the_client_told_to_retry",
    ],
    "20 a flood of log lines": ["test_promises.py::test_a_server_that_answers_says_nothing"],
    "21 vectors row by row out of a database": ["build/test_vectors.py::test_columns_can_be_mapped_without_lance"],
    "22 all files twice in memory": [
        "serve/test_graph.py::test_a_search_where_nothing_is_required_opens_no_table",
        "build/test_tables.py::test_large_documents_stand_in_row_groups_of_their_own",
    ],
    "23 nothing is kept until the end": ["build/test_encode.py::test_a_killed_build_keeps_what_it_encoded"],
    "24 keys that MCP does not ask for": [
        "serve/callers/test_access.py::test_without_a_key_every_address_asks_for_one_before_it_looks_at_anything",
        "serve/callers/test_access.py::test_what_is_no_key_is_refused_alike_over_http_and_mcp",
        "serve/callers/test_another_pack.py::test_over_http_a_foreign_pack_answers_as_one_that_is_not_there",
    ],
    "25 a header is needed where there are no keys": ["test_promises.py::test_without_keys_no_header_is_needed"],
    "26 bad parameters are failures of the server": [
        "serve/over_http/test_app.py::test_a_bad_parameter_is_a_problem_that_names_it",
        "serve/over_http/test_app.py::test_a_failure_of_the_server_is_not_explained_to_the_client",
        "test_client.py::test_a_bad_request_names_its_field",
        "serve/callers/test_access.py::test_a_key_may_ask_so_often_and_is_told_when_again",
    ],
    "27 paths out of the pack": [
        "build/test_sidecars.py::test_a_sidecar_outside_the_pack_is_never_read",
        "build/test_sources.py::test_links_are_followed_to_files_of_the_pack_only",
    ],
    "28 clients change thresholds; private files are served": [
        "test_promises.py::test_a_client_cannot_change_how_a_pack_is_searched",
        "test_commands.py::test_what_is_private_is_in_no_file_of_a_release",
        "test_every_field.py::test_what_is_for_others_is_in_no_file_of_the_release",
    ],
    "29 two licences": ["test_promises.py::test_there_is_one_licence"],
}


@pytest.mark.parametrize("promise", [*TRAPS, *DEFECTS])
def test_a_promise_names_tests_that_exist(promise: str) -> None:
    assert [name for name in (TRAPS | DEFECTS)[promise] if not is_test(name)] == []


def test_every_trap_and_every_defect_has_its_promise() -> None:
    assert [name.split()[0] for name in TRAPS] == [f"T{number}" for number in range(1, 12)]
    assert [name.split()[0] for name in DEFECTS] == [str(number) for number in range(1, 30)]


COUNTED = {
    # pack: files, navigation files, frontmatter, ids, verified_at, second blocks, related, wikilinks, context, refresh
    "blender-3d": (44, 4, 44, 44, 44, 0, 50, 9, 10, 0),
    "home-assistant": (49, 8, 49, 48, 48, 18, 0, 100, 19, 2),
    "solar-diy": (34, 8, 34, 33, 33, 4, 0, 13, 25, 18),
}


@pytest.mark.shared
@pytest.mark.parametrize("slug", COUNTED)
def test_the_real_packs_hold_what_was_counted(shared: Path, slug: str) -> None:
    pack = read(shared / "packs" / slug)
    fronts = [read_frontmatter(each.path, each.raw) for each in pack.documents]
    marks = Counter(f'"kind":"{kind}"' for each in pack.documents for kind in _kinds(each.marks))
    assert (
        len(pack.documents),
        sum(each.path.endswith("_index.md") for each in pack.documents),
        sum(bool(front.metadata) for front in fronts),
        len(pack.documents) - sum(finding.code == "id-missing" for finding in pack.findings),
        sum(each.verified_at is not None for each in pack.documents),
        sum(front.body_offset < each.body_offset for front, each in zip(fronts, pack.documents, strict=True)),
        sum(len(each.related) for each in pack.documents),
        sum(reference.kind == "wikilink" for each in pack.documents for reference in references_of(each)[0]),
        marks['"kind":"context"'],
        marks['"kind":"refresh"'],
    ) == COUNTED[slug]
    assert len({each.id for each in pack.documents}) == len(pack.documents)
    for row, document in enumerate(pack.documents):
        shown = "".join(each.text for each in passages_of(document, row)[0]) if document.searchable else ""
        assert "\nsources:\n" not in shown


def _kinds(marks: str) -> list[str]:
    return [kind for kind in ("context", "refresh") for _ in range(marks.count(f'"kind":"{kind}"'))]


def written(root: Path, **files: str) -> Path:
    """A pack of these files; `__` stands for a slash."""
    base = {"manifest.yaml": "slug: p\nname: P\ntype: product\nschema_version: 4.1\n", "overview.md": page("o", "Hi.")}
    for name, text in {**base, **{f"{name.replace('__', '/')}.md": text for name, text in files.items()}}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def page(name: str, body: str, front: str = "type: concept\n") -> str:
    return f"---\ntitle: {name}\nid: p/{name}\ntags: [t]\npack: p\n{front}---\n{body}\n"


def test_a_file_of_any_size_is_a_warning_and_never_fatal(tmp_path: Path) -> None:
    root = written(tmp_path, concepts__long=page("long", "A sentence of some length. " * 2000))
    codes = {finding.code for finding in lint(read_subject(root)) if finding.path == "concepts/long.md"}
    assert {"W-V41-01", "file-too-large"} <= codes
    assert not {finding for finding in read(root).findings if finding.severity == "error"}


def test_a_content_hash_may_count_the_newlines_before_the_body(tmp_path: Path) -> None:
    from hashlib import sha256

    def codes(body: bytes) -> set[str]:
        front = f"type: concept\nverified_at: 2026-01-01\ncontent_hash: sha256:{sha256(body).hexdigest()}\n"
        root = written(tmp_path, concepts__a=page("a", "\n\n# A\n\nText.", front))
        found = lint(read_subject(root), Options(provenance=True))
        return {finding.code for finding in found if finding.path == "concepts/a.md"}

    assert "W-PROV-02" not in codes(b"# A\n\nText.\n")
    assert "W-PROV-02" not in codes(b"\n\n# A\n\nText.\n")
    assert "W-PROV-02" in codes(b"# A\n\nAnother text.\n")


@pytest.mark.parametrize(
    ("front", "searchable"),
    [
        pytest.param("type: source\n", False, id="nothing said"),
        pytest.param("type: source\nretrieval_strategy: standard\n", True, id="standard"),
        pytest.param("type: source\nretrieval: {strategy: atomic}\n", True, id="the older way"),
        pytest.param("type: concept\n", True, id="no notes"),
    ],
)
def test_raw_notes_are_found_only_when_their_author_says_so(tmp_path: Path, front: str, searchable: bool) -> None:
    pack = read(written(tmp_path, notes=page("notes", "Mined from a forum.", front)))
    assert next(each.searchable for each in pack.documents if each.path == "notes.md") is searchable


def test_a_bad_value_costs_only_itself(tmp_path: Path) -> None:
    root = written(tmp_path, a="---\ntitle: 2026\ntags: {x: y}\nverified_at: [1]\nrequires: 3\n---\n# Year\n\nText.\n")
    (root / "manifest.yaml").write_text("slug: p\nname: 12\ntype: product\ncontext:\nmcp: no\npacks: 3\nfreshness: x\n")
    pack = read(root)
    assert (pack.name, [each.title for each in pack.documents]) == ("12", ["2026", "o"])
    assert [each.tags for each in pack.documents] == [(), ("t",)]
    assert build_graph(pack.documents, pack.extras).nodes
    assert {finding.code for finding in pack.findings} <= CODES.keys()


@pytest.fixture(scope="module")
def rigs(tmp_path_factory: pytest.TempPathFactory) -> OpenPack:
    root = tmp_path_factory.mktemp("rigs")
    files = {
        "ik": page("Chains", "An IK chain bends the arm from the hand backwards."),
        "uv": page("Seams", "UV islands lie flat in the square."),
        "battery": page("Battery", "The battery gives 11.5 kW without a break."),
        "manual": page("Old manual", "The battery gives 10 kW without a break."),
        **{f"other_{n}": page(f"Other {n}", f"Something else, number {n}, about gardens.") for n in range(12)},
    }
    done = octavo("build", written(root / "p", **files), "--out", root / "d", "--state", root / "s", "-q")
    assert done.returncode == 0, done.stderr
    return open_catalog(root / "d").choose(None)


def search(pack: OpenPack, query: str) -> list[str]:
    # what matches is asked here, not what the gate makes of it
    request = SearchRequest(query=query, gate="off")
    return [hit["source_file"] for hit in pack.search(request)["results"]]


@pytest.mark.parametrize(
    ("query", "file"),
    [
        ("IK", "ik.md"),
        ("UV", "uv.md"),
        ("which IK rig do quixotic wombats with zeppelins need?", "ik.md"),
    ],
)
def test_words_that_are_nowhere_and_short_words_do_not_empty_an_answer(rigs: OpenPack, query: str, file: str) -> None:
    assert search(rigs, query)[0] == file


def test_passages_that_contradict_are_both_shown(rigs: OpenPack) -> None:
    assert set(search(rigs, "how many kW does the battery give?")[:2]) == {"battery.md", "manual.md"}


def get(address: str, **headers: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_without_keys_no_header_is_needed(server: Serving) -> None:
    address = f"{server.address}/search?pack=tiny&q=descale"
    assert get(address)[0] == 200
    assert get(address) == get(address, Authorization="Bearer whatever")


@pytest.mark.parametrize("name", ["graph_expansion_min_score", "graph_expansion_confidence_threshold", "words_weight"])
def test_a_client_cannot_change_how_a_pack_is_searched(server: Serving, name: str) -> None:
    status, body = get(f"{server.address}/search?pack=tiny&q=descale&{name}=0")
    assert (status, name.encode() in body) == (422, True)


def test_a_server_that_answers_says_nothing(built: Path) -> None:
    with serving(built) as running:
        for number in range(8):
            assert get(f"{running.address}/search?pack=tiny&q=question+{number}")[0] == 200
        running.process.terminate()
        _, told = running.process.communicate(timeout=20)
    assert told == ""


def test_there_is_one_licence() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license"] == "Apache-2.0"
    assert "Apache-2.0" in (ROOT / "README.md").read_text()
