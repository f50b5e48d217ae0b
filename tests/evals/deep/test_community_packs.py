"""What the deep checks find in packs that others wrote; judged by reading each finding."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from octavo_evals.deep.checks import CHECKS, find
from running import octavo

pytestmark = [pytest.mark.shared, pytest.mark.slow]

REAL = {
    ("solar-diy", "10 kW", "11.5 kW"),
    ("solar-diy", "32°F–122°F", "–4°F to 122°F"),
    ("solar-diy", "$9,200", "$10,500-14,000"),
    ("solar-diy", "$10,500", "$12,000-16,000"),
    ("solar-diy", "7.6 kW", "9.6 kW"),
    ("solar-diy", "3,000–8,000 kWh/year", "2,000–4,000 kWh/year"),
    ("solar-diy", "5–15 kW", "10-15 kW"),
    ("home-assistant", "6-18 months", "1-3 years"),
    ("home-assistant", "$7/month", "$6.50/month"),
}
"""Contradictions that a reader agrees are some: pack, and two of the numbers."""


@pytest.fixture(scope="module")
def dist(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("community")
    packs = [shared / "packs" / slug for slug in ("blender-3d", "home-assistant", "solar-diy")]
    done = octavo("build", *packs, "--out", root / "dist", "--state", root / "state", "-q", timeout=1200)
    assert done.returncode == 0, done.stderr
    return root / "dist"


def told(dist: Path, slug: str, *codes: str) -> list[tuple[str, str]]:
    found = find(dist / slug, top=5, codes=frozenset(codes), today=None, progress=lambda doing, done, total: None)
    return [(finding["code"], finding["message"]) for finding in found["findings"]]


def test_real_contradictions_are_found_with_few_others(dist: Path) -> None:
    messages = [
        (slug, message)
        for slug in ("blender-3d", "home-assistant", "solar-diy")
        for _, message in told(dist, slug, "deep-contradiction")
    ]
    numbers = [(slug, re.findall(r"says (.+?): \"", message)) for slug, message in messages]
    missing = {real for real in REAL if not any(slug == real[0] and {*real[1:]} <= {*found} for slug, found in numbers)}
    assert missing == set()
    assert len(messages) <= 13


@pytest.mark.parametrize(
    ("slug", "headings", "unreachable"),
    [
        pytest.param("blender-3d", 15, 3, id="blender-3d"),
        pytest.param("home-assistant", 21, 1, id="home-assistant"),
        pytest.param("solar-diy", 15, 1, id="solar-diy"),
    ],
)
def test_the_other_findings_are_as_many_as_were_judged(slug: str, headings: int, unreachable: int, dist: Path) -> None:
    every = frozenset[str]().union(*CHECKS.values()) - {"deep-contradiction"}
    counts = Counter(code for code, _ in told(dist, slug, *every))
    assert counts.pop("deep-heading-lost") <= headings
    assert counts.pop("deep-unreachable") <= unreachable
    assert counts == {}
