"""The list of checks, written once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date

from octavo_build.findings import Finding
from octavo_build.lint.okf import fields, links, reserved, texts
from octavo_build.lint.okf.bundle import Bundle
from octavo_build.lint.subject import Subject

CHECKS: tuple[Callable[[Bundle], Iterator[Finding]], ...] = (
    reserved.check_indexes,
    reserved.check_logs,
    fields.check_descriptions,
    fields.check_trust,
    fields.check_lifecycle,
    fields.check_legacy,
    fields.check_sources,
    fields.check_computations,
    links.check_links,
    links.check_fields,
    links.check_deprecated,
    links.check_wikilinks,
    links.check_reach,
    texts.check_bodies,
    texts.check_titles,
    texts.check_files,
)


def check_bundle(subject: Subject, today: date | None) -> Iterator[Finding]:
    """All that is wrong with an OKF bundle beside what reading it found."""
    bundle = Bundle(subject)
    for check in CHECKS:
        yield from check(bundle)
    yield from fields.check_expiry(bundle, today)
