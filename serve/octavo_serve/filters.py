"""What a request admits: a condition on documents, applied before anything is ranked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from octavo_artifact.dates import parse_date
from octavo_artifact.ids import folders_of
from octavo_serve.requests import SearchRequest


@dataclass(frozen=True, slots=True)
class Filters:
    """All that a document must meet; the default admits every one."""

    type: str | None = None
    tags: tuple[str, ...] = ()
    """All of them."""
    path: str | None = None
    """The file itself, or a folder that it is in, without a slash at the end."""
    tier: str | None = None
    verified_since: date | None = None

    def __bool__(self) -> bool:
        return self != _EVERYTHING

    def admits(self, document: Mapping[str, Any]) -> bool:
        """Whether a row of the documents table meets them."""
        if self.verified_since is not None:
            verified = parse_date(document["verified_at"]) if document["verified_at"] else None
            if verified is None or verified < self.verified_since:
                return False
        return (
            self.type in (None, document["type"])
            and self.tier in (None, document["tier"])
            and set(self.tags) <= set(document["tags"])
            and (self.path is None or self.path in (document["path"], *folders_of(document["path"])))
        )


_EVERYTHING = Filters()


def filters_of(request: SearchRequest, today: date) -> Filters:
    """Those of a request; days count back from `today`, and empty values, which some clients send, ask for nothing."""
    since = None
    if request.verified_within is not None:
        since = today - timedelta(min(request.verified_within, (today - date.min).days))
    path = (request.path or "").strip("/")
    return Filters(request.type or None, tuple(filter(None, request.tags)), path or None, request.tier, since)
