"""The client of a language model and a real one: llama.cpp, as it streams, counts, refuses and is left."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any
from urllib.request import urlopen

import pytest

from octavo_serve.answering.model import ChatEndpoint, Ended, Message, ModelError, Sampling, Text
from octavo_serve.answering.settings import ModelSettings
from smol import BATCH, LocalModel, local_model

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

GREEDY = Sampling(max_tokens=12, temperature=0.0, top_p=1.0, seed=0)
ENDLESS = Sampling(max_tokens=3000, temperature=0.0, top_p=1.0, seed=0)
QUESTION: list[Message] = [{"role": "user", "content": "What is the capital of France?"}]
WORDS = "kettle water boiler leaves lamp tower steep fog signal stone bridge winter garden tea spoon".split()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def one_slot() -> Generator[LocalModel]:
    with local_model(slots=1) as model:
        yield model


@asynccontextmanager
async def client_of(model: LocalModel, **extra: Any) -> AsyncGenerator[ChatEndpoint]:
    client = ChatEndpoint(ModelSettings(url=model.url, chunk_timeout=120, extra=extra), None)
    yield client
    await client.close()


async def answer(
    client: ChatEndpoint, messages: Sequence[Message] = QUESTION, sampling: Sampling = GREEDY
) -> tuple[str, Ended]:
    async with aclosing(client.stream(messages, sampling)) as stream:
        *pieces, ended = [piece async for piece in stream]
    assert isinstance(ended, Ended)
    return "".join(piece.text for piece in pieces if isinstance(piece, Text)), ended


def long_prompt(words: int) -> list[Message]:
    text = " ".join(WORDS[(7 * n + n // 15) % len(WORDS)] for n in range(words))
    return [{"role": "user", "content": f"{text}\nWhat is this?"}]


def busy(model: LocalModel) -> int:
    """Slots that are taken. It is not asked in a loop: llama.cpp looks after its clients only while nobody asks."""
    with urlopen(model.url.removesuffix("/v1") + "/slots", timeout=60) as response:
        return sum(slot["is_processing"] for slot in json.load(response))


async def said(model: LocalModel, pattern: str, since: int) -> list[str]:
    """All that the log has of a pattern from that byte on, once it has any."""
    while not (found := re.findall(pattern, model.log.read_bytes()[since:].decode())):
        await asyncio.sleep(0.01)
    return found


async def test_the_local_model_streams_an_answer_and_says_the_same_again(smol: LocalModel):
    async with client_of(smol, cache_prompt=False) as client:
        first, ended = await answer(client)
        second, again = await answer(client)
    assert first == second != ""
    assert ended == again
    assert ended.model == "smollm2"
    assert ended.usage is not None
    assert ended.usage.prompt_tokens > 10
    assert 0 < ended.usage.completion_tokens <= GREEDY.max_tokens


async def test_an_answer_that_used_up_its_tokens_is_truncated(smol: LocalModel):
    async with client_of(smol) as client:
        _, ended = await answer(client, sampling=Sampling(3, 0.0, 1.0, 0))
    assert ended.truncated
    assert ended.usage is not None
    assert ended.usage.completion_tokens == 3


async def test_a_prompt_that_is_too_long_is_an_error_at_once(smol: LocalModel):
    async with client_of(smol) as client:
        with pytest.raises(ModelError, match="the model answered with status 400"):
            await answer(client, long_prompt(5000))


async def test_two_answers_are_written_at_once(smol: LocalModel):
    async with client_of(smol, ignore_eos=True) as client:
        streams = [client.stream(QUESTION, ENDLESS) for _ in range(2)]
        for stream in streams:
            assert isinstance(await anext(stream), Text)
        assert await asyncio.to_thread(busy, smol) == 2
        for stream in streams:
            await stream.aclose()


async def test_a_slot_is_free_within_a_second_of_leaving_an_answer(one_slot: LocalModel):
    async with client_of(one_slot, ignore_eos=True) as client:
        stream = client.stream(QUESTION, ENDLESS)
        assert isinstance(await anext(stream), Text)
        since = one_slot.log.stat().st_size
        left = time.monotonic()
        await stream.aclose()
        await said(one_slot, "cancel task", since)
        while await asyncio.to_thread(busy, one_slot):  # it says so a moment before it is so
            assert time.monotonic() - left < 1
        assert time.monotonic() - left < 1


async def test_a_slot_is_free_long_before_a_prompt_would_have_been_read(one_slot: LocalModel):
    """llama.cpp looks once a second whether its client is still there, and after each batch whether it is to go on."""
    since = one_slot.log.stat().st_size
    async with client_of(one_slot) as client:
        reading = asyncio.create_task(answer(client, long_prompt(3000)))
        await said(one_slot, "processing task", since)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        read = int((await said(one_slot, r"stop processing: n_tokens = (\d+)", since))[0])
        assert read < 3000 - BATCH
        await answer(client)


async def test_a_warm_up_is_followed_by_answers(smol: LocalModel):
    async with client_of(smol) as client:
        await client.warm_up()
        await answer(client)
