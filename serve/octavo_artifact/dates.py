"""Dates and durations as authors write them, and what follows from them: the compiler and the server count alike.

A date that names a period (`2026`, `2026-03`, `2026-Q1`) is the period's last day: what was true "as of" it was true
until then, what expires with it is good until then, and an age counts from when it was certainly over.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import MAXYEAR, date, datetime, timedelta

_DATE = re.compile(
    r"(?P<year>[0-9]{4})(?:-Q(?P<quarter>[1-4])|-(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2})(?P<time>[T ].+)?)?)?"
)
# At most nine digits a number: Python's own limit would raise an error of its own, and nothing lasts longer.
_DURATION = re.compile(
    r"P(?=.)(?:([0-9]{1,9})Y)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9})W)?(?:([0-9]{1,9})D)?"
    r"(?:T(?=.)(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9})S)?)?"
)
_DAY = 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class Duration:
    """A span of calendar time; a month has no length until it is added to a date."""

    months: int = 0
    days: int = 0
    seconds: int = 0

    def __post_init__(self) -> None:
        if min(self.months, self.days, self.seconds) < 0:
            raise ValueError(f"found {self}, expected nothing negative")


DECAY: dict[str, Duration | None] = {
    "volatile": Duration(months=3),
    "fast-moving": Duration(months=6),
    "slow-moving": Duration(months=12),
    "permanent": None,
}
"""How long a fact of each kind holds (ExpertPack's refresh blocks); None is for ever."""


def parse_date(text: str) -> date | None:
    """The day that an ISO 8601 date, date and time, month, year or quarter (`YYYY-Qn`) means; None when it is none.

    A time is checked and left out: the day is the one that was written, in the zone that was written.
    """
    found = _DATE.fullmatch(text.strip())
    if found is None:
        return None
    try:
        if found["time"]:
            return datetime.fromisoformat(found.string).date()
        year = int(found["year"])
        month = 3 * int(found["quarter"]) if found["quarter"] else int(found["month"] or 12)
        return date(year, month, int(found["day"] or monthrange(year, month)[1]))
    except ValueError:
        return None


def parse_duration(text: str) -> Duration:
    """An ISO 8601 duration, `PnYnMnWnDTnHnMnS` with whole numbers, any part left out; weeks combine with the others.

    Raises ValueError with what was found. Signs and fractions are no part of it: half a month is no number of days.
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"found {text[:100]!r}, expected an ISO 8601 duration such as P90D or P1Y6M")
    years, months, weeks, days, hours, minutes, seconds = (int(number or 0) for number in found.groups())
    return Duration(12 * years + months, 7 * weeks + days, (60 * hours + minutes) * 60 + seconds)


def add(day: date, duration: Duration) -> date:
    """The day that lies a duration later: months first, into the last day of a shorter month, then days, then whole
    days of the time. Beyond the calendar's end it is `date.max`.
    """
    year, month = divmod(12 * day.year + day.month - 1 + duration.months, 12)
    if year > MAXYEAR:
        return date.max
    later = date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
    days = duration.days + duration.seconds // _DAY
    return later + timedelta(days) if days <= (date.max - later).days else date.max
