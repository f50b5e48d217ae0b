"""Findings as GitHub Actions annotations (workflow commands)."""

from __future__ import annotations

from collections.abc import Sequence

from octavo_build.lint.render.linted import Linted

_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}


def render(packs: Sequence[Linted]) -> str:
    """`::error file=...,line=...,title=CODE::message (advice)`, a line each."""
    lines: list[str] = []
    for pack in packs:
        for finding in pack.findings:
            line = f",line={finding.line}" if finding.line else ""
            place = f"file={_property(pack.path(finding))}{line},title={_property(finding.code)}"
            lines.append(f"::{_LEVELS[finding.severity]} {place}::{_data(f'{finding.message} ({finding.advice})')}\n")
    return "".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
