"""The pages in a real browser: nothing is asked of the network, nothing is wrong, and people can read them."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from browsing import CONTRAST, chromium
from lamp import query, results
from octavo_evals.diff.comparison import Comparison
from octavo_evals.pages import diff_page, report_page, write_page
from octavo_evals.report.contents import series_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module", params=["diff", "report"])
def page(request: pytest.FixtureRequest, comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / f"{request.param}.html"
    before = results("a" * 64, query("won", 0.2), query("lost", 1.0), query("kept", 0.7), query("none", 0.0))
    now = results("b" * 64, *(query(name, 0.5, probability=0.5) for name in ("won", "lost", "kept", "none")))
    other = results("c" * 64, query("weak", 0.5, file="storm.md"), slug="other")
    write_page(path, diff_page(comparison) if request.param == "diff" else report_page(series_of([before, now, other])))
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)], ids=["desktop", "phone"])
def test_a_page_is_quiet_fits_and_can_be_read(
    browser: Browser, page: Path, width: int, height: int, scheme: Literal["light", "dark"]
) -> None:
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    shown = context.new_page()
    told: list[str] = []
    asked: list[str] = []
    shown.on("console", lambda message: told.append(message.text))
    shown.on("pageerror", lambda error: told.append(str(error)))
    shown.on("request", lambda request: asked.append(request.url))
    shown.goto(page.as_uri())
    assert shown.evaluate(CONTRAST) == []
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert told == []
    assert asked == [page.as_uri()]
    context.close()


def test_a_page_is_printed_dark_on_light_and_whole(browser: Browser, page: Path) -> None:
    context = browser.new_context(viewport={"width": 700, "height": 900}, color_scheme="dark")
    shown = context.new_page()
    shown.goto(page.as_uri())
    shown.emulate_media(media="print", color_scheme="dark")
    assert shown.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert shown.evaluate(CONTRAST) == []
    assert shown.evaluate("document.documentElement.scrollWidth") <= 700
    context.close()


def test_a_column_sorts_when_its_head_is_pressed(browser: Browser, page: Path) -> None:
    shown = browser.new_page()
    shown.goto(page.as_uri())
    shown.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    table = shown.locator("table.sortable").last
    head = table.locator("thead th").first
    head.get_by_role("button").press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    head.get_by_role("button").press("Enter")
    first = table.locator("tbody tr > :first-child").all_inner_texts()
    assert first == sorted(first)
    shown.close()


def test_a_page_can_be_read_without_script(browser: Browser, page: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    shown = context.new_page()
    shown.goto(page.as_uri())
    assert shown.locator("h1").is_visible()
    assert shown.locator("details").first.locator("summary").is_visible()
    context.close()
