"""`ep_ask`: a question answered by a scripted model, over MCP on real sockets."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import mcp.types as t
import pytest
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.shared.exceptions import MCPError

from fakes import DIGEST, FakeLibrary, FakePack
from listening import Running, listening
from octavo_serve.answering.answerer import Answerer
from octavo_serve.answering.model import ChatEndpoint
from octavo_serve.answering.settings import AnswerSettings, ModelSettings
from octavo_serve.faces import UnavailableError, Workers
from octavo_serve.over_mcp.app import make_server
from octavo_serve.over_mcp.asking import STEP, ask
from octavo_serve.over_mcp.endpoint import Endpoint
from octavo_serve.requests import AskRequest
from octavo_serve.settings import ServerSettings
from scripted import Gate, Scripted, answer, refusal, scripted

pytestmark = pytest.mark.anyio

ERAS = ("legacy", "2026-07-28")
QUESTION = {"question": "How long does the oil last?"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Running, Scripted]]:
    """A server with two packs and one slot, whose answers a script writes."""
    with scripted(answer("ready")) as model:
        answers = AnswerSettings(ModelSettings(model.url, retries=0), max_concurrent=1)
        library = FakeLibrary({slug: FakePack(slug) for slug in ("fans", "pumps")})
        with listening(library, ServerSettings(port=0, answers=answers)) as running:
            assert model.until(lambda: len(model.requests) == 1 and not model.busy)  # the warm-up
            yield running, model


@pytest.fixture
def running(served: tuple[Running, Scripted]) -> Running:
    return served[0]


@pytest.fixture
def model(served: tuple[Running, Scripted]) -> Scripted:
    _, model = served
    model.requests.clear()
    model.left.clear()
    return model


def texts(result: t.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, t.TextContent))


@pytest.mark.parametrize("mode", ERAS)
async def test_an_answer_fits_its_schema_and_names_its_sources(running: Running, model: Scripted, mode: str):
    model.script = answer("Five years [1].", usage=(100, 7))
    async with Client(f"{running.url}/packs/pumps/mcp", mode=mode) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        result = await client.call_tool("ep_ask", QUESTION)
    schema = listed["ep_ask"].output_schema
    assert schema is not None
    Draft202012Validator.check_schema(schema)
    found = result.structured_content
    Draft202012Validator(schema).validate(found)
    assert found is not None
    assert found["answer"] == "Five years [1]."
    assert [source["number"] for source in found["sources"]] == [1, 2]
    lines = texts(result).splitlines()
    assert lines[0] == "Five years [1]."
    assert f"Sources (pumps, release {DIGEST}):" in lines
    assert "[1] a.md:1-1 - A" in lines


async def test_where_no_model_is_configured_there_is_no_such_tool():
    workers = Workers(10)
    server = make_server(lambda ctx: Endpoint(FakeLibrary({"pumps": FakePack("pumps")})), workers)
    async with Client(server) as client:
        assert "ep_ask" not in {tool.name for tool in (await client.list_tools()).tools}
        assert "ep_ask" not in (client.instructions or "")
        with pytest.raises(MCPError, match="unknown tool"):
            await client.call_tool("ep_ask", QUESTION)
    workers.close()


async def test_it_is_annotated_as_what_it_is(running: Running):
    async with Client(f"{running.url}/mcp") as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "ep_ask" in (client.instructions or "")
    hints = listed["ep_ask"].annotations
    assert hints is not None
    assert (hints.read_only_hint, hints.destructive_hint) == (True, False)
    assert (hints.open_world_hint, hints.idempotent_hint) == (True, False)
    assert "pack" not in listed["ep_ask"].input_schema["required"]


@pytest.mark.parametrize("mode", ERAS)
async def test_who_wants_to_know_is_told_how_far_it_is(running: Running, model: Scripted, mode: str):
    told: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    model.script = answer(*[" ten chars" for _ in range(STEP // 10 * 2 + 5)])
    async with Client(f"{running.url}/packs/fans/mcp", mode=mode) as client:
        await client.call_tool("ep_ask", QUESTION, progress_callback=note)
    sources, *written, _ = [said or "" for _, _, said in told]
    assert sources == "2 sources"
    assert [int(said.removesuffix(" characters")) // STEP for said in written] == [1, 2]
    assert [done for done, _, _ in told] == sorted({done for done, _, _ in told})
    assert told[-1][0] == told[-1][1]
    assert [total for _, total, _ in told[:-1]] == [None] * (len(told) - 1)


async def test_a_refusal_calls_no_model_and_is_said_plainly(running: Running, model: Scripted):
    async with Client(f"{running.url}/packs/pumps/mcp") as client:
        result = await client.call_tool("ep_ask", {"question": "nothing of the kind"})
    assert model.requests == []
    assert not result.is_error
    assert (result.structured_content or {})["refused"] is True
    assert texts(result).startswith("Refused: Nothing relevant is known here.")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, "question: Field required"),
        ({"question": "x" * 2001}, "question: "),
        ({**QUESTION, "k": 21}, "k: "),
        ({**QUESTION, "pack": "fans"}, "pack: only pumps"),
        ({**QUESTION, "filters": {"colour": "red"}}, "filters.colour: "),
        ({**QUESTION, "max_tokens": 500}, "max_tokens: unknown"),
    ],
)
async def test_what_cannot_be_asked_so_is_a_tool_error(
    running: Running, model: Scripted, arguments: dict[str, Any], expected: str
):
    async with Client(f"{running.url}/packs/pumps/mcp") as client:
        result = await client.call_tool("ep_ask", arguments)
    assert model.requests == []
    assert result.is_error
    assert texts(result).startswith(expected)


@pytest.mark.parametrize(
    ("place", "pack", "answers"),
    [
        ("/packs/fans/mcp", None, "fans"),
        (f"/packs/fans@{DIGEST}/mcp", None, "fans"),
        (f"/packs/fans@{DIGEST}/mcp", "fans", "fans"),
        ("/mcp", "pumps", "pumps"),
        ("/mcp", f"pumps@{DIGEST}", "pumps"),
    ],
)
async def test_the_pack_that_is_named_answers(
    running: Running, model: Scripted, place: str, pack: str | None, answers: str
):
    model.script = answer("Five years.")
    async with Client(f"{running.url}{place}") as client:
        result = await client.call_tool("ep_ask", QUESTION | ({"pack": pack} if pack else {}))
    assert (result.structured_content or {})["pack"] == answers


async def test_a_model_that_fails_is_a_tool_error_without_its_words(running: Running, model: Scripted):
    model.script = refusal(500, message="secret words")
    async with Client(f"{running.url}/packs/pumps/mcp") as client:
        result = await client.call_tool("ep_ask", QUESTION)
    assert result.is_error
    assert texts(result).startswith("generation: ")
    assert "secret" not in texts(result)


async def test_more_than_there_are_slots_for_are_refused_at_once(running: Running, model: Scripted):
    gate = Gate()
    model.script = answer(gate, "late")
    url = f"{running.url}/packs/pumps/mcp"
    async with Client(url) as first, Client(url) as second:
        slow = asyncio.create_task(first.call_tool("ep_ask", QUESTION))
        assert await asyncio.to_thread(model.until, lambda: len(model.requests) == 1)
        busy = await second.call_tool("ep_ask", QUESTION)
        assert busy.is_error
        assert "ask again" in texts(busy)
        gate.open()
        assert not (await slow).is_error
        assert not (await second.call_tool("ep_ask", QUESTION)).is_error


def request_of(mode: str, *, accept: str) -> bytes:
    meta: dict[str, Any] = {}
    headers = [
        "POST /packs/pumps/mcp HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Accept: {accept}",
    ]
    if mode != "legacy":
        meta |= {
            "io.modelcontextprotocol/protocolVersion": mode,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        headers += [f"MCP-Protocol-Version: {mode}", "Mcp-Method: tools/call", "Mcp-Name: ep_ask"]
    else:
        headers.append("MCP-Protocol-Version: 2025-11-25")
    params = {"name": "ep_ask", "arguments": QUESTION, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    return "\r\n".join([*headers, f"Content-Length: {len(body)}", "", ""]).encode() + body


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("accept", ["application/json, text/event-stream", "application/json"])
@pytest.mark.parametrize("written", [(), ("word ",)], ids=["while it reads", "while it writes"])
async def test_a_client_that_hangs_up_stops_the_model_and_frees_its_slot(
    running: Running, model: Scripted, mode: str, accept: str, written: tuple[str, ...]
):
    model.script = answer(*written, Gate(), "never")
    with socket.create_connection(("127.0.0.1", urlsplit(running.url).port)) as connection:
        connection.sendall(request_of(mode, accept=accept))
        assert await asyncio.to_thread(model.until, lambda: len(model.requests) == 1)
        assert not model.left.is_set()
    assert await asyncio.to_thread(model.left.wait, 1)
    model.script = answer("free again")
    async with Client(f"{running.url}/packs/pumps/mcp") as client:
        result = await client.call_tool("ep_ask", QUESTION)
    assert (result.structured_content or {})["answer"] == "free again"


async def test_a_client_that_cancels_its_call_stops_the_model(running: Running, model: Scripted):
    model.script = answer("word ", Gate())
    async with Client(f"{running.url}/packs/pumps/mcp") as client:
        call = asyncio.create_task(client.call_tool("ep_ask", QUESTION))
        assert await asyncio.to_thread(model.until, lambda: len(model.requests) == 1)
        call.cancel()
        assert await asyncio.to_thread(model.left.wait, 1)


async def test_a_client_that_does_not_read_what_it_is_told_loses_its_slot(model: Scripted):
    model.script = answer("Five years.")
    settings = AnswerSettings(ModelSettings(model.url), reader_timeout=0.05)
    workers, chat = Workers(10), ChatEndpoint(settings.model, None)
    answerer = Answerer(chat, settings, workers)

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        await asyncio.Event().wait()

    with pytest.raises(UnavailableError, match="does not read"):
        await ask(answerer, Endpoint(FakeLibrary({"pumps": FakePack("pumps")})), AskRequest(question="How long?"), tell)
    assert answerer.in_flight == 0
    await answerer.close()
    workers.close()
