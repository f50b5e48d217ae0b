from __future__ import annotations

import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from octavo_build.findings import Finding
from octavo_build.lint.render import RENDERERS, github, junit, plain, sarif
from octavo_build.lint.render.linted import Linted

FOUND = (
    Finding("", 0, "age-unchecked", "2 files"),
    Finding("concepts/a b,c.md", 3, "broken-wikilink", "[[x]]\n50% <&> \x1b\0"),
    Finding("concepts/a b,c.md", 9, "orphaned", "none"),
)
LINTED = Linted("demo", "packs/demo", 2, FOUND, "error")
CLEAN = Linted("clean", ".", 1, (), "error")


def test_text_has_a_line_a_finding_and_a_line_a_pack() -> None:
    assert plain.render([LINTED, CLEAN]).splitlines() == [
        "packs/demo: note age-unchecked: 2 files (give --today YYYY-MM-DD to check ages)",
        "packs/demo/concepts/a b,c.md:3: error broken-wikilink: [[x]]\\n50% <&> \\x1b\\x00 "
        "(mend the wikilink; no document of the pack has that name)",
        "packs/demo/concepts/a b,c.md:9: warning orphaned: none (relate the file to others, or link to it)",
        "demo: 2 documents, 1 errors, 1 warnings, 1 notes",
        "clean: 1 documents, 0 errors, 0 warnings, 0 notes",
    ]


def test_json_holds_the_findings_as_a_build_reports_them() -> None:
    packs = json.loads(RENDERERS["json"]([LINTED, CLEAN]))["packs"]
    assert [(pack["slug"], pack["failed"]) for pack in packs] == [("demo", True), ("clean", False)]
    assert packs[0]["findings"] == [finding.as_json() for finding in FOUND]
    assert packs[0]["counts"] == {"error": 1, "warning": 1, "note": 1}


def test_github_lines_are_escaped_as_its_runner_reads_them() -> None:
    lines = github.render([LINTED]).splitlines()
    assert lines[0].startswith("::notice file=packs/demo,title=age-unchecked::2 files (")
    assert lines[1].startswith(
        "::error file=packs/demo/concepts/a b%2Cc.md,line=3,title=broken-wikilink::[[x]]%0A50%25 <&>"
    )
    assert all(re.match(r"::(error|warning|notice) file=[^:]+::", line) for line in lines)


def test_sarif_has_what_code_scanning_needs() -> None:
    log = json.loads(sarif.render([LINTED, CLEAN]))
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert (log["version"], "sarif-2.1.0" in log["$schema"]) == ("2.1.0", True)
    assert [rule["id"] for rule in rules] == ["age-unchecked", "broken-wikilink", "orphaned"]
    for result, finding in zip(run["results"], FOUND, strict=True):
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == finding.code
        assert result["level"] == finding.severity
        assert finding.message in result["message"]["text"]
        (location,) = result["locations"]
        uri = location["physicalLocation"]["artifactLocation"]["uri"]
        assert uri.startswith("packs/demo")
        assert re.fullmatch(r"[\w/.%-]+", uri)
        assert location["physicalLocation"].get("region", {"startLine": 0})["startLine"] == finding.line
        assert re.fullmatch("[0-9a-f]{64}", result["partialFingerprints"]["octavoFinding/v1"])


def test_a_fingerprint_outlives_its_line_and_is_one_of_a_kind() -> None:
    def prints(*findings: Finding) -> list[str]:
        results = json.loads(sarif.render([replace(LINTED, findings=findings)]))["runs"][0]["results"]
        return [result["partialFingerprints"]["octavoFinding/v1"] for result in results]

    moved = [replace(finding, line=finding.line + 5) for finding in FOUND]
    assert prints(*FOUND) == prints(*moved)
    assert len(set(prints(FOUND[1], moved[1]))) == 2


@pytest.mark.parametrize(("fail_on", "failures"), [("error", 1), ("warning", 2), ("note", 3)])
def test_junit_fails_what_fails_the_pack(fail_on: str, failures: int) -> None:
    packs = [replace(LINTED, fail_on=fail_on), replace(CLEAN, fail_on=fail_on)]
    root = ElementTree.fromstring(junit.render(packs))
    demo, clean = root.findall("testsuite")
    assert (demo.get("name"), demo.get("tests"), demo.get("failures")) == ("demo", str(failures), str(failures))
    assert len(demo.findall("testcase/failure")) == failures
    assert (clean.get("tests"), clean.get("failures"), len(clean.findall("testcase"))) == ("1", "0", 1)
    told = "".join(element.text or "" for element in demo.iter())
    assert all(finding.code in told for finding in FOUND)


def test_junit_is_xml_whatever_the_message_holds() -> None:
    root = ElementTree.fromstring(junit.render([LINTED]))
    (failure,) = root.findall("testsuite/testcase/failure")
    assert failure.get("message") == "[[x]]\n50% <&> \ufffd\ufffd"
    assert failure.get("type") == "broken-wikilink"


@pytest.mark.parametrize("name", RENDERERS)
def test_every_format_renders_no_pack_at_all(name: str) -> None:
    assert RENDERERS[name]([]).isprintable() or "\n" in RENDERERS[name]([])
