"""Cited answers by a real language model, llama.cpp's, over real sockets: as they stream, are refused, stopped, full.

What the model says is worth nothing, for it is very small; what an answer should say is tested with `scripted`.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from listening import Running, listening
from octavo_serve.answering.settings import AnswerSettings, ModelSettings
from octavo_serve.catalog import Catalog, open_catalog
from octavo_serve.settings import ServerSettings
from running import LIGHTHOUSE, octavo
from smol import LocalModel

pytestmark = pytest.mark.slow

QUESTION = "How bright is the lamp, in watts?"
GIVEN, WRITTEN, CANCELLED = b"processing task", b"graphs reused", b"cancel task"
"""What llama.cpp says of a prompt that it was given, of an answer that it wrote, of one that nobody wants any more."""

TIMEOUT = 120
"""Seconds; the model reads some 80 tokens in one, on an idle core."""


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    root = tmp_path_factory.mktemp("local")
    done = octavo("build", LIGHTHOUSE, "--out", root / "dist", "--state", root / "state", "-q")
    assert done.returncode == 0, done.stderr
    return open_catalog(Path(root / "dist"), date(2026, 6, 30))


@pytest.fixture
def server(catalog: Catalog, smol: LocalModel) -> Generator[Running]:
    with serving(catalog, smol, max_tokens=24) as running:
        yield running


@contextmanager
def serving(catalog: Catalog, smol: LocalModel, **model: Any) -> Generator[Running]:
    """A server that has warmed the model up."""
    chosen = ModelSettings(smol.url, chunk_timeout=TIMEOUT, **model)
    settings = ServerSettings(port=0, answers=AnswerSettings(chosen, passages=2, max_concurrent=2))
    before = logged(smol, WRITTEN)
    with listening(catalog, settings) as running:
        while logged(smol, WRITTEN) == before:
            time.sleep(0.01)
        yield running


def begin(server: Running, question: str = QUESTION) -> socket.socket:
    host, _, port = server.url.rpartition("/")[2].partition(":")
    client = socket.create_connection((host, int(port)), timeout=TIMEOUT)
    body = json.dumps({"question": question}).encode()
    head = f"POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    client.sendall(f"{head}\r\nConnection: close\r\n\r\n".encode() + body)
    return client


def read_until(client: socket.socket, word: bytes) -> bytes:
    content = b""
    while word not in content:
        part = client.recv(65536)
        assert part, content
        content += part
    return content


def busy(smol: LocalModel) -> int:
    with urlopen(smol.url.removesuffix("/v1") + "/slots", timeout=TIMEOUT) as response:
        return sum(slot["is_processing"] for slot in json.load(response))


def logged(smol: LocalModel, words: bytes) -> int:
    """How often llama.cpp said so."""
    return smol.log.read_bytes().count(words)


def test_an_answer_streams(server: Running):
    with begin(server) as client:
        stream = read_until(client, b"event: done")
        while part := client.recv(65536):
            stream += part
    names = [line.removeprefix(b"event: ") for line in stream.splitlines() if line.startswith(b"event: ")]
    assert (names[0], names[-1], set(names[1:-1])) == (b"sources", b"done", {b"token"})
    assert len(names) > 4
    (done,) = (line for line in stream.splitlines() if line.startswith(b'data: {"answer"'))
    told = json.loads(done.removeprefix(b"data: "))
    assert told["answer"].strip()
    assert 0 < told["usage"]["completion_tokens"] <= 24
    assert told["receipt"]["model"] == "smollm2"
    assert 0 < told["timings"]["ttft_ms"] < told["timings"]["generation_ms"]


def test_what_the_pack_does_not_speak_of_is_refused_without_a_call_of_the_model(server: Running, smol: LocalModel):
    before = logged(smol, GIVEN)
    answered = server.post("/ask?stream=false", body={"question": "Which vaccine is given against yellow fever?"})
    assert (answered.status, answered.json["data"]["reason"]) == (200, "no_relevant_passage")
    assert logged(smol, GIVEN) == before


def test_a_client_that_leaves_frees_the_slot_within_a_second(catalog: Catalog, smol: LocalModel):
    with serving(catalog, smol, max_tokens=2000, extra={"ignore_eos": True}) as server:
        client = begin(server)
        read_until(client, b"event: token")
        assert busy(smol) == 1
        before = logged(smol, CANCELLED)
        left = time.monotonic()
        client.close()
        while logged(smol, CANCELLED) == before:
            assert time.monotonic() - left < 1
            time.sleep(0.01)
        # it says so a moment before it is so
        while busy(smol):
            assert time.monotonic() - left < 1


def test_two_are_answered_at_once_and_a_third_is_refused(catalog: Catalog, smol: LocalModel):
    endless = {"max_tokens": 2000, "extra": {"ignore_eos": True}}
    with serving(catalog, smol, **endless) as server, begin(server) as first, begin(server) as second:
        for client in (first, second):
            read_until(client, b"event: token")
        third = server.post("/ask", body={"question": QUESTION})
        assert (third.status, int(third.headers["retry-after"]) >= 1) == (503, True)
        assert busy(smol) == 2
