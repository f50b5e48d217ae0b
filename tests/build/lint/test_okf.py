"""Every code of an OKF bundle: one that has the finding, and its twin that has not; and the verdicts of others."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

from octavo_build.commands import LINT
from octavo_build.findings import Finding
from octavo_build.lint.checks import Options, lint
from octavo_build.lint.codes import SOURCES
from octavo_build.lint.okf.codes import OKF
from octavo_build.lint.subject import read_subject
from octavo_build.okf import is_reserved
from octavo_build.sources import adapter_of, read

TODAY = date(2026, 11, 30)
TEXT = "\n# Orders\n\nOne row an order that was paid, whatever became of it later.\n"
TRUST = "generated: {by: writer/1.0, at: 2026-05-01T10:00:00Z}\n"
ATTESTED = "runtime: sql\nattester: {resource: /b.md}\n"
FENCE = "\n# Computation\n\n```sql\nSELECT count(*) FROM orders WHERE status = 'paid'\n```\n"
SOURCE = "- {id: a, resource: 'https://example.org/a'}\n"


def concept(
    front: str = "", body: str = TEXT, *, head: str = "title: Orders\ndescription: D.\ntags: [t]\n", trust: str = TRUST
) -> str:
    kind = "" if front.startswith("type:") else "type: Table\n"
    return f"---\n{kind}{head}{trust}{front}---\n{body}"


ROOT = '---\nokf_version: "0.2"\n---\n\n# Bundle\n\n* [Orders](a.md) - D.\n* [Customers](b.md) - D.\n'
B = concept(head="title: Customers\ndescription: D.\ntags: [t]\n")
BASE = {"index.md": ROOT, "a.md": concept(), "b.md": B}
"""A bundle without a finding."""


@dataclass(frozen=True)
class Case:
    """What is laid over the base bundle; None removes a file."""

    code: str
    wrong: Mapping[str, str | None]
    right: Mapping[str, str | None]


def front(code: str, wrong: str, right: str) -> Case:
    return Case(code, {"a.md": concept(wrong)}, {"a.md": concept(right)})


def head(code: str, wrong: str, right: str) -> Case:
    return Case(code, {"a.md": concept(head=wrong)}, {"a.md": concept(head=right)})


def trust(code: str, wrong: str, right: str) -> Case:
    return Case(code, {"a.md": concept(trust=wrong)}, {"a.md": concept(trust=right)})


def body(code: str, wrong: str, right: str, fields: str = "") -> Case:
    return Case(code, {"a.md": concept(fields, TEXT + wrong)}, {"a.md": concept(fields, TEXT + right)})


def log(code: str, wrong: str, right: str) -> Case:
    return Case(code, {"log.md": wrong}, {"log.md": right})


def attested(code: str, wrong: str, right: str, text: str = FENCE) -> Case:
    start = "type: Attested Computation\n"
    return Case(code, {"a.md": concept(start + wrong, text)}, {"a.md": concept(start + right, text)})


def described(title: str = "title: T\n", description: str = "description: D.\n", tags: str = "tags: [t]\n") -> str:
    return title + description + tags


LISTED = "\n# More\n\n* [C](c.md)\n"
CASES = {
    "index with frontmatter": Case(
        "okf-index-frontmatter",
        {"x/index.md": "---\ntitle: X\n---\n# X\n\n* [A](/a.md)\n"},
        {"x/index.md": "# X\n\n* [A](/a.md)\n"},
    ),
    "root index with more keys": Case(
        "okf-index-keys", {"index.md": ROOT.replace('"0.2"', '"0.2"\nname: N')}, {"index.md": ROOT}
    ),
    "index without a heading": Case(
        "okf-index-empty", {"x/index.md": "* [A](/a.md)\n"}, {"x/index.md": "# X\n\n* [A](/a.md)\n"}
    ),
    "index without a link": Case("okf-index-empty", {"x/index.md": "# X\n"}, {"x/index.md": "# X\n\n[A](/a.md)\n"}),
    "no root index": Case("okf-index-missing", {"index.md": None}, {}),
    "index lists what is gone": Case("okf-index-stale", {"index.md": ROOT + "* [C](c.md)\n"}, {}),
    "index leaves a concept out": Case(
        "okf-not-indexed",
        {"c.md": B, "a.md": concept(body=TEXT + "[c](c.md)\n")},
        {"c.md": B, "index.md": ROOT + LISTED},
    ),
    "unknown version": Case("okf-version", {"index.md": ROOT.replace("2", "9")}, {"index.md": ROOT.replace("2", "1")}),
    "version that is a list": Case("okf-version", {"index.md": ROOT.replace('"0.2"', "[0.2]")}, {}),
    "log of a day that is none": log("okf-log-date", "# L\n\n## 2026-02-30\n\n* x\n", "# L\n\n## 2026-02-28\n\n* x\n"),
    "log of a release": log("okf-log-date", "# L\n\n## Release 1\n\n* x\n", "# L\n\n## 2026-01-01\n\n* x\n"),
    "log in reverse": log(
        "okf-log-order",
        "# L\n\n## 2026-01-01\n\n* x\n\n## 2026-01-02\n\n* y\n",
        "# L\n\n## 2026-01-02\n\n* x\n\n## 2026-01-01\n\n* y\n",
    ),
    "log with prose": log("okf-log-shape", "# L\n\n## 2026-01-01\n\n* x\n\nProse.\n", "# L\n\n## 2026-01-01\n\n* x\n"),
    "log with an empty day": log("okf-log-shape", "# L\n\n## 2026-01-01\n", "# L\n\n## 2026-01-01\n\n* x\n"),
    "log with a type": log("okf-log-frontmatter", "---\ntype: Log\n---\n# L\n", "# L\n"),
    "log without a title": log("okf-log-title", "## 2026-01-01\n\n* x\n", "# L\n\n## 2026-01-01\n\n* x\n"),
    "no title": head("okf-title-missing", described(title=""), described(title="title: 2026\n")),
    "no description": head("okf-description-missing", described(description=""), described()),
    "no tags": head("okf-tags-missing", described(tags=""), described()),
    "tags as text": head("okf-tags-shape", described(tags="tags: '[a, b]'\n"), described(tags="tags: [1, b]\n")),
    "tags of lists": head("okf-tags-shape", described(tags="tags: [[a], b]\n"), described(tags="tags: [a, b]\n")),
    "tags twice": head("okf-tags-duplicate", described(tags="tags: [a, A]\n"), described(tags="tags: [a, b]\n")),
    "tags in capitals": head("okf-tags-case", described(tags="tags: [KPI]\n"), described(tags="tags: [kpi]\n")),
    "not generated": trust("okf-generated-missing", "", "timestamp: 2026-01-01T00:00:00Z\n"),
    "generated by nobody": trust("okf-generated-shape", "generated: {at: 2026-01-01T00:00:00Z}\n", TRUST),
    "generated is text": trust("okf-generated-shape", "generated: me\n", TRUST),
    "verified is text": front("okf-verified-shape", "verified: yes\n", "verified: []\n"),
    "verified at no time": front(
        "okf-verified-shape", "verified: [{by: 'human:x'}]\n", "verified: {by: 'human:x', at: 2026-06-01T00:00:00Z}\n"
    ),
    "verified before it was made": front(
        "okf-verified-order",
        "verified: [{by: 'human:x', at: 2026-05-01T11:00:00+02:00}]\n",
        "verified: [{by: 'human:x', at: 2026-05-01T11:00:00-02:00}]\n",
    ),
    "actor without a prefix": trust(
        "okf-actor", "generated: {by: jane}\n", "generated: {by: 'process:nightly', at: 2026-05-01T10:00:00Z}\n"
    ),
    "actor of a source": front(
        "okf-actor", "sources: [{resource: x y, author: Jane D}]\n", "sources: [{resource: x y, author: 'team:d'}]\n"
    ),
    "status": front("okf-status", "status: done\n", "status: stable\n"),
    "draft": front("okf-draft", "status: draft\n", "status: stable\n"),
    "expired": front("okf-expired", "stale_after: 2026-11-30T00:00:00Z\n", "stale_after: 2026-12-01T00:00:00Z\n"),
    "instant that is none": trust("okf-instant", "timestamp: yesterday\n", "timestamp: 2026-01-01T00:00:00Z\n"),
    "instant of a source": front(
        "okf-instant",
        "sources: [{resource: x y, last_modified: 2026-13-01}]\n",
        "sources: [{resource: x y, last_modified: 2026-12-01T00:00:00Z}]\n",
    ),
    "bare date": front("okf-instant-offset", "stale_after: 2026-12-31\n", "stale_after: 2026-12-31T00:00:00+01:00\n"),
    "time without offset": front(
        "okf-instant-offset", "stale_after: 2026-12-31T00:00:00\n", "stale_after: 2026-12-31T00:00:00Z\n"
    ),
    "timestamp": trust("okf-legacy", "timestamp: 2026-01-01T00:00:00Z\n", TRUST),
    "citations": body("okf-legacy", "\n# Citations\n\n1. [x](https://example.org)\n", "\n# Notes\n"),
    "sources are no list": front("okf-sources-shape", "sources: {resource: x y}\n", "sources: [{resource: x y}]\n"),
    "source without a resource": front("okf-sources-shape", "sources: [{id: a}]\n", "sources: [{resource: x y}]\n"),
    "source is text": front("okf-sources-shape", "sources: [x]\n", "sources: []\n"),
    "two sources of one id": front(
        "okf-source-duplicate", f"sources:\n{SOURCE}{SOURCE}", f"sources:\n{SOURCE}{SOURCE.replace('id: a', 'id: b')}"
    ),
    "source without a footnote": body("okf-source-unused", "", "Said. [^a]\n", f"sources:\n{SOURCE}"),
    "usage that is no number": front(
        "okf-usage-count",
        "sources: [{resource: x y, usage_count: many}]\n",
        "sources: [{resource: x y, usage_count: 12}]\n",
    ),
    "usage without a window": front(
        "okf-usage-window",
        "sources: [{resource: x y, usage_count: 12}]\n",
        "sources: [{resource: x y, usage_count: 12}]\nusage_window: {from: 2026-01-01T00:00:00Z}\n",
    ),
    "footnote of nothing": body("okf-footnote-undefined", "Said. [^x]\n", "Said. [^x] `[^y]`\n\n[^x]: There.\n"),
    "footnote that is an address": body(
        "okf-footnote-undefined", "Said. [^x]\n", "Said. [^x]\n\n[^x]: https://example.org\n"
    ),
    "footnote of no source": body(
        "okf-footnote-source", "[^a] [^b]\n\n[^b]: There.\n", "[^a]\n\n[^a]: There.\n", f"sources:\n{SOURCE}"
    ),
    "footnote where sources have no ids": Case(
        "okf-footnote-source",
        {"a.md": concept(f"sources:\n{SOURCE}", TEXT + "[^a] [^b]\n\n[^b]: There.\n")},
        {"a.md": concept("sources: [{resource: x y}]\n", TEXT + "[^b]\n\n[^b]: There.\n")},
    ),
    "nothing runs the computation": attested("okf-computation-runtime", "", ATTESTED),
    "computation twice": attested("okf-computation-body", ATTESTED + "computation: /b.md\n", ATTESTED),
    "computation nowhere": attested("okf-computation-body", ATTESTED, ATTESTED + "computation: /b.md\n", TEXT),
    "parameter without a type": attested(
        "okf-computation-parameter",
        ATTESTED + "parameters: [{name: a}]\n",
        ATTESTED + "parameters: [{name: a, type: date, required: true}]\n",
    ),
    "no attester": attested("okf-computation-attester", "runtime: sql\n", ATTESTED),
    "link to nothing": body("okf-link-missing", "[x](none.md)\n", "[x](b.md 'B') `[y](none.md)` [z](https://x.org/y.md)\n"),
    "link in another Unicode form": Case(
        "okf-link-missing",
        {"é.md": B, "a.md": concept(body=TEXT + "[x](e.md)\n")},
        {"é.md": B, "a.md": concept(body=TEXT + "[x](e\u0301.md)\n")},
    ),
    "link out of the bundle": body("okf-link-outside", "[x](../b.md)\n", "[x](./b.md)\n"),
    "link in another case": body("okf-link-case", "[x](B.md)\n", "[x](b.md)\n"),
    "link to no heading": body("okf-link-anchor", "[x](b.md#none)\n", "[x](b.md#orders) [y](#orders)\n"),
    "link to no heading here": body("okf-link-anchor", "[x](#none)\n", "[x](#orders)\n"),
    "link to a folder": Case(
        "okf-link-folder",
        {"a.md": concept(body=TEXT + "[x](x/)\n"), "x/notes.txt": ""},
        {"a.md": concept(body=TEXT + "[x](x/)\n"), "x/index.md": "# X\n\n[A](/a.md)\n"},
    ),
    "link to itself": body("okf-link-self", "[x](a.md)\n", "[x](a.md#orders)\n"),
    "link to what is deprecated": Case(
        "okf-link-deprecated",
        {"a.md": concept(body=TEXT + "[x](b.md)\n"), "b.md": B.replace("---\n\n", "status: deprecated\n---\n\n")},
        {"a.md": concept(body=TEXT + "[x](b.md)\n")},
    ),
    "field to nothing": front("okf-field-missing", "resource: /none.md\n", "resource: /b.md\n"),
    "source to nothing": front(
        "okf-field-missing", "sources: [{resource: ./none}]\n", "sources: [{resource: src/none.py}]\n"
    ),
    "executor to nothing": attested(
        "okf-field-missing", ATTESTED + "executor: {resource: run.py}\n", ATTESTED + "executor: {resource: b.md}\n"
    ),
    "field from the root": Case(
        "okf-field-root",
        {"x/c.md": concept("resource: b.md\n"), "index.md": ROOT.replace("a.md", "x/c.md")},
        {"x/c.md": concept("resource: /b.md\n"), "index.md": ROOT.replace("a.md", "x/c.md")},
    ),
    "wikilinks": body("okf-wikilinks", "[[b]]\n", "`[[b]]`\n"),
    "orphan": Case("okf-orphan", {"x/c.md": B}, {"x/c.md": B, "a.md": concept("resource: /x/c.md\n")}),
    "orphan that a log names": Case(
        "okf-orphan", {"x/c.md": B, "log.md": "# L\n\n[c](x/c.md)\n"}, {"x/c.md": B, "x/index.md": "# X\n\n[c](c.md)\n"}
    ),
    "two of one title": Case("okf-title-duplicate", {"b.md": concept()}, {}),
    "no body": Case("okf-body-empty", {"a.md": concept(body="\n")}, {}),
    "little body": Case("okf-body-stub", {"a.md": concept(body="# A\n\nSoon.\n")}, {}),
    "no heading": Case("okf-heading-missing", {"a.md": concept(body="Text. " * 20)}, {}),
    "zero width": body("okf-hidden-text", "in\u200bvisible\n", "ü \U0001f468\u200d\U0001f469\n"),
    "large": Case("okf-file-large", {"a.md": concept(body=TEXT + "Some words. " * 100_000)}, {}),
    "name with a colon": Case("okf-path-portable", {"a:b.md": B}, {"a b é.md": B}),
}  # fmt: skip


def written(root: Path, files: Mapping[str, str | None]) -> Path:
    for name, text in {**BASE, **files}.items():
        if text is not None:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return root


def findings(root: Path, files: Mapping[str, str | None], today: date | None = TODAY) -> list[Finding]:
    return lint(read_subject(written(root, files)), Options(today))


def test_a_sound_bundle_has_no_finding(tmp_path: Path) -> None:
    assert findings(tmp_path, {}) == []


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_each_code_is_found_where_it_belongs_and_nowhere_else(case: Case, tmp_path: Path) -> None:
    assert case.code in {finding.code for finding in findings(tmp_path / "wrong", case.wrong)}
    assert case.code not in {finding.code for finding in findings(tmp_path / "right", case.right)}


def test_every_code_has_a_case() -> None:
    assert {case.code for case in CASES.values()} == OKF.keys()


def test_a_finding_stands_at_the_line_of_its_cause(tmp_path: Path) -> None:
    found = findings(tmp_path, {"a.md": concept("status: done\n", TEXT + "\n[x](none.md)\n")})
    assert {(f.code, f.line) for f in found} == {("okf-status", 7), ("okf-link-missing", 14)}


def test_a_readme_a_typed_log_and_a_bare_root_index_are_accepted_with_warnings(tmp_path: Path) -> None:
    files = {"index.md": '---\nokf_version: "0.2"\n---\n', "log.md": "---\ntype: Log\n---\n# L\n", "README.md": "# R\n"}
    found = {finding.code: finding.severity for finding in findings(tmp_path, files)}
    assert found.keys() == {"okf-index-empty", "okf-log-frontmatter", "okf-side-file", "okf-orphan"}
    assert set(found.values()) == {"warning"}


def test_without_a_day_what_was_not_checked_is_said(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, {"a.md": concept("stale_after: 2020-01-01T00:00:00Z\n")}, None)
    assert (found.code, found.message) == ("age-unchecked", "1 files have a stale_after; it was not checked")


def test_a_path_from_the_repositorys_root_is_answered_with_that_of_the_bundle(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, {"a.md": concept(body=TEXT + "[x](/docs/b.md)\n")})
    assert found.message == "'/docs/b.md'; from the bundle's root it is '/b.md'"


def test_a_case_of_each_source_is_told_in_every_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = written(tmp_path, {"a.md": concept("status: done\n", TEXT + "[x](none.md)\n")})
    parser = ArgumentParser()
    LINT.add_arguments(parser)
    outputs: dict[str, str] = {}
    for name in ("text", "json", "sarif"):
        LINT.run(parser.parse_args([str(root), "--format", name]))
        outputs[name] = capsys.readouterr().out
    told = {finding["code"]: finding["source"] for finding in json.loads(outputs["json"])["packs"][0]["findings"]}
    assert told == {"okf-status": "spec", "okf-link-missing": "convention"}
    rules = json.loads(outputs["sarif"])["runs"][0]["tool"]["driver"]["rules"]
    assert {rule["id"]: rule["properties"]["source"] for rule in rules} == told
    assert "deprecated; spec)" in outputs["text"]
    assert "such file; convention)" in outputs["text"]


def test_every_code_says_who_asks_for_it() -> None:
    assert set(SOURCES.values()) == {"spec", "convention"}


# Of others' errors we make warnings: a log with frontmatter (Google's own bundle has one) or with prose.
OURS = {"google/acme_retail": {"log.md"}, "openknowledge/Wiki": {"log.md"}}
# They count a file without `type` as a concept; here it is none.
NO_CONCEPTS = {"okf-studio/fixtures/malformed-tolerated": 1}


@pytest.mark.shared
def test_the_verdicts_of_two_validators_are_ours_but_for_those_that_are_listed(shared: Path) -> None:
    bundles = json.loads((shared / "okf" / "verdicts.json").read_text())["bundles"]
    expected: dict[str, object] = {}
    found: dict[str, object] = {}
    for each in bundles:
        name, root = each["bundle"], shared / "okf" / each["bundle"]
        theirs = {path for path, _ in each["okf_parser"]} | set(each["w4g1_error_files"])
        concepts = each["concepts"] - NO_CONCEPTS.get(name, 0)
        errors = sorted(theirs - OURS.get(name, set()))
        expected[name] = ("okf", each["markdown"], concepts, each["reserved"], errors)
        documents = read(root).documents
        reserved = sum(is_reserved(document.path) for document in documents)
        concepts = sum(document.type is not None for document in documents)
        errors = sorted({f.path for f in lint(read_subject(root)) if f.severity == "error"})
        found[name] = (adapter_of(root).name, len(documents), concepts, reserved, errors)
    assert found == expected
