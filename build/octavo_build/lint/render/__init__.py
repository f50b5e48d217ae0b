"""Findings as text, JSON, SARIF, GitHub annotations and JUnit: one module each, one signature."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from octavo_build.lint.render import github, junit, plain, report, sarif
from octavo_build.lint.render.linted import Linted

RENDERERS: dict[str, Callable[[Sequence[Linted]], str]] = {
    "text": plain.render,
    "json": report.render,
    "sarif": sarif.render,
    "github": github.render,
    "junit": junit.render,
}
