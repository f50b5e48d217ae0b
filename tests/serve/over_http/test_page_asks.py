"""The page at `/` where a model answers: what people see of an answer in a real browser. The model is scripted."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from asking import serving
from browsing import CONTRAST, chromium
from octavo_serve.answering.prompt import REFUSAL
from octavo_serve.answering.settings import AnswerSettings, ModelSettings
from octavo_serve.catalog import Catalog, open_catalog
from octavo_serve.settings import ServerSettings
from running import OCTAVO
from scripted import CUT, Gate, Script, Scripted, answer, scripted

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TODAY = date(2026, 12, 1)
QUESTION = "How long does black tea steep?"
SAID = "Black tea steeps for four minutes in boiling water [1]."
SLY = "<img src=x onerror=\"document.title='taken'\">"


@pytest.fixture(scope="module")
def catalog(built: Path) -> Catalog:
    return open_catalog(built, TODAY)


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with chromium() as running:
        yield running


class Reader:
    """A person at the page, and the model behind it."""

    def __init__(self, page: Page, model: Scripted) -> None:
        self.page = page
        self.model = model

    def ask(self, question: str = QUESTION) -> None:
        self.page.fill("#query", question)
        self.page.get_by_role("button", name="Ask").press("Enter")

    def asked(self, question: str = QUESTION) -> str:
        """All that an answer says."""
        self.page.evaluate("document.querySelector('.written')?.removeAttribute('aria-busy')")  # the one before
        self.ask(question)
        # a refusal writes nothing that can be seen
        self.page.locator(".written[aria-busy=false]").wait_for(state="attached")
        return self.page.locator("#answer").inner_text()


@contextmanager
def reading(browser: Browser, catalog: Catalog, script: Script, **options: Any) -> Generator[Reader]:
    """The page of a server whose model answers by the script; the browser complains of nothing."""
    with scripted(answer("Hello")) as model:
        settings = ServerSettings(port=0, answers=AnswerSettings(ModelSettings(model.url, retries=0)))
        with serving(catalog, settings) as server:
            # it has its one token first
            assert model.until(lambda: bool(model.requests) and model.busy == 0)
            model.requests.clear()
            model.script = script
            context = browser.new_context(**options)
            page = context.new_page()
            complaints: list[str] = []
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.goto(f"{server.address}/")
            page.locator("#ask").wait_for()
            yield Reader(page, model)
            context.close()
    assert complaints == []


def test_the_page_offers_to_ask_only_where_a_model_answers(browser: Browser, catalog: Catalog) -> None:
    with serving(catalog, ServerSettings(port=0)) as server:
        page = browser.new_page()
        page.goto(f"{server.address}/")
        page.wait_for_selector("#packs li")
        assert page.get_by_role("button", name="Ask").count() == 0
        page.close()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390, 320])
def test_an_answer_comes_as_it_is_written_and_its_citations_lead_to_its_evidence(
    browser: Browser, catalog: Catalog, width: int, scheme: Literal["light", "dark"]
) -> None:
    gate = Gate()
    script = answer("**Black tea** steeps for four", gate, " minutes in boiling water [", "1].", usage=(900, 12))
    size: Any = {"width": width, "height": 844}
    with reading(browser, catalog, script, viewport=size, color_scheme=scheme) as reader:
        page = reader.page
        reader.ask()
        page.locator(".written").get_by_text("steeps for four").wait_for()
        assert page.get_by_role("button", name="Stop").is_visible()
        gate.open()
        page.locator(".written[aria-busy=false]").wait_for()
        assert page.locator(".written strong").inner_text() == "Black tea"
        link = page.locator(".written").get_by_role("link", name="[1], source Tea")
        link.press("Enter")
        card = page.locator("#source-1:focus")
        assert re.search(r"notes/tea time\.md:\d.*never verified.*release [0-9a-f]{12}", card.inner_text(), re.DOTALL)
        marked = card.locator("mark").inner_text()
        assert (marked, card.locator("mark").is_visible()) == (SAID.replace(" [1]", ""), True)
        live = page.locator("[aria-live=polite]").all_inner_texts()
        assert any("is supported by its sources" in text for text in live)
        told = page.locator("#answer").inner_text()
        assert "Every sentence that cites is supported by its sources." in told
        assert "900 tokens read, 12 written" in told
        assert not page.get_by_role("button", name="Stop").is_visible()
        assert page.evaluate(CONTRAST) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
def test_what_does_not_hold_is_marked(browser: Browser, catalog: Catalog) -> None:
    said = "🍵 Tea 🍵.\n\n- Black tea steeps for nine minutes in boiling water [1].\n- Tea is fine [9]."
    with reading(browser, catalog, answer(said)) as reader:
        told = reader.asked()
        page = reader.page
        assert "steeps for nine minutes" in page.locator("li .unsupported").first.inner_text()
        assert page.locator("li .uncited").first.inner_text().startswith("Tea is fine")
        assert page.locator("li .wrong").inner_text() == "[9?]"
        assert re.search(r"nine minutes.* is not supported by \[1\]: it does not have a number of this\.", told)
        assert "It cites a source 9, and there is none." in told
        assert "Every sentence that cites" not in told


@pytest.mark.slow
def test_refusals_failures_and_cut_answers_are_called_so(browser: Browser, catalog: Catalog) -> None:
    with reading(browser, catalog, answer(REFUSAL)) as reader:
        assert "The passages that were found do not answer that." in reader.asked()
        reader.model.requests.clear()
        assert "No passage of these packs answers that." in reader.asked("How are you?")
        assert reader.model.requests == []
        reader.model.script = answer("Black tea", CUT)
        failed = reader.asked()
        assert failed.startswith("Black tea")
        assert "It failed while the model wrote:" in failed
        assert "broke. What is written above is unchecked" in failed
        reader.model.script = answer(SAID, finish="length")
        assert "Cut at its length" in reader.asked()


@pytest.mark.slow
@pytest.mark.parametrize("said", [(), ("Black tea",)], ids=["reads the prompt", "writes"])
def test_stop_stops_the_model(browser: Browser, catalog: Catalog, said: tuple[str, ...]) -> None:
    with reading(browser, catalog, answer(*said, Gate(), "never")) as reader:
        reader.ask()
        assert reader.model.until(lambda: reader.model.busy == 1)
        reader.page.locator("#source-1" if not said else ".written p").wait_for()
        reader.page.get_by_role("button", name="Stop").press("Enter")
        assert reader.model.left.wait(10)
        assert "Stopped." in reader.page.locator("#answer").inner_text()
        assert reader.page.evaluate("document.activeElement.id") == "query"


@pytest.mark.slow
def test_a_search_takes_the_place_of_an_answer(browser: Browser, catalog: Catalog) -> None:
    with reading(browser, catalog, answer("Black", Gate())) as reader:
        reader.ask()
        reader.page.locator(".written p").wait_for()
        reader.page.press("#query", "Enter")
        reader.page.locator("article .passage").first.wait_for()
        assert reader.model.left.wait(10)
        assert reader.page.locator(".written").count() == 0
        assert not reader.page.locator("#stop").is_visible()


@pytest.mark.slow
def test_what_a_model_says_is_shown_and_never_run(browser: Browser, catalog: Catalog) -> None:
    said = f"{SLY} `{SLY}` **{SLY}** [1](javascript:x) [1]\n\n# {SLY}\n\n- {SLY}\n\n| {SLY} |\n\n```html\n{SLY}\n```\n"
    with reading(browser, catalog, answer(said)) as reader:
        told = reader.asked()
        assert reader.page.locator(".written").inner_text().count("<img src=x onerror") == 7
        assert SLY in told
        assert reader.page.title() == "Octavo"
        assert reader.page.locator("main img, main script, main a[href^=javascript]").count() == 0


@pytest.mark.slow
def test_the_copied_receipt_verifies(browser: Browser, catalog: Catalog, built: Path) -> None:
    with reading(browser, catalog, answer(SAID), permissions=["clipboard-read", "clipboard-write"]) as reader:
        reader.asked()
        reader.page.get_by_role("button", name="Copy the receipt").press("Enter")
        reader.page.get_by_role("button", name="Copied").wait_for()
        copied = reader.page.evaluate("navigator.clipboard.readText()")
    assert json.loads(copied)["answer"] == SAID
    command = [str(OCTAVO), "verify-answer", "--dist", str(built)]
    done = subprocess.run(command, input=copied, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "evidence of citations" in done.stdout
