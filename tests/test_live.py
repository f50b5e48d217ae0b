"""A running server and what happens around it: releases come and are refused, requests are held up, the end."""

from __future__ import annotations

import json
import signal
import time
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError

from history import History, rename_over
from octavo_artifact.ids import sha256_hex
from octavo_serve.callers.keys import new_key
from running import OCTAVO, Serving, serving

ERAS = (pytest.param("legacy", marks=pytest.mark.slow), "2026-07-28")
PATIENCE = 30
QUESTION = {"query": "hard water", "pack": "tiny"}


@pytest.fixture
def here(history: History, tmp_path: Path) -> History:
    return history.copied(tmp_path / "dist")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTAVO_POLL_SECONDS", "0.02")


def ask(server: Serving, target: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(server.address + target, timeout=PATIENCE) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def current(server: Serving) -> str:
    return ask(server, "/healthz")[1]["packs"]["tiny"]["digest"]


def until(holds: Callable[[], bool]) -> None:
    """Wait for what the server does by itself, at a time that it alone knows."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.01)


def maps(server: Serving, digest: str) -> bool:
    return digest in Path(f"/proc/{server.process.pid}/maps").read_text()


@asynccontextmanager
async def connected(url: str, mode: Any, key: str | None = None) -> AsyncGenerator[Any]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        create_mcp_http_client(headers) as http_client,
        Client(streamable_http_client(url, http_client=http_client), mode=mode) as client,
    ):
        yield client


async def called(client: Any, tool: str, arguments: dict[str, Any]) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    return result.structured_content


@dataclass
class Holdup:
    """A reranker that keeps searches waiting until it is told to answer."""

    url: str
    arrived: Event = field(default_factory=Event)
    """A search is being held up."""
    go_on: Event = field(default_factory=Event)


@contextmanager
def holding_up() -> Generator[Holdup]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            holdup.arrived.set()
            holdup.go_on.wait(PATIENCE)
            results = [{"index": index, "relevance_score": 1.0} for index in range(len(asked["documents"]))]
            body = json.dumps({"results": results}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class's name
            pass

    endpoint = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    holdup = Holdup(f"http://127.0.0.1:{endpoint.server_port}/v1")
    thread = Thread(target=endpoint.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield holdup
    finally:
        holdup.go_on.set()
        endpoint.shutdown()
        thread.join()
        endpoint.server_close()


@contextmanager
def held_up(monkeypatch: pytest.MonkeyPatch, dist: Path) -> Generator[tuple[Serving, Holdup, Future[Any]]]:
    """A server that keeps no replaced release, and a search that it is at."""
    with holding_up() as holdup, ThreadPoolExecutor(1) as pool:
        settings = {"url": holdup.url, "milliseconds": 1000 * PATIENCE}
        monkeypatch.setenv("OCTAVO_RERANKER", json.dumps(settings))
        monkeypatch.setenv("OCTAVO_ANSWER_TIMEOUT", str(2 * PATIENCE))
        monkeypatch.setenv("OCTAVO_KEEP_RELEASES", "0")
        with serving(dist) as server:
            search = pool.submit(ask, server, "/search?q=hard+water&pack=tiny")
            assert holdup.arrived.wait(PATIENCE)
            yield server, holdup, search
            holdup.go_on.set()


# A release takes the place of another


@pytest.mark.parametrize("mode", ["legacy", "auto"])  # which ask for the instructions, the 2025 way and the 2026 way
def test_a_new_release_is_served_over_http_and_mcp_without_a_restart(here: History, mode: str) -> None:
    with serving(here.dist) as server:

        async def use() -> tuple[str, set[str]]:
            async with connected(f"{server.address}/mcp", mode) as client:
                found = await called(client, "ep_search", QUESTION)
                read = await called(client, "ep_read", {"id": found["results"][0]["id"], "pack": "tiny"})
                told = client.instructions or ""
            status, answer = ask(server, "/search?q=hard+water&pack=tiny")
            assert status == 200
            digests = {found["digest"], read["digest"], answer["digest"]}
            return told, digests | {hit["digest"] for hit in [*found["results"], *answer["results"]]}

        told, digests = anyio.run(use)
        assert ("The second edition" in told, digests) == (False, {here.first})
        here.point(here.second)
        until(lambda: current(server) == here.second)
        told, digests = anyio.run(use)
        assert ("The second edition" in told, digests) == (True, {here.second})


@pytest.mark.parametrize("mode", ERAS)
def test_a_client_that_stays_connected_gets_the_new_release(here: History, mode: str) -> None:
    with serving(here.dist) as server:

        async def use() -> None:
            async with connected(f"{server.address}/packs/tiny/mcp", mode) as client:
                assert (await called(client, "ep_list_topics", {}))["digest"] == here.first
                here.point(here.second)
                await anyio.to_thread.run_sync(until, lambda: current(server) == here.second)
                assert (await called(client, "ep_list_topics", {}))["digest"] == here.second

        anyio.run(use)


def test_a_server_on_stdio_follows_too(here: History) -> None:
    async def use() -> None:
        target = StdioServerParameters(command=str(OCTAVO), args=["stdio", str(here.dist)])
        async with Client(stdio_client(target)) as client:
            assert (await called(client, "ep_search", QUESTION))["digest"] == here.first
            here.point(here.second)
            with anyio.fail_after(PATIENCE):
                while (await called(client, "ep_search", QUESTION))["digest"] != here.second:
                    await anyio.sleep(0.05)

    anyio.run(use)


def test_a_bad_release_is_refused_and_told_and_taken_when_it_was_mended(here: History) -> None:
    report = here.report(here.second)
    whole = report.read_bytes()
    with serving(here.dist) as server:
        rename_over(report, whole[:-1])
        here.point(here.second)
        until(lambda: ask(server, "/healthz")[1]["status"] == "degraded")
        health = ask(server, "/healthz")[1]
        assert health["refused"] == {}
        assert health["packs"]["tiny"]["digest"] == here.first
        assert health["packs"]["tiny"]["refused_release"] == {
            "digest": here.second,
            "reason": f"tiny/{here.second[:12]}/report.json: {len(whole) - 1} bytes, the manifest says {len(whole)}",
        }
        assert ask(server, "/search?q=hard+water&pack=tiny")[1]["digest"] == here.first
        rename_over(report, whole)
        until(lambda: current(server) == here.second)
        assert ask(server, "/healthz")[1]["status"] == "ok"
        server.process.terminate()
        said = server.process.communicate(timeout=PATIENCE)[1].splitlines()
    refused, swapped = said
    assert f" ERROR octavo_serve.releases tiny: refused tiny/{here.second[:12]}/report.json: " in refused
    assert f" INFO octavo_serve.releases tiny: serves {here.second[:12]} in place of {here.first[:12]}, " in swapped


def test_a_new_pack_is_served(here: History, tmp_path: Path) -> None:
    notes = (here.dist / "notes").rename(tmp_path / "notes")
    with serving(here.dist) as server:
        assert ask(server, "/search?q=tea&pack=notes")[0] == 404
        notes.rename(here.dist / "notes")
        until(lambda: ask(server, "/search?q=tea&pack=notes")[0] == 200)


def test_sighup_makes_it_look_at_once(here: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTAVO_POLL_SECONDS", "0")
    with serving(here.dist) as server:
        assert current(server) == here.first
        here.point(here.second)
        server.process.send_signal(signal.SIGHUP)
        until(lambda: current(server) == here.second)


# A request has one release, and keeps it


def test_a_request_that_began_before_the_swap_is_answered_by_the_old_release_which_then_goes(
    here: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    with held_up(monkeypatch, here.dist) as (server, holdup, search):
        here.point(here.second)
        until(lambda: current(server) == here.second)
        assert maps(server, here.first)
        holdup.go_on.set()
        status, answer = search.result(PATIENCE)
        assert (status, answer["digest"]) == (200, here.first)
        assert {hit["digest"] for hit in answer["results"]} == {here.first}
        until(lambda: not maps(server, here.first))
        assert maps(server, here.second)


@pytest.mark.parametrize("mode", ERAS)
def test_what_mcp_made_of_a_release_goes_with_it(here: History, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setenv("OCTAVO_KEEP_RELEASES", "0")
    with serving(here.dist) as server:

        async def use() -> None:
            for path in ("/mcp", "/packs/tiny/mcp"):
                async with connected(server.address + path, mode) as client:
                    await called(client, "ep_search", QUESTION)

        anyio.run(use)
        assert maps(server, here.first)
        here.point(here.second)
        until(lambda: not maps(server, here.first))
        anyio.run(use)


# Several releases at once


@pytest.mark.parametrize("mode", ERAS)
def test_a_replaced_release_is_asked_by_its_digest_until_the_next_but_one(here: History, mode: str) -> None:
    name = f"tiny@{here.first[:12]}"
    with serving(here.dist) as server:
        here.point(here.second)
        until(lambda: current(server) == here.second)
        assert ask(server, "/healthz")[1]["packs"]["tiny"]["mounted"] == [here.first]
        assert ask(server, f"/search?q=hard+water&pack={name}")[1]["digest"] == here.first

        async def use() -> None:
            async with connected(f"{server.address}/mcp", mode) as client:
                found = await called(client, "ep_search", {**QUESTION, "pack": name})
                assert {found["digest"], *(hit["digest"] for hit in found["results"])} == {here.first}
                read = await called(client, "ep_read", {"path": "concepts/water.md", "pack": name})
                assert read["digest"] == here.first
            async with connected(f"{server.address}/packs/{name}/mcp", mode) as client:
                assert "edition" not in (client.instructions or "")
                for arguments in ({}, {"pack": "tiny"}, {"pack": name}):
                    assert (await called(client, "ep_list_topics", arguments))["digest"] == here.first
                text = (await client.read_resource("ep://tiny/file/concepts/water.md")).contents[0].text
                assert "second edition" not in text
                wrong = await client.call_tool("ep_list_topics", {"pack": f"tiny@{here.second}"})
                assert wrong.is_error

        anyio.run(use)
        here.point(here.third)
        until(lambda: current(server) == here.third)
        assert ask(server, f"/search?q=hard+water&pack={name}")[0] == 404
        assert ask(server, f"/search?q=hard+water&pack=tiny@{here.second}")[0] == 200


def test_a_release_is_mounted_by_its_name_in_the_settings(here: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTAVO_MOUNT", f"tiny@{here.third[:12]},tiny@000000000000")
    with serving(here.dist) as server:
        assert ask(server, f"/search?q=hard+water&pack=tiny@{here.third}")[1]["digest"] == here.third
        assert ask(server, "/healthz")[1]["refused"] == {
            "tiny@000000000000": "tiny@000000000000: no release of this digest"
        }


def test_a_key_for_another_pack_learns_nothing_of_mounted_releases(here: History, tmp_path: Path) -> None:
    keys = {slug: new_key() for slug in ("tiny", "notes")}
    settings = tmp_path / "octavo.yaml"
    entries = [{"name": slug, "sha256": sha256_hex(key.encode()), "packs": [slug]} for slug, key in keys.items()]
    settings.write_text(json.dumps({"keys": entries, "mount": [f"tiny@{here.second}"]}))

    def status(slug: str, target: str) -> tuple[int, str]:
        request = urllib.request.Request(
            server.address + target, headers={"Authorization": f"Bearer {keys[slug]}", "Octavo": "1"}
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    async def use(slug: str, name: str) -> str:
        async with connected(f"{server.address}/mcp", "legacy", keys[slug]) as client:
            result = await client.call_tool("ep_list_topics", {"pack": name})
            return result.content[0].text

    async def enter(slug: str, name: str) -> None:
        async with connected(f"{server.address}/packs/{name}/mcp", "legacy", keys[slug]) as client:
            await client.list_tools()

    with serving(here.dist, "--config", str(settings)) as server:
        mounted, absent = f"tiny@{here.second}", f"nones@{here.second}"
        assert status("tiny", f"/search?q=water&pack={mounted}")[0] == 200
        assert here.second in status("tiny", "/healthz")[1]
        for target in ("/search?q=water&pack={}", "/graph?id=a&pack={}"):
            refused, unknown = (status("notes", target.format(name)) for name in (mounted, absent))
            assert refused == unknown
            assert refused[0] == 404
        assert "tiny" not in status("notes", "/healthz")[1]
        assert anyio.run(use, "notes", mounted) == anyio.run(use, "notes", absent)
        anyio.run(enter, "tiny", mounted)
        for name in (mounted, absent):
            with pytest.raises((MCPError, ExceptionGroup)):
                anyio.run(enter, "notes", name)


# The end


def test_sigterm_turns_readyz_first_and_lets_a_running_request_end(
    here: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCTAVO_DRAIN_SECONDS", "2")
    monkeypatch.setenv("OCTAVO_GRACE_SECONDS", str(PATIENCE))
    with held_up(monkeypatch, here.dist) as (server, holdup, search):
        assert ask(server, "/readyz") == (200, {"status": "ready"})
        server.process.send_signal(signal.SIGTERM)
        until(lambda: ask(server, "/readyz") == (503, {"status": "stopping"}))
        assert ask(server, "/")[0] == 200
        until(lambda: not listens(server))
        assert server.process.poll() is None
        holdup.go_on.set()
        status, answer = search.result(PATIENCE)
        assert (status, answer["digest"]) == (200, here.first)
        assert server.process.wait(PATIENCE) == -signal.SIGTERM


def test_a_request_that_does_not_end_within_the_grace_is_cut_off(
    here: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCTAVO_GRACE_SECONDS", "0.2")
    with held_up(monkeypatch, here.dist) as (server, _, search):
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE) == -signal.SIGTERM
        with pytest.raises((OSError, ValueError)):
            search.result(PATIENCE)


def test_probes_are_answered_whatever_the_host_says(here: History) -> None:
    with serving(here.dist) as server:
        for path, status in (("/readyz", 200), ("/healthz", 200), ("/", 421)):
            request = urllib.request.Request(server.address + path, headers={"Host": "evil.example"})
            try:
                with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                    found = answer.status
            except urllib.error.HTTPError as error:
                with error:
                    found = error.code
            assert found == status


def listens(server: Serving) -> bool:
    try:
        with urllib.request.urlopen(f"{server.address}/healthz", timeout=PATIENCE):
            return True
    except OSError:
        return False
