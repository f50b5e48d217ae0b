"""Templates and what completes them, prompts and their arguments, over real releases."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import mcp.types as t
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from octavo_serve.catalog import Catalog, open_catalog
from octavo_serve.completion import MAX_VALUES, Names
from octavo_serve.faces import Workers
from octavo_serve.over_mcp.app import make_server
from octavo_serve.over_mcp.endpoint import Endpoint
from running import octavo

pytestmark = pytest.mark.anyio

MANIFEST = """name: {slug}
slug: {slug}
type: product
version: '1'
description: About {slug}.
entry_point: overview.md
context:
  always: [overview.md]
authority_boundary: {{in_scope: Boats}}
mcp:
  skills: {{enabled: {skills}}}
  prompts:
    - name: moor
      description: Moor a boat.
      source: moor.md
      arguments:
        - {{name: boat, description: Which boat, required: true, values: [ferry, kayak, Kite]}}
        - {{name: pier}}
        - {{name: not a name}}
"""
PAGE = "---\ntitle: {0}\ntype: concept\nretrieval_strategy: navigation\n---\n\n{1}\n"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    root = tmp_path_factory.mktemp("offers")
    for slug, skills in (("boats", "true"), ("kites", "false")):
        (root / slug / "Guides é").mkdir(parents=True)
        (root / slug / "manifest.yaml").write_text(MANIFEST.format(slug=slug, skills=skills))
        (root / slug / "overview.md").write_text(PAGE.format("Overview", "What there is."))
        (root / slug / "moor.md").write_text(PAGE.format("Moor", "Moor {{boat}} at {{ pier }}; {{captain}} sleeps."))
        for number in range(MAX_VALUES + 20):
            (root / slug / f"Guides é/Knot-{number:03}.md").write_text(PAGE.format(f"Knot {number}", "Words."))
    done = octavo("build", root / "boats", root / "kites", "--out", root / "dist", "--state", root / "state", "-q")
    assert done.returncode == 0, done.stderr
    return open_catalog(root / "dist")


@asynccontextmanager
async def connected(catalog: Catalog, name: str | None = None) -> AsyncGenerator[Client]:
    workers = Workers(60)
    try:
        async with Client(make_server(lambda ctx: Endpoint(catalog, name), workers), mode="auto") as client:
            yield client
    finally:
        workers.close()


async def completed(client: Client, uri: str, name: str, typed: str, **context: str) -> t.Completion:
    ref = t.ResourceTemplateReference(uri=uri)
    return (await client.complete(ref, {"name": name, "value": typed}, context or None)).completion


def text_of(prompt: t.GetPromptResult) -> str:
    content = prompt.messages[0].content
    assert isinstance(content, t.TextContent)
    return content.text.strip()


async def test_every_template_completes_to_resources_that_are_read(catalog: Catalog) -> None:
    async with connected(catalog, "boats") as client:
        templates = [each.uri_template for each in (await client.list_resource_templates()).resource_templates]
        assert templates == [
            "ep://boats/{name}", "ep://boats/file/{+path}", "ep://boats/always/{+path}", "skill://boats/{+path}",
        ]  # fmt: skip
        for template in templates:
            variable = re.findall(r"\{\+?(\w+)\}", template)[0]
            found = await completed(client, template, variable, "")
            assert found.values
            for value in found.values:
                read = await client.read_resource(re.sub(r"\{\+?\w+\}", lambda _, value=value: value, template))
                assert read.contents
        about = await completed(client, "ep://boats/{name}", "name", "")
        assert about.values == ["authority", "files", "manifest", "overview"]
        assert (await completed(client, "ep://boats/always/{+path}", "path", "")).values == ["overview.md"]


async def test_a_completion_has_what_begins_so_before_what_has_it_inside(catalog: Catalog) -> None:
    async with connected(catalog, "boats") as client:
        found = await completed(client, "ep://boats/file/{+path}", "path", "guides É/kNOT-00")
        assert found.values == [f"Guides é/Knot-{n:03}.md" for n in range(10)]
        assert (found.total, found.has_more) == (10, False)
        found = await completed(client, "ep://boats/file/{+path}", "path", "o")
        assert found.values[0] == "overview.md"
        assert (len(found.values), found.total, found.has_more) == (MAX_VALUES, MAX_VALUES + 22, True)
        assert (await completed(client, "ep://boats/file/{+path}", "path", "nothing")).values == []
        assert (await completed(client, "ep://boats/file/{+path}", "no variable", "")).values == []


async def test_packs_are_completed_where_there_are_several(catalog: Catalog) -> None:
    async with connected(catalog) as client:
        assert (await completed(client, "ep://{pack}/{name}", "pack", "i")).values == ["kites"]
        assert (await completed(client, "ep://{pack}/{name}", "name", "m", pack="kites")).values == ["manifest"]
        templates = [each.uri_template for each in (await client.list_resource_templates()).resource_templates]
        assert "skill://kites/{+path}" not in templates
        assert len(set(templates)) == len(templates) == 6


async def test_what_is_not_offered_is_not_completed(catalog: Catalog) -> None:
    references = [
        t.ResourceTemplateReference(uri="ep://kites/file/{+path}"),
        t.ResourceTemplateReference(uri="file:///{+path}"),
        t.PromptReference(name="none"),
    ]
    async with connected(catalog, "boats") as client:
        for ref in references:
            with pytest.raises(MCPError) as raised:
                await client.complete(ref, {"name": "path", "value": ""})
            assert raised.value.code == t.INVALID_PARAMS
        with pytest.raises(MCPError):
            await completed(client, "ep://boats/file/{+path}", "path", "x" * 2001)


def test_a_hundred_thousand_paths_are_completed_alike_in_whichever_order() -> None:
    paths = [f"folder-{number % 317}/page-{number}.md" for number in range(100_000)]
    names = Names(paths)
    began = time.process_time()
    values, total = names.matching("PAGE-99")
    assert time.process_time() - began < 2
    assert (total, len(values)) == (sum("page-99" in path for path in paths), MAX_VALUES)
    assert Names(reversed(paths)).matching("PAGE-99") == (values, total)


async def test_a_prompt_is_filled_with_its_arguments_once(catalog: Catalog) -> None:
    async with connected(catalog, "boats") as client:
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        told = [(each.name, each.description, each.required) for each in prompts["moor"].arguments or ()]
        assert told == [("boat", "Which boat", True), ("pier", None, False)]
        given = await client.get_prompt("moor", {"boat": "the {{pier}} \\1", "pier": "7"})
        assert text_of(given) == "Moor the {{pier}} \\1 at 7; {{captain}} sleeps."
        given = await client.get_prompt("moor", {"boat": "it"})
        assert text_of(given) == "Moor it at ; {{captain}} sleeps."
        values = (await client.complete(t.PromptReference(name="moor"), {"name": "boat", "value": "K"})).completion
        assert values.values == ["kayak", "Kite"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({}, "arguments.boat: missing", id="missing"),
        pytest.param({"boat": "a", "captain": "b"}, "arguments: this prompt takes boat, pier", id="unknown"),
        pytest.param({"boat": "x" * 2001}, "arguments.boat: longer than 2,000", id="too long"),
    ],
)
async def test_wrong_arguments_of_a_prompt_are_named(catalog: Catalog, arguments: dict[str, str], message: str) -> None:
    async with connected(catalog, "boats") as client:
        with pytest.raises(MCPError, match=re.escape(message)) as raised:
            await client.get_prompt("moor", arguments)
    assert raised.value.code == t.INVALID_PARAMS


async def test_a_skill_is_a_prompt_for_clients_that_know_no_skills(catalog: Catalog) -> None:
    async with connected(catalog) as client:
        prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
        assert prompts == ["boats-moor", "kites-moor", "skill_boats"]
        given = await client.get_prompt("skill_boats")
        (read,) = (await client.read_resource("skill://boats/SKILL.md")).contents
        assert isinstance(read, t.TextResourceContents)
        assert text_of(given) == read.text.strip()
        with pytest.raises(MCPError, match="a skill takes none"):
            await client.get_prompt("skill_boats", {"a": "b"})


async def test_pages_of_templates_and_prompts_hold_each_of_them_once(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("octavo_serve.over_mcp.app.PAGE", 2)
    async with connected(catalog) as client:
        for ask, key in ((client.list_prompts, "prompts"), (client.list_resource_templates, "resource_templates")):
            names: list[str] = []
            answer: Any = await ask()
            while True:
                page = getattr(answer, key)
                assert len(page) <= 2
                names += [each.name for each in page]
                if answer.next_cursor is None:
                    break
                answer = await ask(cursor=answer.next_cursor)
            assert len(names) == len(set(names)) > 2
