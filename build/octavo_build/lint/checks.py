"""The list of checks, written once, and what a run of them gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import partial

from octavo_artifact.errors import ConfigError
from octavo_build.findings import CODES, Finding
from octavo_build.lint import (
    atoms,
    evaluation,
    frontmatter,
    links,
    manifest,
    provenance,
    requires,
    structure,
)
from octavo_build.lint.codes import AKS, LINT_CODES, PROVENANCE
from octavo_build.lint.okf.checks import check_bundle
from octavo_build.lint.subject import Subject
from octavo_build.sources.expertpack import MANIFEST

Check = Callable[[Subject], Iterator[Finding]]

ANY_FORMAT: tuple[Check, ...] = (manifest.check_presence, manifest.check_skills, links.check_links)
"""For every folder of Markdown."""

EXPERTPACK: tuple[Check, ...] = (
    manifest.check_manifest,
    manifest.check_tiers,
    manifest.check_always,
    manifest.check_prompts,
    manifest.check_authority,
    manifest.check_composite,
    frontmatter.check_required,
    frontmatter.check_values,
    frontmatter.check_navigation,
    frontmatter.check_folder_types,
    structure.check_names,
    structure.check_indexes,
    structure.check_relations,
    structure.check_verbatim,
    links.check_related,
    links.check_link_style,
    links.check_orphans,
    atoms.check_size,
    atoms.check_hubs,
    atoms.check_aggregates,
    atoms.check_retired,
    requires.check_requires,
    requires.check_cycles,
    requires.check_supersedes,
    evaluation.check_refusals,
)

ALL_CODES: dict[str, tuple[str, str]] = {**CODES, **LINT_CODES}
"""All that lint may report: severity and advice by code."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is checked and what is told."""

    today: date | None = None
    """Against which ages are reckoned; None leaves them unchecked. There is no clock here."""
    provenance: bool = False
    """Whether W-PROV-01 to 06 are checked; naming one of them in `only` does so too."""
    only: frozenset[str] = frozenset()
    """Codes that are told; empty for all."""
    without: frozenset[str] = frozenset()
    aks: bool = False
    """Whether W-AKS-01 to 04 are checked, and W-PROV with them; naming one in `only` does so too."""

    def __post_init__(self) -> None:
        unknown = sorted((self.only | self.without) - ALL_CODES.keys())
        if unknown:
            raise ConfigError(f"--only, --except: {unknown[0]!r} is no code; the handbook's page lint-codes lists them")


def lint(subject: Subject, options: Options | None = None) -> list[Finding]:
    """All findings of a pack, those of reading it included; sorted, none twice."""
    options = options or Options()
    checks: list[Check] = [*ANY_FORMAT]
    if subject.pack.source_format == "expertpack":
        checks += [*EXPERTPACK, partial(provenance.check_expiry, today=options.today)]
        if options.provenance or options.aks or options.only & PROVENANCE:
            checks.append(partial(provenance.check_provenance, today=options.today))
        if options.aks or options.only & AKS:
            checks.append(provenance.check_agent_knowledge)
        checks.append(partial(provenance.check_clock, today=options.today))
    if subject.pack.source_format == "okf":
        checks = [manifest.check_presence, partial(check_bundle, today=options.today)]
    # where the build found the same fault of a date or duration, its message says what became of the value
    built = {(finding.path, finding.line, finding.code) for finding in subject.pack.findings}
    found = {finding for check in checks for finding in check(subject)}
    found = {finding for finding in found if (finding.path, finding.line, finding.code) not in built}
    found -= {replace(finding, code="value-unknown") for finding in found if finding.code == "W-PROV-06"}
    found |= set(_official(subject, found))
    return sorted(finding for finding in found if _is_told(finding, options))


def _official(subject: Subject, found: Iterable[Finding]) -> Iterator[Finding]:
    """What the build found, under the official validator's code where it has one."""
    exempt = {page.path for page in subject.pages if frontmatter.is_exempt(page)}
    content = {page.path for page in subject.content} - exempt
    without_id = {finding.path for finding in found if finding.code == "W-PROV-04"}
    for finding in subject.pack.findings:
        if finding.path.endswith(MANIFEST) and finding.code in ("yaml-invalid", "frontmatter-not-mapping"):
            yield replace(finding, code="manifest-parse")
        elif finding.code == "frontmatter-missing" and finding.path in content:
            yield replace(finding, code="no-frontmatter")
        elif not (finding.code == "id-missing" and finding.path in without_id):
            yield finding


def _is_told(finding: Finding, options: Options) -> bool:
    return finding.code not in options.without and (not options.only or finding.code in options.only)
