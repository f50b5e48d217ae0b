from __future__ import annotations

import pytest

from octavo_evals.deep.quantities import conflict, quantities
from octavo_evals.deep.statements import statements


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("10 kW continuous", [(10_000, 10_000, "W")], id="unit"),
        pytest.param("delivers 11.5kW", [(11_500, 11_500, "W")], id="no space"),
        pytest.param("~$10,500-14,000 installed", [(10_500, 14_000, "$")], id="price range"),
        pytest.param("PW3 ~$10.5-14K", [(10_500, 14_000, "$")], id="thousands"),
        pytest.param("$7/month", [(7, 7, "$/month")], id="price per month"),
        pytest.param("–4°F to 122°F", [(-4, 122, "°F")], id="negative range"),
        pytest.param("(32°F–122°F / 0°C–50°C)", [(32, 122, "°F"), (0, 50, "°C")], id="two ranges"),
        pytest.param("6-18 months", [(6 * 30.4375, 18 * 30.4375, "day")], id="months in days"),
        pytest.param("a 10-year warranty", [(3652.5, 3652.5, "day")], id="hyphen"),
        pytest.param("3,000–8,000 kWh/year", [(3e6, 8e6, "Wh/year")], id="rate"),
        pytest.param("version 2.1, in 2026, section 3", [], id="no unit"),
        pytest.param("model X10 kW-rated", [], id="part of a name"),
        pytest.param("20–10 W", [], id="no range"),
    ],
)
def test_numbers_are_read_with_their_units(text: str, expected: list[tuple[float, float, str]]) -> None:
    assert [(each.low, each.high, each.unit) for each in quantities(text)] == expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param("11.5 kW", "10 kW", True, id="different"),
        pytest.param("9.8 kW", "10 kW", False, id="rounded"),
        pytest.param("10 kW", "10,000 W", False, id="the same in another unit"),
        pytest.param("10 kW", "10 kWh", False, id="another unit"),
        pytest.param("$9,200", "$10,500-14,000", True, id="outside a range"),
        pytest.param("$12,000", "$10,500-14,000", False, id="inside a range"),
        pytest.param("6-18 months", "1-3 years", True, id="ranges that hardly meet"),
        pytest.param("6-12 months", "7-11 months", False, id="a range within a range"),
        pytest.param("–4°F to 122°F", "32°F–122°F", True, id="one end differs"),
    ],
)
def test_two_quantities_conflict_when_they_cannot_both_be_true(one: str, other: str, expected: bool) -> None:
    (left,), (right,) = quantities(one), quantities(other)
    assert conflict(left, right) is conflict(right, left) is expected


def test_a_text_is_taken_apart_into_what_it_states() -> None:
    text = (
        "# Pump\n\nIt *hums*. It weighs [2 kg](a.md).\n<!-- 3 kg -->\n```\n4 kg\n```\n"
        "- [ ] oil it\n\n| part | mass |\n|---|---|\n| seal | 5 g |\n"
    )
    assert [(each.line, each.text) for each in statements(text)] == [
        (2, "It hums."),
        (2, "It weighs 2 kg."),
        (7, "oil it"),
        (11, "seal, mass: 5 g"),
    ]
