from __future__ import annotations

import pytest

from octavo_serve.answering.citations.quantities import quantities


def says(claimed: str, found: str) -> bool:
    """Whether each number that a text claims is one of another text's."""
    return all(any(one.says(other) for other in quantities(found)) for one in quantities(claimed) if one.claimed)


@pytest.mark.parametrize(
    ("claimed", "found"),
    [
        ("1,000 tokens", "1000 tokens"),
        ("two steps", "2 steps"),
        ("twenty-five files", "25 files"),
        ("two hundred levels", "200 levels"),
        ("50k windows", "50,000 windows"),
        ("1.5 KiB", "1,536 bytes"),
        ("3.5kW", "3500 W"),
        ("3.5 KW", "3.5 kW"),
        ("a 10 kW inverter", "10–15 kW"),
        ("10 kW to 15 kW", "from 10 to 15 kW"),
        ("half an hour, or 50%", "0.5 h; half"),
        ("one in ten or 4 %", "a tenth or 4 in 100"),
        ("two thirds", "0.6667"),
        ("twice as fast", "2x as fast"),
        ("31 March 2026", "2026-03-31"),
        ("March 31", "31 March"),
        ("90 minutes", "1.5 hours"),
        ("12 months", "1 year"),
        ("about 500 tokens", "480 tokens"),
        ("-3 °C", "-3 °C"),
        ("$1,200", "1200 $ or $1200"),
        ("400 W", "| W | 400 |"),
        ("step 3 of the list", "no numbers here"),
        ("one of them", "no numbers here"),
        ("three modes of it: refuse, flag and off", "no numbers here"),
        ("sha256, P90D and v1.2.3", "no numbers here"),
    ],
)
def test_a_number_says_the_same_however_it_is_written(claimed: str, found: str) -> None:
    assert says(claimed, found)


@pytest.mark.parametrize(
    ("claimed", "found"),
    [
        ("1,000 tokens", "10,000 tokens"),
        ("three steps", "2 steps"),
        ("8 MiB", "8 KiB"),
        ("10 kW", "10 W"),
        ("5 minutes", "5 hours"),
        ("5%", "5 ms"),
        ("4.2", "4.3"),
        ("500 tokens", "480 tokens"),
        ("31 January 2026", "31 March 2026"),
        ("-3 °C", "3 °C"),
        ("UTC+1", "UTC"),
        ("a third", "a quarter"),
    ],
)
def test_another_number_or_unit_does_not(claimed: str, found: str) -> None:
    assert not says(claimed, found)


def test_a_number_is_where_it_says() -> None:
    text = "At most 1,000 of 20 MiB"
    assert [text[each.start : each.end] for each in quantities(text)] == ["1,000", "20 MiB"]


@pytest.mark.slow
@pytest.mark.parametrize("hostile", ["1", "1,", "1 ", "two ", "1.", "1-", "1 in ", "$", "2000-10-", "1 march "])
def test_hostile_text_is_read_in_one_pass(hostile: str) -> None:
    assert len(quantities(hostile * (100_000 // len(hostile)))) <= 100_000
