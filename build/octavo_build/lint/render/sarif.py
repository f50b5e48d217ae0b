"""Findings as SARIF 2.1.0 for code scanning.

A fingerprint is made of pack, path, code and message, not of the line, so that a finding stays the same one while the
text above it changes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from octavo_artifact import __version__
from octavo_artifact.ids import sha256_hex
from octavo_build.findings import CODES, Finding
from octavo_build.lint.codes import LINT_CODES, SOURCES
from octavo_build.lint.render.linted import Linted

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
FINGERPRINT = "octavoFinding/v1"


def render(packs: Sequence[Linted]) -> str:
    """One run for all packs."""
    codes = sorted({finding.code for pack in packs for finding in pack.findings})
    rules = {code: number for number, code in enumerate(codes)}
    run = {
        "tool": {"driver": {"name": "octavo lint", "version": __version__, "rules": [_rule(code) for code in codes]}},
        "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "where the command ran"}}},
        "results": [result for pack in packs for result in _results(pack, rules)],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, ensure_ascii=False, indent=2) + "\n"


def _rule(code: str) -> dict[str, Any]:
    severity, advice = (CODES | LINT_CODES)[code]
    rule = {"id": code, "shortDescription": {"text": advice}, "defaultConfiguration": {"level": severity}}
    return {**rule, "properties": {"source": SOURCES[code]}} if code in SOURCES else rule


def _results(pack: Linted, rules: dict[str, int]) -> Iterator[dict[str, Any]]:
    seen: Counter[tuple[str, str, str]] = Counter()
    for finding in pack.findings:
        same = (finding.path, finding.code, finding.message)
        seen[same] += 1
        print_of = sha256_hex("\0".join((pack.slug, *same, str(seen[same]))).encode())
        yield {
            "ruleId": finding.code,
            "ruleIndex": rules[finding.code],
            "level": finding.severity,
            "message": {"text": f"{finding.message} ({finding.advice})"},
            "locations": [{"physicalLocation": _location(pack, finding)}],
            "partialFingerprints": {FINGERPRINT: print_of},
        }


def _location(pack: Linted, finding: Finding) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(pack.path(finding)), "uriBaseId": "%SRCROOT%"}}
    return {**place, "region": {"startLine": finding.line}} if finding.line else place
