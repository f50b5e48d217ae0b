"""The client of a language model over a real socket: what it understands, what it refuses, when it asks again (B39)."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import httpcore2
import pytest

from listening import all_logged
from octavo_serve.answering.model import (
    MAX_PAUSE,
    ChatEndpoint,
    Ended,
    Message,
    ModelError,
    Sampling,
    Text,
    Usage,
    cost,
)
from octavo_serve.answering.settings import ModelSettings
from scripted import (
    CUT,
    DONE,
    MODEL,
    RESET,
    Gate,
    Piece,
    Reply,
    Script,
    Scripted,
    answer,
    chunk,
    refusal,
    scripted,
    whole,
)

pytestmark = pytest.mark.anyio

SAMPLING = Sampling(max_tokens=64, temperature=0.0, top_p=1.0, seed=0)
QUESTION: list[Message] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "How long does tea steep? ünï"},
]
KEY = "sk-very-secret"
SHORT = 0.2
"""Seconds of a time-out that a test waits for."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True, scope="module")
def one_set_of_certificates() -> Generator[None]:
    """Their loading would take most of the time of these tests, in which nothing is encrypted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("httpcore2.default_ssl_context", cache(httpcore2.default_ssl_context))
        yield


@dataclass
class Asking:
    """A client of a scripted model, and the pauses that it made instead of waiting."""

    server: Scripted
    client: ChatEndpoint
    pauses: list[float]
    tasks: set[asyncio.Task[Any]] = field(default_factory=asyncio.all_tasks)
    """Those that were there before."""
    given: list[str] = field(default_factory=list[str])
    """The text of the last answer, also of one that failed."""

    async def ask(self, sampling: Sampling = SAMPLING) -> Ended:
        self.given = []
        ended = None
        async with aclosing(self.client.stream(QUESTION, sampling)) as pieces:
            async for piece in pieces:
                assert ended is None
                if isinstance(piece, Text):
                    self.given.append(piece.text)
                else:
                    ended = piece
        assert ended is not None
        return ended

    async def error(self) -> str:
        with pytest.raises(ModelError) as caught:
            await self.ask()
        return str(caught.value)


@asynccontextmanager
async def asking(
    script: Script, *, slots: int | None = None, key: str | None = None, url: str | None = None, **settings: Any
) -> AsyncGenerator[Asking]:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    with scripted(script, slots=slots) as server:
        settings.setdefault("chunk_timeout", 10.0)
        client = ChatEndpoint(ModelSettings(url=url or server.url, **settings), key, pause)
        yield Asking(server, client, pauses)
        await client.close()


# What is understood


async def test_an_answer_is_its_pieces_and_its_end():
    async with asking(answer("Four ", "minutes", " 油 [1].", usage=(900, 7))) as model:
        assert await model.ask() == Ended(truncated=False, usage=Usage(900, 7), model=MODEL)
        assert model.given == ["Four ", "minutes", " 油 [1]."]


async def test_the_request_says_all_that_was_set_and_nothing_else():
    extra = {"chat_template_kwargs": {"enable_thinking": False}}
    async with asking(answer("Yes."), key=KEY, name="small", extra=extra) as model:
        await model.ask(Sampling(max_tokens=9, temperature=0.5, top_p=0.9, seed=3))
        (request,) = model.server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["accept-encoding"] == "identity"
    assert request.body == {
        "model": "small",
        "messages": QUESTION,
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 9,
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 3,
        **extra,
    }


async def test_what_is_not_set_is_not_sent():
    async with asking(answer("Yes.")) as model:
        await model.ask(replace(SAMPLING, seed=None))
        (request,) = model.server.requests
    assert not {"model", "seed"} & request.body.keys()
    assert "authorization" not in request.headers


async def test_a_null_among_the_further_fields_leaves_a_field_out_and_nothing_there_replaces_one():
    extra = {"max_tokens": None, "max_completion_tokens": 64, "temperature": 1.5}
    async with asking(answer("Yes."), extra=extra) as model:
        await model.ask()
        body = model.server.requests[0].body
    assert "max_tokens" not in body
    assert (body["max_completion_tokens"], body["temperature"]) == (64, 0.0)


@pytest.mark.parametrize("split", [1, 2, 7, 1000])
async def test_an_answer_is_the_same_however_its_bytes_arrive(split: int):
    async with asking(answer("Öl ", "油\n", "😀", usage=(1, 2), split=split)) as model:
        assert await model.ask() == Ended(False, Usage(1, 2), MODEL)
        assert model.given == ["Öl ", "油\n", "😀"]


@pytest.mark.parametrize("end", [b"\r\n\r\n", b"\r\r", b"\n\n"])
async def test_lines_may_end_in_any_way(end: bytes):
    pieces = [b"event: message\ndata: %s" % json.dumps(each).encode() + end for each in (chunk({"content": "a"}),)]
    async with asking(Reply([*pieces, b"data:[DONE]" + end])) as model:
        assert await model.ask() == Ended(False, None, MODEL)


async def test_a_reason_to_end_is_enough_without_done_and_done_without_a_reason():
    async with asking([answer("a", done=False), answer("a", finish=None)]) as model:
        assert await model.ask() == await model.ask() == Ended(False, None, MODEL)


@pytest.mark.parametrize("after", [pytest.param([CUT], id="closed"), pytest.param([RESET], id="reset")])
async def test_an_answer_that_has_its_reason_to_end_is_whole_whatever_happens_next(after: list[Piece]):
    read = Gate()
    reply = answer("a", chunk(finish="stop"), read, *after, finish=None, done=False)
    async with asking(reply) as model, aclosing(model.client.stream(QUESTION, SAMPLING)) as pieces:
        assert await anext(pieces) == Text("a")
        read.open()
        assert await anext(pieces) == Ended(False, None, MODEL)


@pytest.mark.parametrize("finish", ["length", "max_tokens"])
async def test_an_answer_that_used_up_its_tokens_is_truncated(finish: str):
    async with asking(answer("Four min", finish=finish, usage=(5, 64))) as model:
        assert await model.ask() == Ended(True, Usage(5, 64), MODEL)


@pytest.mark.parametrize(
    ("finish", "truncated"),
    [pytest.param("stop", False, id="ended"), pytest.param("length", True, id="truncated")],
)
async def test_an_answer_in_one_object_is_understood(finish: str, truncated: bool):
    async with asking(whole("Four minutes.", finish, (3, 4))) as model:
        assert await model.ask() == Ended(truncated, Usage(3, 4), MODEL)
        assert model.given == ["Four minutes."]


async def test_tokens_are_counted_by_the_timings_of_llama_cpp_where_there_is_no_usage():
    timings = {"cache_n": 24, "prompt_n": 6, "predicted_n": 2, "prompt_ms": 1.5}
    async with asking(answer("a", chunk(finish="stop", timings=timings), finish=None)) as model:
        assert (await model.ask()).usage == Usage(30, 2)


@pytest.mark.parametrize("usage", [None, [], "9", {}, {"prompt_tokens": -1, "completion_tokens": 2}])
async def test_a_usage_that_is_none_is_none(usage: Any):
    async with asking(answer("a", chunk(usage=usage))) as model:
        assert (await model.ask()).usage is None


@pytest.mark.parametrize(
    ("said", "told"),
    [
        pytest.param("/srv/models/small.gguf", "small.gguf", id="path"),
        pytest.param("C:\\models\\small.gguf", "small.gguf", id="path of Windows"),
        pytest.param("maker/small", "maker/small", id="name with its maker"),
        pytest.param("m" * 500, "m" * 200, id="long"),
    ],
)
async def test_the_name_of_the_model_has_no_folder_of_its_machine(said: str, told: str):
    async with asking(answer("a", {**chunk({}), "model": said}, finish=None)) as model:
        assert (await model.ask()).model == told


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "thinking"])
async def test_thoughts_are_no_part_of_the_answer(name: str):
    async with asking(answer(chunk({name: "Hm, tea."}), "Four minutes.")) as model:
        await model.ask()
        assert model.given == ["Four minutes."]


async def test_half_a_character_is_replaced():
    half = b'data: {"choices": [{"delta": {"content": "a\\ud83d"}}]}\n\n'
    async with asking(answer(half, "b")) as model:
        await model.ask()
        assert model.given == ["a\ufffd", "b"]


async def test_chunks_without_a_choice_say_nothing():
    async with asking(answer(chunk(prompt_filter_results=[]), {"type": "ping"}, b"event: ping\n\n", "a")) as model:
        assert (await model.ask()).truncated is False
        assert model.given == ["a"]


# What is no answer (B39)

BROKEN: dict[str, tuple[Reply, str]] = {
    "no reason to end and no [DONE]": (answer("Four ", finish=None, done=False), "broke off"),
    "one object without a reason to end": (whole("Four ", finish=None), "broke off"),
    "an error among the chunks": (answer("Four ", {"error": {"message": "MINE", "code": 500}}), "reported an error"),
    "an error as an event": (answer("Four ", b'event: error\ndata: {"message": "MINE"}\n\n'), "reported an error"),
    "an error instead of one object": (
        Reply([b'{"error": "MINE"}'], headers={"Content-Type": "application/json"}),
        "reported an error",
    ),
    "no JSON": (answer("Four ", b"data: MINE {\n\n"), "no JSON"),
    "JSON without end": (answer("Four ", b"data: " + b"[" * 100_000 + b"\n\n"), "no JSON"),
    "an HTML page": (Reply([b"<html>MINE</html>"], headers={"Content-Type": "text/html"}), "no JSON"),
    "nothing": (Reply(), "broke off"),
    "an empty object": (Reply([b"{}"], headers={"Content-Type": "application/json"}), "broke off"),
    "only [DONE]": (Reply([DONE]), "is empty"),
    "no text": (answer(), "is empty"),
    "spaces": (answer(" ", "\n"), "is empty"),
    "one object without text": (whole(""), "is empty"),
    "thoughts only": (answer(chunk({"reasoning_content": "MINE"}), finish="length"), "used all its tokens"),
    "a content filter": (answer("Four ", finish="content_filter"), "content filter"),
    "a call of a tool": (answer(chunk({"tool_calls": [{"id": "MINE"}]}), finish="tool_calls"), "called a tool"),
    "an end by a tool": (answer("Four ", finish="tool_calls"), "called a tool"),
    "an unknown reason": (answer("Four ", finish="abort"), "not known"),
    "a reason that is no word": (
        answer("Four ", {"choices": [{"delta": {}, "finish_reason": ["stop"]}]}),
        "not known",
    ),
    "a list": (answer(b"data: [1]\n\n"), "no part of a chat completion"),
    "choices that are none": (answer({"choices": "MINE"}), "no part of a chat completion"),
    "a choice that is none": (answer({"choices": ["MINE"]}), "no part of a chat completion"),
    "text that is none": (answer(chunk({"content": ["MINE"]})), "no part of a chat completion"),
    "a compressed answer": (Reply([b"\x1f\x8b"], headers={"Content-Encoding": "gzip"}), "compressed"),
    "a redirect": (refusal(307, {"Location": "http://127.0.0.1:9/MINE"}), "status 307"),
    "an event without end": (answer(b"data: " + b"x" * 1_100_000), "more than 1048576 bytes"),
    "a line that never ends": (answer(b"x" * 1_100_000), "more than 1048576 bytes"),
}
"""Kind of answer to the answer and to what is said of it; MINE is the server's and must not be repeated."""


@pytest.mark.parametrize("kind", BROKEN)
async def test_what_is_no_answer_is_an_error(kind: str):
    reply, said = BROKEN[kind]
    with all_logged() as logged:
        async with asking(reply, key=KEY) as model:
            message = await model.error()
            assert len(model.server.requests) == 1
            assert model.server.until(lambda: model.server.busy == 0)
    assert said in message
    log = "\n".join(logging.Formatter().format(each) for each in logged if each.name.startswith("octavo"))
    for secret in ("MINE", KEY, model.server.url, "127.0.0.1"):
        assert secret not in message
    assert "MINE" not in log
    assert KEY not in log


async def test_a_connection_that_ends_in_the_middle_is_an_error_after_the_text_that_came():
    for end in (CUT, RESET):
        read = Gate()
        async with asking(answer("Four ", read, end)) as model:
            async with aclosing(model.client.stream(QUESTION, SAMPLING)) as pieces:
                assert await anext(pieces) == Text("Four ")
                read.open()
                with pytest.raises(ModelError, match="connection to the model broke"):
                    await anext(pieces)
            assert len(model.server.requests) == 1


async def test_an_answer_without_end_is_an_error():
    async with asking(answer(*["x" * 1000] * 2000, finish=None, done=False)) as model:
        assert "more than 1179648 bytes" in await model.error()


# How long is waited

SILENT: dict[str, Reply] = {
    "no head": answer("a", before=[Gate()]),
    "a head only": answer(Gate()),
    "a text, then nothing": answer("Four ", Gate()),
    "one object that does not come": replace(whole("a"), pieces=[Gate()]),
}


@pytest.mark.parametrize("kind", SILENT)
async def test_a_model_that_says_nothing_for_too_long_is_given_up(kind: str):
    async with asking(SILENT[kind], chunk_timeout=SHORT) as model:
        assert await model.error() == "the model sent nothing for 0.2 seconds"
        assert await asyncio.to_thread(model.server.left.wait, 10)
        assert len(model.server.requests) == 1


@pytest.mark.parametrize(
    "sign",
    [
        pytest.param(b": still here\n\n", id="comments"),
        pytest.param(chunk({"content": ""}), id="empty pieces"),
        pytest.param(chunk(prompt_progress={"processed": 64}), id="progress that is none"),
    ],
)
async def test_signs_of_life_that_bring_nothing_do_not_prolong_the_wait(sign: Piece):
    pieces: list[Piece] = [each for _ in range(200) for each in (sign, 0.05)]
    async with asking(answer(*pieces, "late"), chunk_timeout=SHORT) as model:
        assert await model.error() == "the model sent nothing for 0.2 seconds"


@pytest.mark.parametrize(
    "signs",
    [
        pytest.param([chunk(prompt_progress={"processed": 64 * n}) for n in range(1, 6)], id="reading on"),
        pytest.param([chunk({"reasoning_content": "Hm. "})] * 5, id="thinking"),
        pytest.param(["word "] * 5, id="writing"),
    ],
)
async def test_a_model_that_goes_on_may_take_longer_than_one_wait(signs: Sequence[Piece]):
    pieces: list[Piece] = [each for sign in signs for each in (0.15, sign)]
    async with asking(answer(*pieces, "done"), chunk_timeout=0.6) as model:
        await model.ask()
        assert model.given[-1] == "done"


async def test_the_time_in_which_the_reader_reads_is_not_the_models():
    reply = answer("a", "b")
    async with asking(reply, chunk_timeout=SHORT) as model, aclosing(model.client.stream(QUESTION, SAMPLING)) as pieces:
        assert await anext(pieces) == Text("a")
        await asyncio.sleep(2 * SHORT)
        assert await anext(pieces) == Text("b")


async def test_after_its_reason_to_end_a_model_is_not_waited_for_much_longer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("octavo_serve.answering.model._TAIL", SHORT)
    end = chunk(finish="stop")
    for rest in ((end, Gate()), (end, DONE, Gate())):
        async with asking(answer("a", *rest, finish=None, done=False)) as model, asyncio.timeout(5):
            assert await model.ask() == Ended(False, None, MODEL)


# When it is asked again

PASSING = (408, 425, 429, 500, 502, 503, 504)


@pytest.mark.parametrize("status", PASSING)
async def test_what_may_pass_is_asked_again(status: int):
    async with asking([refusal(status), answer("Four minutes.")]) as model:
        await model.ask()
        assert model.given == ["Four minutes."]
        assert model.pauses == [0.5]
        first, second = model.server.requests
    assert first.body == second.body


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 302])
async def test_what_will_not_pass_is_asked_once(status: int):
    async with asking([refusal(status, message="MINE"), answer("Four minutes.")]) as model:
        assert await model.error() == f"the model answered with status {status}"
        assert len(model.server.requests) == 1


async def test_pauses_double_and_attempts_end():
    async with asking(refusal(503), retries=4) as model:
        assert await model.error() == "the model answered with status 503"
        assert len(model.server.requests) == 5
        assert model.pauses == [0.5, 1.0, 2.0, 4.0]


async def test_nothing_is_asked_again_where_the_operator_does_not_want_it():
    async with asking(refusal(503), retries=0) as model:
        await model.error()
        assert (len(model.server.requests), model.pauses) == (1, [])


@pytest.mark.parametrize(
    ("asked", "pauses"),
    [
        pytest.param("3", [3.0], id="longer"),
        pytest.param("0", [0.5], id="shorter"),
        pytest.param("soon", [0.5], id="no number"),
        pytest.param("-1", [0.5], id="negative"),
        pytest.param("Wed, 21 Oct 2026 07:28:00 GMT", [0.5], id="date"),
    ],
)
async def test_a_server_says_when_it_may_be_asked_again(asked: str, pauses: list[float]):
    async with asking([refusal(429, {"Retry-After": asked}), answer("a")]) as model:
        await model.ask()
        assert model.pauses == pauses


@pytest.mark.parametrize("asked", [str(int(MAX_PAUSE) + 1), "9" * 400])
async def test_a_server_that_wants_to_be_left_alone_for_long_is_not_asked_again(asked: str):
    async with asking([refusal(429, {"Retry-After": asked}), answer("a")]) as model:
        assert await model.error() == "the model answered with status 429"
        assert (len(model.server.requests), model.pauses) == (1, [])


@pytest.mark.parametrize(
    ("first", "pauses"),
    [
        pytest.param(answer("a", before=[CUT]), [0.0], id="closed before the head"),
        pytest.param(answer("a", before=[RESET]), [0.0], id="reset before the head"),
        pytest.param(answer(CUT), [0.5], id="closed before the text"),
        pytest.param(answer(chunk({"reasoning_content": "Hm"}), CUT), [0.5], id="closed while it thought"),
    ],
)
async def test_a_connection_that_breaks_before_the_first_text_is_made_again(first: Reply, pauses: list[float]):
    async with asking([first, answer("Four minutes.")]) as model:
        await model.ask()
        assert model.given == ["Four minutes."]
        assert model.pauses == pauses


async def test_nothing_is_asked_again_once_there_was_text():
    async with asking([answer("Four ", 0.05, CUT), answer("Four minutes.")]) as model:
        assert await model.error() == "the connection to the model broke"
        assert model.given == ["Four "]
        assert len(model.server.requests) == 1


async def test_a_server_that_is_not_there_is_tried_again_and_then_told_of_without_its_address():
    with scripted(answer("a")) as server:
        pass
    async with asking(answer("a"), url=server.url) as model:
        assert await model.error() == "the model cannot be reached"
        assert model.pauses == [0.5, 1.0]


async def test_a_pause_ends_with_whoever_asked():
    pausing = asyncio.Event()

    async def pause(seconds: float) -> None:
        pausing.set()
        await asyncio.Event().wait()

    with scripted(refusal(503)) as server:
        client = ChatEndpoint(ModelSettings(url=server.url), None, pause)
        asked = asyncio.create_task(anext(client.stream(QUESTION, SAMPLING)))  # pyright: ignore[reportArgumentType]
        await pausing.wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert len(server.requests) == 1
        await client.close()


# Whoever leaves


async def left_nothing(model: Asking) -> None:
    """Neither a task nor a connection."""
    assert await asyncio.to_thread(model.server.left.wait, 10)
    assert await asyncio.to_thread(model.server.until, lambda: (model.server.open, model.server.busy) == (0, 0))
    for _ in range(5):  # passes of the loop in which what was dropped is finalised
        gc.collect()
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == model.tasks


@pytest.mark.parametrize(
    ("reply", "begun"),
    [
        pytest.param(answer("a", before=[Gate()]), False, id="before the head"),
        pytest.param(answer(Gate(), "a"), False, id="while it reads"),
        pytest.param(answer(b": reading\n\n", Gate(), "a"), False, id="while it reads and says so"),
        pytest.param(answer("Four ", Gate(), "a"), True, id="while it writes"),
        pytest.param(answer("Four ", "x" * 100_000, *["y" * 100_000] * 100), True, id="while nobody reads"),
    ],
)
async def test_whoever_is_cancelled_leaves_nothing_behind(reply: Reply, begun: bool):
    async with asking(reply) as model:
        reading = asyncio.Event()

        async def ask() -> None:
            async with aclosing(model.client.stream(QUESTION, replace(SAMPLING, max_tokens=10_000))) as pieces:
                async for _ in pieces:
                    reading.set()
                    await asyncio.Event().wait()

        asked = asyncio.create_task(ask())
        assert await asyncio.to_thread(model.server.until, lambda: model.server.busy == 1)
        if begun:
            await reading.wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await left_nothing(model)


async def test_whoever_closes_the_answer_leaves_nothing_behind():
    async with asking(answer("Four ", Gate(), "minutes")) as model:
        pieces = model.client.stream(QUESTION, SAMPLING)
        assert await anext(pieces) == Text("Four ")
        await pieces.aclose()
        del pieces
        await left_nothing(model)


async def test_a_connection_is_used_again_for_the_next_answer():
    async with asking([answer("a"), whole("b"), answer("c", usage=(1, 1)), refusal(400), answer("d")]) as model:
        for _ in range(3):
            await model.ask()
        await model.error()
        await model.ask()
        assert model.server.connections == 1
        await model.client.close()
        assert await asyncio.to_thread(model.server.until, lambda: model.server.open == 0)


async def test_answers_are_written_at_once_and_do_not_wait_for_each_other():
    gate = Gate()
    async with asking(answer("Four ", gate, "minutes")) as model:
        streams = [model.client.stream(QUESTION, SAMPLING) for _ in range(12)]
        assert await asyncio.gather(*(anext(each) for each in streams)) == [Text("Four ")] * 12
        assert model.server.busy == 12
        gate.open()
        assert await asyncio.gather(*(anext(each) for each in streams)) == [Text("minutes")] * 12
        for each in streams:
            await each.aclose()


async def test_a_server_without_a_free_slot_is_asked_again():
    gate = Gate()
    async with asking(answer("a", gate), slots=1, retries=1) as model:
        async with aclosing(model.client.stream(QUESTION, SAMPLING)) as pieces:
            await anext(pieces)
            assert await model.error() == "the model answered with status 503"
        assert model.pauses == [1.0]


# What is nobody's business


async def test_no_proxy_of_the_environment_is_asked_for_a_model_on_this_machine(monkeypatch: pytest.MonkeyPatch):
    with scripted(refusal(502)) as proxy:
        for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.url.removesuffix("/v1"))
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        async with asking(answer("a")) as model:
            await model.ask()
        assert proxy.requests == []


async def test_a_model_elsewhere_is_asked_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch):
    with scripted(answer("through the proxy")) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        async with asking(answer("a"), url="http://model.invalid/v1") as model:
            await model.ask()
            assert model.given == ["through the proxy"]


async def test_the_key_is_the_operators_and_no_cookie_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Any):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    async with asking(replace(answer("a"), headers={"Set-Cookie": "session=1; Path=/"}), key=KEY) as model:
        await model.ask()
        await model.ask()
        assert [request.headers["authorization"] for request in model.server.requests] == [f"Bearer {KEY}"] * 2
        assert all("cookie" not in request.headers for request in model.server.requests)


async def test_the_log_has_the_type_and_code_of_an_error_and_none_of_its_words():
    said = {"message": f"{KEY} asked: How long does tea steep?", "type": "exceed_context_size_error", "code": 400}
    body = json.dumps({"error": said}).encode()
    replies = [Reply([body], 400, {"Content-Type": "application/json"}), answer("a", {"error": said})]
    with all_logged() as logged:
        async with asking(replies, key=KEY) as model:
            await model.error()
            await model.error()
    told = [record.getMessage() for record in logged if record.name.startswith("octavo")]
    assert told == [
        "the model answered with status 400, exceed_context_size_error, 400",
        "the model reported an error while it wrote, exceed_context_size_error, 400",
    ]


# Warm-up


async def test_a_warm_up_asks_for_one_token_and_opens_the_connection():
    with all_logged() as logged:
        async with asking(answer("Hi", finish="length")) as model:
            await model.client.warm_up()
            await model.ask()
            first, _ = model.server.requests
            assert model.server.connections == 1
    assert first.body["max_tokens"] == 1
    assert not [record for record in logged if record.levelno >= logging.WARNING]


async def test_a_model_that_thinks_first_is_warm_after_one_thought():
    with all_logged() as logged:
        async with asking(answer(chunk({"reasoning_content": "Hm"}), finish="length")) as model:
            await model.client.warm_up()
    assert not [record for record in logged if record.levelno >= logging.WARNING]


async def test_a_warm_up_that_fails_is_logged_and_no_more():
    with all_logged() as logged:
        async with asking(refusal(404)) as model:
            await model.client.warm_up()
    assert [record.getMessage() for record in logged if record.name.startswith("octavo")] == [
        "the model answered with status 404, scripted_error, 404",
        "the model is not warm: the model answered with status 404",
    ]


# Prices


@pytest.mark.parametrize(
    ("usage", "price_in", "price_out", "expected"),
    [
        pytest.param(Usage(1_000_000, 500_000), 0.5, 2.0, 1.5, id="both"),
        pytest.param(Usage(10, 10), 0.0, 0.0, 0.0, id="for nothing"),
        pytest.param(None, 0.5, 2.0, None, id="no usage"),
        pytest.param(Usage(10, 10), None, 2.0, None, id="one price"),
        pytest.param(Usage(10, 10), None, None, None, id="no price"),
    ],
)
def test_an_answer_costs_its_tokens(
    usage: Usage | None, price_in: float | None, price_out: float | None, expected: float | None
):
    assert cost(usage, price_in, price_out) == expected
