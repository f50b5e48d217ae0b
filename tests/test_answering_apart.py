"""The answering service on its own: it has no pack, and another server, by URL or started by it, finds the passages."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import mcp.types as t
import pytest
from mcp import Client, StdioServerParameters

from running import OCTAVO, Serving, serving
from scripted import Gate, Scripted, answer, scripted

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

QUESTION = {"question": "How hard may the water be?", "pack": "tiny"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def model() -> Generator[Scripted]:
    with scripted(answer("Not harder than this [1].")) as running:
        yield running


@contextmanager
def answering(folder: Path, model: Scripted, **retriever: Any) -> Generator[Serving]:
    """The service, with nothing but a model and a retriever in its file."""
    file = folder / "octavo.yaml"
    file.write_text(json.dumps({"port": 0, "answers": {"model": {"url": model.url}, "retriever": retriever}}))
    process = subprocess.Popen([OCTAVO, "serve", "--config", file], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found
        assert model.until(lambda: len(model.requests) == 1, 60)  # it has warmed up
        yield Serving(found.group(), process)
    finally:
        process.terminate()
        process.communicate(timeout=20)


@asynccontextmanager
async def client(service: Serving) -> AsyncGenerator[Client]:
    async with Client(f"{service.address}/mcp", read_timeout_seconds=60) as opened:
        yield opened


async def asked(opened: Client) -> str:
    result = await opened.call_tool("ep_ask", QUESTION)
    block = result.content[0]
    assert isinstance(block, t.TextContent)
    assert result.is_error == (result.structured_content is None)
    return block.text


def got(url: str, body: Any = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


async def test_it_answers_from_the_packs_of_a_server_that_may_go_and_come_back(
    built: Path, model: Scripted, tmp_path: Path
):
    with serving(built) as first:
        port = first.address.rpartition(":")[2]
        with answering(tmp_path, model, url=f"{first.address}/mcp") as service:
            async with client(service) as opened:
                assert [tool.name for tool in (await opened.list_tools()).tools] == ["ep_ask"]
                assert (await asked(opened)).startswith("Not harder than this [1].")
                assert got(f"{service.address}/readyz") == (200, {"status": "ready"})
                status, health = got(f"{service.address}/healthz")
                assert (status, health["status"], health["packs"]) == (200, "ok", {})
                assert first.address not in json.dumps(health)
                assert got(f"{service.address}/search?pack=tiny&q=water")[0] == 404
                status, told = got(f"{service.address}/ask?stream=false", QUESTION)
                assert (status, told["data"]["answer"]) == (200, "Not harder than this [1].")
                assert told["data"]["missing"] == ["citation_encoder"]
                status, told = got(f"{service.address}/ask?stream=false", {**QUESTION, "pack": "nowhere"})
                assert (status, told["error"]["field"]) == (404, "pack")

                first.process.terminate()
                first.process.wait(20)
                gone = await asked(opened)
                assert gone.startswith("retrieval: the server that finds passages cannot be reached")
                assert port not in gone

                with serving(built, "--port", port) as second:
                    assert (await asked(opened)).startswith("Not harder than this [1].")
                    os.kill(second.process.pid, signal.SIGSTOP)
                    question = asyncio.create_task(asked(opened))
                    await asyncio.sleep(0.5)  # it is on its way
                    os.kill(second.process.pid, signal.SIGKILL)
                    assert (await question).startswith("retrieval: ")


async def test_it_answers_from_the_packs_of_a_command_that_it_starts_again(
    built: Path, model: Scripted, tmp_path: Path
):
    with answering(tmp_path, model, command=[str(OCTAVO), "stdio", str(built)]) as service:
        pid = service.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children")
        async with client(service) as opened:
            for during in (False, True):
                assert (await asked(opened)).startswith("Not harder than this [1].")
                (finder,) = map(int, children.read_text().split())
                if during:
                    os.kill(finder, signal.SIGSTOP)
                    question = asyncio.create_task(asked(opened))
                    await asyncio.sleep(0.5)  # it is on its way
                    os.kill(finder, signal.SIGKILL)
                    assert (await question).startswith("Not harder than this [1].")
                else:
                    os.kill(finder, signal.SIGKILL)
        (last,) = map(int, children.read_text().split())
    assert not Path(f"/proc/{last}").exists()


async def test_on_stdio_too_and_a_call_that_is_given_up_stops_the_model(built: Path, model: Scripted, tmp_path: Path):
    file = tmp_path / "octavo.yaml"
    file.write_text(json.dumps({"dist": str(built), "answers": {"model": {"url": model.url, "retries": 0}}}))
    told: list[str | None] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    server = StdioServerParameters(command=str(OCTAVO), args=["stdio", "--config", str(file)])
    async with Client(server, read_timeout_seconds=60) as opened:
        assert "ep_ask" in {tool.name for tool in (await opened.list_tools()).tools}
        assert await asyncio.to_thread(model.until, lambda: len(model.requests) == 1, 60)
        result = await opened.call_tool("ep_ask", QUESTION, progress_callback=note)
        assert not result.is_error
        assert told[0] is not None
        assert told[0].endswith(("source", "sources"))
        assert (told[-1] or "").startswith("answered with ")

        model.script = answer("word ", Gate())
        call = asyncio.create_task(opened.call_tool("ep_ask", QUESTION))
        assert await asyncio.to_thread(model.until, lambda: len(model.requests) == 3)
        call.cancel()
        assert await asyncio.to_thread(model.left.wait, 1)


def test_without_packs_and_without_a_retriever_there_is_nothing_to_serve(tmp_path: Path):
    file = tmp_path / "octavo.yaml"
    file.write_text('{"answers": {"model": {"url": "http://127.0.0.1:1/v1"}}}')
    for command in ("serve", "stdio"):
        done = subprocess.run([OCTAVO, command, "--config", file], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "dist: missing" in done.stderr
