"""What browsers are told about pages of other origins."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from asking import Ask, serving
from fakes import FakeLibrary, FakePack
from octavo_artifact.ids import sha256_hex
from octavo_serve.callers.keys import Key
from octavo_serve.settings import ServerSettings

PAGE = "https://app.example.org"
KEY = "octavo_" + "k" * 43
SEARCH, MCP = "/search", "/packs/pumps/mcp"
ALLOWED = "access-control-allow-origin"


@pytest.fixture(scope="module")
def keyed() -> Iterator[Ask]:
    key = Key("k", sha256_hex(KEY.encode()), ("*",))
    settings = ServerSettings(port=0, allowed_origins=(PAGE, "http://localhost:3000"), keys=(key,), max_body=1000)
    with serving(FakeLibrary({"pumps": FakePack("pumps")}), settings) as ask:
        yield ask


def names(header: str) -> set[str]:
    return {name.strip().lower() for name in header.split(",")}


@pytest.mark.parametrize(
    ("path", "methods"), [(SEARCH, "GET, HEAD, POST"), *((path, "POST") for path in (MCP, "/mcp", "/ask"))]
)
def test_a_browser_may_ask_before_it_has_a_key(keyed: Ask, path: str, methods: str) -> None:
    asked = "authorization,content-type,mcp-protocol-version,mcp-method,mcp-name,mcp-param-region"
    answer = keyed(
        path,
        "OPTIONS",
        {"Origin": PAGE, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": asked},
    )
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers[ALLOWED] == PAGE
    assert answer.headers["access-control-allow-methods"] == methods
    assert names(asked) <= names(answer.headers["access-control-allow-headers"])
    assert names("Origin, Access-Control-Request-Method, Access-Control-Request-Headers") <= names(
        answer.headers["vary"]
    )
    assert "access-control-allow-credentials" not in answer.headers


def test_headers_that_are_not_known_are_not_allowed(keyed: Ask) -> None:
    asked = "x-evil, cookie, mcp-param-, *, mcp-param-a b"
    preflight = {"Origin": PAGE, "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": asked}
    assert not names(asked) & names(keyed(SEARCH, "OPTIONS", preflight).headers["access-control-allow-headers"])


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
@pytest.mark.parametrize("path", [SEARCH, MCP])
@pytest.mark.parametrize("origin", ["https://evil.example", "null", f"{PAGE}.evil.example", f"{PAGE}:8443"])
def test_other_origins_are_refused_and_told_nothing(keyed: Ask, method: str, path: str, origin: str) -> None:
    answer = keyed(path, method, {"Origin": origin, "Access-Control-Request-Method": "POST"})
    assert answer.status == 403
    assert ALLOWED not in answer.headers


def test_an_allowed_page_does_not_reach_a_host_that_is_not_known(keyed: Ask) -> None:
    preflight = {"Origin": PAGE, "Access-Control-Request-Method": "POST", "Host": "evil.example"}
    answer = keyed(SEARCH, "OPTIONS", preflight)
    assert answer.status == 421
    assert ALLOWED not in answer.headers


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        pytest.param("GET", "/search?q=oil", {"Authorization": f"Bearer {KEY}"}, 200, id="answer"),
        pytest.param("GET", "/search?q=oil", {}, 401, id="no key"),
        pytest.param("POST", MCP, {}, 401, id="no key for MCP"),
        pytest.param("GET", MCP, {}, 405, id="method"),
        pytest.param("POST", MCP, {"Content-Length": "1001"}, 413, id="too large"),
        pytest.param("GET", "/nowhere", {"Authorization": f"Bearer {KEY}"}, 404, id="no such path"),
    ],
)
def test_an_allowed_page_may_read_the_answer_whatever_it_is(
    keyed: Ask, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    answer = keyed(path, method, {"Origin": PAGE, **headers})
    assert (answer.status, answer.headers[ALLOWED]) == (status, PAGE)
    exposed = names("octavo-digest, ETag, Retry-After, WWW-Authenticate, Mcp-Session-Id")
    assert exposed <= names(answer.headers["access-control-expose-headers"])
    assert "origin" in names(answer.headers["vary"])


def test_caches_know_that_answers_differ_by_origin(keyed: Ask) -> None:
    answer = keyed("/search?q=oil", headers={"Authorization": f"Bearer {KEY}"})
    assert names(answer.headers["vary"]) == {"origin", "authorization"}
    assert ALLOWED not in answer.headers


def test_its_own_pages_need_no_permission(keyed: Ask) -> None:
    own = keyed("/healthz", headers={"Host": "localhost:1234", "Origin": "http://localhost:1234"})
    assert own.status == 200
    assert ALLOWED not in own.headers


def test_without_the_setting_nothing_is_said_of_origins() -> None:
    with serving(FakeLibrary({"pumps": FakePack("pumps")}), ServerSettings(port=0)) as ask:
        answer = ask("/search?q=oil")
    assert "vary" not in answer.headers
    assert not [name for name in answer.headers if name.startswith("access-control")]
