"""The page at `/`: who gets it, and what it does in a real browser."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import pytest

from asking import Ask, serving
from browsing import CONTRAST, chromium
from fakes import FakeLibrary, FakePack
from octavo_artifact.ids import sha256_hex
from octavo_serve.answering.settings import AnswerSettings, ModelSettings
from octavo_serve.callers.keys import Key
from octavo_serve.requests import SearchRequest
from octavo_serve.results import SearchResult
from octavo_serve.settings import ServerSettings
from running import Serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
KEY = "octavo_" + "k" * 43
KEYED = ServerSettings(port=0, keys=(Key("k", sha256_hex(KEY.encode()), ("*",)),))


def pumps() -> FakeLibrary:
    return FakeLibrary({"pumps": FakePack("pumps")})


@pytest.mark.parametrize(
    ("accept", "page"),
    [
        pytest.param(BROWSER, True, id="a browser"),
        pytest.param("text/html", True, id="HTML only"),
        pytest.param("text/*, application/json;q=0.5", True, id="text rather"),
        pytest.param("*/*", False, id="curl"),
        pytest.param("application/json", False, id="JSON only"),
        pytest.param("application/json, text/html;q=0.9", False, id="JSON rather"),
        pytest.param("text/html;q=0, */*", False, id="no HTML"),
        pytest.param("text/html;q=x, */*;q=0.1", False, id="nonsense"),
        pytest.param("", False, id="nothing said"),
    ],
)
def test_browsers_get_the_page_and_others_the_index(accept: str, page: bool) -> None:
    with serving(pumps(), ServerSettings(port=0)) as ask:
        answer = ask("/", headers={"Accept": accept} if accept else {})
    assert answer.headers["content-type"] == ("text/html; charset=utf-8" if page else "application/json")
    assert answer.headers["vary"] == "Accept"


def test_the_page_needs_no_key_and_the_index_does() -> None:
    with serving(pumps(), KEYED) as ask:
        assert ask("/", headers={"Accept": BROWSER}).status == 200
        assert ask("/", headers={"Accept": BROWSER}, body=b"", method="POST").status == 401
        assert ask("/packs", headers={"Accept": BROWSER}).status == 401
        assert ask("/").status == 401


def test_the_page_is_the_same_for_everybody_and_loads_nothing() -> None:
    def page(ask: Ask) -> str:
        return ask("/", headers={"Accept": BROWSER}).body.decode()

    with serving(pumps(), KEYED) as keyed, serving(FakeLibrary({}), ServerSettings(port=0)) as empty:
        html = page(keyed)
        assert html == page(empty)
        policy = keyed("/", headers={"Accept": BROWSER}).headers["content-security-policy"]
    assert "/*style*/" not in html
    assert re.findall(r"(?:src|href)=[\"'](?!data:)([^\"']+)", html) == ["openapi.json", "healthz"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with chromium() as running:
        yield running


@contextmanager
def shown(browser: Browser, address: str, **options: Any) -> Generator[tuple[Page, list[str], list[str]]]:
    """The page, what the browser complained of, and what it asked for."""
    context = browser.new_context(**options)
    page = context.new_page()
    complaints: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    yield page, complaints, asked
    context.close()


@contextmanager
def address_of(library: FakeLibrary, settings: ServerSettings) -> Generator[str]:
    with serving(library, settings) as ask:
        yield ask.address


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844), (320, 600)], ids=["desktop", "phone", "small"])
def test_a_question_is_asked_by_keyboard_and_the_answer_can_be_read(
    browser: Browser, server: Serving, width: int, height: int, scheme: Literal["light", "dark"]
) -> None:
    size: Any = {"width": width, "height": height}
    with shown(browser, f"{server.address}/", viewport=size, color_scheme=scheme) as (page, complaints, asked):
        page.wait_for_selector("#packs li")
        page.keyboard.press("/")
        page.keyboard.type("how does hard water harm the machine")
        page.keyboard.press("Enter")
        page.wait_for_selector("article")
        first = page.locator("article").first
        assert "Water" in first.inner_text()
        assert re.search(r"tiny/concepts/water\.md:\d+–\d+", first.inner_text())
        first.get_by_role("button").press("Enter")
        page.locator("article pre:not([hidden])").wait_for()
        assert first.locator("pre").inner_text().startswith("---")
        assert page.evaluate(CONTRAST) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert complaints == []
        assert all(url.startswith((server.address, "data:")) for url in asked)


@pytest.mark.slow
def test_an_address_with_a_question_shows_its_answer(browser: Browser, server: Serving) -> None:
    with shown(browser, f"{server.address}/#q=hard+water&pack=tiny") as (page, _, _):
        page.wait_for_selector("article")
        assert page.locator("#pack").input_value() == "tiny"
        assert "of tiny, release " in page.locator("#status").inner_text()


class Sly(FakePack):
    """A pack whose texts try to be more than text."""

    def search(self, request: SearchRequest) -> SearchResult:
        answer = super().search(request)
        script = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
        for hit in answer["results"]:
            hit["text"] = hit["title"] = hit["source_file"] = script
            hit["expired"] = hit["age_stale"] = True
        return {**answer, "doubtful": True}


@pytest.mark.slow
def test_what_a_pack_says_is_shown_and_never_run(browser: Browser) -> None:
    library = FakeLibrary({"pumps": Sly("pumps", description="<b onclick=x>bold</b>")})
    with address_of(library, ServerSettings(port=0)) as address, shown(browser, f"{address}/#q=oil") as (page, told, _):
        page.wait_for_selector("article")
        text = page.locator("main").inner_text()
        assert "<img src=x onerror" in text
        assert "<b onclick=x>bold</b>" in text
        assert "probably no answer" in text
        assert "due to be verified again" in text
        assert page.title() == "Octavo"
        assert page.locator("main img, main script, main b").count() == 0
        assert told == []


@pytest.mark.slow
def test_a_refusal_says_so(browser: Browser) -> None:
    with (
        address_of(pumps(), ServerSettings(port=0)) as address,
        shown(browser, f"{address}/#q=nothing") as (page, _, _),
    ):
        page.wait_for_selector(".notice")
        assert "No passage of these packs answers that." in page.locator("#answer").inner_text()


@pytest.mark.slow
def test_the_page_asks_for_a_key_and_keeps_it_nowhere(browser: Browser) -> None:
    with address_of(pumps(), KEYED) as address, shown(browser, f"{address}/") as (page, _, asked):
        page.wait_for_selector("#keyform:not([hidden])")
        page.fill("#key", "octavo_wrong")
        page.press("#key", "Enter")
        page.get_by_text("This key does not open anything here.").wait_for()
        page.fill("#key", KEY)
        page.press("#key", "Enter")
        page.wait_for_selector("#packs li")
        page.fill("#query", "oil")
        page.press("#query", "Enter")
        page.wait_for_selector("article")
        assert "Authorization" in page.locator("#client").inner_text()
        kept = page.evaluate(
            "[document.cookie, JSON.stringify(localStorage), JSON.stringify(sessionStorage), location.href]"
        )
        assert KEY not in page.content() + "".join(kept) + "".join(asked)
        page.reload()
        page.wait_for_selector("#keyform:not([hidden])")
        assert page.locator("#packs li").count() == 0


def test_the_index_names_questions_only_where_they_are_answered() -> None:
    # nobody is there: the index does not ask the model
    answers = AnswerSettings(ModelSettings("http://127.0.0.1:9/v1", retries=0))
    with serving(pumps(), ServerSettings(port=0, answers=answers)) as ask:
        assert "stream=false" in ask("/").json["endpoints"]["/ask"]
    with serving(pumps(), ServerSettings(port=0)) as ask:
        assert "/ask" not in ask("/").json["endpoints"]
