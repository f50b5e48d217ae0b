from __future__ import annotations

from datetime import date, timedelta

import pytest

from octavo_build.lint.dates import add, parse_date, parse_duration


@pytest.mark.parametrize(
    ("text", "days"),
    [("P90D", 90), ("P2W", 14), ("P1Y", 365), ("P6M", 180), ("P1Y2M1W1D", 433), ("PT48H", 2), ("P1DT24H", 2)],
)
def test_durations_are_iso_8601(text: str, days: int) -> None:
    assert add(date(2026, 1, 1), parse_duration(text)) == date(2026, 1, 1) + timedelta(days)


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "P1", "90D", "P1D2W", "p1d", "P-1D", "P1.5D", "P٣D", "P" + "9" * 30 + "D"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration"):
        parse_duration(text)


def test_a_day_beyond_the_calendar_is_its_last() -> None:
    assert add(date(9000, 1, 1), parse_duration("P9999Y")) == date.max


@pytest.mark.parametrize(
    "text", ["", "2026", "2026-1-1", "2026-02-30", "20260201", "2026-W01-1", "1 May", "2026-01-01x"]
)
def test_what_is_no_date_is_none(text: str) -> None:
    assert parse_date(text) is None
