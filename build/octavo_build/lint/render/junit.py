"""Findings as JUnit XML: a suite a pack, a case a finding; one that fails the pack is a failure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from octavo_build.findings import Finding
from octavo_build.lint.render.linted import Linted

# What XML 1.0 has no way to write.
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(packs: Sequence[Linted]) -> str:
    """A pack without a failure has one case that passes, so that no suite is empty."""
    suites = Xml.Element("testsuites", name="octavo lint")
    for pack in packs:
        failures = [finding for finding in pack.findings if pack.fails(finding)]
        milder = [finding for finding in pack.findings if not pack.fails(finding)]
        suite = Xml.SubElement(
            suites,
            "testsuite",
            name=pack.slug,
            tests=str(max(1, len(failures))),
            failures=str(len(failures)),
            errors="0",
        )
        for finding in failures:
            case = Xml.SubElement(suite, "testcase", classname=_text(pack.path(finding)), name=_name(finding))
            failure = Xml.SubElement(case, "failure", type=finding.code, message=_text(finding.message))
            failure.text = _text(_told(pack, finding))
        if not failures:
            Xml.SubElement(suite, "testcase", classname=pack.folder, name="octavo lint")
        if milder:
            Xml.SubElement(suite, "system-out").text = _text("\n".join(_told(pack, finding) for finding in milder))
    Xml.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(suites, encoding="unicode") + "\n"


def _name(finding: Finding) -> str:
    return f"{finding.code}:{finding.line}"


def _told(pack: Linted, finding: Finding) -> str:
    return (
        f"{pack.path(finding)}:{finding.line}: {finding.severity} {finding.code}: {finding.message} ({finding.advice})"
    )


def _text(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
