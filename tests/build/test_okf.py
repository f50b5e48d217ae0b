"""OKF bundles: what is a concept, what its fields become, and the hard cases that real bundles have."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from octavo_artifact.layout import EDGES
from octavo_artifact.schema import Document, Edge
from octavo_build import okf, stages
from octavo_build.graph import build_graph
from octavo_build.lint.checks import lint
from octavo_build.lint.subject import read_subject
from octavo_build.pack import Pack
from octavo_build.passages import passages_of
from octavo_build.sources import adapter_of, read
from octavo_build.tables import read_table

ROOT = b'---\nokf_version: "0.2"\n---\n# Bundle\n'


def concept(front: str = "", body: str = "\n# T\n\nText of the concept.\n") -> bytes:
    return f"---\ntype: Table\n{front}---\n{body}".encode()


def written(root: Path, files: dict[str, bytes], *, index: bytes | None = ROOT) -> Path:
    root_index = {} if index is None else {"index.md": index}
    for name, data in (root_index | files).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def bundle(root: Path, files: dict[str, bytes], *, index: bytes | None = ROOT) -> Pack:
    return read(written(root, files, index=index))


def document(pack: Pack, path: str = "a.md") -> Document:
    return next(document for document in pack.documents if document.path == path)


def found(pack: Pack, path: str = "a.md") -> list[tuple[str, int]]:
    return [(finding.code, finding.line) for finding in pack.findings if finding.path == path]


def linted(root: Path, path: str = "a.md") -> set[str]:
    return {finding.code for finding in lint(read_subject(root)) if finding.path == path}


def edges(pack: Pack) -> set[Edge]:
    return set(build_graph(pack.documents, {}, pack.source_format).edges)


@pytest.mark.parametrize(
    ("files", "name"),
    [
        pytest.param({"index.md": ROOT, "a.md": b"x"}, "okf", id="a root index with a version"),
        pytest.param({"index.md": b"# okf_version\n", "a.md": b"x"}, "docs", id="a root index that only speaks of it"),
        pytest.param({"a.md": concept(), "README.md": b"x", "x/index.md": b"x"}, "okf", id="typed files, no index"),
        pytest.param({"a.md": concept(), "b.md": concept(), "c.md": concept(), "d.md": b"x"}, "docs", id="no index"),
        pytest.param(
            {"a.md": concept(), "b.md": concept(), "c.md": concept(), "d.md": b"x", "index.md": b"# I\n"},
            "okf",
            id="mostly typed files beside an index",
        ),
        pytest.param({"a.md": concept(), "b.md": b"x", "index.md": b"# I\n"}, "docs", id="few typed files"),
        pytest.param({"a.md": concept("pack: p\n")}, "docs", id="an ExpertPack without its manifest"),
        pytest.param({"a.md": b"x", "pack.yaml": b"format: okf\n"}, "okf", id="pack.yaml says so"),
        pytest.param({"a.md": concept(), "pack.yaml": b"slug: s\n"}, "docs", id="pack.yaml, without a version"),
        pytest.param({"index.md": ROOT, "manifest.yaml": b"slug: s\n"}, "expertpack", id="a manifest"),
        pytest.param({"index.md": b"# I\n"}, "docs", id="nothing but an index"),
    ],
)
def test_a_bundle_is_recognised(files: dict[str, bytes], name: str, tmp_path: Path) -> None:
    assert adapter_of(written(tmp_path, files, index=None)).name == name


def test_the_command_line_may_say_that_a_folder_is_a_bundle(tmp_path: Path) -> None:
    root = written(tmp_path, {"a.md": b"x"}, index=None)
    assert read(root, {"format": "okf"}).source_format == "okf"


def test_a_bundle_says_who_it_is(tmp_path: Path) -> None:
    pack = bundle(tmp_path / "My Bundle", {"a.md": concept()})
    assert (pack.slug, pack.name, pack.type, pack.version) == ("my-bundle", "My Bundle", "okf", "0")
    assert (pack.entry_point, pack.metadata) == ("index.md", {"okf_version": "0.2"})


def test_a_concepts_id_is_its_path_and_reserved_files_are_no_concepts(tmp_path: Path) -> None:
    pack = bundle(tmp_path, {"x/a.md": concept("id: mine\n"), "x/index.md": b"# X\n", "x/log.md": concept()})
    assert [(d.path, d.id, d.type, d.searchable, d.strategy) for d in pack.documents] == [
        ("index.md", "index", None, False, "navigation"),
        ("x/a.md", "x/a", "Table", True, "standard"),
        ("x/index.md", "x/index", None, False, "navigation"),
        ("x/log.md", "x/log", None, False, "navigation"),
    ]
    assert pack.findings == ()


MODERN = """title: Orders
description: One row an order.
tags: [sales, b]
generated: {by: writer/1.0, at: 2026-05-01T10:00:00Z}
verified:
  - {by: 'human:ann', at: 2026-07-01T09:00:00+05:00}
  - {by: checker/2, at: 2026-07-01T05:00:00Z}
status: stable
stale_after: 2026-12-31T00:00:00Z
sources:
  - {id: s, resource: https://example.org, usage_count: 012, last_modified: 2026-06-01}
unknown: {on: yes}
"""


def test_every_field_is_mapped_or_kept_as_written(tmp_path: Path) -> None:
    pack = bundle(tmp_path, {"a.md": concept(MODERN)})
    a = document(pack)
    assert (a.title, a.description, a.tags) == ("Orders", "One row an order.", ("sales", "b"))
    assert (a.verified_at, a.verified_by) == ("2026-07-01T05:00:00Z", "checker/2")
    assert (a.confidence, a.expires_at) == ("human-reviewed", "2026-12-30")
    kept = json.loads(a.frontmatter)
    assert kept["generated"] == {"by": "writer/1.0", "at": "2026-05-01T10:00:00Z"}
    assert kept["sources"][0] | {"id": ""} == {
        "id": "", "resource": "https://example.org", "usage_count": "012", "last_modified": "2026-06-01"
    }  # fmt: skip
    assert (kept["unknown"], kept["status"]) == ({"on": "yes"}, "stable")
    assert next(n for n in build_graph(pack.documents, {}, "okf").nodes if n.id == "a").status == "stable"


@pytest.mark.parametrize(
    ("front", "tier", "at", "by"),
    [
        pytest.param("", "unverified", None, None, id="nobody"),
        pytest.param("verified: []\n", "unverified", None, None, id="an empty list"),
        pytest.param("verified: [{by: x/1, at: 2026-01-01}]\n", "machine-confirmed", "2026-01-01", "x/1", id="machine"),
        pytest.param("verified: {by: 'human:a', at: 2026-01-01}\n", "human-reviewed", "2026-01-01", "human:a", id="1"),
        pytest.param("verified: [{by: 'human:a'}]\n", "human-reviewed", None, "human:a", id="at no time"),
        pytest.param("verified: [{by: x/1, at: soon}]\n", "machine-confirmed", None, "x/1", id="at no time at all"),
        pytest.param("verified: [x, [y], {at: 2026-01-01}]\n", "unverified", "2026-01-01", None, id="by nobody"),
        pytest.param("verified_at: 2026-01-01\nconfidence: high\n", "unverified", None, None, id="other formats' keys"),
    ],
)  # fmt: skip
def test_trust_comes_from_who_verified(front: str, tier: str, at: str | None, by: str | None, tmp_path: Path) -> None:
    a = document(bundle(tmp_path, {"a.md": concept(front)}))
    assert (a.confidence, a.verified_at, a.verified_by) == (tier, at, by)


@pytest.mark.parametrize(
    ("written", "day"),
    [
        ("2026-12-31", "2026-12-30"), ("2026-12-31T00:00:00Z", "2026-12-30"), ("2026-12-31T00:00:01Z", "2026-12-31"),
        ("2026-12-31T23:59:59+02:00", "2026-12-31"), ("0001-01-01", "0001-01-01"),
        ("0001-01-01T00:00+14:00", "0001-01-01"),
        ("2026-12", None), ("20261231", None), ("2026-02-30", None), ("2026-12-31T25:00:00Z", None), ("soon", None),
    ],
)  # fmt: skip
def test_a_concept_holds_until_the_day_before_it_is_stale(written: str, day: str | None) -> None:
    assert okf.last_day(written) == (day and date.fromisoformat(day))


def test_a_stale_after_that_is_no_time_is_told_by_the_build(tmp_path: Path) -> None:
    assert found(bundle(tmp_path, {"a.md": concept("stale_after: soon\n")})) == [("date-invalid", 3)]


@pytest.mark.parametrize(
    ("path", "raw", "code"),
    [
        ("a.md", b"# A\n\nText.\n", ("okf-frontmatter-missing", 1)),
        ("a.md", b"---\ntype: X\n# A\n", ("okf-frontmatter-missing", 1)),
        ("a.md", b"---\n- type\n---\n# A\n", ("okf-frontmatter-missing", 2)),
        ("a.md", b"\n---\ntype: X\n---\n", ("okf-frontmatter-missing", 1)),
        ("a.md", b"---\ntitle: A\n---\n", ("okf-type-missing", 1)),
        ("a.md", b"---\ntitle: A\ntype:\n---\n", ("okf-type-missing", 3)),
        ("a.md", b"---\ntitle: A\ntype: ' '\n---\n", ("okf-type-missing", 3)),
        ("a.md", b"---\ntype: [Reference]\n---\n", ("okf-type-missing", 2)),
        ("a.md", b"---\ntype: {a: b}\n---\n", ("okf-type-missing", 2)),
        ("a.md", b"---\ntype: X\ntitle: @scope/pkg\n---\n", ("yaml-invalid", 3)),
        ("a.md", b"---\ntype: X\ndescription: a: b\n---\n", ("yaml-invalid", 3)),
        ("README.md", b"# Read me\n", ("okf-side-file", 1)),
        ("x/Agents.md", b"# Agents\n", ("okf-side-file", 1)),
    ],
)
def test_a_file_that_is_no_concept_is_one_finding_and_can_be_read_only(
    path: str, raw: bytes, code: tuple[str, int], tmp_path: Path
) -> None:
    pack = bundle(tmp_path, {path: raw, "good.md": concept()})
    assert found(pack, path) == [code]
    bad = document(pack, path)
    assert (bad.searchable, bad.type, bad.raw) == (False, None, raw)
    assert document(pack, "good.md").searchable


def test_a_readme_with_a_type_is_a_concept(tmp_path: Path) -> None:
    pack = bundle(tmp_path, {"README.md": concept()})
    assert (document(pack, "README.md").searchable, pack.findings) == (True, ())


@pytest.mark.parametrize(
    ("patterns", "left"),
    [
        ("", ["README.md", "d/a.md", "d/e/b.md", "index.md"]),
        ("README.md\n# d/\n", ["d/a.md", "d/e/b.md", "index.md"]),
        ("e/\n", ["README.md", "d/a.md", "index.md"]),
        ("/d\n", ["README.md", "index.md"]),
        ("d/*\n!d/e/b.md\n", ["README.md", "d/e/b.md", "index.md"]),
        ("e\na.md/\n", ["README.md", "d/a.md", "index.md"]),
        ("*" * 60 + "z\n", ["README.md", "d/a.md", "d/e/b.md", "index.md"]),
    ],
)
def test_files_may_be_left_out(patterns: str, left: list[str], tmp_path: Path) -> None:
    files = {"README.md": b"x", "d/a.md": concept(), "d/e/b.md": concept()}
    pack = bundle(tmp_path / "a", {**files, ".okfignore": patterns.encode()})
    assert [document.path for document in pack.documents] == left
    listed = json.dumps(["#no", *patterns.splitlines()]).encode()
    again = bundle(tmp_path / "b", {**files, "pack.yaml": b"format: okf\nignore: " + listed})
    assert patterns.startswith("README") or [document.path for document in again.documents] == left


def test_too_many_patterns_are_told(tmp_path: Path) -> None:
    pack = bundle(tmp_path, {".okfignore": b"x\n" * 300, "a.md": concept()})
    assert found(pack, ".okfignore") == [("okf-ignore-limit", 0)]


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("[x](/t/b.md)", "t/b"), ("[x](../t/b.md)", "t/b"), ("[x](/t/b)", "t/b"), ("[x](/t/)", "t/index"),
        ("[x](../t)", "t/index"), ("[x](/t/b.md#part)", "t/b"), ("[x](/t/b.md 'Title')", "t/b"),
        ("[x](/t/b.md?plain=1)", "t/b"), ("[x](caf%C3%A9%20one.md)", "s/café one"),
        ("[x](<café one.md>)", "s/café one"),
        ("[x](p(1).md)", "s/p(1)"), ("[x][r]\n\n[r]: /t/b.md", "t/b"), ("| a |\n|---|\n| [x](/t/b.md) |", "t/b"),
        ("- > [x](/t/b.md)", "t/b"), ("[[b]]", "t/b"),
        ("`[x](/t/b.md)`", None), ("```\n[x](/t/b.md)\n```", None), ("[x](../../t/b.md)", None),
        ("[x](HTTPS://example.org/t/b.md)", None), ("[x](//example.org/t/b.md)", None), ("[x](#t)", None),
        ("[x](/none.md)", None), ("[x](/t/B.md)", None), ("[^x](/t/b.md)", "t/b"), ("[^x]\n\n[^x]: /t/b.md", None),
    ],
)  # fmt: skip
def test_a_link_of_any_form_is_an_edge(link: str, target: str | None, tmp_path: Path) -> None:
    pack = bundle(
        tmp_path,
        {
            "s/a.md": concept(body=f"\n# T\n\n{link}\n"), "t/b.md": concept("title: B\n"), "t/index.md": b"[b](b.md)\n",
            "s/café one.md": concept(), "s/p(1).md": concept(),
        },
    )  # fmt: skip
    kind = "wikilink" if link.startswith("[[") else "link"
    assert edges(pack) == ({Edge("s/a", target, kind)} if target else set())


@pytest.mark.parametrize(
    ("front", "kind"),
    [
        ("resource: /t/b.md\n", "resource"),
        ("sources: [{resource: ../t/b.md}]\n", "source"),
        ("sources: [{resource: t/b.md#part}]\n", "source"),
        ("sources: {resource: t/b.md}\n", "source"),
        ("computation: t/b.md\n", "computation"),
        ("executor: {resource: t/b}\n", "executor"),
        ("attester: {resource: /t/b.md}\n", "attester"),
        ("resource: /t/%62.md\n", "resource"),
        ("resource: https://example.org/t/b.md\n", None),
        ("resource: the book of b.md\n", None),
        ("resource: ../../t/b.md\n", None),
        ("resource: [t/b.md]\nexecutor: t/b.md\n", None),
    ],
)
def test_a_path_in_the_frontmatter_is_an_edge(front: str, kind: str | None, tmp_path: Path) -> None:
    a = concept(front).replace(b"type: Table", b"type: Attested Computation")
    pack = bundle(tmp_path, {"s/a.md": a, "t/b.md": concept()})
    assert edges(pack) == ({Edge("s/a", "t/b", kind)} if kind else set())


def test_the_stages_of_a_build_know_the_format(tmp_path: Path) -> None:
    root = written(tmp_path / "bundle", {"a.md": concept("resource: /b.md\n"), "b.md": concept()})
    work = stages.Work(tmp_path / "work")
    stages.source(root, work, {})
    stages.graph(work)
    assert read_table(work.parts / EDGES.file, Edge) == [Edge("a", "b", "resource")]


def test_types_that_mean_navigation_elsewhere_are_content_here(tmp_path: Path) -> None:
    a = concept(body="[b](b.md)\n").replace(b"Table", b"source")
    assert edges(bundle(tmp_path, {"a.md": a, "b.md": a})) == {Edge("a", "b", "link")}


# The hard cases of real bundles.


def test_case_1_bare_dates_and_times_are_both_read(tmp_path: Path) -> None:
    for number, written_ in enumerate(("2026-12-31", "2026-12-31T00:00:00Z")):
        pack = bundle(tmp_path / str(number), {"a.md": concept(f"stale_after: {written_}\n")})
        assert (document(pack).expires_at, found(pack)) == ("2026-12-30", [])


def test_case_2_times_stay_as_written(tmp_path: Path) -> None:
    a = document(bundle(tmp_path, {"a.md": concept("generated: {by: x/1, at: 2026-05-01 10:00:00.50Z}\n")}))
    assert json.loads(a.frontmatter)["generated"]["at"] == "2026-05-01 10:00:00.50Z"


def test_case_3_a_reserved_file_with_a_type_is_a_warning_and_no_concept(tmp_path: Path) -> None:
    root = written(tmp_path, {"a.md": concept(), "log.md": b"---\ntype: Log\n---\n# L\n"})
    assert document(read(root), "log.md").type is None
    assert linted(root, "log.md") == {"okf-log-frontmatter"}


def test_case_4_a_root_index_with_more_keys_still_tells_the_version(tmp_path: Path) -> None:
    index = b'---\nokf_version: "0.1"\nokf_bundle_title: T\n---\n# B\n\n[a](a.md)\n'
    root = written(tmp_path, {"a.md": concept()}, index=index)
    assert read(root).metadata == {"okf_version": "0.1"}
    assert linted(root, "index.md") == {"okf-index-keys"}


def test_case_5_an_index_that_begins_with_a_break_is_all_body(tmp_path: Path) -> None:
    root = written(tmp_path, {"a.md": concept()}, index=b"---\n\nkey: this is prose\n\n# B\n\n[a](a.md)\n")
    assert linted(root, "index.md") == set()
    closed = written(tmp_path, {}, index=b"---\n\n**Bold** words.\n\n---\n\n# B\n\n[a](a.md)\n")
    assert linted(closed, "index.md") == set()


def test_case_6_byte_order_mark_and_crlf_are_as_if_absent(tmp_path: Path) -> None:
    raw = b"\xef\xbb\xbf" + concept("status: done\n").replace(b"\n", b"\r\n")
    root = written(tmp_path, {"a.md": raw})
    a = document(read(root))
    assert (a.type, a.title, a.searchable, a.raw) == ("Table", "T", True, raw)
    (line,) = [f.line for f in lint(read_subject(root)) if f.code == "okf-status"]
    assert line == 3


def test_case_7_scalars_of_any_kind_are_their_text(tmp_path: Path) -> None:
    pack = bundle(tmp_path, {"a.md": concept("title: 2026\ntags: [1, revenue, 012, on]\n")})
    a = document(pack)
    assert (a.title, a.tags, found(pack)) == ("2026", ("1", "revenue", "012", "on"), [])


@pytest.mark.parametrize("tags", ["'[okf, agent]'", "okf, agent", "'[\"okf\",''agent'']'", "[okf, agent, [x], okf]"])
def test_case_8_tags_are_read_leniently_with_one_warning(tags: str, tmp_path: Path) -> None:
    root = written(tmp_path, {"a.md": concept(f"tags: {tags}\n")})
    assert document(read(root)).tags == ("okf", "agent")
    assert [f.code for f in lint(read_subject(root)) if f.code == "okf-tags-shape"] == ["okf-tags-shape"]


def test_case_9_files_about_the_repository_have_a_code_of_their_own(tmp_path: Path) -> None:
    pack = bundle(
        tmp_path, {f"{name}.md": b"# X\n" for name in ("README", "AGENTS", "INSTRUCTIONS")} | {"a.md": concept()}
    )
    assert [finding.code for finding in pack.findings] == ["okf-side-file"] * 3
    assert {finding.severity for finding in pack.findings} == {"warning"}


def test_case_12_links_and_symbolic_links_out_of_the_bundle_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_bytes(concept("title: Secret\n"))
    root = written(tmp_path / "bundle", {"a.md": concept(body="[x](../secret.md) [y](s.md)\n")})
    (root / "s.md").symlink_to("../secret.md")
    pack = read(root)
    assert [document.path for document in pack.documents] == ["a.md", "index.md"]
    assert {"okf-link-outside"} < linted(root)
    assert edges(pack) == set()


@pytest.mark.parametrize(
    "body",
    [
        *("[x](" * 50_000, "[^a]" * 50_000, "[^" * 50_000),
        "[x](data:image/png;base64," + "A" * 10**6 + ")",
        "</script>" * 10_000,
    ],
    ids=["links", "footnotes", "openings", "data", "markup"],
)  # fmt: skip
def test_case_14_hostile_files_are_read_in_linear_time(body: str, tmp_path: Path) -> None:
    root = written(tmp_path, {"a.md": concept("title: '</script><x y=\"'\n", body)})
    assert document(read(root)).title == '</script><x y="'
    lint(read_subject(root))


def test_case_15_any_name_is_an_id_and_any_type_is_kept(tmp_path: Path) -> None:
    pack = bundle(
        tmp_path, {"表/注文 1.md": concept().replace(b"Table", "表".encode()), "A.md": concept(), "a.md": concept()}
    )
    orders = document(pack, "表/注文 1.md")
    assert (orders.id, orders.type) == ("表/注文 1", "表")
    assert orders.uri.endswith("/%E8%A1%A8/%E6%B3%A8%E6%96%87%201.md")
    assert found(pack) == [("path-collision", 0)]


@pytest.mark.shared
def test_real_bundles_are_read_and_cut(shared: Path) -> None:
    bundles = json.loads((shared / "okf" / "verdicts.json").read_text())["bundles"]
    for each in bundles:
        pack = read(shared / "okf" / each["bundle"])
        cut = [passages_of(document, row) for row, document in enumerate(pack.documents) if document.searchable]
        assert all(passages for passages, _ in cut)
        assert build_graph(pack.documents, {}, "okf").nodes


@pytest.mark.shared
def test_the_official_bundle_has_its_trust_and_its_edges(shared: Path) -> None:
    pack = read(shared / "okf" / "google" / "acme_retail")
    margin = document(pack, "computations/gross-margin-period.md")
    assert (margin.verified_by, margin.confidence, margin.expires_at) == (
        "human:jsmith@acme",
        "human-reviewed",
        "2026-12-30",
    )
    assert {
        Edge(margin.id, "skills/run-on-bq", "executor"),
        Edge(margin.id, "policies/margin-standard", "source"),
        Edge(margin.id, "computations/revenue-ytd", "link"),
    } <= edges(pack)
