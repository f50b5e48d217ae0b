"""The configuration: whether it is right, source by source, and says what it was meant to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from octavo_artifact.errors import ConfigError, OctavoError
from octavo_artifact.schema import AUDIENCES
from octavo_serve.configuration import FILE_VARIABLE, PREFIX, configure, read_file
from octavo_serve.doctor.finding import Finding, Subject
from octavo_serve.settings import ServerSettings

FILE, VARIABLES, TOGETHER = "config file", "variables", "configuration"
SOURCES = frozenset({FILE, VARIABLES, TOGETHER})
"""Names of the checks that say whether the configuration is right."""

_LOCAL = ("localhost", "127.0.0.1", "[::1]", "::1")


def read_configuration(
    file: Path | None, environment: Mapping[str, str], flags: Mapping[str, Any]
) -> tuple[ServerSettings, list[Finding]]:
    """The settings of `octavo serve` with these sources, and what each is like; where one is wrong, without it."""
    named = file if file is not None else Path(environment[FILE_VARIABLE]) if environment.get(FILE_VARIABLE) else None
    findings = [*_file(named), *_variables(environment)]
    try:
        settings = configure(file, environment, flags)
    except ConfigError as error:
        if all(finding.status == "ok" for finding in findings):
            step = "change one of the sources; each is right by itself"
            findings.append(Finding(TOGETHER, "fail", str(error), "settings that go together", step))
        return _without_the_wrong(file, flags), findings
    return settings, findings


def _without_the_wrong(file: Path | None, flags: Mapping[str, Any]) -> ServerSettings:
    """The settings of a file that is right, else the defaults, so that the other checks have something to look at."""
    try:
        return configure(file, {}, flags)
    except ConfigError:
        return ServerSettings(dist=flags.get("dist"))


def _file(file: Path | None) -> Iterator[Finding]:
    if file is None:
        yield Finding(FILE, "ok", "none is named")
        return
    try:
        configure(file, {}, {})
        names = ", ".join(read_file(file)) or "nothing"
    except ConfigError as error:
        yield Finding(FILE, "fail", str(error), "a file as `octavo config --schema` describes it", "mend the file")
    else:
        yield Finding(FILE, "ok", f"{file} sets {names}")


def _variables(environment: Mapping[str, str]) -> Iterator[Finding]:
    own = {name: value for name, value in environment.items() if name.startswith(PREFIX) and name != FILE_VARIABLE}
    try:
        configure(None, own, {})
    except ConfigError as error:
        step = "set it rightly or unset it; in Kubernetes set enableServiceLinks: false"
        yield Finding(VARIABLES, "fail", str(error), f"{PREFIX}NAME for settings only", step)
    else:
        yield Finding(VARIABLES, "ok", ", ".join(sorted(own)) or "none is set")


def keys(subject: Subject) -> Iterator[Finding]:
    """A key for a pack that is not there opens nothing."""
    served = {pack.slug for pack in subject.packs}
    for key in subject.settings.keys:
        if missing := sorted((key.slugs or frozenset()) - served):
            found = f"key {key.name} is for {', '.join(missing)}, which the dist has not"
            yield Finding("keys", "warn", found, "slugs of packs", "correct `packs` of the key, or bring the pack")
    if subject.settings.keys:
        yield Finding("keys", "ok", f"{len(subject.settings.keys)} may ask")


def audience(subject: Subject) -> Iterator[Finding]:
    """A release for a narrower circle than is served is withheld as a whole."""
    widest = AUDIENCES.index(subject.settings.audience)
    for pack in subject.packs:
        narrower = pack.manifest.pack.get("audience", AUDIENCES[0]) if pack.manifest else AUDIENCES[0]
        if narrower in AUDIENCES and AUDIENCES.index(narrower) > widest:
            found = f"{pack.slug} is for {narrower} and withheld from {subject.settings.audience}"
            step = f"set `audience: {narrower}`, or build the pack with --audience {subject.settings.audience}"
            yield Finding("audience", "warn", found, "releases for those who are served", step)


def origins(subject: Subject) -> Iterator[Finding]:
    """A page that was not fetched over TLS may be anybody's, and calls the server in its reader's name."""
    for origin in subject.settings.allowed_origins:
        parts = urlsplit(origin.lower())
        if parts.scheme == "http" and parts.hostname not in _LOCAL:
            step = "serve the page over https and name that origin"
            yield Finding("allowed_origins", "warn", f"{origin} is not protected by TLS", "https://…", step)


def reranker(subject: Subject) -> Iterator[Finding]:
    """It must open, and put one pair of passages in an order."""
    from octavo_serve.rerank import open_reranker

    settings = subject.settings.reranker
    if settings is None:
        return
    what = str(settings.path or settings.url)
    step = "mend `reranker`; until then searches keep their order and say that they are degraded"
    try:
        opened = open_reranker(settings, subject.environment)
    except OctavoError as error:
        yield Finding("reranker", "fail", str(error), "a model, or an endpoint and its key", "mend `reranker`")
        return
    try:
        opened.scores("water", ["water boils", "wood burns"])
    except TimeoutError:
        found = f"{what} was late for two passages"
        yield Finding("reranker", "warn", found, f"scores in {settings.milliseconds} ms", step)
    except Exception as error:  # whatever a native runtime or a stranger's server raises
        found = f"{what} gave no scores ({type(error).__name__})"
        yield Finding("reranker", "warn", found, "a score a passage", step)
    else:
        yield Finding("reranker", "ok", f"{what} answers")
