"""The MCP server inside HTTP: one for all callers, each of whom sees its own packs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from listening import Running, connected, listening
from octavo_artifact.ids import sha256_hex
from octavo_serve.callers.keys import Key, new_key
from octavo_serve.catalog import open_catalog
from octavo_serve.settings import ServerSettings

pytestmark = pytest.mark.anyio

OPENS = {new_key(): packs for packs in (("tiny",), ("notes",), ("tiny", "notes"))}
KEYS = tuple(Key(f"{n}", sha256_hex(key.encode()), packs) for n, (key, packs) in enumerate(OPENS.items()))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def keyed(built: Path) -> Iterator[Running]:
    with listening(open_catalog(built), ServerSettings(port=0, keys=KEYS)) as running:
        yield running


async def slugs(url: str, key: str) -> set[str]:
    async with connected(url, key) as client:
        return {str(each.uri).split("/")[2] for each in (await client.list_resources()).resources}


async def test_each_set_of_packs_is_answered_from_itself_in_turn(keyed: Running):
    for _ in range(2):
        for key, packs in OPENS.items():
            assert await slugs(f"{keyed.url}/mcp", key) == set(packs)
            assert await slugs(f"{keyed.url}/packs/{packs[0]}/mcp", key) == {packs[0]}


async def test_sets_that_are_asked_at_once_each_get_their_answers(keyed: Running):
    answers: list[tuple[set[str], set[str]]] = []

    async def one(key: str, packs: tuple[str, ...]) -> None:
        answers.append((await slugs(f"{keyed.url}/mcp", key), set(packs)))

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            for key, packs in OPENS.items():
                tasks.start_soon(one, key, packs)
    assert len(answers) == 24
    assert [pair for pair in answers if pair[0] != pair[1]] == []
