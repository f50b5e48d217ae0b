"""How old a text is today, and whether it still holds. What `today` is, the caller says: no clock here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import Any

from octavo_artifact.dates import add, parse_date, parse_duration
from octavo_serve.metadata import mapping
from octavo_serve.results import Freshness, PackFreshness


@lru_cache(maxsize=4096)
def freshness(verified_at: str | None, refresh: str | None, expires_at: str | None, today: date) -> Freshness:
    """The fields of an answer that follow from the columns of those names.

    Equal arguments give the same object, which is to be copied from and never changed.
    """
    verified, due = _verification(verified_at, refresh)
    return {
        "verified_age_days": max(0, (today - verified).days) if verified else None,
        "age_stale": today > due if due else None,
        "expired": expires_at is not None and expires_at < today.isoformat(),
        "expires_at": expires_at,
    }


def pack_freshness(metadata: Mapping[str, Any], documents: Sequence[Mapping[str, Any]], today: date) -> PackFreshness:
    """Counts over the searchable ones of a pack's `documents`; `metadata` is its manifest as written."""
    found = [
        freshness(document["verified_at"], document["refresh"], document["expires_at"], today)
        for document in documents
        if document["searchable"]
    ]
    verified = sum(each["verified_age_days"] is not None for each in found)
    review = mapping(metadata.get("freshness")).get("last_full_review")
    return {
        "coverage_pct": round(100 * verified / len(found), 1) if found else None,
        "stale": sum(each["age_stale"] is True for each in found),
        "expired": sum(each["expired"] for each in found),
        "last_full_review": review if isinstance(review, str) else None,
    }


def last_fresh_day(document: Mapping[str, Any], expires_at: str | None) -> int:
    """The ordinal of the last day on which a passage that itself has `expires_at` is neither stale nor expired."""
    _, due = _verification(document["verified_at"], document["refresh"])
    days = [due, *(date.fromisoformat(each) for each in (document["expires_at"], expires_at) if each)]
    return min((day for day in days if day), default=date.max).toordinal()


@lru_cache(maxsize=4096)
def _verification(verified_at: str | None, refresh: str | None) -> tuple[date | None, date | None]:
    """The day of the verification, and the last before the next one is due."""
    verified = parse_date(verified_at) if verified_at else None
    return verified, add(verified, parse_duration(refresh)) if verified and refresh else None
