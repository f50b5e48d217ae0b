"""Knowledge repositories as their clients see them: the example over stdio, and several owners in one server."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import copytree
from typing import Any
from urllib.parse import unquote

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from running import OCTAVO, ROOT, octavo

EXAMPLE = ROOT / "examples" / "knowledge-repository"
SCRIPT = "octavo_knowledge.py"

CONTRACT = {
    "knowledge://ferry/design-note/timetable": (
        "design/timetable.md",
        "How the timetable is made",
        "The timetable follows the tide: no ferry leaves when less than 1.8 m of water stands over the sill.",
    ),
    "knowledge://ferry/architecture-decision/decision-1": (
        "backlog/decisions/decision-1 - Diesel stays in reserve.md",
        "Diesel stays in reserve",
        "Why the electric ferry keeps its old engine.",
    ),
    "knowledge://ferry/%E9%81%8B%E8%88%AA%E3%82%AC%E3%82%A4%E3%83%89/winter": (
        "backlog/docs/doc-2 - 冬季.md",
        "冬季の運航",
        "気温が氷点下五度を下回る朝は、始発の前に係留索と甲板の氷を落とす。",
    ),
}
"""What the example exports: URI to file, name and description."""


@asynccontextmanager
async def connected(
    command: Path, arguments: list[str], mode: Any = "auto", environment: Mapping[str, str] = os.environ
) -> AsyncGenerator[Client]:
    target = StdioServerParameters(command=str(command), args=arguments, env=dict(environment))
    async with Client(stdio_client(target), mode=mode) as client:
        yield client


@pytest.fixture(scope="module")
def cached(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment with an empty cache, where nobody names an owner or roots."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OKF_MCP_")}
    return {**kept, "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}


def body_of(file: Path) -> bytes:
    return file.read_bytes().partition(b"---\n")[2].partition(b"\n---\n")[2].strip()


@pytest.mark.parametrize("mode", [pytest.param("legacy", marks=pytest.mark.slow), "2026-07-28"])
def test_the_example_lists_and_reads_what_the_contract_says(mode: str, cached: dict[str, str]) -> None:
    async def use() -> None:
        async with connected(Path(sys.executable), [str(EXAMPLE / SCRIPT)], mode, cached) as client:
            listed = (await client.list_resources()).resources
            found = {str(each.uri): (each.name, each.description, each.mime_type) for each in listed}
            assert found == {
                uri: (name, description, "text/markdown") for uri, (_, name, description) in CONTRACT.items()
            }
            for resource in listed:
                uri = str(resource.uri)
                body = body_of(EXAMPLE / CONTRACT[uri][0])
                meta = {"content_hash": f"sha256:{hashlib.sha256(body).hexdigest()}"}
                (content,) = (await client.read_resource(uri)).contents
                assert (str(content.uri), content.mime_type) == (uri, "text/markdown")
                assert content.text.encode() == body  # type: ignore[union-attr]
                assert (resource.size, resource.meta, content.meta) == (len(body), meta, meta)

    anyio.run(use)
    assert not [path for path in EXAMPLE.rglob("*") if path.name in (".octavo", "dist")]


def test_a_hit_of_the_example_is_read_by_its_uri(cached: dict[str, str]) -> None:
    async def use() -> None:
        async with connected(Path(sys.executable), [str(EXAMPLE / SCRIPT)], environment=cached) as client:
            for query in ("why keep the diesel engine?", "冬季の運航"):
                answer = await client.call_tool("ep_search", {"query": query})
                assert answer.structured_content is not None
                hit = answer.structured_content["results"][0]
                assert hit["uri"] in CONTRACT
                for spelled in (hit["uri"], unquote(hit["uri"])):
                    read = await client.call_tool("ep_read", {"id": spelled})
                    assert read.structured_content is not None
                    assert read.structured_content["path"] == CONTRACT[hit["uri"]][0]

    anyio.run(use)


@pytest.mark.slow
def test_nothing_but_the_protocol_is_on_stdout_while_the_example_compiles(tmp_path: Path) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }}  # fmt: skip
    repository = copytree(EXAMPLE, tmp_path / "ferry")
    for number in range(30):  # more than one process encodes alone
        (repository / "design" / f"note-{number}.md").write_text(
            f"---\nexport: true\ntype: Note\n---\nNote {number} is about berth {number}.\n"
        )
    (repository / "mcp").mkdir()  # a folder with the name of a module that the server imports
    (repository / "mcp" / "__init__.py").write_text("raise ImportError\n")
    done = subprocess.run(
        [sys.executable, repository / SCRIPT],
        input=json.dumps(request) + "\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        cwd=repository,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "ferry"]


@pytest.mark.slow
def test_a_changed_file_is_served_at_the_next_start_and_the_rest_is_not_done_again(tmp_path: Path) -> None:
    repository = copytree(EXAMPLE, tmp_path / "ferry")
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert "vectors" in octavo("knowledge", repository, "--build-only", env=environment).stderr
    again = octavo("knowledge", repository, "--build-only", env=environment)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "ferry: release\n")
    with (repository / "design" / "timetable.md").open("a") as file:
        file.write("\nOn Sundays the last ferry leaves at ten.\n")

    async def use() -> None:
        async with connected(OCTAVO, ["knowledge", str(repository)], environment=environment) as client:
            (content,) = (await client.read_resource("knowledge://ferry/design-note/timetable")).contents
            assert content.text.endswith("leaves at ten.")  # type: ignore[union-attr]

    anyio.run(use)


@pytest.mark.slow
def test_one_server_has_the_documents_of_several_owners(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    for owner in ("North Pier", "south"):
        (tmp_path / owner / "design").mkdir(parents=True)
        (tmp_path / owner / "design" / "a.md").write_text(f"---\nexport: true\ntype: Note\n---\nOf {owner}.\n")

    async def use() -> None:
        arguments = ["knowledge", str(tmp_path / "North Pier"), str(tmp_path / "south")]
        async with connected(OCTAVO, arguments, environment=environment) as client:
            listed = {str(each.uri) for each in (await client.list_resources()).resources}
            assert listed == {"knowledge://North%20Pier/note/a", "knowledge://south/note/a"}
            for uri, text in (
                ("knowledge://North%20Pier/note/a", "Of North Pier.\n"),
                ("knowledge://North Pier/note/a", "Of North Pier.\n"),
                ("knowledge://south/note/a", "Of south.\n"),
            ):
                assert (await client.read_resource(uri)).contents[0].text == text.strip()  # type: ignore[union-attr]
            templates = [each.uri_template for each in (await client.list_resource_templates()).resource_templates]
            assert templates == ["knowledge://North%20Pier/{type}/{+id}", "knowledge://south/{type}/{+id}"]
            for uri in ("knowledge://south/note/b", "knowledge://north/note/a", "knowledge://"):
                with pytest.raises(MCPError):
                    await client.read_resource(uri)

    anyio.run(use)


def test_a_repository_that_exports_nothing_is_served_empty(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    (tmp_path / "bare").mkdir()

    async def use() -> None:
        async with connected(OCTAVO, ["knowledge", str(tmp_path / "bare")], environment=environment) as client:
            assert (await client.list_resources()).resources == []

    anyio.run(use)


def test_lint_has_the_invariants_of_the_contract(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("---\nexport: true\n---\nBody.\n")
    done = octavo("lint", tmp_path, "--source-format", "repository", "--roots", "notes", "--format", "json")
    (pack,) = json.loads(done.stdout)["packs"]
    assert done.returncode == 1
    assert [(finding["path"], finding["code"]) for finding in pack["findings"]] == [("notes/a.md", "export-untyped")]
    (tmp_path / ".git").mkdir()
    below = octavo("lint", "notes", "--source-format", "repository", "--roots", "notes", cwd=tmp_path)
    assert below.stdout.startswith("notes/a.md:2: error export-untyped")
    assert octavo("lint", EXAMPLE).returncode == 0


def test_the_example_is_a_script_that_says_what_it_needs() -> None:
    lines = (EXAMPLE / SCRIPT).read_text().splitlines()
    block = lines[lines.index("# /// script") + 1 : lines.index("# ///")]
    metadata = tomllib.loads("\n".join(line.removeprefix("# ") for line in block))
    assert metadata == {"requires-python": ">=3.11", "dependencies": ["octavo[build]"]}
    (entry,) = json.loads((EXAMPLE / ".mcp.json").read_text())["mcpServers"].values()
    assert entry == {"command": "uv", "args": ["run", SCRIPT]}
