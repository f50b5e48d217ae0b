from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import mcp.types as t
import pytest
from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from fakes import DIGEST, FILES, SECRET, FakeLibrary, FakePack
from octavo_artifact.errors import NotFoundError
from octavo_serve.faces import Workers
from octavo_serve.over_http.run import address, bind, make_server
from octavo_serve.over_mcp.app import MAX_INSTRUCTIONS, PAGE, instructions
from octavo_serve.over_mcp.app import make_server as make_mcp_server
from octavo_serve.over_mcp.endpoint import Endpoint
from octavo_serve.settings import ServerSettings

pytestmark = pytest.mark.anyio

ERAS = ("legacy", "2026-07-28", pytest.param("auto", marks=pytest.mark.slow))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@contextmanager
def serving(*slugs: str) -> Generator[str]:
    listener = bind(ServerSettings(port=0))
    server = make_server(FakeLibrary({slug: FakePack(slug) for slug in slugs}), ServerSettings())
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield address(listener)
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def one() -> Iterator[str]:
    with serving("pumps") as url:
        yield url


@pytest.fixture(scope="module")
def two() -> Iterator[str]:
    with serving("fans", "pumps") as url:
        yield url


@asynccontextmanager
async def connected(url: str, mode: str) -> AsyncGenerator[Client]:
    async with Client(url, mode=mode, read_timeout_seconds=20) as client:
        yield client


def text_of(result: t.CallToolResult) -> str:
    block = result.content[0]
    assert isinstance(block, t.TextContent)
    return block.text


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        pytest.param("ep_search", {"query": "oil", "tags": ["a", "b"], "type": None}, id="hits"),
        pytest.param("ep_search", {"query": "oil", "compact": True}, id="compact"),
        pytest.param("ep_search", {"query": "nothing"}, id="no hits"),
        pytest.param("ep_read", {"id": "pumps/a"}, id="read"),
        pytest.param("ep_list_topics", {}, id="topics"),
        pytest.param("ep_graph_traverse", {"id": "e", "kinds": ["requires"], "direction": "out"}, id="graph"),
    ],
)
async def test_answers_fit_the_published_output_schema(one: str, mode: str, tool: str, arguments: dict[str, Any]):
    async with connected(f"{one}/packs/pumps/mcp", mode) as client:
        schemas = {listed.name: listed.output_schema for listed in (await client.list_tools()).tools}
        result = await client.call_tool(tool, arguments)
    assert not result.is_error
    schema = schemas[tool]
    assert schema is not None
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(result.structured_content)
    assert DIGEST in text_of(result)


async def test_null_metadata_arrives_as_null(one: str):
    async with connected(f"{one}/mcp", "auto") as client:
        result = await client.call_tool("ep_search", {"query": "oil"})
    assert result.structured_content is not None
    assert result.structured_content["results"][1]["verified_at"] is None
    assert result.structured_content["reason"] is None


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        pytest.param("ep_search", {}, "query: Field required", id="missing"),
        pytest.param("ep_search", {"query": "x" * 2001}, "query: ", id="too long"),
        pytest.param("ep_search", {"query": "q", "max_results": "5"}, "max_results: ", id="another type"),
        pytest.param("ep_search", {"query": "q", "limit": 5}, "limit: unknown; known are", id="unknown argument"),
        pytest.param("ep_search", {"query": "q", "pack": "fans"}, "pack: only pumps is served here", id="other pack"),
        pytest.param("ep_read", {}, "id: missing", id="refused by the pack"),
    ],
)
async def test_bad_arguments_are_a_tool_error_that_names_the_field(
    one: str, mode: str, tool: str, arguments: dict[str, Any], expected: str
):
    async with connected(f"{one}/packs/pumps/mcp", mode) as client:
        result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert result.structured_content is None
    assert text_of(result).startswith(expected)
    assert "xxxx" not in text_of(result)


@pytest.mark.parametrize("mode", ERAS)
async def test_an_unknown_tool_is_a_protocol_error(one: str, mode: str):
    async with connected(f"{one}/mcp", mode) as client:
        with pytest.raises(MCPError) as raised:
            await client.call_tool("ep_write", {})
    assert raised.value.code == t.INVALID_PARAMS


@pytest.mark.parametrize("mode", ERAS)
async def test_a_failure_of_the_server_is_not_explained_to_the_client(one: str, mode: str):
    async with connected(f"{one}/mcp", mode) as client:
        with pytest.raises(MCPError) as raised:
            await client.call_tool("ep_search", {"query": "crash"})
    assert raised.value.code == t.INTERNAL_ERROR
    assert SECRET not in str(raised.value.error)


async def test_the_endpoint_of_several_packs_requires_the_pack_but_for_a_search(two: str):
    async with connected(f"{two}/mcp", "auto") as client:
        tools = (await client.list_tools()).tools
        asked = await client.call_tool("ep_search", {"query": "oil", "pack": "fans"})
        silent = await client.call_tool("ep_list_topics", {})
    required = {tool.name: "pack" in tool.input_schema.get("required", ()) for tool in tools}
    assert required == {tool.name: tool.name != "ep_search" for tool in tools}
    assert all("fans, pumps" in tool.input_schema["properties"]["pack"]["description"] for tool in tools)
    assert asked.structured_content is not None
    assert asked.structured_content["pack"] == "fans"
    assert silent.is_error


async def test_the_endpoint_of_one_pack_serves_that_pack_only(two: str):
    async with connected(f"{two}/packs/fans/mcp", "auto") as client:
        tools = (await client.list_tools()).tools
        result = await client.call_tool("ep_search", {"query": "oil"})
        listed = (await client.list_resources()).resources
        with pytest.raises(MCPError):
            await client.read_resource("ep://pumps/manifest")
    assert all("pack" not in tool.input_schema.get("required", ()) for tool in tools)
    assert result.structured_content is not None
    assert result.structured_content["pack"] == "fans"
    assert {resource.uri.split("/")[2] for resource in listed} == {"fans"}


@pytest.mark.parametrize("mode", ERAS)
async def test_tools_say_what_they_are(one: str, mode: str):
    async with connected(f"{one}/mcp", mode) as client:
        tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == ["ep_search", "ep_read", "ep_list_topics", "ep_graph_traverse"]
    for tool in tools:
        assert tool.title
        assert tool.description is not None
        example = json.loads(tool.description.partition("Example: ")[2])
        Draft202012Validator.check_schema(tool.input_schema)
        Draft202012Validator(tool.input_schema).validate(example)
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema is not None
        assert tool.output_schema["additionalProperties"] is False
        assert tool.annotations == t.ToolAnnotations(
            title=tool.title, read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        )


async def test_schemas_keep_a_property_named_title_and_drop_the_generated_titles(one: str):
    async with connected(f"{one}/mcp", "auto") as client:
        schema = (await client.list_tools()).tools[0].output_schema
    assert schema is not None
    hit_schema = schema["$defs"]["Hit"]
    assert hit_schema["properties"]["title"] == {"type": "string"}
    assert "title" not in hit_schema
    assert hit_schema["properties"]["score"]["description"]


@pytest.mark.parametrize("mode", ERAS)
async def test_pages_of_resources_hold_each_of_them_once(two: str, mode: str):
    uris: list[str] = []
    sizes: list[int] = []
    cursor: str | None = None
    async with connected(f"{two}/mcp", mode) as client:
        while True:
            page = await client.list_resources(cursor=cursor)
            uris += [resource.uri for resource in page.resources]
            sizes.append(len(page.resources))
            cursor = page.next_cursor
            if cursor is None:
                break
    expected = [resource.uri for slug in ("fans", "pumps") for resource in FakePack(slug).resources()]
    assert uris == expected
    assert sizes == [PAGE, PAGE, PAGE, PAGE, 2 * FILES - 4 * PAGE]


@pytest.mark.parametrize("cursor", ["", "%", "zzzz", base64.urlsafe_b64encode(b"ep://pumps/x").decode(), "é"])
async def test_a_cursor_that_was_not_given_is_refused(one: str, cursor: str):
    async with connected(f"{one}/mcp", "auto") as client:
        for listing in (client.list_resources, client.list_tools, client.list_resource_templates):
            with pytest.raises(MCPError) as raised:
                await listing(cursor=cursor)
            assert raised.value.code == t.INVALID_PARAMS


@pytest.mark.parametrize("mode", ERAS)
async def test_resources_keep_their_bytes_and_types(one: str, mode: str):
    async with connected(f"{one}/mcp", mode) as client:
        for uri, (mime_type, content) in FakePack("pumps").contents.items():
            if uri.endswith("0.md"):
                continue
            (read,) = (await client.read_resource(uri)).contents
            assert (read.uri, read.mime_type) == (uri, mime_type)
            if isinstance(read, t.TextResourceContents):
                assert read.text.encode() == content
            else:
                assert base64.b64decode(read.blob) == content
            assert isinstance(read, t.BlobResourceContents) == uri.endswith(("broken.md", "pump.png"))


@pytest.mark.parametrize(
    ("mode", "code"), [("legacy", -32002), ("2026-07-28", t.INVALID_PARAMS), ("auto", t.INVALID_PARAMS)]
)
@pytest.mark.parametrize("uri", ["ep://pumps/file/none.md", "ep://fans/manifest", "file:///etc/passwd", "ep://"])
async def test_an_unknown_resource_is_not_found_in_the_words_of_its_era(one: str, mode: str, code: int, uri: str):
    async with connected(f"{one}/mcp", mode) as client:
        with pytest.raises(MCPError) as raised:
            await client.read_resource(uri)
    assert raised.value.code == code
    assert raised.value.data == {"uri": uri}


async def test_templates_name_the_files_of_each_pack(two: str):
    async with connected(f"{two}/mcp", "auto") as client:
        templates = (await client.list_resource_templates()).resource_templates
    assert [template.uri_template for template in templates] == [
        "ep://{pack}/{name}",
        "ep://fans/file/{+path}",
        "ep://fans/always/{+path}",
        "ep://pumps/file/{+path}",
        "ep://pumps/always/{+path}",
    ]


@pytest.mark.parametrize(
    ("name", "keys", "expected"),
    [
        pytest.param(None, (), (60_000, "public"), id="all packs"),
        pytest.param("pumps", (), (60_000, "public"), id="what is current"),
        pytest.param(f"pumps@{DIGEST}", (), (86_400_000, "public"), id="one release"),
        pytest.param(f"pumps@{DIGEST}", ("*",), (86_400_000, "private"), id="one release, to a key"),
    ],
)
async def test_answers_may_be_kept_as_long_as_they_hold(name: str | None, keys: tuple[str, ...], expected: Any):
    library = FakeLibrary({"pumps": FakePack("pumps")})
    workers = Workers(10)
    server = make_mcp_server(lambda ctx: Endpoint(library, name), workers, public=not keys)
    async with Client(server, mode="auto") as client:
        answers = [
            await client.session.discover(),
            await client.list_tools(),
            await client.list_resources(),
            await client.list_resource_templates(),
            await client.list_prompts(),
            await client.read_resource("ep://pumps/manifest"),
        ]
    workers.close()
    assert {(answer.ttl_ms, answer.cache_scope) for answer in answers} == {expected}


@pytest.mark.parametrize(
    ("name", "asked", "answers"),
    [
        ("pumps", None, True),
        ("pumps", "pumps", True),
        ("pumps", f"pumps@{DIGEST}", True),
        ("pumps", "fans", False),
        (f"pumps@{DIGEST}", "pumps", True),
        (f"pumps@{DIGEST}", f"pumps@{DIGEST}", True),
        (f"pumps@{DIGEST}", f"pumps@{'e' * 64}", False),
    ],
)
def test_the_endpoint_of_a_pack_or_of_a_release_answers_for_nothing_else(name: str, asked: str | None, answers: bool):
    endpoint = Endpoint(FakeLibrary({"fans": FakePack("fans"), "pumps": FakePack("pumps")}), name)
    if answers:
        assert endpoint.choose(asked).slug == "pumps"
    else:
        with pytest.raises(NotFoundError, match=f"only {name} is served here"):
            endpoint.choose(asked)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_server_introduces_itself_and_its_packs(one: str, mode: str):
    async with connected(f"{one}/mcp", mode) as client:
        assert client.server_info is not None
        assert client.server_info.name == "octavo"
        assert client.instructions is not None
        assert "Pumps (pumps): Everything about pumps." in client.instructions
        assert "ep_search" in client.instructions
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.resources is not None
        assert client.server_capabilities.prompts is not None


def test_instructions_are_bounded():
    text = instructions([FakePack("pumps", "words " * 2000)])
    assert len(text) == MAX_INSTRUCTIONS
    assert text.endswith("do not guess.")


STDIO = """
import sys
sys.path.insert(0, {path!r})
import fakes

class Chatty(fakes.FakePack):
    def search(self, request):
        print("a stray line")
        return super().search(request)

from octavo_serve.over_mcp.stdio import run_stdio
run_stdio(fakes.FakeLibrary({{"pumps": Chatty("pumps")}}))
"""

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
META_2026 = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param(
            [
                INITIALIZE,
                {"jsonrpc": "2.0", "method": "notifications/initialized"},
                {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "tools/call",
                    "params": {"name": "ep_search", "arguments": {"query": "oil"}},
                },
            ],
            id="2025",
        ),
        pytest.param(
            [
                {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "tools/call",
                    "params": {"name": "ep_search", "arguments": {"query": "oil"}, "_meta": META_2026},
                }
            ],
            id="2026",
        ),
    ],
)
def test_stdio_answers_all_it_was_asked_and_writes_nothing_else(messages: list[dict[str, Any]]):
    process = subprocess.run(
        [sys.executable, "-c", STDIO.format(path=str(Path(__file__).parents[2]))],
        input=b"".join(json.dumps(message).encode() + b"\n" for message in messages),
        capture_output=True,
        # a line that is printed waits in its buffer, as it does for users
        env={**os.environ, "PYTHONUNBUFFERED": ""},
        timeout=60,
        check=True,
    )
    answers = {answer["id"]: answer for answer in map(json.loads, process.stdout.splitlines())}
    assert sorted(answers) == [message["id"] for message in messages if "id" in message]
    assert answers[1]["result"]["structuredContent"]["pack"] == "pumps"
    assert process.stderr == b"a stray line\n"


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_stdio_serves_the_official_client(mode: str):
    command = StdioServerParameters(
        command=sys.executable, args=["-c", STDIO.format(path=str(Path(__file__).parents[2]))]
    )
    async with Client(command, mode=mode, read_timeout_seconds=60) as client:
        result = await client.call_tool("ep_search", {"query": "oil"})
    assert result.structured_content is not None
    assert len(result.structured_content["results"]) == 2


def test_white_space_after_a_routing_header_is_no_mismatch(one: str):
    host, _, port = one.removeprefix("http://").partition(":")
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META_2026}}).encode()
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\nAccept: application/json\r\n"
        f"MCP-Protocol-Version: 2026-07-28 \t\r\nMcp-Method: tools/list  \r\nConnection: close\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(head.encode() + body)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("mode", ERAS)
async def test_prompts_carry_their_packs_name_where_there_are_several(one: str, two: str, mode: str):
    async with connected(f"{one}/mcp", mode) as client:
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["prime"]
        given = await client.get_prompt("prime")
    async with connected(f"{two}/mcp", mode) as client:
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["fans-prime", "pumps-prime"]
        assert (await client.get_prompt("fans-prime")).messages == given.messages
    assert (given.description, given.messages[0].role) == ("How to prime it.", "user")


@pytest.mark.parametrize("mode", ERAS)
async def test_an_unknown_prompt_is_a_protocol_error(one: str, mode: str):
    async with connected(f"{one}/mcp", mode) as client:
        with pytest.raises(MCPError) as unknown:
            await client.get_prompt("drain")
        with pytest.raises(MCPError) as argued:
            await client.get_prompt("prime", {"speed": "fast"})
    assert unknown.value.code == argued.value.code == t.INVALID_PARAMS
