"""Dates and durations as frontmatter has them."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[Tt ]\S.*)?", re.ASCII)
_DURATION = re.compile(
    r"P(?=\d|T\d)(?:(\d{1,5})Y)?(?:(\d{1,5})M)?(?:(\d{1,5})W)?(?:(\d{1,6})D)?"
    r"(?:T(?=\d)(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,6})S)?)?",
    re.ASCII,
)


def parse_date(text: str) -> date | None:
    """The day of an ISO 8601 date, or of a date with a time; None for anything else."""
    if not _DATE.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text).date()
    except ValueError:
        return None


def parse_duration(text: str) -> timedelta:
    """An ISO 8601 duration, a year being 365 days and a month 30 as ExpertPack has it.

    Raises ValueError with what was found.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"expected a duration (P90D), found {text[:60]!r}")
    years, months, weeks, days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return timedelta(365 * years + 30 * months + days, weeks=weeks, hours=hours, minutes=minutes, seconds=seconds)


def add(day: date, duration: timedelta) -> date:
    """The day that lies a duration later; beyond the calendar's end it is `date.max`."""
    try:
        return day + duration
    except OverflowError:
        return date.max
