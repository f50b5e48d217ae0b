"""Findings for people: a line each, as compilers print them, and a line a pack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from octavo_build.findings import count_by_severity
from octavo_build.lint.render.linted import Linted


def render(packs: Sequence[Linted]) -> str:
    """`path:line: severity code: message`, with the advice of each code once."""
    return "".join(line + "\n" for pack in packs for line in _lines(pack))


def _lines(pack: Linted) -> Iterator[str]:
    advised: set[str] = set()
    for finding in pack.findings:
        place = f"{pack.path(finding)}:{finding.line}" if finding.line else pack.path(finding)
        source = f"; {finding.source}" if finding.source else ""
        advice = "" if finding.code in advised else f" ({finding.advice}{source})"
        advised.add(finding.code)
        yield f"{_printable(place)}: {finding.severity} {finding.code}: {_printable(finding.message)}{advice}"
    counts = count_by_severity(pack.findings)
    told = ", ".join(f"{number} {severity}s" for severity, number in counts.items())
    yield f"{pack.slug}: {pack.documents} documents, {told}"


def _printable(text: str) -> str:
    """Control characters escaped: a file name must not move the terminal's cursor."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
