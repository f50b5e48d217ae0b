"""What the fields of an OKF concept mean (Open Knowledge Format 0.1 and 0.2), for adapter, graph and lint alike.

Values are as the frontmatter reader gives them: text as written, lists, mappings. What has another form than the
format wants is passed by here; that it has is lint's to tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

from octavo_build.values import items, mapping, mappings, text

VERSIONS = ("0.1", "0.2")
RESERVED = frozenset({"index.md", "log.md"})
"""Names that are listings and histories in every folder, never concepts."""
ATTESTED = "Attested Computation"
"""The one type that the format itself defines."""
TIERS = ("unverified", "machine-confirmed", "human-reviewed")

_INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}.*)?", re.ASCII)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_FILE = re.compile(r"(?:/|\.\.?/)\S*|\S+\.md(?:#\S*)?")
_ANY = re.compile(r".+")


def is_reserved(path: str) -> bool:
    """Whether a file is a listing or a history, by its name."""
    return PurePosixPath(path).name in RESERVED


def tags(value: object) -> tuple[str, ...]:
    """Tags, also of text such as `a, b` or `"[a, b]"`; each once."""
    if isinstance(value, str):
        value = [part.strip().strip("\"'") for part in value.strip().removeprefix("[").removesuffix("]").split(",")]
    return tuple(dict.fromkeys(filter(None, map(text, items(value)))))


def instant(value: object) -> tuple[datetime, bool] | None:
    """An ISO 8601 date or time and whether it says its offset from UTC; None for what is neither.

    Both count: the text of version 0.2 wanted dates first and times with an offset later. Without one it is UTC.
    """
    written = text(value)
    if not _INSTANT.fullmatch(written):
        return None
    try:
        found = datetime.fromisoformat(written)
    except ValueError:
        return None
    return (found, True) if found.tzinfo else (found.replace(tzinfo=UTC), False)


def last_day(stale_after: object) -> date | None:
    """The last day on which a concept holds that is stale from an instant on."""
    found = instant(stale_after)
    if found is None:
        return None
    first = datetime.min.replace(tzinfo=found[0].tzinfo)
    return max(first, found[0] - timedelta(microseconds=1)).date() if found[0] > first else first.date()


def newest(verified: object) -> Mapping[str, Any]:
    """The verification with the latest `at`; without any, the last one; empty when there is none."""
    dated = [(found[0], entry) for entry in mappings(verified) if (found := instant(entry.get("at")))]
    if dated:
        return max(dated, key=lambda pair: pair[0])[1]
    return (mappings(verified) or [{}])[-1]


def trust_tier(verified: object) -> str:
    """One of `TIERS`, by who verified."""
    actors = [actor for entry in mappings(verified) if (actor := text(entry.get("by")))]
    return TIERS[2 if any(actor.startswith("human:") for actor in actors) else bool(actors)]


def paths(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Fields that name a file of the bundle: key, kind of the relation (the key, `source` for sources) and path.

    The path is without its anchor, percent-decoded. `resource` and that of a source may also be an address, a place
    elsewhere (`src/app.py`) or free text: only what ends in `.md`, or begins with `/`, `./` or `../`, is a path there.
    """
    for entry in mappings(metadata.get("sources")):
        if path := _file(entry.get("resource"), _FILE):
            yield "sources", "source", path
    if path := _file(metadata.get("resource"), _FILE):
        yield "resource", "resource", path
    if metadata.get("type") == ATTESTED:
        yield from (
            (key, key, path)
            for key, value in (
                ("computation", metadata.get("computation")),
                ("executor", mapping(metadata.get("executor")).get("resource")),
                ("attester", mapping(metadata.get("attester")).get("resource")),
            )
            if (path := _file(value, _ANY))
        )


def _file(value: object, form: re.Pattern[str]) -> str:
    written = text(value)
    return "" if _SCHEME.match(written) or not form.fullmatch(written) else unquote(written.partition("#")[0])
