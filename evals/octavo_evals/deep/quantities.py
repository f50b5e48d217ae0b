"""Numbers with their units in a text, and whether two of them can both be true."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_UNITS: dict[str, tuple[str, float]] = {
    # as written: (the unit it is compared in, how many of those it is)
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), ("s", 0.001)),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), ("s", 1)),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), ("s", 60)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), ("s", 3600)),
    **dict.fromkeys(("day", "days"), ("day", 1)),
    **dict.fromkeys(("week", "weeks"), ("day", 7)),
    **dict.fromkeys(("month", "months"), ("day", 30.4375)),
    **dict.fromkeys(("year", "years", "yr", "yrs"), ("day", 365.25)),
    **{name: ("B", factor) for name, factor in (("KB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12))},
    **{name: ("B", factor) for name, factor in (("KiB", 2**10), ("MiB", 2**20), ("GiB", 2**30), ("TiB", 2**40))},
    **{name: ("W", factor) for name, factor in (("mW", 1e-3), ("W", 1), ("kW", 1e3), ("MW", 1e6))},
    **dict.fromkeys(("watt", "watts"), ("W", 1)),
    **{name: ("Wh", factor) for name, factor in (("Wh", 1), ("kWh", 1e3), ("MWh", 1e6))},
    **{name: ("A", factor) for name, factor in (("mA", 1e-3), ("A", 1), ("amp", 1), ("amps", 1))},
    **{name: ("V", factor) for name, factor in (("mV", 1e-3), ("V", 1), ("kV", 1e3), ("volts", 1))},
    **{name: ("Hz", factor) for name, factor in (("Hz", 1), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9))},
    **{name: ("m", factor) for name, factor in (("mm", 1e-3), ("cm", 1e-2), ("m", 1), ("km", 1e3))},
    **dict.fromkeys(("ft", "feet", "foot"), ("ft", 1)),
    **dict.fromkeys(("inch", "inches", '"'), ("ft", 1 / 12)),
    **{name: ("g", factor) for name, factor in (("mg", 1e-3), ("g", 1), ("kg", 1e3))},
    **dict.fromkeys(("lb", "lbs"), ("lb", 1)),
    **dict.fromkeys(("bar",), ("bar", 1)),
    **dict.fromkeys(("psi",), ("psi", 1)),
    **dict.fromkeys(("px", "pixels"), ("px", 1)),
    "%": ("%", 1),
    "°C": ("°C", 1),
    "°F": ("°F", 1),
    "cycles": ("cycles", 1),
    "fps": ("fps", 1),
}
_PRICES = ("$", "€", "£")

_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_UNIT = "|".join(sorted(map(re.escape, _UNITS), key=lambda name: (-len(name), name)))
_TO = r"\s?(?:-|–|—|to|through)\s?"
_QUANTITY = re.compile(
    rf"(?<![\w.,$€£/×x÷:#])(?P<price>[$€£])?(?P<minus>[-–−](?=\d))?(?P<low>{_NUMBER})(?P<kilo_low>[kK](?![\w-]))?"
    rf"(?:\s?(?P<low_unit>°[CF]|%))?"
    rf"(?:{_TO}[$€£]?(?P<high_minus>[-–−](?=\d))?(?P<high>{_NUMBER})(?P<kilo>[kK]\b)?)?"
    rf"(?:[\s-]?(?P<unit>{_UNIT})(?![\w°]))?(?P<per>/[A-Za-z]+|\sper\s[A-Za-z]+)?"
)
MAX_QUANTITIES = 40
"""Of one statement: a line of more is a table of data, not a claim."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number or a range of numbers with its unit."""

    low: float
    high: float
    """Equal to `low` when a single number is given."""
    unit: str
    """The unit that `low` and `high` are in, with what they are reckoned by: `W`, `$`, `$/W`."""
    shown: str
    """As written."""
    start: int
    end: int
    """Characters of the text."""


def quantities(text: str) -> Iterator[Quantity]:
    """The numbers of a text that have a unit, in order; numbers without one are not comparable and are left out."""
    for found in _QUANTITY.finditer(text):
        if quantity := _quantity(found):
            yield quantity


def _quantity(found: re.Match[str]) -> Quantity | None:
    written = found["unit"] or (found["low_unit"] if not found["high"] else None)
    if found["price"]:
        unit, factor = found["price"], 1.0
        if written:
            return None
    elif written:
        unit, factor = _UNITS[written]
    else:
        return None
    low, high = _number(found["low"]), _number(found["high"] or found["low"])
    if found["minus"]:
        low = -low
        high = high if found["high"] else low
    if found["high_minus"]:
        high = -high
    if found["price"] and found["kilo"]:
        low, high = (low if found["kilo_low"] else low * 1e3), high * 1e3
    elif found["price"] and found["kilo_low"]:
        low, high = low * 1e3, high * 1e3
    if found["kilo_low"] and not found["price"]:
        return None
    if low > high:
        return None
    per = re.sub(r"\s|/|per ", "", found["per"] or "")
    return Quantity(
        low * factor, high * factor, f"{unit}/{per}" if per else unit, found.group().strip(), found.start(), found.end()
    )


def _number(written: str) -> float:
    return float(written.replace(",", ""))


def conflict(one: Quantity, other: Quantity, tolerance: float = 0.06) -> bool:
    """Whether they have the same unit and cannot both be true.

    Numbers conflict when they differ by more than `tolerance` of the larger; a number and a range when it lies outside
    by as much; ranges when less than half of the shorter is common to both, or when one end is common and the other
    is not.
    """
    if one.unit != other.unit:
        return False
    slack = tolerance * max(map(abs, (one.low, one.high, other.low, other.high)))
    if max(one.low, other.low) - min(one.high, other.high) > slack:
        return True
    if one.low == one.high or other.low == other.high:
        return False
    common = min(one.high, other.high) - max(one.low, other.low)
    if 2 * common <= min(one.high - one.low, other.high - other.low):
        return True
    same_low, same_high = one.low == other.low, one.high == other.high
    return (same_low != same_high) and abs(one.low - other.low) + abs(one.high - other.high) > slack
