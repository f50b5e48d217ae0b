"""The list of deep checks, written once, and what `octavo lint --deep` calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

from octavo_evals.deep.contradictions import check_contradictions
from octavo_evals.deep.credentials import check_credentials
from octavo_evals.deep.duplicates import check_duplicates
from octavo_evals.deep.hidden import check_hidden
from octavo_evals.deep.injections import check_injections
from octavo_evals.deep.retrievability import check_headings, check_passages, check_titles
from octavo_evals.deep.subject import NO_DAY, Found, Progress, Subject

CHECKS: Mapping[Callable[[Subject], Iterator[Found]], frozenset[str]] = {
    check_titles: frozenset({"deep-title-lost"}),
    check_headings: frozenset({"deep-heading-lost"}),
    check_passages: frozenset({"deep-unreachable"}),
    check_duplicates: frozenset({"deep-duplicate"}),
    check_contradictions: frozenset({"deep-contradiction"}),
    check_hidden: frozenset({"deep-hidden-text"}),
    check_injections: frozenset({"deep-injection", "deep-injection-quoted"}),
    check_credentials: frozenset({"deep-secret"}),
}
"""Each check with the codes that it finds."""


def find(artifact: Path, *, top: int, codes: frozenset[str], today: date | None, progress: Progress) -> dict[str, Any]:
    """`{slug, documents, findings: [{path, line, code, message}]}` of an artifact, findings sorted; only checks that
    can find one of `codes` run.

    Raises ConfigError for a path that is no artifact, ArtifactError for a damaged one.
    """
    subject = Subject(artifact, top, progress, today or NO_DAY)
    found = {
        finding
        for check, its_codes in CHECKS.items()
        if its_codes & codes
        for finding in check(subject)
        if finding.code in codes
    }
    return {
        "slug": subject.slug,
        "documents": len(subject.pages),
        "findings": [asdict(finding) for finding in sorted(found)],
    }
