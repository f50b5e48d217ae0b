"""What the routes answer from real releases, and what of it clients may keep."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from asking import Answer, Ask, serving
from fakes import DIGEST, FakeLibrary, FakePack
from octavo_artifact.ids import sha256_hex
from octavo_serve.callers.keys import Key
from octavo_serve.catalog import Catalog, open_catalog
from octavo_serve.requests import ReadRequest, SearchRequest, TopicsRequest, TraverseRequest
from octavo_serve.settings import ServerSettings
from running import TINY

TODAY = date(2026, 11, 30)
WATER = "how does hard water harm a kettle"
KEY = "octavo_" + "k" * 43
FOR_GOOD = "public, max-age=31536000, immutable"


@pytest.fixture(scope="module")
def catalog(built: Path) -> Catalog:
    return open_catalog(built, TODAY)


@pytest.fixture(scope="module")
def ask(catalog: Catalog) -> Iterator[Ask]:
    with serving(catalog, ServerSettings(port=0)) as ask:
        yield ask


@pytest.fixture(scope="module")
def mounted() -> Iterator[Ask]:
    """A server of a release that is addressed by its digest too."""
    pack = FakePack("pumps")
    with serving(FakeLibrary({"pumps": pack, f"pumps@{DIGEST}": pack}), ServerSettings(port=0)) as ask:
        yield ask


def post(ask: Ask, target: str, body: Any, content_type: str = "application/json") -> Answer:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return ask(target, "POST", {"Content-Type": content_type}, content)


def test_every_route_answers_what_the_pack_does(ask: Ask, catalog: Catalog) -> None:
    tiny = catalog.choose("tiny")
    found = tiny.search(SearchRequest(query=WATER, pack="tiny"))
    assert found["results"]
    name = found["results"][0]["id"]
    read = tiny.read(ReadRequest(id=name))
    walked = tiny.traverse(TraverseRequest(id=name))
    assert ask("/search", q=WATER, pack="tiny").json == found
    assert ask("/packs/tiny/search", q=WATER).json == found
    assert post(ask, "/search", {"query": WATER, "pack": "tiny"}).json == found
    assert post(ask, "/packs/tiny/search", {"query": WATER}).json == found
    assert ask("/read", id=name, pack="tiny").json == ask("/packs/tiny/read", id=name).json == read
    assert ask("/graph", id=name, pack="tiny").json == ask("/packs/tiny/graph", id=name).json == walked
    assert ask("/packs/tiny").json == tiny.topics(TopicsRequest())


def test_packs_are_listed_with_what_they_say_of_themselves(ask: Ask, catalog: Catalog) -> None:
    listed = ask("/packs").json["packs"]
    assert [pack["slug"] for pack in listed] == ["notes", "tiny"]
    for pack, opened in zip(listed, catalog.packs.values(), strict=True):
        own = {"digest": opened.digest, "releases": [opened.digest]}
        assert pack == {**opened.topics(TopicsRequest())["pack"], **own}


def test_a_post_takes_every_field_of_a_request_as_json(ask: Ask, catalog: Catalog) -> None:
    body = {"query": WATER, "tags": [], "max_results": 3, "retrieval": {"diversity": 0.3}, "as_of": "2027-01-31"}
    request = SearchRequest(query=WATER, max_results=3, retrieval={"diversity": 0.3}, as_of=date(2027, 1, 31))
    answer = post(ask, "/search", body, "application/json; charset=UTF-8")
    assert answer.json == catalog.search(request)
    assert (answer.headers["cache-control"], answer.headers.get("etag")) == ("no-store", None)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(b"", 400, id="nothing"),
        pytest.param(b"{", 400, id="half an object"),
        pytest.param(b'{"query": NaN}', 400, id="NaN"),
        pytest.param(b'{"query": "\\ud800"}', 400, id="half a surrogate pair"),
        pytest.param(b'{"query": "\xff"}', 400, id="not UTF-8"),
        pytest.param(b"[" * 100_000, 400, id="deeply nested"),
        pytest.param(b'{"query": "tea"} {}', 400, id="two values"),
        pytest.param(b"[]", 422, id="no object"),
        pytest.param(b"{}", 422, id="no query"),
        pytest.param(b'{"query": "tea", "max_results": "3"}', 422, id="a number as text"),
        pytest.param(b'{"query": "tea", "max_results": 1' + b"0" * 4000 + b"}", 422, id="a number without end"),
        pytest.param(b'{"query": "tea", "retrieval": {"diversity": 1e999}}', 422, id="a number beyond all"),
        pytest.param(b'{"query": "tea", "retrieval": {"gate": false}}', 422, id="a word as false"),
        pytest.param(b'{"query": "tea", "retrieval": {"typo_cost": "0"}}', 422, id="a parameter as text"),
        pytest.param(b'{"query": "tea", "retrieval": {"boosts": {"tag:a": true}}}', 422, id="a boost as true"),
        pytest.param(b'{"q": "tea"}', 422, id="the short name"),
        pytest.param(b'{"query": "' + b"x" * 2001 + b'"}', 422, id="too long"),
    ],
)
def test_a_body_that_is_no_request_is_a_problem_that_repeats_nothing(ask: Ask, body: bytes, status: int) -> None:
    answer = post(ask, "/search", body)
    assert (answer.status, answer.json["status"]) == (status, status)
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.body) < 500
    assert ask("/search", q=WATER).status == 200


def test_a_whole_number_may_be_written_with_a_point(ask: Ask) -> None:
    written = [post(ask, "/search", b'{"query": "water", "max_results": %s}' % number) for number in (b"1", b"1.0")]
    assert written[0].status == 200
    assert written[0].body == written[1].body


@pytest.mark.parametrize(
    "content_type", ["", "text/plain", "application/json; charset=latin-1", "application/jsonp", "text/json"]
)
def test_only_json_is_taken(ask: Ask, content_type: str) -> None:
    answer = post(ask, "/search", {"query": "tea"}, content_type)
    assert (answer.status, answer.headers["accept-post"]) == (415, "application/json")


def test_the_path_names_the_pack_and_nothing_else_does(ask: Ask) -> None:
    assert ask("/packs/tiny/search", q="tea", pack="notes").json["field"] == "pack"
    assert post(ask, "/packs/tiny/search", {"query": "tea", "pack": "notes"}).json["field"] == "pack"
    for target in ("/packs/none", "/packs/none/search?q=tea", "/packs/none/read?id=a", "/packs/none/files/a.md"):
        assert ask(target).status == 404


@pytest.mark.parametrize("target", ["/search?q=kettle", "/packs", "/packs/tiny", "/openapi.json", "/", "/healthz"])
def test_head_has_the_headers_and_no_body(ask: Ask, target: str) -> None:
    get, head = ask(target), ask(target, "HEAD")
    assert (head.status, head.body) == (200, b"")
    moving = {"date", "x-request-id"}
    assert {name: head.headers[name] for name in head.headers.keys() - moving} == {
        name: get.headers[name] for name in get.headers.keys() - moving
    }


TARGETS = [
    f"/search?q={quote(WATER)}",
    f"/search?q={quote(WATER)}&pack=tiny",
    f"/packs/tiny/search?q={quote(WATER)}&as_of=2027-01-01",
    "/packs/tiny/read?path=concepts/water.md",
    "/packs/tiny/graph?path=concepts/water.md",
    "/packs",
    "/packs/tiny",
    "/packs/tiny/files/concepts/water.md",
    "/openapi.json",
]


@pytest.mark.parametrize("target", TARGETS)
def test_what_a_client_has_already_is_not_sent_again(ask: Ask, target: str) -> None:
    answer = ask(target)
    tag = answer.headers["etag"]
    assert (answer.status, answer.headers["cache-control"], tag[0], tag[-1]) == (200, "no-cache", '"', '"')
    for held in (tag, f"W/{tag}", f'"other", {tag}', f'"a,b" , W/{tag}', "*"):
        again = ask(target, headers={"If-None-Match": held})
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
        assert again.headers["cache-control"] == "no-cache"
    for other in ('"other"', tag.strip('"'), tag[:-2] + '"', ""):
        assert ask(target, headers={"If-None-Match": other}).body == answer.body


def test_an_answer_that_the_client_has_is_not_looked_for() -> None:
    pack = FakePack("pumps")
    with serving(FakeLibrary({"pumps": pack}), ServerSettings(port=0)) as ask:
        tag = ask("/search", q="oil").headers["etag"]
        pack.search = lambda request: 1 / 0  # type: ignore[assignment,method-assign]  # nobody may ask
        assert ask("/search", headers={"If-None-Match": tag}, q="oil").status == 304
        assert ask("/search", headers={"If-None-Match": "*"}, q="oil").status == 500


def test_a_star_does_not_make_up_a_document(ask: Ask) -> None:
    assert ask("/packs/tiny/read?path=none.md", headers={"If-None-Match": "*"}).status == 404


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"q": "hard water "}, id="query"),
        pytest.param({"q": "hard water", "n": "3"}, id="parameter"),
        pytest.param({"q": "hard water", "pack": "tiny"}, id="pack"),
        pytest.param({"q": "hard water", "as_of": "2026-12-01"}, id="day"),
    ],
)
def test_another_question_has_another_tag(ask: Ask, other: dict[str, str]) -> None:
    assert ask(f"/search?{urlencode(other)}").headers["etag"] != ask("/search", q="hard water").headers["etag"]


def test_a_question_spelled_otherwise_has_the_same_tag(ask: Ask) -> None:
    plain = ask("/search", q="hard water").headers["etag"]
    same = (
        "/search?n=10&q=hard%20water",
        "/search?tags=&q=hard+water&explain=0",
        "/search?q=hard+water&as_of=2026-11-30",
    )
    assert {ask(target).headers["etag"] for target in same} == {plain}


def test_another_release_another_day_and_other_parameters_of_the_server_have_another_tag(
    built: Path, catalog: Catalog
) -> None:
    def tag(library: Any, **settings: Any) -> str:
        with serving(library, ServerSettings(port=0, **settings)) as ask:
            return ask("/search", q="hard water").headers["etag"]

    tags = {
        tag(catalog),
        tag(open_catalog(built, date(2026, 12, 1))),
        tag(Catalog({"tiny": catalog.choose("tiny")}, {})),
        tag(catalog, retrieval={"diversity": 0.3}),
    }
    assert len(tags) == 4
    assert tag(open_catalog(built, TODAY)) in tags


@pytest.mark.parametrize(
    ("target", "kept"),
    [
        pytest.param(f"/packs/pumps@{DIGEST}/search?q=oil&as_of=2026-11-30", FOR_GOOD, id="by digest and day"),
        pytest.param(f"/search?pack=pumps@{DIGEST}&q=oil&as_of=2026-11-30", FOR_GOOD, id="in the parameter"),
        pytest.param(f"/packs/pumps@{DIGEST}/read?path=a.md&as_of=2026-11-30", FOR_GOOD, id="a document"),
        pytest.param(f"/packs/pumps@{DIGEST}/graph?path=a.md", FOR_GOOD, id="a graph has no day"),
        pytest.param(f"/packs/pumps@{DIGEST}/files/pump.png", FOR_GOOD, id="bytes have no day"),
        pytest.param(f"/packs/pumps@{DIGEST}/search?q=oil", "no-cache", id="without a day"),
        pytest.param("/packs/pumps/search?q=oil&as_of=2026-11-30", "no-cache", id="without a digest"),
        pytest.param("/packs/pumps/files/pump.png", "no-cache", id="bytes of the current release"),
        pytest.param(
            f"/packs/pumps@{DIGEST}/search?q=oil&as_of=2026-11-30&explain=1", "no-store", id="with milliseconds"
        ),
        pytest.param(f"/packs/pumps@{DIGEST}/search?q=oil&n=0", "no-store", id="an error"),
        pytest.param(f"/packs/pumps@{'e' * 64}/search?q=oil", "no-store", id="no such release"),
    ],
)
def test_what_can_never_change_is_kept_for_good(mounted: Ask, target: str, kept: str) -> None:
    assert mounted(target).headers["cache-control"] == kept


def test_an_answer_that_may_be_better_next_time_is_not_kept() -> None:
    class Failing(FakePack):
        def search(self, request: SearchRequest) -> Any:
            return {**super().search(request), "degraded": True, "missing": ["encoder"]}

    with serving(FakeLibrary({"pumps": Failing("pumps")}), ServerSettings(port=0)) as ask:
        answer = ask("/search", q="oil")
    assert (answer.headers["cache-control"], answer.headers.get("etag")) == ("no-store", None)


def test_what_was_answered_to_a_key_is_kept_by_its_holder_only() -> None:
    pack = FakePack("pumps")
    key = Key("k", sha256_hex(KEY.encode()), ("*",))
    library = FakeLibrary({"pumps": pack, f"pumps@{DIGEST}": pack})
    with serving(library, ServerSettings(port=0, keys=(key,))) as ask:

        def kept(target: str) -> tuple[str, str]:
            headers = ask(target, headers={"Authorization": f"Bearer {KEY}"}).headers
            return headers["cache-control"], headers["vary"]

        private = "private, max-age=31536000, immutable"
        assert kept("/packs/pumps/search?q=oil") == ("no-store", "Authorization")
        assert kept(f"/packs/pumps@{DIGEST}/search?q=oil&as_of=2026-11-30") == (private, "Authorization")
        assert kept(f"/packs/pumps@{DIGEST}/files/pump.png") == (private, "Authorization")
        refused = ask(f"/packs/pumps@{DIGEST}/files/pump.png")
        assert (refused.status, refused.headers["cache-control"]) == (401, "no-store")


def test_files_are_the_very_bytes(ask: Ask) -> None:
    paths = sorted(path.relative_to(TINY).as_posix() for path in TINY.rglob("*.md"))
    assert paths
    for path in paths:
        content = (TINY / path).read_bytes()
        answer = ask(f"/packs/tiny/files/{quote(path)}")
        assert (answer.status, answer.body) == (200, content), path
        assert answer.headers["etag"] == f'"{hashlib.sha256(content).hexdigest()}"'
        assert answer.headers["content-type"] == "text/markdown; charset=utf-8"


def test_a_path_with_a_space_has_its_bytes_too(ask: Ask) -> None:
    assert ask("/packs/notes/files/tea%20time.md").body.startswith(b"# Tea")


@pytest.mark.parametrize(
    ("mime_type", "told"),
    [
        ("text/html", "text/html; charset=utf-8"),
        ("image/svg+xml", "image/svg+xml"),
        ("text/html\r\nSet-Cookie: a=b", "application/octet-stream"),
        ("nonsense", "application/octet-stream"),
    ],
)
def test_a_file_of_a_pack_is_never_a_page_of_this_origin(mime_type: str, told: str) -> None:
    pack = FakePack("pumps")
    pack.contents["ep://pumps/file/x"] = (mime_type, b"<script>alert(1)</script>")
    with serving(FakeLibrary({"pumps": pack}), ServerSettings(port=0)) as ask:
        headers = ask("/packs/pumps/files/x").headers
    assert headers["content-type"] == told
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert "set-cookie" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "../manifest.json",
        "..%2f..%2fmanifest.json",
        "%2e%2e/%2e%2e/etc/passwd",
        "%252e%252e%252fmanifest.json",
        "..%5cmanifest.json",
        "/etc/passwd",
        "%00",
        "C:/windows",
        "ep://notes/file/tea%20time.md",
        "",
        "concepts/none.md",
        "documents.parquet",
    ],
)
def test_what_is_no_file_of_the_pack_is_not_found(ask: Ask, path: str) -> None:
    answer = ask(f"/packs/tiny/files/{path}")
    assert answer.status == 404
    assert "detail" not in answer.json or answer.json["detail"].startswith("uri: not a resource of this server")
