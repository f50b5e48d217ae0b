from __future__ import annotations

import json
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from octavo_artifact.errors import ConfigError, RequestError
from octavo_artifact.parameters import Retrieval
from octavo_serve import catalog as catalogs
from octavo_serve.catalog import OpenPack, open_catalog
from octavo_serve.freshness import freshness, last_fresh_day
from octavo_serve.requests import ReadRequest, SearchRequest, TopicsRequest, parse_request
from running import octavo

FIELDS = ("verified_age_days", "age_stale", "expired", "expires_at")
MANIFEST = """slug: fresh
name: Fresh
type: product
version: "1"
context: {on_demand: [archive/]}
freshness: {refresh_cycle: P90D, last_full_review: 2026-Q1, coverage_pct: 3}
"""
PRICE = "<!-- refresh\n  decay: volatile\n  as_of: 2026-Q1\n-->"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages about pumps: verified lately, long ago, never; expired as a whole and in a part."""
    root = tmp_path_factory.mktemp("fresh")
    pages = {
        "overview.md": "title: Overview\nverified_at: 2026-06-01",
        "old.md": "title: Old\nverified_at: 2026-01-31\nrefresh: P1M",
        "never.md": "title: Never",
        "undated.md": "title: Undated\nverified_at: lately",
        "expired.md": "title: Expired\nverified_at: 2026-06-01\nvolatile: {expires_at: 2026-06-09}",
        "archive/gone.md": "title: Gone",
    }
    (root / "pack" / "archive").mkdir(parents=True)
    (root / "pack" / "manifest.yaml").write_text(MANIFEST)
    for path, front in pages.items():
        (root / "pack" / path).write_text(f"---\n{front}\n---\n\nHow a pump is primed with water.\n")
    (root / "pack" / "price.md").write_text(
        f"---\ntitle: Price\nverified_at: 2026-06-01\n---\n## Cost\n\n{'A pump costs money. ' * 30}\n\n{PRICE}\n\n"
        f"## Weight\n\n{'A pump weighs much. ' * 30}\n"
    )
    done = octavo("build", root / "pack", "--out", root / "dist", "--state", root / "state", "-q")
    assert done.returncode == 0, done.stderr
    return root / "dist"


@cache
def opened(dist: Path, today: str) -> OpenPack:
    return open_catalog(dist, date.fromisoformat(today)).choose(None)


def of(answer: Any) -> tuple[Any, ...]:
    return tuple(answer[field] for field in FIELDS)


def hits(pack: OpenPack, query: str = "how is a pump primed") -> dict[str, tuple[Any, ...]]:
    found = pack.search(SearchRequest(query=query, max_results=50))["results"]
    return {" ".join((hit["source_file"], *hit["heading_path"])): of(hit) for hit in found}


@pytest.mark.parametrize(
    ("today", "expected"),
    [
        (
            "2026-06-09",
            {
                "overview.md": (8, False, False, None),
                "old.md": (129, True, False, None),
                "never.md": (None, None, False, None),
                "undated.md": (None, None, False, None),
                "expired.md": (8, False, False, "2026-06-09"),
                "price.md Cost": (8, False, False, "2026-06-30"),
                "price.md Weight": (8, False, False, None),
            },
        ),
        (
            "2026-08-31",
            {
                "overview.md": (91, True, False, None),
                "old.md": (212, True, False, None),
                "never.md": (None, None, False, None),
                "undated.md": (None, None, False, None),
                "expired.md": (91, True, True, "2026-06-09"),
                "price.md Cost": (91, True, True, "2026-06-30"),
                "price.md Weight": (91, True, False, None),
            },
        ),
    ],
)
def test_hits_say_how_fresh_they_are_on_the_day(dist: Path, today: str, expected: dict[str, object]) -> None:
    assert hits(opened(dist, today)) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("overview.md", (9, False, False, None)),
        ("expired.md", (9, False, True, "2026-06-09")),
        ("price.md", (9, False, False, None)),
        ("archive/gone.md", (None, None, False, None)),
    ],
)
def test_reading_and_topics_say_the_same_of_a_document(dist: Path, path: str, expected: tuple[object, ...]) -> None:
    pack = opened(dist, "2026-06-10")
    topics = [topic for each in pack.topics(TopicsRequest())["topics"].values() for topic in each]
    assert of(pack.read(ReadRequest(path=path))) == expected
    assert [of(topic) for topic in topics if topic["path"] == path] == [expected]


@pytest.mark.parametrize(
    ("model", "values"),
    [
        pytest.param(SearchRequest, {"query": "how is a pump primed", "verified_within": 30}, id="search"),
        pytest.param(ReadRequest, {"path": "old.md"}, id="read"),
        pytest.param(TopicsRequest, {}, id="topics"),
    ],
)
def test_a_request_may_name_the_day_itself(dist: Path, model: Any, values: dict[str, Any]) -> None:
    asked = parse_request(model, {**values, "as_of": "2026-06-10"}, strict=True)
    method = {SearchRequest: OpenPack.search, ReadRequest: OpenPack.read, TopicsRequest: OpenPack.topics}[model]
    expected = method(opened(dist, "2026-06-10"), parse_request(model, values, strict=True))
    assert method(opened(dist, "2031-01-01"), asked) == expected
    assert method(opened(dist, "2031-01-01"), parse_request(model, values, strict=True)) != expected


@pytest.mark.parametrize("day", ["20260610", "2026-6-10", "2026-06-31", "0000-01-01", "2026-W01-1", "", 20260610, True])
def test_a_day_has_one_spelling(day: object) -> None:
    with pytest.raises(RequestError, match=r"^as_of: .*expected a day as YYYY-MM-DD"):
        parse_request(SearchRequest, {"query": "pump", "as_of": day}, strict=True)


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_ages_are_told_on_the_first_and_on_the_last_day_there_is(dist: Path, day: str) -> None:
    asked = parse_request(SearchRequest, {"query": "pump", "verified_within": 36_500, "as_of": day}, strict=True)
    assert not opened(dist, "2026-06-10").search(asked)["degraded"]


def test_a_pack_s_freshness_is_counted_and_not_believed(dist: Path) -> None:
    counted = opened(dist, "2026-06-10").topics(TopicsRequest(type="none"))["pack"]["freshness"]
    assert counted == {"coverage_pct": 66.7, "stale": 1, "expired": 1, "last_full_review": "2026-Q1"}
    assert opened(dist, "2026-02-01").topics(TopicsRequest())["pack"]["freshness"]["expired"] == 0


def test_the_same_day_gives_the_same_bytes_and_another_day_others(dist: Path) -> None:
    def answer(today: str) -> str:
        pack = open_catalog(dist, date.fromisoformat(today)).choose(None)
        return json.dumps(pack.search(SearchRequest(query="pump")))

    assert answer("2026-06-09") == answer("2026-06-09") != answer("2026-06-10")


def test_without_a_pinned_day_each_request_has_the_day_it_comes(dist: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock:
        day = 1

        @classmethod
        def now(cls, zone: object) -> Any:
            from datetime import UTC, datetime

            assert zone is UTC
            return datetime(2026, 6, cls.day, 23, tzinfo=UTC)

    monkeypatch.setattr(catalogs, "datetime", Clock)
    pack = open_catalog(dist).choose(None)
    assert pack.read(ReadRequest(path="overview.md"))["verified_age_days"] == 0
    Clock.day = 4
    assert pack.read(ReadRequest(path="overview.md"))["verified_age_days"] == 3
    assert hits(pack)["overview.md"][0] == 3


@pytest.mark.parametrize(
    ("columns", "today", "expected"),
    [
        pytest.param(("2026-01-01", "P90D", None), "2026-04-01", (90, False, False, None), id="the last good day"),
        pytest.param(("2026-01-01", "P90D", None), "2026-04-02", (91, True, False, None), id="the day after"),
        pytest.param(("2026-01-31", "P1M", None), "2026-03-01", (29, True, False, None), id="months of the calendar"),
        pytest.param(("2026-01-01", None, None), "2036-01-01", (3652, None, False, None), id="no cycle"),
        pytest.param((None, "P1D", None), "2026-01-01", (None, None, False, None), id="never verified"),
        pytest.param(("2026", "P1D", None), "2026-05-01", (0, False, False, None), id="a year that is not over"),
        pytest.param((None, None, "2026-01-01"), "2026-01-01", (None, None, False, "2026-01-01"), id="its last day"),
        pytest.param((None, None, "2026-01-01"), "2026-01-02", (None, None, True, "2026-01-01"), id="expired"),
    ],
)
def test_freshness_follows_from_three_columns_and_the_day(
    columns: tuple[str | None, str | None, str | None], today: str, expected: tuple[object, ...]
) -> None:
    assert of(freshness(*columns, date.fromisoformat(today))) == expected


@pytest.mark.parametrize(
    ("verified", "refresh", "expires", "own"),
    [
        ("2026-01-01", "P90D", None, None),
        ("2026-01-01", "P90D", "2026-03-01", None),
        ("2026-01-01", "P90D", "2026-03-01", "2026-02-01"),
        (None, None, None, "2026-02-01"),
        (None, "P1D", None, None),
    ],
)
def test_the_last_fresh_day_is_the_last_on_which_nothing_is_stale_or_expired(
    verified: str | None, refresh: str | None, expires: str | None, own: str | None
) -> None:
    columns = {"verified_at": verified, "refresh": refresh, "expires_at": expires}
    last = last_fresh_day(columns, own)
    for day in (date(2026, 1, 1) + timedelta(n) for n in range(200)):
        found = freshness(verified, refresh, min(filter(None, (expires, own)), default=None), day)
        assert bool(found["age_stale"] or found["expired"]) == (day.toordinal() > last)


def ranking(pack: OpenPack, penalty: float, k: int = 50) -> dict[str, float]:
    request = SearchRequest(query="how is a pump primed", max_results=k, retrieval={"freshness_penalty": penalty})
    found = pack.search(request)["results"]
    scores = [hit["score"] for hit in found]
    assert scores == sorted(scores, reverse=True)
    return {" ".join((hit["id"], *hit["heading_path"])): hit["score"] for hit in found}


def test_the_penalty_lowers_what_is_stale_or_expired_and_nothing_else(dist: Path) -> None:
    pack = opened(dist, "2026-06-10")
    before, after = ranking(pack, 0.0), ranking(pack, 0.5)
    lowered = {name for name, score in after.items() if score != before[name]}
    assert lowered == {"fresh/old", "fresh/expired"}
    assert all(after[name] == pytest.approx(before[name] / 2, abs=1e-6) for name in lowered)


def test_the_penalty_counts_before_the_cut(dist: Path) -> None:
    pack = opened(dist, "2026-06-10")
    assert "fresh/old" in ranking(pack, 0.0, k=3)
    assert list(ranking(pack, 0.5, k=3)) == ["fresh/overview", "fresh/undated", "fresh/never"]


def test_no_penalty_reads_no_table(dist: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a table was read")

    monkeypatch.setattr("octavo_serve.tables.Tables._read", refuse)
    pack = open_catalog(dist).choose(None)
    assert ranking(pack, 0.0)
    with pytest.raises(AssertionError, match="a table was read"):
        ranking(pack, 0.1)


@pytest.mark.parametrize("penalty", [-0.1, 1.1, float("nan")])
def test_a_penalty_is_a_share(penalty: float) -> None:
    with pytest.raises(ConfigError, match=r"freshness_penalty: .*, expected 0 to 1"):
        Retrieval(freshness_penalty=penalty)


def test_the_commands_take_a_day(dist: Path) -> None:
    for command, argument in (("search", "how is a pump primed"), ("read", "expired.md")):
        for today, expired in (("2026-06-09", False), ("2026-06-10", True)):
            done = octavo(command, dist, argument, "--today", today, "--json")
            answer = json.loads(done.stdout)
            found = answer.get("results", [answer])
            assert {each["expired"] for each in found if each["title"] == "Expired"} == {expired}


def test_the_shell_shows_what_is_stale_or_expired(dist: Path) -> None:
    shown = octavo("search", dist, "how is a pump primed", "--today", "2026-06-10", "-n", "20").stdout
    lines = {line.split(":")[0].strip(): line for line in shown.splitlines() if ".md:" in line}
    assert lines["expired.md"].endswith("  expired 2026-06-09")
    assert lines["old.md"].endswith("  stale: verified 130 days ago")
    assert {name for name, line in lines.items() if "stale" in line or " expired " in line} == {"expired.md", "old.md"}


@pytest.mark.parametrize("today", ["20260609", "2026-6-9", "2026-W24-2", "2026-02-30", "2026", "today"])
@pytest.mark.parametrize("command", [("search", "q"), ("read", "a.md"), ("serve",), ("stdio",)])
def test_a_day_of_another_form_is_refused(dist: Path, command: tuple[str, ...], today: str) -> None:
    from octavo_serve.cli import main

    with pytest.raises(SystemExit) as left:
        main([command[0], str(dist), *command[1:], "--today", today])
    assert left.value.code == 2
