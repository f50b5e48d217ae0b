"""All checks, in the order in which they are told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from octavo_serve.doctor import configuring, listening, machine, releases
from octavo_serve.doctor.finding import Check, Finding, Subject

CHECKS: tuple[Check, ...] = (
    machine.python,
    machine.libraries,
    machine.processor,
    machine.temporary_folder,
    machine.descriptors,
    machine.clock,
    releases.dist,
    releases.packs,
    releases.encoders,
    releases.indexes,
    releases.leftovers,
    releases.space,
    releases.writable,
    configuring.audience,
    configuring.keys,
    configuring.origins,
    configuring.reranker,
    listening.port,
    listening.hosts,
    listening.public,
)


def diagnose(file: Path | None, environment: Mapping[str, str], flags: Mapping[str, Any]) -> Iterator[Finding]:
    """What is found of a server with this configuration file, these variables and these options."""
    settings, findings = configuring.read_configuration(file, environment, flags)
    yield from findings
    subject = Subject(settings, environment, releases.examine_packs(settings.dist))
    for check in CHECKS:
        yield from _guarded(check, subject)


def _guarded(check: Check, subject: Subject) -> Iterator[Finding]:
    """A check that fails itself is a finding: the others are told all the same."""
    try:
        yield from check(subject)
    except Exception as error:
        found = f"the check failed itself ({type(error).__name__}: {error})"
        yield Finding(check.__name__.replace("_", " "), "fail", found, "an answer", "report this")
