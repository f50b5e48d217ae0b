"""Two packs, each with its key and its token: to the holder of one the other is as if it were not there (B48).

The packs are the same but for their slug. Whatever is asked of the foreign one, and of one that nobody serves, has
equal answers but for the client's own word.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp.types as t
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import PromptReference, ResourceTemplateReference
from pydantic import TypeAdapter

from authority import authority_running
from listening import CALL, ERAS, Running, connected, listening, swapped
from octavo_artifact.ids import sha256_hex
from octavo_serve.callers.keys import Key, new_key
from octavo_serve.callers.oauth import OAuthSettings
from octavo_serve.catalog import open_catalog
from octavo_serve.settings import ServerSettings
from running import octavo

pytestmark = pytest.mark.anyio

OWN, FOREIGN, ABSENT = "apple", "berry", "cedar"
"""As long as each other, and in none of the others' texts."""

MANIFEST = """\
name: A handbook
slug: {slug}
type: product
version: "1"
description: How to brew.
entry_point: overview.md
mcp: {{skills: {{enabled: true}}}}
"""
PAGE = "---\ntitle: {title}\ntype: {type}\ntags: [water]\npack: {slug}\nid: {slug}/{name}\n---\n\n# {title}\n\n{text}\n"


def write(root: Path, slug: str) -> Path:
    pages = {
        "overview.md": PAGE.format(title="Overview", type="concept", slug=slug, name="overview", text="What there is."),
        "workflows/brew.md": PAGE.format(
            title="Brew", type="workflow", slug=slug, name="brew", text="Steep the leaves for four minutes in water."
        ),
    }
    for path, text in {"manifest.yaml": MANIFEST.format(slug=slug), **pages}.items():
        (root / slug / path).parent.mkdir(parents=True, exist_ok=True)
        (root / slug / path).write_text(text)
    return root / slug


@dataclass(frozen=True)
class Holder:
    """Somebody who may ask the own pack, or both, by a key or by a token."""

    running: Running
    kind: str
    own: str
    both: str
    fragment: str
    """A passage of the foreign pack, by its id."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def holders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Holder]]:
    root = tmp_path_factory.mktemp("packs")
    packs = [write(root, slug) for slug in (OWN, FOREIGN)]
    done = octavo("build", *packs, "--out", root / "dist", "--state", root / "state", "-q")
    assert done.returncode == 0, done.stderr
    own, both = new_key(), new_key()
    keys = (Key("own", sha256_hex(own.encode()), (OWN,)), Key("both", sha256_hex(both.encode()), (OWN, FOREIGN)))
    with authority_running() as authority:

        def settings(url: str) -> ServerSettings:
            return ServerSettings(keys=keys, oauth=OAuthSettings(authority.url, url))

        with listening(open_catalog(root / "dist"), settings) as running:
            hits = running.ask(f"/search?q=steep+leaves+water&pack={FOREIGN}&gate=off", both).json["results"]
            fragment = hits[0]["fragment_id"]
            assert FOREIGN in fragment
            tokens = [authority.token(scope, running.url) for scope in ("pack:apple", "pack:apple pack:berry")]
            yield {
                "key": Holder(running, "key", own, both, fragment),
                "token": Holder(running, "token", tokens[0], tokens[1], fragment),
            }


@pytest.fixture(params=["key", "token"])
def holder(request: pytest.FixtureRequest, holders: dict[str, Holder]) -> Holder:
    return holders[request.param]


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/search?q=water&pack={}", 404),
        ("GET", "/search?q=water+{}&pack={}&n=50&graph=1&reconstruct=1", 404),
        ("GET", "/graph?id={}&pack={}", 404),
        ("GET", "/graph?id={}/brew", 404),
        ("GET", "/graph?id=ep://{}/file/workflows/brew.md", 404),
        ("GET", "/graph?path={}/workflows/brew.md", 404),
        ("GET", "/packs/{}", 404),
        ("GET", "/packs/{}/mcp", 405),
        ("POST", "/packs/{}/mcp/", 404),
        ("POST", "/packs/apple%2F..%2F{}/mcp", 404),
        ("POST", "/packs/apple/../{}/mcp", 404),
        ("HEAD", "/search?q=water&pack={}", 404),
    ],
)
def test_over_http_a_foreign_pack_answers_as_one_that_is_not_there(
    holder: Holder, method: str, target: str, status: int
):
    body = json.dumps(CALL).encode() if method == "POST" else None
    foreign, absent = (
        holder.running.ask(target.replace("{}", slug), holder.own, method=method, body=body)
        for slug in (FOREIGN, ABSENT)
    )
    assert foreign.status == status
    assert swapped(foreign, FOREIGN) == swapped(absent, ABSENT)


@pytest.mark.parametrize("path", ["/packs/{}/mcp", "/packs/{}@0123456789ab/mcp"])
def test_the_endpoint_of_a_foreign_pack_answers_as_one_that_is_not_there(holder: Holder, path: str):
    """To a token with what it would need, which the client knows anyway; a key cannot be given more."""
    foreign, absent = (holder.running.post(path.replace("{}", slug), holder.own) for slug in (FOREIGN, ABSENT))
    assert foreign.status == {"key": 404, "token": 403}[holder.kind]
    challenges = [each.headers.pop("www-authenticate", "") for each in (foreign, absent)]
    assert challenges[0].replace(FOREIGN, "SLUG") == challenges[1].replace(ABSENT, "SLUG")
    assert swapped(foreign, FOREIGN) == swapped(absent, ABSENT)


Use = Callable[[Client, str], Awaitable[Any]]


def answered(ask: Callable[[Client, Callable[[str], str]], Awaitable[Any]]) -> Use:
    """What a client is told, be it an answer or an error, when `{}` stands for a slug."""

    async def use(client: Client, slug: str) -> Any:
        try:
            result = await ask(client, lambda text: text.replace("{}", slug))
        except MCPError as error:
            return {"error": error.error.model_dump(mode="json")}
        return result if isinstance(result, dict) else result.model_dump(mode="json")

    return use


def calling(tool: str, **arguments: str) -> Use:
    return answered(
        lambda client, fill: client.call_tool(tool, {name: fill(value) for name, value in arguments.items()})
    )


def reading(uri: str) -> Use:
    return answered(lambda client, fill: client.read_resource(fill(uri)))


def prompting(name: str) -> Use:
    return answered(lambda client, fill: client.get_prompt(fill(name)))


def completing(template: str, argument: str, value: str) -> Use:
    ref = ResourceTemplateReference(uri=template) if "://" in template else PromptReference(name=template)

    async def ask(client: Client, fill: Callable[[str], str]) -> Any:
        filled = ref.model_copy(update={"uri" if "://" in template else "name": fill(template)})
        return await client.complete(filled, {"name": argument, "value": fill(value)})

    return answered(ask)


def asking(method: str, **params: str) -> Use:
    async def ask(client: Client, fill: Callable[[str], str]) -> Any:
        request = t.Request[dict[str, Any], str](
            method=method, params={name: fill(value) for name, value in params.items()}
        )
        answer: Any = TypeAdapter(dict[str, Any])
        return await client.session.send_request(request, answer)

    return answered(ask)


def paging(after: str) -> Use:
    return answered(lambda client, fill: client.list_resources(cursor=urlsafe_b64encode(fill(after).encode()).decode()))


@asynccontextmanager
async def using(holder: Holder, path: str, mode: str) -> AsyncGenerator[Client]:
    async with connected(holder.running.url + path, holder.own, mode) as client:
        yield client


@pytest.mark.parametrize(("mode", "path"), list(zip(ERAS, ("/mcp", f"/packs/{OWN}/mcp"), strict=True)))
@pytest.mark.parametrize(
    "use",
    [
        pytest.param(calling("ep_search", query="water", pack="{}"), id="search"),
        pytest.param(calling("ep_read", id="{}/brew", pack="{}"), id="read"),
        pytest.param(calling("ep_read", id="{}/brew"), id="read by id"),
        pytest.param(calling("ep_read", id="ep://{}/file/workflows/brew.md"), id="read by uri"),
        pytest.param(calling("ep_read", path="{}/workflows/brew.md"), id="read by path"),
        pytest.param(calling("ep_read", path="../{}/workflows/brew.md"), id="read around"),
        pytest.param(calling("ep_list_topics", pack="{}"), id="topics"),
        pytest.param(calling("ep_graph_traverse", id="{}/brew", pack="{}"), id="graph"),
        pytest.param(calling("ep_graph_traverse", id="ep://{}/file/workflows/brew.md"), id="graph by uri"),
        pytest.param(calling("ep_search", query="water", pack="{}", limit="1"), id="bad arguments"),
        pytest.param(reading("ep://{}/manifest"), id="manifest"),
        pytest.param(reading("ep://{}/file/workflows/brew.md"), id="resource"),
        pytest.param(reading("ep://apple/../{}/manifest"), id="resource around"),
        pytest.param(reading("skill://{}/SKILL.md"), id="skill as a resource"),
        pytest.param(asking("skills/get", uri="skill://{}/SKILL.md"), id="skill"),
        pytest.param(asking("resources/directory/read", uri="skill://{}/workflows"), id="directory of a skill"),
        pytest.param(prompting("{}-brew"), id="prompt"),
        pytest.param(completing("ep://{}/file/{+path}", "path", "work"), id="completion of a path"),
        pytest.param(completing("{}-brew", "pack", "{}"), id="completion of a prompt"),
        pytest.param(paging("ep://{}/manifest"), id="cursor"),
    ],
)
async def test_over_mcp_a_foreign_pack_answers_as_one_that_is_not_there(holder: Holder, mode: str, path: str, use: Use):
    async with using(holder, path, mode) as client:
        foreign, absent = [json.dumps(await use(client, slug)) for slug in (FOREIGN, ABSENT)]
    assert "error" in foreign
    assert foreign.replace(FOREIGN, "SLUG") == absent.replace(ABSENT, "SLUG")
    assert "four minutes" not in foreign


async def test_the_id_of_a_foreign_passage_opens_nothing(holder: Holder):
    """And it is a passage's: to whoever has both packs it opens that passage."""
    fragment = holder.fragment
    async with connected(f"{holder.running.url}/mcp", holder.both) as client:
        found = await client.call_tool("ep_read", {"id": fragment, "pack": FOREIGN})
        assert "four minutes" in found.model_dump_json()
    async with using(holder, "/mcp", "auto") as client:
        for arguments in ({"id": fragment}, {"id": fragment, "pack": OWN}, {"id": fragment, "pack": FOREIGN}):
            foreign = await client.call_tool("ep_read", arguments)
            swap = {name: value.replace(FOREIGN, ABSENT) for name, value in arguments.items()}
            absent = await client.call_tool("ep_read", swap)
            assert foreign.is_error
            assert foreign.model_dump_json().replace(FOREIGN, ABSENT) == absent.model_dump_json()
    for target in (f"/graph?id={fragment.replace('#', '%23')}", f"/search?q={fragment.replace('#', '%23')}&n=50"):
        answer = holder.running.ask(target, holder.own)
        assert b"berry/brew" not in answer.body.replace(fragment.encode(), b"")


@pytest.mark.parametrize("mode", ERAS)
async def test_nothing_that_is_listed_names_a_foreign_pack(holder: Holder, mode: str):
    async with using(holder, "/mcp", mode) as client:
        told: list[Any] = [
            await client.list_tools(),
            await client.list_resources(),
            await client.list_resource_templates(),
            await client.list_prompts(),
            await client.call_tool("ep_list_topics", {}),
            await client.call_tool("ep_search", {"query": "steep leaves in water", "gate": "off"}),
        ]
        skills = await asking("skills/list")(client, OWN)
        text = f"{client.instructions} {skills} {' '.join(each.model_dump_json() for each in told)}"
    assert OWN in text
    assert f"skill://{OWN}/" in text
    assert FOREIGN not in text
    for target in ("/", "/healthz", "/search?q=water&gate=off", "/search", "/search?q=x&pack=zz", "/graph"):
        answer = holder.running.ask(target, holder.own)
        assert FOREIGN not in f"{answer.headers} {answer.body.decode()}"


async def test_a_search_of_all_packs_is_one_of_those_that_are_seen(holder: Holder):
    own = holder.running.ask("/search?q=steep+leaves+in+water&gate=off", holder.own).json
    assert own["pack"] == OWN
    both = holder.running.ask("/search?q=steep+leaves+in+water&gate=off", holder.both).json
    assert {hit["pack"] for hit in both["results"]} == {OWN, FOREIGN}


def test_the_log_names_no_foreign_pack_and_no_secret(holder: Holder):
    before = len(holder.running.log)
    for target in (f"/search?q=water&pack={FOREIGN}", f"/graph?id={FOREIGN}", f"/packs/{FOREIGN}", "/search?q=water"):
        holder.running.ask(target, holder.own)
    holder.running.post(f"/packs/{FOREIGN}/mcp", holder.own)
    said = holder.running.said(before)
    assert FOREIGN not in said
    assert not any(part in said for part in (holder.own, holder.own.rpartition(".")[2]))


# Many callers at once, all with the same JSON-RPC id (CVE-2026-25536)

MODERN = ERAS[1]
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}


def question(n: int, modern: bool) -> tuple[dict[str, Any], dict[str, str]]:
    """One that no other caller asks: a search, whose answer repeats the query, or a resource that is not there."""
    params: dict[str, Any]
    if n % 2:
        method, params = "tools/call", {"name": "ep_search", "arguments": {"query": f"water {n}", "gate": "off"}}
    else:
        method, params = "resources/read", {"uri": f"ep://{OWN}/file/{n}"}
    headers = {"Accept": "application/json, text/event-stream"}
    if modern:
        params["_meta"] = META
        named = str(params.get("name", params.get("uri")))
        headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": method, "Mcp-Name": named}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, headers


@pytest.mark.slow
@pytest.mark.parametrize("mode", ERAS)
async def test_500_requests_with_one_id_get_each_its_own_answer(holders: dict[str, Holder], mode: str):
    secrets = {each.own: 1 for each in holders.values()} | {each.both: 2 for each in holders.values()}
    wrong: list[Any] = []
    url = next(iter(holders.values())).running.url
    async with httpx2.AsyncClient(timeout=60, limits=httpx2.Limits(max_connections=100)) as client:

        async def one(n: int, secret: str) -> None:
            body, headers = question(n, mode == MODERN)
            answer = await client.post(
                f"{url}/mcp", json=body, headers={**headers, "Authorization": f"Bearer {secret}"}
            )
            said = answer.json()
            if n % 2:
                found = said["result"]["structuredContent"]
                packs = 1 if found["pack"] else len({hit["pack"] for hit in found["results"]})
                told = (found["query"], packs)
                expected = (f"water {n}", secrets[secret])
            else:
                told, expected = said["error"]["data"]["uri"], f"ep://{OWN}/file/{n}"
            if told != expected or said["id"] != 1:
                wrong.append((n, told, expected))

        async with anyio.create_task_group() as tasks:
            for n in range(500):
                tasks.start_soon(one, n, list(secrets)[n // 2 % len(secrets)])
    assert wrong == []


@pytest.mark.parametrize("mode", ERAS)
def test_no_session_is_ever_issued_and_a_forged_one_changes_nothing(holder: Holder, mode: str):
    body, headers = question(1, mode == MODERN)
    start = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": start}
    given = [(name, value.encode()) for name, value in headers.items() if name != "Accept"]
    asked = [json.dumps(each).encode() for each in ([body] if mode == MODERN else [hello, body])]
    for raw in asked:
        plain, forged = (
            holder.running.ask("/mcp", holder.own, method="POST", body=raw, headers=given + more)
            for more in ([], [("Mcp-Session-Id", b"0" * 32)])
        )
        assert plain.status == 200
        assert "mcp-session-id" not in plain.headers
        assert plain == forged
