"""Until when a document and its passages hold, as far as their author said so. No clock: what is past, the server says.

A document has the cycle in which it must be verified again and a day after which it has expired; a passage expires
with the first of its `refresh` blocks.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from octavo_artifact.dates import DECAY, add, parse_date, parse_duration
from octavo_artifact.schema import Document
from octavo_build.findings import Finding
from octavo_build.frontmatter import Frontmatter
from octavo_build.marks import read_marks
from octavo_build.passages import PassageText
from octavo_build.values import mapping

_DATES = ("verified_at", "recorded_at", "valid_from")
_BLANK = re.compile(rb"\s*+")


def refresh_cycle(path: str, manifest: Mapping[str, Any], findings: list[Finding]) -> str | None:
    """The manifest's `freshness.refresh_cycle`, or None with a finding when it is no duration."""
    cycle = mapping(manifest.get("freshness")).get("refresh_cycle")
    return _duration(path, 0, "freshness.refresh_cycle", cycle, findings)


def with_freshness(document: Document, front: Frontmatter, cycle: str | None, findings: list[Finding]) -> Document:
    """The document with `refresh`, `expires_at` and `marks`; what cannot be used is a finding, and as if not written.

    `cycle` is that of the manifest that governs the file. A file that says when its volatile content was fetched
    expires after `volatile.refresh`, else after what else applies.
    """
    path = document.path
    lines = front.lines
    for key in _DATES:
        _date(path, lines.get(key, 1), key, front.metadata.get(key), findings)
    own = _duration(path, lines.get("refresh", 1), "refresh", front.metadata.get("refresh"), findings)
    line = lines.get("volatile", 1)
    written = front.metadata.get("volatile")
    if written is not None and not isinstance(written, dict):
        findings.append(
            Finding(path, line, "frontmatter-value", f"volatile: found {_shown(written)}, expected a mapping")
        )
    volatile = mapping(written)
    short = _duration(path, line, "volatile.refresh", volatile.get("refresh"), findings)
    fetched = _date(path, line, "volatile.fetched_at", volatile.get("fetched_at"), findings)
    expires = _date(path, line, "volatile.expires_at", volatile.get("expires_at"), findings)
    refresh = own or short or cycle
    lasts = short or refresh
    if expires is None and fetched and lasts:
        expires = add(fetched, parse_duration(lasts))
    marks = read_marks(path, document.raw, front, findings)
    for mark in _refreshes(marks):
        findings.extend(Finding(path, mark["line"], code, f"refresh: {found}") for code, found in _faults(mark["data"]))
    return replace(document, refresh=refresh, expires_at=expires and expires.isoformat(), marks=marks)


def with_expiry(document: Document, passages: Sequence[PassageText]) -> list[PassageText]:
    """The document's passages with `expires_at`: the first day of those that the `refresh` blocks in the span give, and
    those directly below it, where nothing but blanks and marks lie between.
    """
    first: dict[int, date] = {}
    starts = [each.passage.start_byte for each in passages]
    current, reach, below = -1, 0, False
    for mark in json.loads(document.marks) if passages else ():
        row = max(0, bisect_right(starts, mark["start_byte"]) - 1)
        if row != current:
            current, reach, below = row, starts[row], row > 0
        blank = _BLANK.match(document.raw, reach) if below else None
        below = blank is not None and blank.end() >= mark["start_byte"]
        reach = mark["end_byte"]
        expires = _expiry(mark["data"]) if mark["kind"] == "refresh" else None
        if expires:
            for each in (row - 1, row) if below else (row,):
                first[each] = min(first.get(each, expires), expires)
    return [
        replace(each, passage=replace(each.passage, expires_at=first[row].isoformat())) if row in first else each
        for row, each in enumerate(passages)
    ]


def _refreshes(marks: str) -> Iterator[dict[str, Any]]:
    return (mark for mark in json.loads(marks) if mark["kind"] == "refresh")


def _expiry(data: Any) -> date | None:
    """The last day on which what a `refresh` block speaks of holds: its `as_of` and the time its `decay` takes."""
    if any(_faults(data)) or data.get("as_of") is None:
        return None
    as_of, lasts = parse_date(data["as_of"]), DECAY[data["decay"]]
    return add(as_of, lasts) if as_of and lasts else None


def _faults(data: Any) -> Iterator[tuple[str, str]]:
    """Code and message of each thing for which a `refresh` block cannot be used."""
    if not isinstance(data, dict):
        yield "refresh-invalid", f"found {_shown(data)}, expected YAML with decay and as_of"
        return
    decay, as_of = (mapping(data).get(key) for key in ("decay", "as_of"))
    if not (isinstance(decay, str) and decay in DECAY):
        yield "refresh-invalid", f"decay: found {_shown(decay)}, expected one of {', '.join(DECAY)}"
    if as_of is None and decay != "permanent":
        yield "refresh-invalid", "as_of: found nothing, expected a date"
    if as_of is not None and not (isinstance(as_of, str) and parse_date(as_of)):
        yield "date-invalid", f"as_of: found {_shown(as_of)}, expected a date"


def _date(path: str, line: int, key: str, value: Any, findings: list[Finding]) -> date | None:
    found = parse_date(value) if isinstance(value, str) else None
    if found is None and value is not None:
        findings.append(Finding(path, line, "date-invalid", f"{key}: found {_shown(value)}, expected a date"))
    return found


def _duration(path: str, line: int, key: str, value: Any, findings: list[Finding]) -> str | None:
    """The duration as written."""
    try:
        if isinstance(value, str):
            parse_duration(value)
            return value.strip()
        if value is not None:
            raise ValueError(f"found {_shown(value)}, expected an ISO 8601 duration such as P90D")
    except ValueError as error:
        findings.append(Finding(path, line, "duration-invalid", f"{key}: {error}"))
    return None


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    return "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else repr(value[:100])
