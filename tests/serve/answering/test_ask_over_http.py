"""`POST /ask` over real sockets, and by hand where a socket could not say it; the model is scripted."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message

from listening import Running, listening, swapped
from octavo_artifact.ids import sha256_hex
from octavo_serve.answering.prompt import REFUSAL
from octavo_serve.answering.settings import AnswerSettings, ModelSettings
from octavo_serve.callers.keys import Key, new_key
from octavo_serve.callers.rates import RateLimit
from octavo_serve.catalog import Catalog, open_catalog
from octavo_serve.over_http.app import create_app
from octavo_serve.over_http.asking import event_of
from octavo_serve.over_http.edge import MAX_QUESTION
from octavo_serve.settings import ServerSettings
from running import LIGHTHOUSE, octavo
from scripted import CUT, Gate, Script, Scripted, answer, refusal, scripted

TODAY = date(2026, 6, 30)
QUESTION = "How bright is the lamp, in watts?"
UNRELATED = "Which vaccine is given against yellow fever?"
SAID = "The lamp burns at 1,000 watts [1]."
WARM = answer("Hello")
TIMEOUT = 10


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    root = tmp_path_factory.mktemp("ask")
    notes = root / "notes"
    notes.mkdir()
    (notes / "pack.yaml").write_text("slug: notes\nname: Notes\n")
    (notes / "tea.md").write_text("# Tea\n\nBlack tea steeps for four minutes in boiling water.\n")
    done = octavo("build", LIGHTHOUSE, notes, "--out", root / "dist", "--state", root / "state", "-q")
    assert done.returncode == 0, done.stderr
    return open_catalog(Path(root / "dist"), TODAY)


def settings_of(model: Scripted, **options: Any) -> ServerSettings:
    asking = {
        name: options.pop(name) for name in ("max_concurrent", "heartbeat_seconds", "reader_timeout") if name in options
    }
    answers = AnswerSettings(ModelSettings(model.url, retries=0), **asking)
    return ServerSettings(port=0, answers=answers, **options)


@dataclass(frozen=True)
class Asking:
    server: Running
    model: Scripted

    def post(self, body: Any = None, target: str = "/ask", key: str | None = None, **fields: Any) -> Any:
        return self.server.post(target, key, {"question": QUESTION, **fields} if body is None else body)

    def events(self, **fields: Any) -> list[tuple[str, Any]]:
        answered = self.post(**fields)
        assert answered.status == 200, answered.body
        assert answered.headers["content-type"] == "text/event-stream"
        return read_events(answered.body)

    def whole(self, target: str = "/ask?stream=false", **fields: Any) -> Any:
        return self.post(target=target, **fields)


def read_events(body: bytes) -> list[tuple[str, Any]]:
    """The events of a stream; comments are left out."""
    events: list[tuple[str, Any]] = []
    for block in body.decode().removesuffix("\n\n").split("\n\n"):
        if not block.startswith(":"):
            name, data = block.split("\n")
            events.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return events


@contextmanager
def asking(catalog: Catalog, script: Script, **options: Any) -> Generator[Asking]:
    with scripted(WARM) as model, listening(catalog, settings_of(model, **options)) as server:
        warmed(model, script)
        yield Asking(server, model)


def warmed(model: Scripted, script: Script) -> None:
    """Wait until the server has had its one token, then go on by the script."""
    assert model.until(lambda: bool(model.requests) and model.busy == 0)
    model.requests.clear()
    model.script = script


@pytest.fixture(scope="module")
def good(catalog: Catalog) -> Generator[Asking]:
    with asking(catalog, answer("The lamp burns", " at 1,000 watts [", "1].", usage=(900, 12))) as asked:
        yield asked


def test_a_stream_is_sources_pieces_and_done(good: Asking):
    events = good.events(pack="lighthouse")
    names = [name for name, _ in events]
    assert names == ["sources", *["token"] * (len(events) - 2), "done"]
    assert len(events) > 3
    assert "".join(data["text"] for _, data in events[1:-1]) == SAID == events[-1][1]["answer"]
    assert events[-1][1]["citations"][0]["supported"] is True


def test_a_stream_may_be_kept_by_nobody_and_names_its_release(good: Asking, catalog: Catalog):
    headers = good.post(pack="lighthouse").headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-accel-buffering"] == "no"
    assert headers["octavo-digest"] == catalog.packs["lighthouse"].digest


def test_an_envelope_has_all_of_it_at_once(good: Asking, catalog: Catalog):
    answered = good.whole(pack="lighthouse")
    assert (answered.status, answered.headers["content-type"]) == (200, "application/json")
    assert answered.headers["cache-control"] == "no-store"
    envelope = answered.json
    assert (envelope["success"], envelope["error"]) == (True, None)
    data = envelope["data"]
    assert data["answer"] == SAID
    assert (data["pack"], data["digest"]) == ("lighthouse", catalog.packs["lighthouse"].digest)
    assert data["sources"][0]["number"] == 1
    assert data["trace_id"]


def test_filters_of_json_choose_the_documents(good: Asking):
    filters = {"tags": ["no such tag"], "verified_within": 30.0, "type": None}
    assert good.whole(pack="lighthouse", filters=filters).json["data"]["sources"] == []
    assert good.whole(pack="lighthouse", filters={"tags": []}).json["data"]["sources"] != []


def test_the_pack_may_be_named_by_the_path(good: Asking):
    envelope = good.whole("/packs/lighthouse/ask?stream=false").json
    assert envelope["data"]["pack"] == "lighthouse"


def test_all_packs_are_asked_where_none_is_named(good: Asking):
    assert good.whole().json["data"]["pack"] is None


@pytest.mark.parametrize("question", [UNRELATED, "Hello", "How are you?", "zzzz qqqq"])
def test_b34_what_the_pack_does_not_speak_of_is_refused_without_the_model(good: Asking, question: str):
    good.model.requests.clear()
    events = good.events(question=question, pack="lighthouse")
    assert [name for name, _ in events] == ["sources", "done"]
    assert events[-1][1]["reason"] == "no_relevant_passage"
    answered = good.whole(question=question, pack="lighthouse")
    assert (answered.status, answered.json["success"]) == (200, True)
    assert (answered.json["data"]["refused"], answered.json["data"]["answer"]) == (True, REFUSAL)
    assert good.model.requests == []


def test_b34_what_the_sources_do_not_answer_is_refused_as_the_model_says(catalog: Catalog):
    with asking(catalog, answer(REFUSAL)) as ask:
        events = ask.events(question="Who painted the lamp red?", pack="lighthouse")
    assert (events[-1][0], events[-1][1]["refused"], events[-1][1]["reason"]) == ("done", True, "not_in_sources")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        pytest.param(answer("The lamp", CUT), "broke", id="breaks"),
        pytest.param(answer("The lamp", finish=None, done=False), "broke off", id="no end"),
        pytest.param(answer(), "empty", id="no text"),
        pytest.param(refusal(400), "", id="refused"),
        pytest.param(answer("The lamp", b'data: {"error": {"message": "secret"}}\n\n'), "", id="error chunk"),
        pytest.param(answer("The lamp", b"data: {no json\n\n"), "", id="no JSON"),
    ],
)
def test_b39_a_model_that_fails_ends_the_stream_with_an_error(catalog: Catalog, script: Script, said: str):
    with asking(catalog, script) as ask:
        events = ask.events(pack="lighthouse")
        failed = ask.whole(pack="lighthouse")
    name, data = events[-1]
    assert [each for each, _ in events].count("done") == 0
    assert (name, data["stage"]) == ("error", "generation")
    assert said in data["message"]
    assert "secret" not in data["message"]
    assert (failed.status, failed.json["success"], failed.json["data"]) == (502, False, None)
    error = failed.json["error"]
    assert (error["status"], error["stage"], error["detail"]) == (502, "generation", data["message"])
    assert error["partial"] == data["partial"]


def test_b39_silence_is_broken_by_comments_and_ends_with_an_error(catalog: Catalog):
    gate = Gate()
    with scripted(WARM) as model:
        chosen = ModelSettings(model.url, retries=0, chunk_timeout=0.6)
        answers = AnswerSettings(chosen, heartbeat_seconds=0.05)
        with listening(catalog, ServerSettings(port=0, answers=answers)) as server:
            warmed(model, answer(gate, "late"))
            body = Asking(server, model).post(pack="lighthouse").body
    assert body.count(b"\n\n: ") + body.startswith(b": ") >= 2
    assert [name for name, _ in read_events(body)] == ["sources", "error"]


@pytest.mark.parametrize("target", ["/ask", "/ask?stream=false"])
@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        pytest.param({}, 422, "question", id="no question"),
        pytest.param({"question": ""}, 422, "question", id="empty"),
        pytest.param({"question": "x" * 2001}, 422, "question", id="too long"),
        pytest.param({"question": "x", "k": 21}, 422, "k", id="k"),
        pytest.param({"question": "x", "filters": {"colour": "red"}}, 422, "filters.colour", id="filter"),
        pytest.param({"question": "x", "as_of": "yesterday"}, 422, "as_of", id="day"),
        pytest.param({"question": "x", "pack": "pumps"}, 404, "pack", id="pack"),
        pytest.param({"question": "x", "stream": False}, 422, "stream", id="unknown"),
    ],
)
def test_what_cannot_be_asked_is_told_by_its_field(good: Asking, target: str, body: Any, status: int, field: str):
    answered = good.post(body, target)
    problem = answered.json if target == "/ask" else answered.json["error"]
    assert (answered.status, problem["status"], problem["field"]) == (status, status, field)
    if target != "/ask":
        assert (answered.headers["content-type"], answered.json["success"]) == ("application/json", False)


def test_a_parameter_that_is_none_is_refused(good: Asking):
    assert good.post(target="/ask?stream=maybe").status == 422
    assert good.post(target="/ask?stream=1").status == 422
    strange = good.post(target="/ask?stream=false&explain=1")
    assert (strange.status, strange.json["error"]["field"]) == (422, "explain")
    assert good.post(target="/ask?pack=lighthouse").status == 422
    assert good.post(target="/ask?stream=true&stream=false").status == 422


@pytest.mark.parametrize("target", ["/ask?stream=false", "/packs/lighthouse/ask?stream=false"])
def test_a_body_over_16_kib_is_refused_by_its_length_alone(good: Asking, target: str):
    with socket.create_connection(address_of(good.server)) as client:
        head = f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {MAX_QUESTION + 1}\r\n\r\n"
        client.sendall(head.encode())
        answered = client.makefile("rb").read()
    assert answered.startswith(b"HTTP/1.1 413 ")
    assert b'{"success":false,"data":null,"error":{' in answered


def test_a_body_over_16_kib_is_refused_as_it_comes(good: Asking):
    with socket.create_connection(address_of(good.server)) as client:
        client.sendall(b"POST /ask HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        with suppress(ConnectionError):
            client.sendall(b"%x\r\n%s\r\n" % (MAX_QUESTION + 1, b" " * (MAX_QUESTION + 1)))
        answered = client.recv(100)
    assert answered.startswith(b"HTTP/1.1 413 ")


def test_other_bodies_and_methods_are_refused_as_everywhere(good: Asking):
    plain = good.server.ask("/ask?stream=false", method="POST", body=b"{", headers=[("X-Nothing", b"")])
    assert (plain.status, plain.json["error"]["detail"]) == (400, "body: not JSON")
    assert good.server.ask("/ask").status == 405


def test_without_a_model_there_are_no_answers(catalog: Catalog):
    with listening(catalog, ServerSettings(port=0)) as server:
        answered = server.post("/ask", body={"question": QUESTION})
    assert (answered.status, "answers" in answered.json["detail"]) == (404, True)


def test_a_key_asks_only_what_it_opens(catalog: Catalog):
    key, notes = new_key(), new_key()
    keys = (Key("one", sha256_hex(key.encode()), ("lighthouse",)), Key("two", sha256_hex(notes.encode()), ("notes",)))
    with asking(catalog, answer(SAID), keys=keys) as ask:
        assert ask.whole().status == 401
        assert ask.whole().json["success"] is False
        assert ask.whole(key=key).json["data"]["pack"] == "lighthouse"
        assert ask.whole(key=notes, pack="lighthouse").status == 404
        assert ask.whole(key=notes).json["data"]["pack"] == "notes"


@pytest.mark.parametrize("target", ["/ask", "/ask?stream=false"])
def test_a_pack_of_others_is_as_one_that_is_not_there(catalog: Catalog, target: str):
    key = new_key()
    keys = (Key("one", sha256_hex(key.encode()), ("notes",)),)
    digest = catalog.packs["lighthouse"].digest
    with asking(catalog, answer(SAID), keys=keys) as ask:

        def alike(names: Sequence[str], fields: Callable[[str], dict[str, Any]]) -> bool:
            said = [swapped(ask.post(key=key, **fields(name)), name) for name in names]
            assert {status for status, _, _ in said} == {404}
            return all(each == said[0] for each in said)

        names = ("lighthouse", "lighthorse", f"lighthouse@{digest}", f"lighthouse@{'0' * 64}")
        assert alike(names, lambda name: {"target": target, "pack": name})
        assert alike(names, lambda name: {"target": target.replace("/ask", f"/packs/{name}/ask")})
        assert ask.model.requests == []


PAGE = "https://app.example.org"


@pytest.mark.parametrize("target", ["/ask", "/ask?stream=false"])
def test_strangers_are_refused_before_a_model_is_asked(catalog: Catalog, target: str):
    body = json.dumps({"question": QUESTION}).encode()
    with asking(catalog, answer(SAID), allowed_origins=(PAGE,)) as ask:
        said = [
            ask.server.ask(target, method="POST", body=body, headers=headers)
            for headers in ([("Origin", b"https://evil.example")], [("Origin", b"null")])
        ]
        with socket.create_connection(address_of(ask.server)) as client:
            client.sendall(f"POST {target} HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n".encode())
            strange = client.recv(4096)
        assert ask.model.requests == []
        friend = ask.server.ask(target, method="POST", body=body, headers=[("Origin", PAGE.encode())])
    assert [each.status for each in said] == [403, 403]
    assert all(each.json["error" if "stream" in target else "detail"] for each in said)
    assert all("access-control-allow-origin" not in each.headers for each in said)
    assert strange.startswith(b"HTTP/1.1 421 ")
    assert (friend.status, friend.headers["access-control-allow-origin"]) == (200, PAGE)


@pytest.mark.parametrize("target", ["/ask", "/ask?stream=false"])
def test_nothing_that_is_said_to_a_question_may_be_kept(good: Asking, target: str):
    bodies: list[Any] = [{"question": QUESTION}, {"question": UNRELATED}, {}, {"question": QUESTION, "pack": "pumps"}]
    answered = [good.post(body, target) for body in bodies]
    assert [each.status for each in answered] == [200, 200, 422, 404]
    assert {each.headers["cache-control"] for each in answered} == {"no-store"}


@pytest.mark.parametrize("target", ["/ask", "/ask?stream=false"])
def test_questions_are_counted_as_all_requests_are(catalog: Catalog, target: str):
    with asking(catalog, answer(SAID), rate_limit=RateLimit(1, 3600)) as ask:
        said = [ask.post(target=target) for _ in range(2)]
    assert [each.status for each in said] == [200, 429]
    assert int(said[1].headers["retry-after"]) >= 1
    assert said[1].json["error" if "stream" in target else "detail"]


def address_of(server: Running) -> tuple[str, int]:
    host, _, port = server.url.rpartition("/")[2].partition(":")
    return host, int(port)


def begin(server: Running, target: str = "/ask", *, received: int | None = None) -> socket.socket:
    """A client that asked and reads when it likes; `received` are the bytes that wait for it in its system."""
    body = json.dumps({"question": QUESTION, "pack": "lighthouse"}).encode()
    client = socket.socket()
    if received is not None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, received)
    client.connect(address_of(server))
    head = f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return client


@pytest.mark.parametrize("target", ["/ask", "/ask?stream=false"])
@pytest.mark.parametrize("said", [(), ("The lamp",)], ids=["reads the prompt", "writes"])
def test_b38_a_client_that_closes_its_connection_stops_the_model(catalog: Catalog, target: str, said: Sequence[str]):
    with asking(catalog, [answer(*said, Gate(), "never"), answer(SAID)], max_concurrent=1) as ask:
        client = begin(ask.server, target)
        assert ask.model.until(lambda: ask.model.busy == 1)
        client.close()
        assert ask.model.left.wait(TIMEOUT)
        assert ask.model.until(lambda: ask.model.busy == 0)
        assert answered_at_last(ask).status == 200


def answered_at_last(ask: Asking) -> Any:
    """An answer, for which a slot becomes free in a moment."""
    for _ in range(200):
        answered = ask.whole(pack="lighthouse")
        if answered.status != 503:
            return answered
    raise AssertionError("the slot was not freed")


@pytest.mark.parametrize("target", ["/ask", "/ask?stream=false"])
def test_b38_what_is_over_the_limit_is_refused_at_once(catalog: Catalog, target: str):
    gate = Gate()
    with asking(catalog, answer(gate, SAID), max_concurrent=2) as ask:
        held = [begin(ask.server), begin(ask.server)]
        assert ask.model.until(lambda: ask.model.busy == 2)
        with ThreadPoolExecutor(24) as pool:
            asked = [pool.submit(ask.post, target=target, pack="lighthouse") for _ in range(24)]
            refused = [each.result() for each in asked]
        assert {each.status for each in refused} == {503}
        assert all(int(each.headers["retry-after"]) >= 1 for each in refused)
        assert len(ask.model.requests) == 2
        gate.open()
        for client in held:
            client.settimeout(TIMEOUT)
            assert b"event: done" in client.makefile("rb").read1(10**6) or read_all(client)
            client.close()
        assert answered_at_last(ask).status == 200


def read_all(client: socket.socket) -> bool:
    """Read until an answer is done."""
    content = b""
    while b"event: done" not in content:
        part = client.recv(65536)
        assert part
        content += part
    return True


def test_the_next_question_is_answered_on_the_same_connection(good: Asking):
    with begin(good.server) as client:
        client.settimeout(TIMEOUT)
        assert read_all(client)


class ByHand:
    """The application without a socket: what it was sent, and a client that leaves when a test says so."""

    def __init__(self, catalog: Catalog, model: Scripted, **options: Any) -> None:
        self.app = create_app(catalog, settings_of(model, **options))
        self.leaves = asyncio.Event()
        self.sent: list[Message] = []
        self.begun = asyncio.Event()

    async def ask(self, target: str = "/ask", body: bytes | None = None) -> None:
        path, _, query = target.partition("?")
        content = json.dumps({"question": QUESTION, "pack": "lighthouse"}).encode() if body is None else body
        messages: list[Message] = [{"type": "http.request", "body": content, "more_body": False}]
        scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1",
            "method": "POST", "scheme": "http", "path": path, "raw_path": path.encode(), "root_path": "",
            "query_string": query.encode(), "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
            "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
        }  # fmt: skip

        async def receive() -> Message:
            if messages:
                return messages.pop()
            await self.leaves.wait()
            return {"type": "http.disconnect"}

        await self.app(scope, receive, self.send)

    @property
    def body(self) -> bytes:
        return b"".join(each.get("body", b"") for each in self.sent)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """The application between its start and its end, as a server has it."""
        told: asyncio.Queue[str] = asyncio.Queue()
        orders = asyncio.Queue[Message]()

        async def tell(message: Message) -> None:
            await told.put(message["type"])

        lifespan = asyncio.ensure_future(self.app({"type": "lifespan", "asgi": {"version": "3.0"}}, orders.get, tell))
        await orders.put({"type": "lifespan.startup"})
        assert await told.get() == "lifespan.startup.complete"
        try:
            yield
        finally:
            await orders.put({"type": "lifespan.shutdown"})
            await lifespan

    async def send(self, message: Message) -> None:
        self.sent.append(message)
        if b"event: token" in message.get("body", b""):
            self.begun.set()


Scenario = Callable[[ByHand, Scripted], Awaitable[None]]


def by_hand(
    catalog: Catalog, script: Script, scenario: Scenario, kind: type[ByHand] = ByHand, **options: Any
) -> ByHand:
    """Play a scenario with an application that is started, and ended after it."""

    async def play(model: Scripted) -> ByHand:
        app = kind(catalog, model, **options)
        async with app.running():
            await asyncio.to_thread(warmed, model, script)
            await asyncio.wait_for(scenario(app, model), 2 * TIMEOUT)
        return app

    with scripted(WARM) as model:
        return asyncio.run(play(model))


@pytest.mark.parametrize("target", ["/ask", "/ask?stream=false"])
@pytest.mark.parametrize("said", [(), ("The lamp burns",)], ids=["reads the prompt", "writes"])
def test_b38_a_client_that_leaves_leaves_no_task(catalog: Catalog, target: str, said: Sequence[str]):
    async def scenario(app: ByHand, model: Scripted) -> None:
        before = asyncio.all_tasks()
        asked = asyncio.ensure_future(app.ask(target))
        assert await asyncio.to_thread(model.until, lambda: model.busy == 1)
        if said and "stream" not in target:
            await app.begun.wait()
        app.leaves.set()
        await asked
        assert await asyncio.to_thread(model.left.wait, TIMEOUT)
        assert asyncio.all_tasks() <= before
        assert not any(b"event: done" in each.get("body", b"") for each in app.sent)

    by_hand(catalog, answer(*said, Gate(), "never"), scenario)


def test_b38_a_client_that_does_not_read_is_left(catalog: Catalog):
    class Stuck(ByHand):
        async def send(self, message: Message) -> None:
            await super().send(message)
            if self.begun.is_set():
                await asyncio.Event().wait()

    async def scenario(app: ByHand, model: Scripted) -> None:
        await app.ask()
        assert await asyncio.to_thread(model.left.wait, TIMEOUT)

    by_hand(catalog, answer("The lamp", Gate(), "never"), scenario, Stuck, reader_timeout=0.2)


@pytest.mark.parametrize("target", ["/ask", "/ask?stream=false"])
def test_b38_a_client_that_cannot_be_sent_to_is_left(catalog: Catalog, target: str, caplog: pytest.LogCaptureFixture):
    class Broken(ByHand):
        async def send(self, message: Message) -> None:
            raise OSError("broken pipe")

    async def scenario(app: ByHand, model: Scripted) -> None:
        before = asyncio.all_tasks()
        await app.ask(target)
        assert asyncio.all_tasks() <= before
        assert await asyncio.to_thread(model.until, lambda: model.busy == 0)

    by_hand(catalog, answer("The lamp", *[Gate()] * ("stream" not in target)), scenario, Broken)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_stream_that_the_server_ends_says_so(catalog: Catalog):
    async def scenario(app: ByHand, model: Scripted) -> None:
        asked = asyncio.ensure_future(app.ask())
        await app.begun.wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked

    app = by_hand(catalog, answer("The lamp", Gate(), "never"), scenario)
    (name, data) = read_events(app.body)[-1]
    assert (name, data["stage"]) == ("error", "internal")
    assert "about to end" in data["message"]


def test_an_envelope_that_the_server_cannot_wait_for_says_so(catalog: Catalog):
    async def scenario(app: ByHand, model: Scripted) -> None:
        asked = asyncio.ensure_future(app.ask("/ask?stream=false"))
        assert await asyncio.to_thread(model.until, lambda: model.busy == 1)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked

    app = by_hand(catalog, answer(Gate(), "never"), scenario)
    assert (app.sent[0]["status"], (b"retry-after", b"1") in app.sent[0]["headers"]) == (503, True)
    assert json.loads(app.body)["error"]["status"] == 503


def test_whatever_fails_in_the_server_ends_the_stream_with_an_error(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def failing(name: str, data: Any) -> bytes:
        if name == "token":
            raise ZeroDivisionError("a secret of the server")
        return event_of(name, data)

    async def scenario(app: ByHand, model: Scripted) -> None:
        await app.ask()
        assert await asyncio.to_thread(model.left.wait, TIMEOUT)

    monkeypatch.setattr("octavo_serve.over_http.asking.event_of", failing)
    app = by_hand(catalog, answer("The lamp", Gate()), scenario)
    (_, (name, data)) = read_events(app.body)
    assert (name, data["stage"], data["message"]) == ("error", "internal", "the server failed; its log says why")
    assert not app.sent[-1]["more_body"]
    assert "a secret of the server" in caplog.text


def test_an_event_is_one_line_of_data_whatever_a_reader_takes_for_its_end():
    text = "one\ntwo\rthree\x85four\u2028five\u2029six\x0bseven\x1ceight"
    lines = event_of("token", {"text": text}).decode().splitlines()
    assert (len(lines), lines[0], lines[2]) == (3, "event: token", "")
    assert json.loads(lines[1].removeprefix("data: ")) == {"text": text}


@pytest.mark.slow
def test_b38_a_client_that_stays_and_does_not_read_loses_its_connection(catalog: Catalog):
    with scripted(WARM) as model:
        chosen = ModelSettings(model.url, retries=0, max_tokens=20_000, context_tokens=40_000)
        answers = AnswerSettings(chosen, max_concurrent=1, reader_timeout=0.3)
        with listening(catalog, ServerSettings(port=0, answers=answers)) as server:
            warmed(model, answer(*["word " * 2000] * 3000))
            ask = Asking(server, model)
            with begin(server, received=4096) as client:
                assert model.left.wait(TIMEOUT)
                model.script = answer(SAID)
                assert answered_at_last(ask).status == 200
                client.settimeout(TIMEOUT)
                left = client.makefile("rb").read()
            assert b"event: token" in left
            assert b"event: done" not in left
            assert not left.endswith(b"0\r\n\r\n")
            assert "without completing response" not in server.said()


def test_answers_side_by_side_are_their_own(catalog: Catalog):
    def script(request: Any) -> Any:
        words = request.body["messages"][-1]["content"]
        return answer(f"The lamp burns at 1,000 watts [1]. {words.count('marigold')}")

    with asking(catalog, script, max_concurrent=8) as ask:
        barrier = threading.Barrier(8)

        def one(number: int) -> int:
            barrier.wait(TIMEOUT)
            question = f"{QUESTION} {'marigold ' * number}"
            said = ask.whole(question=question, pack="lighthouse").json["data"]["answer"]
            return int(said.rpartition(" ")[2])

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(one, range(8))) == list(range(8))
