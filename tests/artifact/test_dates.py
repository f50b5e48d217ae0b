from __future__ import annotations

import random
from datetime import date, timedelta

import pytest

from octavo_artifact.dates import DECAY, Duration, add, parse_date, parse_duration


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2026", "2026-12-31"),
        ("2026-02", "2026-02-28"),
        ("2028-02", "2028-02-29"),
        ("2026-Q1", "2026-03-31"),
        ("2026-Q4", "2026-12-31"),
        ("2026-04-21", "2026-04-21"),
        (" 2026-04-21\n", "2026-04-21"),
        ("2026-04-21T23:30:00Z", "2026-04-21"),
        ("2026-04-21T23:30:00-05:00", "2026-04-21"),
        ("2026-04-21 23:30", "2026-04-21"),
        ("2026-04-21T23:30:00.123456+02:00", "2026-04-21"),
        ("0001-01-01", "0001-01-01"),
        ("9999", "9999-12-31"),
    ],
)
def test_a_date_is_the_day_it_means_and_a_period_its_last(text: str, day: str) -> None:
    assert parse_date(text) == date.fromisoformat(day)


@pytest.mark.parametrize(
    "text",
    ["", "soon", "2026-13", "2026-00", "2026-02-30", "2026-Q0", "2026-Q5", "2026-q1", "26-01-01", "20260421", "0000",
     "2026-W17", "2026-04-21T", "2026-04-21T25:00", "2026-04-21x", "21.04.2026", "２０２６", "2026-04-21Tx", "-2026"],
)  # fmt: skip
def test_what_is_no_date_is_none(text: str) -> None:
    assert parse_date(text) is None


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("P90D", Duration(days=90)),
        ("P2W", Duration(days=14)),
        ("P1Y", Duration(months=12)),
        ("P1M", Duration(months=1)),
        ("PT1M", Duration(seconds=60)),
        ("P1Y2M3W4DT5H6M7S", Duration(14, 25, 5 * 3600 + 6 * 60 + 7)),
        ("P1YT36H", Duration(12, 0, 36 * 3600)),
        ("P0D", Duration()),
        (" P1D ", Duration(days=1)),
    ],
)
def test_a_duration_has_months_days_and_seconds(text: str, duration: Duration) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    "text",
    ["", "P", "PT", "P1", "P1DT", "90D", "p90d", "P-1D", "-P1D", "P1.5D", "P1D1M", "PT1D", "P1M1Y", "P1H", "90 days",
     "P1D P1D", "P" + "9" * 5000 + "D", "P１D"],
)  # fmt: skip
def test_what_is_no_duration_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="expected an ISO 8601 duration") as caught:
        parse_duration(text)
    assert repr(text[:100]) in str(caught.value)


@pytest.mark.parametrize(
    ("day", "duration", "later"),
    [
        ("2026-01-31", "P1M", "2026-02-28"),
        ("2028-01-31", "P1M", "2028-02-29"),
        ("2028-02-29", "P1Y", "2029-02-28"),
        ("2026-12-31", "P1D", "2027-01-01"),
        ("2026-11-30", "P3M", "2027-02-28"),
        ("2026-01-31", "P1M1D", "2026-03-01"),
        ("2026-01-01", "PT36H", "2026-01-02"),
        ("2026-01-01", "PT23H59M", "2026-01-01"),
        ("2026-01-01", "P999999999Y", "9999-12-31"),
        ("2026-01-01", "P999999999D", "9999-12-31"),
        ("9999-12-31", "P0D", "9999-12-31"),
    ],
)
def test_adding_follows_the_calendar(day: str, duration: str, later: str) -> None:
    assert add(date.fromisoformat(day), parse_duration(duration)) == date.fromisoformat(later)


def test_a_negative_duration_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="nothing negative"):
        Duration(days=-1)


def test_the_kinds_of_decay_are_those_of_the_format() -> None:
    lengths = {kind: length and add(date(2026, 3, 31), length).isoformat() for kind, length in DECAY.items()}
    assert lengths == {
        "volatile": "2026-06-30", "fast-moving": "2026-09-30", "slow-moving": "2027-03-31", "permanent": None,
    }  # fmt: skip


SAMPLE = random.Random(7)
DAYS = [date.fromordinal(SAMPLE.randint(1, date(9000, 1, 1).toordinal())) for _ in range(500)]


def durations() -> list[Duration]:
    return [Duration(SAMPLE.randint(0, 60), SAMPLE.randint(0, 400), SAMPLE.randint(0, 200_000)) for _ in DAYS]


def test_every_day_reads_back_from_how_it_is_spelled() -> None:
    assert [parse_date(day.isoformat()) for day in DAYS] == DAYS
    assert [parse_date(f"{day.isoformat()}T10:00:00+14:00") for day in DAYS] == DAYS


def test_a_period_s_day_is_in_it_and_the_next_is_not() -> None:
    for day in DAYS:
        month, quarter, year = f"{day:%Y}-{day.month:02}", f"{day:%Y}-Q{(day.month + 2) // 3}", f"{day:%Y}"
        if len(year) < 4:
            continue  # strftime does not pad the first millennium
        for period in (month, quarter, year):
            last = parse_date(period)
            assert last is not None
            assert day <= last
            assert (last + timedelta(1)).day == 1


def test_a_duration_reads_back_from_how_it_is_spelled() -> None:
    for each in durations():
        assert parse_duration(f"P{each.months}M{each.days}DT{each.seconds}S") == each


def test_a_longer_duration_or_a_later_day_is_never_earlier() -> None:
    for day, duration, more in zip(DAYS, durations(), durations(), strict=True):
        longer = Duration(duration.months + more.months, duration.days + more.days, duration.seconds)
        assert day <= add(day, duration) <= add(day, longer)
        assert add(day, duration) <= add(day + timedelta(1), duration)


def test_whole_months_keep_the_day_or_take_the_month_s_last() -> None:
    for day, duration in zip(DAYS, durations(), strict=True):
        later = add(day, Duration(months=duration.months))
        assert later.day == day.day or (later.day < day.day and (later + timedelta(1)).day == 1)
        assert 12 * (later.year - day.year) + later.month - day.month == duration.months
