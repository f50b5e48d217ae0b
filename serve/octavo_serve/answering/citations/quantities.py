"""Numbers of a text with their units, as figures or words, and whether one says what another does.

1,000 is 1000, two is 2, half is 50 %, 1.5 KiB is 1,536 bytes. Figures inside of names (`sha256`, `P90D`) and versions
(`1.2.3`) are no numbers: they are compared letter by letter, as literals.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

_ROUGHLY = 0.1
"""Part of a number by which one that is said to be rough may differ."""
_EXACTLY = 0.001
_CALENDAR = 0.03
"""Months and years have no one length in days."""

RATIO, TIMES, MONTH = "ratio", "times", "month of the year"


def _units(dimension: str, **factors: float) -> dict[str, tuple[str, float]]:
    return {name: (dimension, factor) for names, factor in factors.items() for name in names.split("_")}


_UNITS: Mapping[str, tuple[str, float]] = {
    **_units("second", ms_millisecond_milliseconds=1e-3, s_sec_secs_second_seconds=1, min_mins_minute_minutes=60),
    **_units("second", h_hr_hrs_hour_hours=3600, day_days=86_400, week_weeks=604_800),
    **_units("second", month_months=2_629_800, year_years_yr_yrs=31_557_600),
    **_units("byte", B_byte_bytes=1, KB_kB=1e3, MB_megabyte_megabytes=1e6, GB_gigabyte_gigabytes=1e9, TB=1e12),
    **_units("byte", KiB=2**10, MiB=2**20, GiB=2**30, TiB=2**40),
    **_units("bit", bit_bits=1),
    **_units("watt", mW=1e-3, W_watt_watts=1, kW_kilowatt_kilowatts=1e3, MW=1e6),
    **_units("watt hour", Wh=1, kWh=1e3, MWh=1e6),
    **_units("ampere", mA=1e-3, A_amp_amps=1),
    **_units("ampere hour", mAh=1e-3, Ah=1),
    **_units("volt", mV=1e-3, V_volt_volts=1, kV=1e3),
    **_units("hertz", Hz=1, kHz=1e3, MHz=1e6, GHz=1e9),
    **_units("metre", mm=1e-3, cm=1e-2, m_metre_metres_meter_meters=1, km=1e3),
    **_units("metre", inch_inches=0.0254, ft_foot_feet=0.3048, mile_miles=1609.344),
    **_units("gram", mg=1e-3, g_gram_grams=1, kg_kilogram_kilograms=1e3, lb_lbs_pound_pounds=453.6),
    **_units("pixel", px_pixel_pixels=1),
    **_units("frame a second", fps=1),
    **_units(RATIO, percent=0.01),
    **_units(TIMES, x_times=1),
    "%": (RATIO, 0.01),
    "×": (TIMES, 1),
    "°C": ("°C", 1),
    "°F": ("°F", 1),
    "$": ("$", 1),
    "€": ("€", 1),
    "£": ("£", 1),
}
_ANY_CASE = {name.lower(): unit for name, unit in _UNITS.items() if len(name) > 1 and name not in ("mW", "MW")}

_SMALL = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_CARDINALS = {
    **{word: float(number) for number, word in enumerate(f"{_SMALL} seventeen eighteen nineteen".split())},
    **{
        word: 10.0 * number
        for number, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)
    },
    "dozen": 12.0,
}
_SCALES = {"hundred": 100.0, "thousand": 1e3, "million": 1e6, "billion": 1e9}
_ORDINALS = {
    **{word: float(number) for number, word in enumerate("fourth fifth sixth seventh eighth ninth tenth".split(), 4)},
    "fiftieth": 50.0,
    "hundredth": 100.0,
}
_PARTS = {
    **{"half": 0.5, "halves": 0.5, "quarter": 0.25, "quarters": 0.25, "third": 1 / 3, "thirds": 1 / 3},
    **{"fifth": 0.2, "fifths": 0.2, "tenth": 0.1, "tenths": 0.1, "hundredth": 0.01},
}
_SINGULAR_PARTS = frozenset(("third", "fifth", "tenth", "hundredth"))
_FOLDS = {"twice": 2.0, "double": 2.0, "doubles": 2.0, "doubled": 2.0, "triple": 3.0, "threefold": 3.0, "thrice": 3.0}
_MONTHS = {
    name[:length]: float(number)
    for number, name in enumerate(
        "january february march april may june july august september october november december".split(), 1
    )
    for length in (3, len(name))
}

NUMBER_WORDS = frozenset({*_CARDINALS, *_SCALES, *_ORDINALS, *_PARTS, *_FOLDS})
_NUMBER = re.compile(
    rf"(?<![\w.])(?P<currency>[$€£])?\s?(?P<minus>(?<![\w)\]-])[-−](?=\d))?"
    rf"(?P<figures>\d{{1,3}}(?:[,\u00a0\u202f]\d{{3}})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?)(?![.\d]*\d)"
    rf"(?P<kilo>k(?!\w))?(?:st|nd|rd|th)?(?:(?P<direct>[^\W\d_]{{1,4}}(?!\w)|%|×|°[CF])|(?!\w))"
    rf"|(?<!\w)(?P<word>{'|'.join(sorted(NUMBER_WORDS))})(?!\w)",
    re.IGNORECASE,
)
_UNIT = re.compile(r"[\s\u00a0-]?(?P<unit>%|×|°\s?[CF]|[^\W\d_]+)(?![\w])")
_RANGE = re.compile(r"\s?(?:[-–—−~x×/]|to|and|or|through|up to)\s?", re.IGNORECASE)
_PER = re.compile(r"\s(?:in|out of|of every)\s", re.IGNORECASE)
_HEDGE = re.compile(
    r"(?:about|around|roughly|approximately|approx\.?|nearly|almost|circa|ca\.|some|[~≈])\s?\Z", re.IGNORECASE
)
_COUNTED = re.compile(r"(?:step|steps|item|point|rule|option)\s\Z", re.IGNORECASE)
_INTRODUCES = re.compile(r"(?:[\s-][^\W\d_]+){1,4}:\s")
"""What is counted and then listed: `three modes: refuse, flag and off`."""
_DAY_MONTH = re.compile(r"\s?(?:of\s)?([^\W\d_]{3,9})\b")
_MONTH_DAY = re.compile(r"\b([^\W\d_]{3,9})\.?\s\Z")
_ISO_DATE = re.compile(r"\b\d{4}-(\d{2})(?:-\d{2})?\b")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of a text."""

    written: float
    """In the unit that it was written in."""
    value: float
    """In the unit of its dimension."""
    unit: str
    """The dimension; empty when the unit is none that is known, as in `40 digits`."""
    start: int
    end: int
    """Characters of the text, with a unit that is known."""
    rough: bool = False
    """Whether the text says that it is about so much."""
    claimed: bool = True
    """Whether it is a statement of how many: `one` often is not, `step 3` counts nothing, and who lists may count."""

    def says(self, other: Quantity) -> bool:
        """Whether `other` may stand for this."""
        if self.unit and other.unit and self.unit == other.unit:
            part = _CALENDAR if self.unit == "second" and max(self.value, other.value) >= 86_400 * 28 else _EXACTLY
            return self._near(self.value, other.value, part)
        if RATIO in (self.unit, other.unit) and "" in (self.unit, other.unit):
            return self._near(self.value, other.value, _EXACTLY) or self._near(self.written, other.written, _EXACTLY)
        return (not self.unit or not other.unit) and self._near(self.written, other.written, _EXACTLY)

    def _near(self, one: float, other: float, part: float) -> bool:
        return abs(one - other) <= (_ROUGHLY if self.rough else part) * max(abs(one), abs(other))


def quantities(text: str) -> list[Quantity]:
    """The numbers of a text in order; the time is linear in its length."""
    found: list[Quantity] = []
    for match in _NUMBER.finditer(text):
        if quantity := _word(text, match, found) if match["word"] else _figures(text, match):
            found.append(quantity)
    for match in _ISO_DATE.finditer(text):
        found.append(Quantity(float(match[1]), float(match[1]), MONTH, match.start(1), match.end(1)))
    return sorted(_joined(text, found), key=lambda quantity: quantity.start)


def _figures(text: str, match: re.Match[str]) -> Quantity | None:
    written = float(re.sub(r"[^\d.]", "", match["figures"])) * (-1 if match["minus"] else 1)
    end = match.end()
    unit: tuple[str, float] | None = None
    if match["kilo"]:
        written *= 1000
    elif match["direct"]:
        unit = _unit(match["direct"])
        if unit is None:
            return None
    if match["currency"]:
        unit = _UNITS[match["currency"]]
    elif unit is None and (after := _UNIT.match(text, end)) and (unit := _unit(after["unit"])):
        end = after.end()
    dimension, factor = unit or ("", 1.0)
    before = text[max(0, match.start() - 16) : match.start()]
    return Quantity(
        written,
        written * factor,
        dimension,
        match.start("figures"),
        end,
        rough=bool(_HEDGE.search(before)),
        claimed=not _COUNTED.search(before),
    )


def _word(text: str, match: re.Match[str], before: list[Quantity]) -> Quantity | None:
    """A number in words; it is joined with the words of a number right before it."""
    word = match["word"].lower()
    last = before[-1] if before and text[before[-1].end : match.start()] in (" ", "-") else None
    if word in _SCALES:
        if last is None or last.unit:
            return None
        before[-1] = replace(
            last, written=last.written * _SCALES[word], value=last.written * _SCALES[word], end=match.end()
        )
        return None
    article = text[max(0, match.start() - 3) : match.start()].lower()
    if word in _PARTS and (word not in _SINGULAR_PARTS or article.endswith(("a ", "one "))):
        times = last.written if last and not last.unit else 1
        if last and not last.unit:
            before.pop()
        # a quarter may be three months, and a half one of two
        claimed = times != 1 or text.startswith(" of ", match.end()) or word not in ("half", "quarter")
        part = _PARTS[word] * times
        return Quantity(part, part, RATIO, match.start(), match.end(), claimed=claimed)
    if word in _FOLDS:
        return Quantity(_FOLDS[word], _FOLDS[word], TIMES, match.start(), match.end(), claimed=word != "double")
    if word in _SINGULAR_PARTS and word not in _ORDINALS:
        return None
    written = _CARDINALS.get(word, _ORDINALS.get(word, 0.0))
    if last and last.written in range(20, 100, 10) and written < 10 and text[last.start : last.start + 1].isalpha():
        before[-1] = replace(last, written=last.written + written, value=last.written + written, end=match.end())
        return None
    end = match.end()
    unit = None
    if (after := _UNIT.match(text, end)) and (unit := _unit(after["unit"])):
        end = after.end()
    dimension, factor = unit or ("", 1.0)
    rough = bool(_HEDGE.search(text[max(0, match.start() - 16) : match.start()]))
    claimed = word not in ("one", "zero", "fifth", "tenth") and (unit is not None or not _INTRODUCES.match(text, end))
    return Quantity(written, written * factor, dimension, match.start(), end, rough, claimed)


def _unit(name: str) -> tuple[str, float] | None:
    name = name.replace(" ", "")
    return _UNITS.get(name) or (_ANY_CASE.get(name.lower()) if len(name) > 1 else None)


def _joined(text: str, found: list[Quantity]) -> list[Quantity]:
    """The numbers, with the unit of the second for the first of a range, with shares and months recognised."""
    joined = list(found)
    for place in range(len(found) - 2, -1, -1):
        one, other = joined[place], joined[place + 1]
        between = text[one.end : other.start]
        if len(between) > 12:
            continue
        if not one.unit and other.unit and _RANGE.fullmatch(between) and other.unit not in (MONTH, TIMES):
            factor = other.value / other.written if other.written else 1.0
            joined[place] = replace(one, value=one.written * factor, unit=other.unit)
        elif _PER.fullmatch(between) and other.written > one.written > 0 and not one.unit and not other.unit:
            share = one.written / other.written
            joined.append(Quantity(share, share, RATIO, one.start, other.end, claimed=False))
    for quantity in found:
        before = _MONTH_DAY.search(text[max(0, quantity.start - 12) : quantity.start])
        for name in (_DAY_MONTH.match(text, quantity.end), before):
            month = _MONTHS.get(name[1].lower()) if name else None
            if month:
                joined.append(Quantity(month, month, MONTH, quantity.start, quantity.end))
    return joined
