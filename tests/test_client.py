"""The official client against the started server: over HTTP and stdio, in the protocol of 2025 and of 2026."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from jsonschema import Draft202012Validator

from running import OCTAVO, Serving

MODES = (pytest.param("legacy", marks=pytest.mark.slow), "2026-07-28")
TRANSPORTS = ("http", "http-pack", "stdio")


@asynccontextmanager
async def connected(transport: str, mode: Any, server: Serving, built: Path) -> AsyncGenerator[Any]:
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    if transport == "stdio":
        target: Any = stdio_client(StdioServerParameters(command=str(OCTAVO), args=["stdio", str(built)]))
    else:
        target = f"{server.address}/mcp" if transport == "http" else f"{server.address}/packs/tiny/mcp"
    async with Client(target, mode=mode) as client:
        yield client


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_client_searches_reads_what_it_found_and_lists(
    transport: str, mode: str, server: Serving, built: Path
) -> None:
    async def use() -> None:
        async with connected(transport, mode, server, built) as client:
            pack = {} if transport == "http-pack" else {"pack": "tiny"}
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == {"ep_search", "ep_read", "ep_list_topics", "ep_graph_traverse"}

            async def call(name: str, **arguments: Any) -> dict[str, Any]:
                answer = await client.call_tool(name, {**pack, **arguments})
                assert not answer.is_error, answer.content
                Draft202012Validator(tools[name].output_schema).validate(answer.structured_content)
                assert answer.structured_content["digest"] in answer.content[0].text
                for link in answer.content[1:]:
                    assert link.uri in [hit["uri"] for hit in answer.structured_content["results"]]
                    assert (await client.read_resource(link.uri)).contents
                return answer.structured_content

            found = await call("ep_search", query="the display shows E-17, what now?")
            assert found["results"][0]["source_file"] in ("workflows/descale.md", "concepts/water.md")
            for hit in found["results"]:
                for name in ("id", "uri", "fragment_id", "source_file"):
                    read = await call("ep_read", id=hit[name])
                    assert read["path"] == hit["source_file"]
                    assert hit["text"] in read["content"]
                resource = (await client.read_resource(hit["uri"])).contents[0]
                assert (resource.mime_type, resource.text) == ("text/markdown", read["content"])
            graph = await call("ep_graph_traverse", id=found["results"][0]["id"], depth=3)
            assert len(graph["nodes"]) == 3
            for node in graph["nodes"]:
                assert (await call("ep_read", id=node["uri"]))["id"] == node["id"]
            topics = await call("ep_list_topics")
            assert [topic["path"] for topic in topics["topics"]["workflow"]] == ["workflows/descale.md"]
            listed = [str(resource.uri) for resource in (await client.list_resources()).resources]
            assert {"ep://tiny/manifest", "ep://tiny/files", "ep://tiny/file/concepts/water.md"} <= set(listed)
            prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
            name = "descale" if transport == "http-pack" else "tiny-descale"
            assert list(prompts) == [name]
            (step,) = (await client.get_prompt(name)).messages
            assert step.content.text.startswith("# Descale the boiler")
            templates = (await client.list_resource_templates()).resource_templates
            assert "ep://tiny/file/{+path}" in [template.uri_template for template in templates]

    anyio.run(use)


def get(url: str) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_http_search_answers_what_mcp_answers(server: Serving, built: Path) -> None:
    async def by_mcp() -> dict[str, Any]:
        async with connected("http", "2026-07-28", server, built) as client:
            answer = await client.call_tool("ep_search", {"query": "hard water", "pack": "tiny", "max_results": 3})
            return answer.structured_content

    assert get(f"{server.address}/search?q=hard+water&pack=tiny&n=3") == (200, anyio.run(by_mcp))


def test_http_graph_answers_what_mcp_answers(server: Serving, built: Path) -> None:
    async def by_mcp() -> dict[str, Any]:
        async with connected("http", "2026-07-28", server, built) as client:
            asked = {"path": "workflows/descale.md", "pack": "tiny", "depth": 2, "kinds": ["requires", "related"]}
            return (await client.call_tool("ep_graph_traverse", asked)).structured_content

    query = "path=workflows/descale.md&pack=tiny&depth=2&kinds=requires,related"
    status, result = get(f"{server.address}/graph?{query}")
    assert (status, result) == (200, anyio.run(by_mcp))
    assert [node["depth"] for node in result["nodes"]] == [0, 1, 2]
    status, problem = get(f"{server.address}/graph?path=none.md&pack=tiny")
    assert (status, problem["field"]) == (404, "path")
    status, problem = get(f"{server.address}/graph?id=tiny&pack=tiny&hops=2")
    assert (status, problem["field"]) == (422, "hops")


def test_http_search_takes_the_graph_flag(server: Serving) -> None:
    for flag, expected in (("1", 200), ("true", 200), ("0", 200), ("maybe", 422)):
        assert get(f"{server.address}/search?q=water&pack=tiny&graph={flag}")[0] == expected


def test_a_hit_tells_where_it_stands_to_the_byte(server: Serving, built: Path) -> None:
    from hashlib import sha256

    from running import TINY

    _, result = get(f"{server.address}/search?q=burr+grinder+steps&pack=tiny&n=10")
    assert result["digest"] == json.loads((built / "tiny" / "latest.json").read_bytes())["digest"]
    for hit in result["results"]:
        raw = (TINY / hit["source_file"]).read_bytes()
        start, end = hit["byte_range"]
        assert sha256(raw[start:end]).hexdigest() == hit["span_sha256"]
        assert hit["text"] == raw[start:end].decode()
        first, last = hit["line_range"]
        assert b"".join(raw.splitlines(keepends=True)[first - 1 : last]) == raw[start:end]
        assert hit["digest"] == result["digest"]


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [
        pytest.param("pack=tiny", 422, "q", id="no question"),
        pytest.param("q=x&pack=other", 404, "pack", id="unknown pack"),
        pytest.param("q=x&pack=tiny&n=0", 422, "n", id="too few"),
        pytest.param("q=x&pack=tiny&n=many", 422, "n", id="no number"),
        pytest.param(f"q={'x' * 2001}&pack=tiny", 422, "q", id="too long"),
    ],
)
def test_a_bad_request_names_its_field(server: Serving, query: str, status: int, field: str) -> None:
    found, problem = get(f"{server.address}/search?{query}")
    assert (found, problem["status"], problem["field"]) == (status, status, field)


@pytest.mark.parametrize(
    "query", ["", "%20%20", "%00", "NOT", "%22", "title:abc", "(", "foo*", "C%2B%2B", "%F0%9F%8D%B5"]
)
def test_no_text_breaks_a_search(server: Serving, query: str) -> None:
    status, result = get(f"{server.address}/search?q={query}&pack=tiny")
    assert status == 200
    assert result["refused"] is (result["reason"] is not None) is (not result["results"])


def test_filters_are_filters(server: Serving) -> None:
    _, result = get(f"{server.address}/search?q=water&pack=tiny&type=workflow&n=50")
    assert {hit["type"] for hit in result["results"]} == {"workflow"}
    _, result = get(f"{server.address}/search?q=water&pack=tiny&tags=maintenance,boiler&n=50")
    assert {hit["source_file"] for hit in result["results"]} == {"workflows/descale.md"}
    _, result = get(f"{server.address}/search?q=water&pack=tiny&type=none")
    assert (result["results"], result["reason"]) == ([], "no_relevant_passage")


def test_navigation_and_on_demand_files_are_read_and_never_found(server: Serving) -> None:
    _, result = get(f"{server.address}/search?q=Brewer+2+old+model+concepts&pack=tiny&n=50")
    assert not {"archive/brewer-2.md", "concepts/_index.md"} & {hit["source_file"] for hit in result["results"]}


def test_health_names_every_release(server: Serving) -> None:
    status, health = get(f"{server.address}/healthz")
    assert (status, health["status"], sorted(health["packs"]), health["refused"]) == (200, "ok", ["notes", "tiny"], {})


def test_nothing_but_the_protocol_is_on_stdout(built: Path) -> None:
    import subprocess

    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }}  # fmt: skip
    done = subprocess.run(
        [OCTAVO, "stdio", built],
        input=json.dumps(request) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1]
