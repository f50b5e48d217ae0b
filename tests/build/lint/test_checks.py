"""Every code of lint: a pack that has the finding, and its twin that has not."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

from octavo_artifact.errors import ConfigError
from octavo_build.findings import Finding
from octavo_build.lint.checks import ALL_CODES, Options, lint
from octavo_build.lint.codes import DEEP as OF_RELEASES
from octavo_build.lint.codes import LINT_CODES
from octavo_build.lint.okf.codes import OKF
from octavo_build.lint.requires import strong_components
from octavo_build.lint.subject import read_subject
from octavo_build.sources import read

TODAY = date(2026, 6, 1)
NAMED = "name: Demo\nslug: demo\ntype: product\nversion: '1'\ndescription: D\nentry_point: overview.md\n"
MANIFEST = NAMED + "authority_boundary: {in_scope: Water, out_of_scope: [fire]}\n"
M41 = MANIFEST + "schema_version: 4.1\n"
M40 = MANIFEST + "schema_version: '4.0'\n"
M3 = MANIFEST + "schema_version: '3.1'\n"
HEAD = "title: T\ntype: concept\ntags: [t]\npack: demo\n"
LONG = "Some words about water. " * 300


def page(front: str = "", body: str = "Text.\n", head: str = HEAD) -> str:
    return f"---\n{head}{front}---\n{body}"


def hashed(body: str, prefix: str = "sha256:") -> str:
    return f"content_hash: {prefix}{hashlib.sha256(body.encode()).hexdigest()}\n"


A, B = "concepts/a.md", "concepts/b.md"
BASE = {
    "manifest.yaml": M41,
    "overview.md": page("id: demo/overview\n", head="title: O\ntype: overview\n"),
    "concepts/_index.md": page("id: demo/concepts/_index\n", head="title: I\ntype: index\n"),
    A: page("related: [b.md]\nid: demo/a\nverified_at: 2026-05-01\n"),
    B: page("related: [a.md]\nid: demo/b\nverified_at: '2026-05-01'\n"),
}
"""A pack without a finding."""


@dataclass(frozen=True)
class Case:
    """What is laid over the base pack; None removes a file."""

    code: str
    wrong: Mapping[str, str | None]
    right: Mapping[str, str | None]


def manifest(code: str, wrong: str, right: str, before: str = M41) -> Case:
    return Case(code, {"manifest.yaml": before + wrong}, {"manifest.yaml": before + right})


def front(code: str, wrong: str, right: str, schema: str = M41) -> Case:
    other = {"manifest.yaml": schema, "concepts/c.md": page("id: demo/c\n")}
    return Case(code, {**other, A: page(wrong)}, {**other, A: page(right)})


def body(code: str, wrong: str, right: str) -> Case:
    return Case(code, {A: page("related: [b.md]\n", wrong)}, {A: page("related: [b.md]\n", right)})


def composite(code: str, wrong: str, right: str) -> Case:
    kind = M41.replace("product", "composite")
    child = MANIFEST.replace("slug: demo", "slug: demo-one") + "schema_version: 4.1\n"
    files = {
        "one/manifest.yaml": child,
        "two/manifest.yaml": child,
        "one/overview.md": page(),
        "two/overview.md": page(),
    }
    return Case(code, {**files, "manifest.yaml": kind + wrong}, {**files, "manifest.yaml": kind + right})


def sidecar(code: str, wrong: str, right: str) -> Case:
    text = page("related: [b.md]\n", "One.\n\nTwo.\n")  # the body is lines 8 to 10
    names = {A: text, "concepts/a.chunks.yaml": wrong}
    return Case(code, names, {**names, "concepts/a.chunks.yaml": right})


def prompt(code: str, wrong: str, right: str) -> Case:
    flow = page("id: demo/w\nretrieval_strategy: atomic\n", head=HEAD.replace("concept", "workflow"))
    manifests = (f"{M41}mcp: {{prompts: [{{name: x, source: {source}}}]}}\n" for source in (wrong, right))
    first, second = ({"manifest.yaml": manifest, "workflows/w.md": flow} for manifest in manifests)
    return Case(code, first, second)


def authority(code: str, wrong: str, right: str) -> Case:
    return manifest(code, f"authority_boundary: {wrong}\n", f"authority_boundary: {right}\n", NAMED)


def questions(code: str, two: str) -> Case:
    """Two of three that must be refused are too few."""
    few, enough = (f"questions: [{two}, {{id: x, category: {kind}}}]\n" for kind in ("concept", "refusal"))
    return Case(code, {"eval/questions.yaml": few}, {"eval/questions.yaml": enough})


BOTH = "packs: [{path: one, role: voice}, {path: two, role: knowledge}]\n"
OVERRIDES = "context: {overrides: {one: {always: [big.md]}, two: {always: [big.md]}}}\n"
PARENT = M41.replace("product", "composite") + "packs: [one]\n"
TWO_BIG = {
    "manifest.yaml": M41.replace("product", "composite") + BOTH + OVERRIDES,
    **dict.fromkeys(["one/manifest.yaml", "two/manifest.yaml"], MANIFEST),
    **dict.fromkeys(["one/big.md", "two/big.md"], page(body=LONG[:6000])),
}
REFUSED = "questions: [{category: refusal}, {category: out_of_scope}, {expected_refusal: true}]\n"
SAYING = page(body="# T\n\nA valve opens and closes the way of the water.\n")
HUB = "## Rows\n\n" + "\n".join(
    f"### Topic {n}\n\nOne two three four five six seven eight nine ten.\n" for n in range(12)
)
DEEP = HUB.replace("One", "One and a half and many more words that say what it is")
TABLE = "Words. " * 60 + "\n\n| a | b |\n| --- | --- |\n" + "| x | y |\n" * 12
VERBATIM = {"verbatim/vbt-a.md": page("id: v\n", head="title: V\ntype: verbatim\ntags: []\npack: demo\n")}
SUMMARY = {"summaries/sum-a.md": page("id: s\nrelated: [vbt-a.md]\n")}
LINKED = {"verbatim/vbt-a.md": page("related: [sum-a.md]\n"), **SUMMARY}
SECOND = "---\nsources: []\n---\nText.\n"
CHUNKS = "chunks:\n- {chunk_id: x, line_range: [8, 8]}\n- {chunk_id: y, line_range: [10, 10]}\n"

CASES = {
    "missing manifest": Case("manifest-missing", {"manifest.yaml": None}, {}),
    "folder of notes": Case("manifest-missing", {"manifest.yaml": None}, {**dict.fromkeys(BASE), "x.md": "# X\n"}),
    "manifest yaml": Case("manifest-parse", {"manifest.yaml": "name: [\n"}, {}),
    "manifest without version": Case("manifest-field", {"manifest.yaml": M41.replace("version: '1'\n", "")}, {}),
    "manifest without slug": Case("manifest-field", {"manifest.yaml": M41.replace("slug: demo\n", "")}, {}),
    "manifest type": Case("manifest-type", {"manifest.yaml": M41.replace("product", "book")}, {}),
    "slug": Case("manifest-slug", {"manifest.yaml": M41.replace("slug: demo", "slug: De_mo")}, {}),
    "entry point": Case("manifest-entry", {"overview.md": None}, {}),
    "prompt source": prompt("E-MCP-01", "no.md", "workflows/w.md"),
    "prompt source that is a folder": prompt("E-MCP-01", "workflows", "demo/w"),
    "prompt of a concept": prompt("W-MCP-01", "concepts/a.md", "workflows/w.md"),
    "prompt that is cut": prompt("W-MCP-02", "concepts/a.md", "workflows/w.md"),
    "prompt of a child": Case(
        "E-MCP-01",
        {"manifest.yaml": PARENT, "one/manifest.yaml": MANIFEST + "mcp: {prompts: [{source: concepts/a.md}]}\n"},
        {
            "manifest.yaml": PARENT,
            "one/manifest.yaml": MANIFEST + "mcp: {prompts: [{source: x.md}]}\n",
            "one/x.md": page(),
        },
    ),
    "prompt of a composite": composite(
        "E-MCP-01",
        BOTH + "mcp: {prompts: [{source: overview}]}\n",
        BOTH + "mcp: {prompts: [{source: one/overview.md}]}\n",
    ),
    "schema version": Case("schema-version", {"manifest.yaml": MANIFEST + "schema_version: four\n"}, {}),
    "no schema version": Case("schema-version", {"manifest.yaml": MANIFEST}, {}),
    "strategy of conflicts": manifest("value-unknown", "conflicts: {strategy: x}", "conflicts: {strategy: flag}"),
    "refresh cycle": manifest(
        "duration-invalid", "freshness: {refresh_cycle: 90 days}", "freshness: {refresh_cycle: P2W}"
    ),
    "created": manifest("date-invalid", "created: 2026-02-30", "created: 2026-02-28"),
    "instructions": manifest("W-MCP-03", f"mcp: {{instructions: {'x' * 501}}}", f"mcp: {{instructions: {'x' * 500}}}"),
    "freshness is a mapping": manifest("value-kind", "freshness: P90D", "freshness: {}"),
    "coverage": manifest("value-format", "freshness: {coverage_pct: 101}", "freshness: {coverage_pct: 99.5}"),
    "context path": manifest(
        "context-path", "context: {always: [none/]}", "context: {always: [overview.md, concepts/]}"
    ),
    "context glob": manifest("context-path", "context: {always: ['x*.md']}", "context: {always: ['over*.md']}"),
    "two tiers": manifest(
        "context-duplicate", "context: {always: [concepts], on_demand: [concepts/]}", "context: {always: [concepts/]}"
    ),
    "too much in always": Case(
        "W-TIER-01",
        {"manifest.yaml": M41 + "context: {always: [overview.md, concepts/a.md]}", A: page(body=LONG[:5100])},
        {"manifest.yaml": M41 + "context: {always: [overview.md, concepts/a.md]}", A: page(body=LONG[:4800])},
    ),
    "much that is searchable": Case(
        "W-TIER-01",
        {"manifest.yaml": M41 + "context: {always: [concepts/a.md]}", A: page(body=LONG)},
        {"manifest.yaml": M41 + "context: {searchable: [concepts/]}", A: page(body=LONG)},
    ),
    "folder in always": manifest(
        "W-TIER-01", "context: {always: [concepts/]}", "context: {always: [concepts/a.md], searchable: [concepts/]}"
    ),
    "too much in a composite's always": Case("W-TIER-01", TWO_BIG, {**TWO_BIG, "two/big.md": page()}),
    "volatile in always": manifest(
        "W-TIER-03", "context: {always: [volatile/prices.md]}", "context: {searchable: [volatile/prices.md]}"
    ),
    "index to be found": Case(
        "W-TIER-02",
        {"concepts/_index.md": page("retrieval_strategy: standard\n", head="type: index\n")},
        {"concepts/_index.md": page("retrieval_strategy: navigation\n", head="type: index\n")},
    ),
    "navigation to be found": front(
        "W-TIER-02",
        "concept_scope: navigation\nretrieval_strategy: atomic\n",
        "concept_scope: reference\nretrieval_strategy: atomic\n",
    ),
    "relations": Case("W-GRAPH-01", {"relations.yaml": "relations: []\n"}, {"x/relations.yaml": "relations: []\n"}),
    "no authority": Case("W-AUTH-01", {"manifest.yaml": NAMED + "schema_version: 4.1\n"}, {}),
    "empty authority": authority("W-AUTH-01", "{}", "{in_scope: [a], out_of_scope: b}"),
    "authority is a mapping": authority("W-AUTH-02", "water", "{in_scope: a, out_of_scope: [b]}"),
    "no scope": authority("W-AUTH-02", "{in_scope: ' ', out_of_scope: [b]}", "{in_scope: a, out_of_scope: [b]}"),
    "nothing out of scope": authority(
        "W-AUTH-02", "{in_scope: a, out_of_scope: ['']}", "{in_scope: a, out_of_scope: ['', b]}"
    ),
    "refusals": questions("W-EVAL-01", "{category: Refusal}, {category: out-of-scope}"),
    "expected refusals": questions("W-EVAL-01", "{expected_refusal: true}, {expected_refusal: true}"),
    "the first set of questions": Case(
        "W-EVAL-01",
        {"eval/benchmark.yaml": "questions: []\n", "eval/questions.yaml": REFUSED},
        {"eval/benchmark.yaml": REFUSED, "eval/questions.yaml": "questions: []\n"},
    ),
    "no child": composite("composite-packs", "packs: []\n", BOTH),
    "two voices": composite("composite-packs", BOTH.replace("knowledge", "voice"), BOTH),
    "child twice": composite("composite-packs", BOTH.replace("}]", "}, one]"), BOTH),
    "child not named": composite("composite-packs", "packs: [one]\n", BOTH),
    "priority": composite(
        "composite-packs", BOTH + "conflicts: {priority: [three]}\n", BOTH + "conflicts: {priority: [two]}\n"
    ),
    "override of no child": composite(
        "manifest-path",
        BOTH + "context: {overrides: {three: {always: [overview.md]}}}\n",
        BOTH + "context: {overrides: {two: {always: [overview.md]}, demo-one: {}}}\n",
    ),
    "child that is none": composite("manifest-path", BOTH.replace("two", "three"), BOTH),
    "role": composite("value-unknown", BOTH.replace("voice", "singer"), BOTH),
    "packs of a product": manifest("composite-packs", "packs: []", ""),
    "no frontmatter": Case("no-frontmatter", {A: "Text.\n"}, {"README.md": "Text.\n"}),
    "no title": Case(
        "missing-fm-field",
        {A: page(head="type: concept\ntags: []\npack: demo\n")},
        {A: page(head=HEAD.replace("[t]", "[]"))},
    ),
    "root file": Case(
        "missing-fm-field",
        {A: page(head="type: concept\n")},
        {"x.md": page(head="type: concept\n"), "concepts/glossary.md": page(head="title: G\n")},
    ),
    "type of folder": Case("type-dir-mismatch", {A: page(head=HEAD.replace("concept", "faq"))}, {"x.md": page()}),
    "type of the inner folder": Case(
        "type-dir-mismatch",
        {"troubleshooting/common-mistakes/x.md": page(head=HEAD.replace("concept", "troubleshooting"))},
        {"troubleshooting/common-mistakes/x.md": page(head=HEAD.replace("concept", "gotcha"))},
    ),
    "basename": Case("duplicate-basename", {"workflows/a.md": page()}, {"workflows/c.md": page()}),
    "prefix": Case(
        "missing-prefix",
        {"manifest.yaml": M41 + "file_prefixes: {concepts: con-}"},
        {"manifest.yaml": M41 + "file_prefixes: {faq: faq-}"},
    ),
    "prefix of a person": Case(
        "missing-prefix",
        {"manifest.yaml": M41.replace("product", "person"), "facts/a1.md": page()},
        {"facts/a1.md": page()},
    ),
    "prefix of a reflection": Case(
        "missing-prefix",
        {"manifest.yaml": M41.replace("product", "person"), "reflections/r.md": page()},
        {"manifest.yaml": M41.replace("product", "person"), "reflections/refl-r.md": page(), "faq/r.md": page()},
    ),
    "prefix of the coverage": Case(
        "missing-prefix",
        {"manifest.yaml": M41.replace("product", "person"), "stories/source-coverage.md": page()},
        {"manifest.yaml": M41.replace("product", "person"), "meta/source-coverage.md": page()},
    ),
    "related": front("broken-related", "related: [none.md]\n", "related: [b.md]\n"),
    "related is ambiguous": Case(
        "link-ambiguous",
        {"x/c.md": page(), "y/c.md": page(), A: page("related: [c.md]\n")},
        {"x/c.md": page(), "y/c.md": page(), A: page("related: [x/c.md]\n")},
    ),
    "wikilink": body("broken-wikilink", "See [[none]].\n", "See [[b]], [[b.md|B]], ![[x.png]] and \\[[none]].\n"),
    "wikilink in code": body(
        "broken-wikilink", "- item [[none]]\n", "`[[none]]` <!-- [[none]] -->\n\n```\n[[none]]\n```\n\n    [[none]]\n"
    ),
    "wikilink in a table": body("broken-wikilink", "| a |\n|---|\n| [[none\\|N]] |\n", "| a |\n|---|\n| [[b\\|B]] |\n"),
    "anchor": body("link-anchor", "[[#No]]\n\n# Yes\n", "[[#A Heading]] [[a#^x]] [[b]]\n\n# A heading\n"),
    "anchor of a link": body("link-anchor", "[b](b.md#no)\n", "[i](_index.md) [a](a.md#yes)\n\n# Yes\n"),
    "self": Case(
        "link-ambiguous",
        {"overview.md": page(body="[[overview]]\n"), "x/overview.md": page()},
        {"overview.md": page(body="[[overview]]\n")},
    ),
    "markdown link": body("markdown-links", "[b](b.md)\n", "`[b](b.md)` [web](https://x.org/b.md)\n"),
    "dead markdown link": body(
        "broken-markdown-link", "[b](../b.md)\n", "[b](b.md) [o](../overview.md) [o](/overview.md)\n"
    ),
    "wikilink of the documentation": Case(
        "broken-wikilink", {"concepts/README.md": page(body="[[none]]\n")}, {"README.md": page(body="[[none]]\n")}
    ),
    "markdown link of the documentation": Case("broken-markdown-link", {"README.md": "[x](x.md)\n"}, {}),
    "link out of the pack": body("broken-markdown-link", "[b](../../b.md)\n", "[b](b.md)\n"),
    "canonical verbatim": front(
        "broken-canonical-verbatim", "canonical_verbatim: no.md\n", "canonical_verbatim: b.md\n"
    ),
    "index": Case("missing-index", {"concepts/_index.md": None}, {}),
    "path in related": front("path-in-related", "related: [concepts/b.md]\n", "related: [b.md]\n"),
    "one way": Case("unidirectional-related", {B: page()}, {}),
    "orphan": Case(
        "orphaned",
        {"concepts/c.md": page()},
        {"concepts/c.md": page(body="[[a]]\n"), A: page(body="[[b]] [[c|C]]\n"), B: page()},
    ),
    "verbatim alone": Case(
        "verbatim-no-summary", {"manifest.yaml": M3, **VERBATIM}, {"manifest.yaml": M3, **VERBATIM, **SUMMARY}
    ),
    "verbatim alone of 4.1": Case("verbatim-no-summary", {"manifest.yaml": M3, **VERBATIM}, VERBATIM),
    "verbatim to summary": Case(
        "missing-vbt-to-sum", {"manifest.yaml": M3, **VERBATIM, **SUMMARY}, {"manifest.yaml": M3, **LINKED}
    ),
    "verbatim of 4.1": Case(
        "missing-vbt-to-sum", {"manifest.yaml": M3, **VERBATIM, **SUMMARY}, {**VERBATIM, **SUMMARY}
    ),
    "summary to verbatim": Case(
        "missing-sum-to-vbt",
        {"manifest.yaml": M3, **LINKED, "summaries/sum-a.md": page()},
        {"manifest.yaml": M3, **LINKED},
    ),
    "characters": Case("file-too-large", {A: page(body=LONG)}, {A: page("retrieval: {strategy: atomic}\n", LONG)}),
    "hub": body("W-HUB-01", HUB, DEEP),
    "hub of rows": Case("W-HUB-01", {A: page(body=TABLE)}, {A: page("concept_scope: reference\n", TABLE)}),
    "hub in code": body("W-HUB-01", HUB, "```\n" + HUB + "```\n"),
    "aggregate folder": Case("W-RETR-01", {"sources/x.md": page()}, {"sources/_coverage.md": page()}),
    "coverage of sources": Case("W-RETR-01", {"sources/x.md": page()}, {"sources/source-coverage.md": page()}),
    "aggregate type": Case(
        "W-RETR-01",
        {"x.md": page(head="type: summary\n")},
        {"x.md": page(head="type: summary\n"), "manifest.yaml": M41 + "retrieval_model: full-context\n"},
    ),
    "superseded": front("W-V40-01", "supersedes: [concepts/b.md]\n", "supersedes: [concepts/old.md]\n"),
    "superseded name": front("W-V40-01", "supersedes: b.md\n", "supersedes: a.md\n", M40),
    "superseded of 3": Case(
        "W-V40-01", {A: page("supersedes: [b.md]\n")}, {"manifest.yaml": M3, A: page("supersedes: [b.md]\n")}
    ),
    "parent": front("W-V40-02", "parent_concept: no\n", "parent_concept: b\n", M40),
    "parent's scope": Case(
        "W-V40-03",
        {"manifest.yaml": M40, A: page("parent_concept: b\n")},
        {"manifest.yaml": M40, A: page("parent_concept: b\n"), B: page("concept_scope: composite\n")},
    ),
    "tokens of 4.0": Case(
        "W-V40-04", {"manifest.yaml": M40, A: page(body=LONG)}, {"manifest.yaml": M40, A: page(body=LONG[:5000])}
    ),
    "tokens of 4.1": Case("W-V41-01", {A: page(body=LONG[:5000])}, {A: page(body=LONG[:3000])}),
    "tokens of a navigation file": Case(
        "W-V41-01", {A: page(body=LONG[:5000])}, {A: page("concept_scope: navigation\n", LONG[:5000])}
    ),
    "tokens of a workflow": Case(
        "W-V41-01", {A: page(body=LONG[:5000])}, {A: page(body=LONG[:5000], head=HEAD.replace("concept", "workflow"))}
    ),
    "composite scope": front("W-V41-02", "concept_scope: composite\n", "concept_scope: single\n"),
    "parent of 4.1": Case(
        "W-V41-02", {A: page("parent_concept: b\n")}, {"manifest.yaml": M40, A: page("parent_concept: b\n")}
    ),
    "key propositions": body("W-V41-03", "## Key Propositions\n\nx\n", "```\n## Key Propositions\n```\n"),
    "requires": front("W-V41-04", "requires: [no]\n", "requires: [demo/b, b.md, concepts/b]\n"),
    "requires of 3": Case(
        "link-unresolved",
        {"manifest.yaml": M3, A: page("requires: [no]\n")},
        {"manifest.yaml": M3, A: page("requires: [b]\n")},
    ),
    "requires is ambiguous": Case(
        "requires-ambiguous",
        {"x/c.md": page(), "y/c.md": page(), A: page("requires: [c]\n")},
        {"x/c.md": page(), "y/c.md": page(), A: page("requires: [y/c]\n")},
    ),
    "cycle of one": front("W-V41-05", "requires: [a]\n", "requires: [b]\n"),
    "cycle of two": Case(
        "W-V41-05", {A: page("requires: [b]\n"), B: page("requires: [a]\n")}, {A: page("requires: [b]\n")}
    ),
    "cycle of three": Case(
        "W-V41-05",
        {A: page("requires: [b]\n"), B: page("requires: [c]\n"), "x/c.md": page("requires: [a]\n")},
        {A: page("requires: [b, c]\n"), B: page("requires: [c]\n"), "x/c.md": page()},
    ),
    "verified_at": Case("W-PROV-01", {A: page()}, {"x.md": page(), "concepts/s.md": page(head="type: source\n")}),
    "verified_at is no date": Case(
        "W-PROV-01", {A: page("verified_at: soon\n")}, {A: page("verified_at: 2026-05-01T10:00:00Z\n")}
    ),
    "hash": Case("W-PROV-02", {A: page(hashed("x"))}, {A: page(hashed("Text.\n"))}),
    "bare hash": Case("W-PROV-02", {A: page(hashed("x", ""))}, {A: page(hashed("\n\nText.\n", ""), "\n\nText.\n")}),
    "hash before the second block": Case(
        "W-PROV-02", {A: page(hashed("x"), SECOND)}, {A: page(hashed(SECOND), SECOND)}
    ),
    "age": Case(
        "W-PROV-03",
        {A: page("verified_at: 2026-05-01\nrefresh: P30D\n")},
        {A: page("verified_at: 2026-05-02\nrefresh: P30D\n")},
    ),
    "age by the manifest": Case(
        "W-PROV-03",
        {"manifest.yaml": M41 + "freshness: {refresh_cycle: P2W}\n"},
        {"manifest.yaml": M41 + "freshness: {refresh_cycle: P2M}\n"},
    ),
    "own cycle first": Case(
        "W-PROV-03",
        {"manifest.yaml": M41 + "freshness: {refresh_cycle: P1W}\n"},
        {
            "manifest.yaml": M41 + "freshness: {refresh_cycle: P1W}\n",
            A: page("verified_at: 2026-05-01\nrefresh: P1Y\n"),
            B: page("verified_at: 2026-05-31\n"),
        },
    ),
    "id": Case("W-PROV-04", {A: page()}, {}),
    "valid before": front(
        "W-PROV-05",
        "verified_at: 2026-01-01\nvalid_from: 2026-01-02\n",
        "verified_at: 2026-01-02\nvalid_from: 2026-01-02\n",
    ),
    "grade": Case("W-PROV-06", {A: page("confidence: sure\n")}, {A: page("confidence: crawled\n")}),
    "no record without an id": Case("W-AKS-01", {A: page()}, {"x.md": page()}),
    "a record's date": Case("W-AKS-02", {A: page()}, {"concepts/s.md": page(head="type: source\n")}),
    "a record's hash": Case("W-AKS-03", {}, {A: page(hashed("Text.\n")), B: page(hashed("Text.\n"))}),
    "a record's statement": Case("W-AKS-04", {}, {A: SAYING, B: SAYING}),
    "code is no statement": Case(
        "W-AKS-04", {A: page(body="```\n" + "import x " * 9 + "\n```\n"), B: SAYING}, {A: SAYING, B: SAYING}
    ),
    "id format": front("id-format", "id: Just words\n", "id: other-pack/process/a_b-1.0\n"),
    "id with ending": front("id-format", "id: demo/a.md\n", "id: demo/a\n"),
    "duplicate id": front("id-duplicate", "id: demo/b\n", "id: demo/a\n"),
    "date": front("date-invalid", "recorded_at: 01.02.2026\n", "recorded_at: 2026-02-01\n"),
    "duration": front("duration-invalid", "volatile: {refresh: PT}\n", "volatile: {refresh: PT12H}\n"),
    "refresh": front("duration-invalid", "refresh: P\n", "refresh: P1Y2M3W4D\n"),
    "confidence of a root file": Case(
        "value-unknown", {"x.md": page("confidence: sure\n")}, {"x.md": page("confidence: inferred\n")}
    ),
    "sensitivity": front("value-unknown", "sensitivity: secret\n", "sensitivity: family\n"),
    "legacy strategy": front("value-unknown", "retrieval: {strategy: whole}\n", "retrieval: {strategy: atomic}\n"),
    "ek score": front("value-format", "ek_score: 1.5\n", "ek_score: 0.5\n"),
    "volatile": front("value-kind", "volatile: soon\n", "volatile: {source: s}\n"),
    "activation": Case(
        "activation-type",
        {A: page("activation: {tools: [x]}\n")},
        {"x.md": page("activation: {}\n", head="type: workflow\n")},
    ),
    "sidecar named": front("sidecar-missing", "chunks_sidecar: no.yaml\n", ""),
    "sidecar alone": Case("sidecar-missing", {"concepts/z.chunks.yaml": CHUNKS}, {"concepts/a.chunks.yaml": CHUNKS}),
    "overlap": sidecar("sidecar-invalid", CHUNKS.replace("[8, 8]", "[8, 10]"), CHUNKS),
    "gap": sidecar("sidecar-invalid", "chunks: [{line_range: [8, 9]}]\n", CHUNKS.replace("[8, 8]", "[8, 9]")),
    "gap at the start": sidecar("sidecar-invalid", "chunks: [{line_range: [10, 10]}]\n", CHUNKS),
    "in the frontmatter": sidecar("sidecar-invalid", CHUNKS.replace("[8, 8]", "[1, 8]"), CHUNKS),
    "chunk twice": sidecar("sidecar-invalid", CHUNKS.replace("y", "x"), CHUNKS),
    "no chunks": sidecar("sidecar-invalid", "schema_version: 1\n", CHUNKS),
    "sidecar yaml": sidecar("yaml-invalid", "chunks: [\n", CHUNKS),
    "stale sidecar": sidecar("sidecar-stale", hashed("x") + CHUNKS, hashed("One.\n\nTwo.\n") + CHUNKS),
    "expired": front(
        "volatile-expired", "volatile: {expires_at: 2026-05-31}\n", "volatile: {expires_at: 2026-06-01}\n"
    ),
    "expired by refresh": front(
        "volatile-expired",
        "volatile: {fetched_at: 2026-05-01, refresh: P30D}\n",
        "volatile: {fetched_at: 2026-05-02, refresh: P30D}\n",
    ),
    "frontmatter yaml": front("yaml-invalid", "x: [\n", ""),
    "bom": Case("bom", {A: "\ufeff" + page()}, {}),
    "crlf": Case("crlf", {A: page().replace("\n", "\r\n")}, {}),
}


def written(root: Path, files: Mapping[str, str | None]) -> Path:
    for path, content in {**BASE, **files}.items():
        if content is not None:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content.encode())
    return root


def findings(root: Path, files: Mapping[str, str | None], options: Options | None = None) -> list[Finding]:
    return lint(read_subject(written(root, files)), options or Options(TODAY, provenance=True))


@pytest.mark.parametrize("name", CASES)
def test_a_check_finds_what_is_wrong_and_nothing_in_its_twin(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    everything = Options(TODAY, aks=True)
    assert case.code in {finding.code for finding in findings(tmp_path / "wrong", case.wrong, everything)}
    assert case.code not in {finding.code for finding in findings(tmp_path / "right", case.right, everything)}


def test_every_code_of_lint_has_a_case() -> None:
    codes = LINT_CODES.keys() - OKF.keys() - OF_RELEASES.keys()  # theirs are in test_okf and tests/evals/deep
    assert codes - {case.code for case in CASES.values()} == {"age-unchecked"}


def test_the_base_pack_has_no_finding(tmp_path: Path) -> None:
    assert findings(tmp_path, {}) == []


def test_lint_is_never_milder_than_a_strict_build(tmp_path: Path) -> None:
    raw = {A: page("id: [x]\nid: y\n"), B: "---\nunclosed: 1\n", "c.md": "plain\n", "overview.md": None}
    root = written(tmp_path, raw)
    built = {(finding.path, finding.severity) for finding in read(root).findings}
    assert built <= {(finding.path, finding.severity) for finding in lint(read_subject(root))}


@pytest.mark.parametrize(("enabled", "codes"), [("true", ["skill-invalid"]), ("false", [])])
def test_a_skill_file_is_checked_where_skills_are_offered(enabled: str, codes: list[str], tmp_path: Path) -> None:
    text = page("id: demo/skill\nname: other\ndescription: 'Use it.'\n")
    files = {"manifest.yaml": f"{M41}mcp:\n  skills:\n    enabled: {enabled}\n", "SKILL.md": text}
    assert [finding.code for finding in findings(tmp_path, files)] == codes


def test_the_codes_of_lint_and_of_the_build_are_apart() -> None:
    from octavo_build.findings import CODES

    assert CODES.keys() & LINT_CODES.keys() == set()
    assert all(severity in ("error", "warning", "note") and advice for severity, advice in ALL_CODES.values())


def test_findings_have_the_line_of_their_key_or_link(tmp_path: Path) -> None:
    files = {A: page("related: [b.md]\nrecorded_at: x\n", "# T\n\n- [[no]]\n"), "manifest.yaml": M41 + "created: x\n"}
    found = {finding.code + finding.path[:1]: finding.line for finding in findings(tmp_path, files)}
    assert (found["date-invalidc"], found["broken-wikilinkc"], found["date-invalidm"]) == (7, 11, 9)


def test_a_cycle_is_told_once_with_its_way(tmp_path: Path) -> None:
    files = {A: page("requires: [b]\n"), B: page("requires: [c]\n"), "x/c.md": page("requires: [a]\n")}
    found = [finding for finding in findings(tmp_path, files) if finding.code == "W-V41-05"]
    assert [(f.path, f.message) for f in found] == [(A, f"requires: {A} -> {B} -> x/c.md -> {A}")]


def test_a_long_chain_of_requires_needs_no_recursion() -> None:
    edges = {str(n): [str(n + 1)] for n in range(20_000)} | {"20000": ["0"]}
    assert [len(group) for group in strong_components(edges)] == [20_001]
    del edges["20000"]
    assert sum(1 for _ in strong_components(edges)) == 20_001


def test_without_a_day_ages_are_not_checked_and_that_is_told(tmp_path: Path) -> None:
    aged = {A: page("verified_at: 2020-01-01\nrefresh: P1D\nvolatile: {expires_at: 2020-01-02}\n")}
    timeless = findings(tmp_path / "a", aged, Options(provenance=True))
    assert {"age-unchecked"} == {f.code for f in timeless} & {"age-unchecked", "W-PROV-03", "volatile-expired"}
    assert "age-unchecked" not in {f.code for f in findings(tmp_path / "b", aged)}
    assert findings(tmp_path / "c", {}, Options(provenance=True)) == []


def test_provenance_is_checked_when_asked_for(tmp_path: Path) -> None:
    bare = {A: page("related: [b.md]\n")}
    assert {f.code for f in findings(tmp_path, bare, Options())} == {"id-missing"}
    assert {f.code for f in findings(tmp_path, bare)} == {"W-PROV-01", "W-PROV-04"}
    assert {f.code for f in findings(tmp_path, bare, Options(only=frozenset({"W-PROV-01"})))} == {"W-PROV-01"}


def test_readiness_for_aks_is_checked_when_asked_for_and_provenance_with_it(tmp_path: Path) -> None:
    bare = {A: page("related: [b.md]\nverified_at: 2026-05-01\n" + hashed("Text.\n")), B: page("related: [a.md]\n")}
    told = {f.code for f in findings(tmp_path, bare, Options(TODAY, aks=True))}
    assert told == {"W-PROV-01", "W-PROV-04", "W-AKS-01", "W-AKS-02", "W-AKS-03", "W-AKS-04"}
    assert {f.code for f in findings(tmp_path, bare, Options(only=frozenset({"W-AKS-02"})))} == {"W-AKS-02"}
    assert not {f.code for f in findings(tmp_path, bare)} & {"W-AKS-01", "W-AKS-04"}


def test_a_wrong_grade_is_told_once_under_the_code_that_was_asked_for(tmp_path: Path) -> None:
    graded = {A: page("related: [b.md]\nid: demo/a\nverified_at: 2026-05-01\nconfidence: sure\n")}
    assert [f.code for f in findings(tmp_path, graded, Options())] == ["value-unknown"]
    assert [f.code for f in findings(tmp_path, graded)] == ["W-PROV-06"]


def test_codes_are_chosen_and_left_out(tmp_path: Path) -> None:
    files = {A: page("id: X\nrefresh: x\n")}
    codes = {f.code for f in findings(tmp_path, files, Options())}
    assert {"id-format", "duration-invalid"} < codes
    assert {f.code for f in findings(tmp_path, files, Options(only=frozenset({"id-format"})))} == {"id-format"}
    assert {f.code for f in findings(tmp_path, files, Options(without=frozenset({"id-format"})))} == codes - {
        "id-format"
    }
    with pytest.raises(ConfigError, match="'nonsense' is no code"):
        Options(only=frozenset({"nonsense"}))


def test_a_docs_folder_is_checked_for_its_links_only(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("[[x]] [b](b.md) [c](c.md)\n\n---\nid: x\n")
    (tmp_path / "b.md").write_text("---\nrelated: [none]\n---\nb\n")
    assert {(f.path, f.code) for f in lint(read_subject(tmp_path))} == {("a.md", "broken-markdown-link")}


@pytest.mark.parametrize(
    "hostile",
    [
        *("[[" * 50_000, "](" * 50_000, "`" * 30_000 + "[[x", "[" * 100_000, "](a" * 30_000, "[[a#" * 30_000),
        "[[a]]" * 20_000,
        "".join(f"\n# H{n}\n\n[[#X{n}]]\n" for n in range(5_000)),
    ],
    ids=["wikilinks", "links", "ticks", "brackets", "targets", "anchors", "itself", "headings"],
)
def test_hostile_text_is_read_in_linear_time(hostile: str, tmp_path: Path) -> None:
    findings(tmp_path, {A: page(body=hostile)})  # quadratic work here would take minutes


def test_hostile_frontmatter_is_read_in_linear_time(tmp_path: Path) -> None:
    names = ", ".join(f"x{n}/b" for n in range(9_000))
    both = page(f"related: [{names}]\nrequires: [{names}]\n")
    findings(tmp_path, {A: both, B: both, "manifest.yaml": M41 + f"packs: [{names}]\n"})


def test_a_child_outside_the_composite_is_checked_under_its_folders_name(tmp_path: Path) -> None:
    root = written(tmp_path / "whole", {"manifest.yaml": M41.replace("product", "composite") + "packs: [../part]\n"})
    written(tmp_path / "part", {A: page("refresh: x\n"), "manifest.yaml": M41 + "created: x\n"})
    found = {(f.path, f.code) for f in lint(read_subject(root))}
    assert {("part/concepts/a.md", "duration-invalid"), ("part/manifest.yaml", "date-invalid")} <= found


# What upstream's validator finds was counted apart from lint, by the rules of its source: every warning of the first
# column, and no other. The second column is what lint finds beyond:
# * what the composite's own manifest lacks or has too much of: upstream reads those of the children only;
# * [[overview.md]] in HA that three files may be, a tier path in two tiers, tier paths that nothing in the pack has;
# * Markdown links with an anchor, which upstream's pattern passes by;
# * the composite's own root files (no id), which upstream never reads.
REAL = {
    "blender-3d": (
        {
            **{"W-V41-01": 21, "orphaned": 6, "unidirectional-related": 4, "file-too-large": 4},
            **{"W-AUTH-01": 1, "W-EVAL-01": 1, "W-TIER-01": 1, "W-TIER-02": 4},
        },
        {"context-path": 1},
    ),
    "home-assistant": (
        {
            **{"file-too-large": 21, "W-V41-01": 12, "orphaned": 8, "missing-fm-field": 2},
            **{"W-AUTH-01": 2, "W-TIER-01": 1, "W-TIER-02": 8, "type-dir-mismatch": 2},
        },
        {
            **{"link-ambiguous": 5, "markdown-links": 2, "context-duplicate": 1, "context-path": 2, "id-missing": 1},
            **{"W-AUTH-01": 1, "W-TIER-01": 1},
        },
    ),
    "solar-diy": (
        {
            **{"orphaned": 15, "file-too-large": 10, "W-V41-01": 3, "type-dir-mismatch": 1},
            **{"W-AUTH-01": 2, "W-TIER-01": 1, "W-TIER-02": 8},
        },
        {"id-missing": 1, "context-path": 1, "W-AUTH-01": 1, "W-TIER-01": 1},
    ),
}


@pytest.mark.shared
@pytest.mark.parametrize("slug", REAL)
def test_the_real_packs_have_no_error_and_upstreams_warnings(slug: str, shared: Path) -> None:
    upstream, own = REAL[slug]
    found = lint(read_subject(shared / "packs" / slug))
    assert Counter(finding.code for finding in found) == Counter(upstream) + Counter(own)
    assert not [finding for finding in found if finding.severity == "error"]
