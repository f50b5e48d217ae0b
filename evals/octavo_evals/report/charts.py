"""Where the marks of a chart stand, in the units of its SVG's view box; the templates draw them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from octavo_evals.results import Estimate

WIDTH, HEIGHT = 360.0, 190.0
LEFT, RIGHT, TOP, BOTTOM = 40.0, 348.0, 12.0, 160.0
"""The frame of a chart inside its view box."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A line of the grid and its label."""

    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Dot:
    """A value."""

    x: float
    y: float
    radius: float
    label: str
    """What it is, for those who point at it or cannot see it."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A line of dots over a grid."""

    ticks: tuple[Tick, ...]
    dots: tuple[Dot, ...]
    line: str
    """Points of the line through the dots, as SVG writes them."""
    area: str
    """Points of the band of intervals around it; empty when there are none."""


def trend(estimates: Sequence[Estimate], labels: Sequence[str]) -> Chart:
    """A measure over releases, oldest first, with the band of its intervals."""
    low = min(math.floor(10 * min(each.low for each in estimates)) / 10, 0.9)
    high = max(math.ceil(10 * max(each.high for each in estimates)) / 10, low + 0.1)
    step = (RIGHT - LEFT - 20) / max(1, len(estimates) - 1)
    xs = [_rounded(LEFT + 10 + step * place) for place in range(len(estimates))]

    def y(value: float) -> float:
        return _rounded(BOTTOM - (value - low) / (high - low) * (BOTTOM - TOP))

    upper = [(x, y(each.high)) for x, each in zip(xs, estimates, strict=True)]
    lower = [(x, y(each.low)) for x, each in zip(xs, estimates, strict=True)]
    line = [(x, y(each.mean)) for x, each in zip(xs, estimates, strict=True)]
    return Chart(
        ticks=tuple(Tick(y(value), f"{value:.2f}") for value in (low, (low + high) / 2, high)),
        dots=tuple(
            Dot(x, height, 4.0, f"{label}: {each.mean:.3f} ({each.low:.3f} to {each.high:.3f})")
            for (x, height), label, each in zip(line, labels, estimates, strict=True)
        ),
        line=_points(line),
        area=_points([*upper, *reversed(lower)]),
    )


@dataclass(frozen=True, slots=True)
class Bin:
    """Questions of about one confidence."""

    low: float
    high: float
    count: int
    confidence: float
    """Their mean."""
    right: float
    """Share of them that were answered rightly."""


@dataclass(frozen=True, slots=True)
class Reliability:
    """How far a confidence can be believed: of the questions to which it gives 0.7, 7 of 10 should be right."""

    bins: tuple[Bin, ...]
    """Those that hold a question, from the lowest confidence."""
    count: int
    error: float
    """Expected calibration error: mean distance of confidence and share of right answers, bins weighted by count."""
    brier: float
    """Mean squared distance of confidence and right (1) or wrong (0)."""
    chart: Chart


def reliability(judged: Sequence[tuple[float, bool]], bins: int = 10) -> Reliability:
    """The curve of (confidence from 0 to 1, right) pairs, of at least one, in bins of equal width."""
    held: list[Bin] = []
    for place in range(bins):
        of_bin = [pair for pair in judged if min(int(pair[0] * bins), bins - 1) == place]
        if of_bin:
            confidence, right = (sum(column) / len(of_bin) for column in zip(*of_bin, strict=True))
            held.append(Bin(place / bins, (place + 1) / bins, len(of_bin), round(confidence, 6), round(right, 6)))
    total = len(judged)
    dots = tuple(_bin_dot(each, total) for each in held)
    return Reliability(
        bins=tuple(held),
        count=total,
        error=round(sum(each.count * abs(each.confidence - each.right) for each in held) / total, 6),
        brier=round(sum((confidence - right) ** 2 for confidence, right in judged) / total, 6),
        chart=Chart(
            ticks=tuple(Tick(_rounded(BOTTOM - value * (BOTTOM - TOP)), f"{value:.1f}") for value in (0.0, 0.5, 1.0)),
            dots=dots,
            line=_points([(dot.x, dot.y) for dot in dots]),
            area="",
        ),
    )


def _bin_dot(held: Bin, total: int) -> Dot:
    x = _rounded(LEFT + held.confidence * (RIGHT - LEFT))
    y = _rounded(BOTTOM - held.right * (BOTTOM - TOP))
    radius = _rounded(3 + 7 * math.sqrt(held.count / total))
    return Dot(x, y, radius, f"confidence {held.confidence:.2f}: {held.right:.2f} right, {held.count} questions")


def _rounded(value: float) -> float:
    return round(value, 2)


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in points)
