"""Skills over MCP (SEP-2640) as a client gets them from a real release over a real socket."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import mcp.types as t
import pytest
import yaml
from mcp import Client
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from octavo_serve.introduction import point_to_skills
from octavo_serve.over_mcp.skill_methods import DIRECTORY_PAGE, EXTENSION, SKILLS_PAGE
from running import octavo, serving

pytestmark = pytest.mark.anyio

MODERN = "2026-07-28"
ERAS = ("legacy", MODERN)
HEAD = "---\ntitle: {0}\ntype: concept\ntags: [a]\nid: {1}\nretrieval_strategy: navigation\n---\n\n"
"""Navigation, so that nothing is encoded: what a skill holds does not depend on it."""
SKILL = "---\nname: small\ndescription: Small things.\nlicense: 'MIT'\n---\n\n# Small\r\n"
LARGE = {
    **{f"guides/{n}.md": b"Words.\n" for n in range(DIRECTORY_PAGE + 100)},
    **{f"guides/large-{n}.md": b"x" * 5_000_000 for n in range(4)},
    **{f"topic-{n % SKILLS_PAGE}/{n}.md": b"Words.\n" for n in range(DIRECTORY_PAGE + 100, 600)},
}
"""More than a skill, a page of skills and a page of a directory may hold."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def write(root: Path, files: dict[str, bytes], slug: str, *, enabled: bool) -> Path:
    manifest = f"name: {slug.title()}\nslug: {slug}\ntype: product\nversion: '1'\ndescription: About {slug}.\n"
    manifest += f"context:\n  on_demand: [old/]\nmcp:\n  skills:\n    enabled: {str(enabled).lower()}\n"
    files = {"overview.md": b"# Overview\n\nWhat there is.\n", "old/a.md": b"# Old\n", **files}
    for path, content in {"manifest.yaml": manifest.encode(), **files}.items():
        (root / slug / path).parent.mkdir(parents=True, exist_ok=True)
        (root / slug / path).write_bytes(content)
    return root / slug


def page(title: str, identifier: str, body: bytes = b"Words.\n") -> bytes:
    return HEAD.format(title, identifier).encode() + body


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three packs: one of 600 files and 20 MB, one with a SKILL.md and odd bytes, one without skills."""
    root = tmp_path_factory.mktemp("skills")
    large = {path: page(path, f"large/{path}", body) for path, body in LARGE.items()}
    small = {
        "SKILL.md": SKILL.encode(),
        "odd é (1)/bom.md": b"\xef\xbb\xbf" + page("BOM", "small/bom", b"one\r\ntwo\r"),
        "odd é (1)/latin.md": page("Latin", "small/latin", b"caf\xe9\n"),
        "private.md": page("Private", "small/p").replace(b"tags", b"sensitivity: self\ntags"),
    }
    packs = [
        write(root, large, "large", enabled=True),
        write(root, {}, "plain", enabled=False),
        write(root, small, "small", enabled=True),
    ]
    done = octavo("build", *packs, "--out", root / "dist", "--state", root / "state", "-q")
    assert done.returncode == 0, done.stderr
    return root / "dist"


@pytest.fixture(scope="module")
def url(dist: Path) -> Generator[str]:
    with serving(dist) as running:
        yield running.address


@asynccontextmanager
async def connected(url: str, mode: Any = MODERN) -> AsyncGenerator[Client]:
    async with Client(url, mode=mode, read_timeout_seconds=60) as client:
        yield client


async def ask(client: Client, method: str, **params: Any) -> dict[str, Any]:
    request = t.Request[dict[str, Any], str](method=method, params=params)
    answer: Any = TypeAdapter(dict[str, Any])
    return await client.session.send_request(request, answer)


async def all_of(client: Client, method: str, key: str, **params: Any) -> list[dict[str, Any]]:
    """The items of every page."""
    items: list[dict[str, Any]] = []
    while True:
        answer = await ask(client, method, **params)
        items += answer[key]
        if "nextCursor" not in answer:
            return items
        params["cursor"] = answer["nextCursor"]


async def content_of(client: Client, uri: str) -> bytes:
    (content,) = (await client.read_resource(uri)).contents
    return content.text.encode() if isinstance(content, t.TextResourceContents) else base64.b64decode(content.blob)


@pytest.mark.parametrize("slug", ["large", "small"])
async def test_every_file_is_served_with_the_digest_and_size_that_its_skill_tells(url: str, slug: str) -> None:
    async with connected(f"{url}/packs/{slug}/mcp") as client:
        for skill in await all_of(client, "skills/list", "skills"):
            told = {file["uri"]: (file["digest"], file["size"]) for file in skill["resources"]}
            assert len(told) == len(skill["resources"]) <= 512
            assert skill["uri"] in told
            assert sum(size for _, size in told.values()) <= 16 * 2**20
            contents = {uri: await content_of(client, uri) for uri in told}
            assert told == {u: (f"sha256:{sha256(data).hexdigest()}", len(data)) for u, data in contents.items()}
            written = contents[skill["uri"]].decode().split("---\n")[1]
            assert skill["frontmatter"] == yaml.safe_load(written)
            assert skill["frontmatter"]["name"] == skill["uri"].split("/")[-2]


async def test_the_skills_of_a_pack_hold_its_public_files_once_and_no_file_on_demand(url: str) -> None:
    async with connected(f"{url}/mcp") as client:
        skills = await all_of(client, "skills/list", "skills")
    found = [file["uri"].removeprefix("skill://") for skill in skills for file in skill["resources"]]
    small = ["SKILL.md", "odd%20%C3%A9%20(1)/bom.md", "odd%20%C3%A9%20(1)/latin.md", "overview.md"]
    assert [path for path in found if path.startswith("small/")] == [f"small/{path}" for path in small]
    large = [path.rpartition("/")[2] for path in found if path.startswith("large/") and not path.endswith("/SKILL.md")]
    assert sorted(large) == sorted(["overview.md", *(Path(path).name for path in LARGE)])


@pytest.mark.parametrize("mode", ERAS)
async def test_every_skill_is_listed_once_over_pages_and_got_alone(url: str, mode: str) -> None:
    async with connected(f"{url}/mcp", mode) as client:
        first = await ask(client, "skills/list")
        skills = await all_of(client, "skills/list", "skills")
        assert (len(first["skills"]), "nextCursor" in first) == (SKILLS_PAGE, True)
        uris = [skill["uri"] for skill in skills]
        assert uris == sorted(set(uris))
        assert uris[-1] == "skill://small/SKILL.md"
        for skill in skills:
            assert (await ask(client, "skills/get", uri=skill["uri"]))["skill"] == skill


@pytest.mark.parametrize("mode", ERAS)
async def test_answers_carry_what_their_era_wants(url: str, mode: str) -> None:
    async with connected(f"{url}/packs/small/mcp", mode) as client:
        answers = [
            await ask(client, "skills/list"),
            await ask(client, "skills/get", uri="skill://small/SKILL.md"),
            await ask(client, "resources/directory/read", uri="skill://small"),
        ]
    envelope = {(each.get("resultType"), each.get("ttlMs"), each.get("cacheScope")) for each in answers}
    assert envelope == {("complete", 60_000, "public") if mode == MODERN else (None, None, None)}


@pytest.mark.parametrize("endpoint", ["mcp", "packs/small/mcp", "packs/plain/mcp"])
async def test_the_extension_is_declared_where_there_are_skills(url: str, endpoint: str) -> None:
    async with connected(f"{url}/{endpoint}", "auto") as client:
        extensions = client.server_capabilities.extensions or {}
        assert extensions.get(EXTENSION) == (None if "plain" in endpoint else {"directoryRead": True})


async def test_a_pack_without_the_switch_has_no_skill(url: str) -> None:
    async with connected(f"{url}/packs/plain/mcp") as client:
        assert not any(each.uri.startswith("skill:") for each in (await client.list_resources()).resources)
        for method in ("skills/list", "skills/get", "resources/directory/read"):
            with pytest.raises(MCPError) as raised:
                await ask(client, method, uri="skill://plain/SKILL.md")
            assert raised.value.code == t.METHOD_NOT_FOUND
        with pytest.raises(MCPError):
            await client.read_resource("skill://plain/SKILL.md")


@pytest.mark.parametrize("mode", ERAS)
async def test_directories_list_what_lies_directly_in_them(url: str, mode: str) -> None:
    async with connected(f"{url}/mcp", mode) as client:
        assert await all_of(client, "resources/directory/read", "resources", uri="skill://small") == [
            {"uri": "skill://small/SKILL.md", "name": "SKILL.md", "mimeType": "text/markdown", "size": len(SKILL)},
            {"uri": "skill://small/odd%20%C3%A9%20(1)", "name": "odd é (1)", "mimeType": "inode/directory"},
            {"uri": "skill://small/overview.md", "name": "overview.md", "mimeType": "text/markdown", "size": 27},
        ]
        inside = await all_of(client, "resources/directory/read", "resources", uri="skill://small/odd%20%C3%A9%20(1)")
        assert [entry["name"] for entry in inside] == ["bom.md", "latin.md"]


async def test_walking_the_directories_finds_every_file_of_every_skill(url: str) -> None:
    async with connected(f"{url}/mcp") as client:
        waiting, files = ["skill://large", "skill://small"], list[str]()
        while waiting:
            for entry in await all_of(client, "resources/directory/read", "resources", uri=waiting.pop()):
                (waiting if entry["mimeType"] == "inode/directory" else files).append(entry["uri"])
        skills = await all_of(client, "skills/list", "skills")
    assert sorted(files) == sorted(file["uri"] for skill in skills for file in skill["resources"])


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("skills/get", {"uri": "skill://small/overview.md"}),
        ("skills/get", {"uri": "skill://small"}),
        ("skills/get", {"uri": "skill://large/SKILL.md"}),
        ("skills/get", {"uri": "skill://plain/SKILL.md"}),
        ("skills/get", {"uri": "ep://small/manifest"}),
        ("skills/get", {}),
        ("skills/list", {"cursor": "zzzz"}),
        ("resources/directory/read", {"uri": "skill://small/SKILL.md"}),
        ("resources/directory/read", {"uri": "skill://small/"}),
        ("resources/directory/read", {"uri": "skill://none"}),
        ("resources/directory/read", {"uri": "skill://"}),
        ("resources/directory/read", {"uri": "ep://small/file"}),
        ("resources/directory/read", {"uri": "skill://small", "cursor": "zzzz"}),
    ],
)
async def test_what_is_not_there_is_a_bad_parameter(url: str, mode: str, method: str, params: dict[str, Any]) -> None:
    async with connected(f"{url}/mcp", mode) as client:
        with pytest.raises(MCPError) as raised:
            await ask(client, method, **params)
    assert raised.value.code == t.INVALID_PARAMS


@pytest.mark.parametrize(
    "uri", ["skill://small/old/a.md", "skill://small/private.md", "skill://small/none", "skill://"]
)
async def test_a_file_of_no_skill_is_not_read(url: str, uri: str) -> None:
    async with connected(f"{url}/mcp") as client:
        with pytest.raises(MCPError) as raised:
            await client.read_resource(uri)
    assert raised.value.code == t.INVALID_PARAMS


@pytest.mark.parametrize("mode", ERAS)
async def test_resources_list_leads_to_each_skill_and_not_to_its_other_files(url: str, mode: str) -> None:
    async with connected(f"{url}/packs/small/mcp", mode) as client:
        resources = (await client.list_resources()).resources
        listed = [each for each in resources if each.uri.startswith("skill:")]
        assert [(each.uri, each.name, each.description, each.mime_type) for each in listed] == [
            ("skill://small/SKILL.md", "small", "Small things.", "text/markdown")
        ]
        # a host takes any resource of that name for a skill
        assert [each.uri for each in resources if each.uri.endswith("/SKILL.md")] == [listed[0].uri]
        assert await content_of(client, "ep://small/file/SKILL.md") == await content_of(client, listed[0].uri)


async def test_a_client_of_2025_is_pointed_to_the_skills(url: str) -> None:
    async with connected(f"{url}/packs/small/mcp", "legacy") as client:
        assert "Skills are resources: skill://small/SKILL.md" in (client.instructions or "")


def test_the_introduction_points_to_few_skills() -> None:
    assert point_to_skills({"a": 0}) == ""
    assert point_to_skills({"a": 1, "b": 0, "c": 9}) == "Skills are resources: skill://a/SKILL.md, skill://c/..."
    assert point_to_skills(dict.fromkeys("abcdefgh", 1)).count("skill://") == 4
