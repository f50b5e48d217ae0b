"""A server as its operator meets it: several workers, traces, and what it writes where."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from history import History
from octavo_serve.callers.keys import new_key
from running import OCTAVO, octavo
from scripted import CUT, answer, scripted

PATIENCE = 60
"""Seconds for what a busy machine does slowly."""


@dataclass(frozen=True, slots=True)
class Server:
    address: str
    process: subprocess.Popen[str]

    def get(self, target: str, **headers: str) -> bytes:
        request = urllib.request.Request(self.address + target, headers=headers)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.read()

    def call(self, name: str, arguments: dict[str, Any]) -> bytes:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2025-11-25",
        }
        request = urllib.request.Request(f"{self.address}/mcp", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.read()

    def ask(self, question: str) -> bytes:
        body = json.dumps({"question": question, "pack": "tiny"}).encode()
        request = urllib.request.Request(f"{self.address}/ask", body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.read()

    def workers(self) -> list[int]:
        """Processes that answer."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(pid) for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]

    def searches(self) -> float:
        """Searches over HTTP that were counted."""
        found = re.search(rb'octavo_answers_total\{pack="tiny",tool="search"\} (\S+)', self.get("/metrics"))
        return float(found[1]) if found else 0


@contextmanager
def serving(dist: Path, *arguments: str, **env: str) -> Generator[Server]:
    command = [str(OCTAVO), "serve", str(dist), "--port", "0", *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **env}
    )
    assert process.stdout is not None
    try:
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found, process.communicate(timeout=10)
        yield Server(found.group(), process)
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def until(condition: Callable[[], bool]) -> None:
    """Wait for another process."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "in vain"
        time.sleep(0.05)


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    path = tmp_path / "temporary"
    path.mkdir()
    return path


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced_and_what_it_counted_stays(built: Path, temporary: Path):
    with serving(built, "--workers", "2", TMPDIR=str(temporary)) as server:
        until(lambda: len(server.workers()) == 2)
        for number in range(6):
            server.get(f"/search?pack=tiny&q=water+{number}")
        assert server.searches() == 6
        first, second = server.workers()
        os.kill(first, signal.SIGKILL)
        until(lambda: len(server.workers()) == 2 and first not in server.workers())
        server.get("/search?pack=tiny&q=water")
        assert second in server.workers()
        assert server.searches() == 7
        until(lambda: not list(temporary.glob(f"octavo-*/gauge_live*_{first}.db")))
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE) == -signal.SIGTERM
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
def test_connections_that_come_at_once_go_to_all_workers(built: Path):
    with serving(built, "--workers", "2") as server:
        until(lambda: len({worker_of(server) for _ in range(20)}) == 2)
        host, port = server.address.removeprefix("http://").split(":")
        connections = [http.client.HTTPConnection(host, int(port), timeout=PATIENCE) for _ in range(24)]
        for connection in connections:
            connection.connect()
        answered = Counter(worker_of(server, connection) for connection in connections)
    assert len(answered) == 2, answered


def worker_of(server: Server, connection: http.client.HTTPConnection | None = None) -> str:
    """The process that answers; its number is in the ids of requests."""
    connection = connection or http.client.HTTPConnection(server.address.removeprefix("http://"), timeout=PATIENCE)
    connection.request("GET", "/healthz")
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.headers["x-request-id"].split("-")[1]


@pytest.mark.slow
def test_a_port_that_workers_have_is_taken_for_others(built: Path):
    with serving(built, "--workers", "2") as server:
        port = server.address.rpartition(":")[2]
        for workers in ("1", "2"):
            done = octavo("serve", built, "--port", port, "--workers", workers)
            assert (done.returncode, "Address already in use" in done.stderr) == (2, True)


def test_each_worker_follows_the_pointer_and_hangup_reaches_all(history: History, tmp_path: Path):
    here = history.copied(tmp_path / "dist")
    with serving(here.dist, "--workers", "2", OCTAVO_POLL_SECONDS="0") as server:
        until(lambda: len({worker_of(server) for _ in range(20)}) == 2)
        workers = server.workers()
        here.point(here.second)
        assert {digest_of(server) for _ in range(20)} == {here.first}
        server.process.send_signal(signal.SIGHUP)
        until(lambda: {digest_of(server) for _ in range(20)} == {here.second})
        assert server.workers() == workers


def digest_of(server: Server) -> str:
    return json.loads(server.get("/healthz"))["packs"]["tiny"]["digest"]


@pytest.mark.slow
def test_ctrl_c_ends_all_workers_without_a_word(built: Path):
    with serving(built, "--workers", "2") as server:
        until(lambda: len(server.workers()) == 2)
        server.get("/search?pack=tiny&q=water")
        workers = server.workers()
        for pid in (server.process.pid, *workers):  # as a terminal does
            os.kill(pid, signal.SIGINT)
        told, _ = server.process.communicate(timeout=PATIENCE)
        assert server.process.returncode == 130
        assert told.rpartition("Ctrl-C stops the server.")[2].strip() == ""
        assert not any(map(lives, workers))


@pytest.mark.slow
def test_workers_do_not_outlive_their_parent(built: Path):
    with serving(built, "--workers", "2") as server:
        until(lambda: len(server.workers()) == 2)
        server.get("/search?pack=tiny&q=water")
        workers = server.workers()
        server.process.kill()
        until(lambda: not any(map(lives, workers)))


def test_workers_that_could_serve_nothing_are_not_started(dist: Path):
    for pack in ("tiny", "notes"):
        (dist / pack / "latest.json").write_text("{}")
    done = octavo("serve", dist, "--port", "0", "--workers", "2")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("octavo: no pack can be served: ")


def test_the_query_log_on_stdout_is_json_lines_and_nothing_else(built: Path, tmp_path: Path):
    command = [str(OCTAVO), "serve", str(built), "--port", "0", "--query-log", "stdout"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        found = re.search(r"http://\S+", process.stderr.readline())
        assert found
        server = Server(found.group(), process)
        server.get("/search?pack=tiny&q=water", **{"X-Request-Id": "mine"})
        server.call("ep_list_topics", {"pack": "tiny"})
        server.get("/search?q=tea")
        process.terminate()
        process.communicate(timeout=PATIENCE)
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [(line["face"], line["tool"], line["pack"]) for line in lines] == [
        ("http", "search", "tiny"),
        ("mcp", "topics", "tiny"),
        ("http", "search", None),
    ]
    assert lines[0]["request_id"] == "mine"
    assert lines[0]["results"][0]["fragment_id"].startswith("tiny/")


def test_stdio_writes_its_query_log_to_a_socket_and_never_to_stdout(built: Path, tmp_path: Path):
    params = {"name": "ep_search", "arguments": {"query": "water", "pack": "tiny"}}
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    greeting = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "log"))
        receiver.settimeout(PATIENCE)
        done = octavo("stdio", built, "--query-log", f"unix:{tmp_path / 'log'}", input=f"{greeting}\n{asked}\n")
        line = json.loads(receiver.recv(65536))
    assert (line["face"], line["tool"], line["query"]) == ("stdio", "search", "water")
    assert [json.loads(answer)["id"] for answer in done.stdout.splitlines()] == [0, 1]
    refused = octavo("stdio", built, "--query-log", "stdout")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "stdout is the protocol's" in refused.stderr


@contextmanager
def collector() -> Generator[tuple[str, list[Any]]]:
    """An OTLP receiver: its address, and the spans that came."""
    spans: list[Any] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["content-length"])))
            spans.extend(
                (resource.resource, span)
                for resource in sent.resource_spans
                for scope in resource.scope_spans
                for span in scope.spans
            )
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # as in the base class
            pass

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", spans
        finally:
            server.shutdown()
            thread.join()


def test_requests_and_calls_of_tools_are_spans_of_one_trace_without_secrets(built: Path):
    key, trace = new_key(), "0af7651916cd43dd8448eb211c80319c"
    with collector() as (endpoint, spans):
        with serving(built, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint, OTEL_EXPORTER_OTLP_COMPRESSION="none") as server:
            server.get("/search?pack=tiny&q=private", traceparent=f"00-{trace}-b7ad6b7169203331-01")
            server.call("ep_search", {"query": "private", "pack": "tiny"})
            server.call(key, {})
        by_name = {span.name: span for _, span in spans}
        assert {"GET /search", "POST tools/call ep_search", "tools/call ep_search"} <= by_name.keys()
        inner, outer = by_name["tools/call ep_search"], by_name["POST tools/call ep_search"]
        assert (inner.trace_id, inner.parent_span_id) == (outer.trace_id, outer.span_id)
        assert by_name["GET /search"].trace_id.hex() == trace
        resource, _ = spans[0]
        assert 'string_value: "octavo"' in str(resource)
        told = str(spans)
        assert "tools/call octavo_…" in by_name
        assert not {key, "private"} & set(re.findall(r"[\w-]+", told))


def test_an_answer_is_one_trace_down_to_the_model_and_has_no_words(built: Path):
    with collector() as (endpoint, spans), scripted(answer("Five ", "minutes [1].", usage=(100, 7))) as model:
        answers = json.dumps({"model": {"url": model.url, "name": "small"}})
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_COMPRESSION": "none"}
        with serving(built, OCTAVO_ANSWERS=answers, **env) as server:
            assert model.until(lambda: len(model.requests) == 1 and not model.busy), "the warm-up"
            told = server.ask("how hard is the water?")
        by_name = {span.name: span for _, span in spans}
    whole, retrieval = by_name["octavo.answer"], by_name["octavo.retrieval"]
    generation, request = by_name["octavo.generation"], by_name["POST /ask"]
    assert f'"trace_id":"{whole.trace_id.hex()}"'.encode() in told
    assert len({span.trace_id for span in (request, whole, retrieval, generation)}) == 1
    assert {span.parent_span_id for span in (retrieval, generation)} == {whole.span_id}
    assert [event.name for event in generation.events] == ["first_token"]
    told = attributes(generation)
    assert told["gen_ai.operation.name"] == "chat"
    assert (told["gen_ai.request.model"], told["gen_ai.request.max_tokens"]) == ("small", 512)
    assert (told["gen_ai.usage.input_tokens"], told["gen_ai.usage.output_tokens"]) == (100, 7)
    assert (attributes(whole)["octavo.end"], attributes(whole)["octavo.pack"]) == ("answered", "tiny")
    assert attributes(retrieval)["octavo.passages"] > 0
    asked = model.requests[-1].headers["traceparent"]
    assert asked.startswith(f"00-{generation.trace_id.hex()}-{generation.span_id.hex()}-")
    assert "traceparent" not in model.requests[0].headers, "nobody asked for the warm-up"
    assert not {"hard", "minutes", "Five"} & set(re.findall(r"[\w-]+", str(spans)))


def attributes(span: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}


def test_a_model_that_fails_is_the_span_s_error(built: Path):
    with collector() as (endpoint, spans), scripted([answer("ready"), answer("half", CUT)]) as model:
        answers = json.dumps({"model": {"url": model.url, "retries": 0}})
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_COMPRESSION": "none"}
        with serving(built, OCTAVO_ANSWERS=answers, **env) as server:
            assert model.until(lambda: len(model.requests) == 1 and not model.busy), "the warm-up"
            server.call("ep_ask", {"question": "how hard is the water?", "pack": "tiny"})
        by_name = {span.name: span for _, span in spans}
    for name in ("octavo.answer", "octavo.generation"):
        assert by_name[name].status.code == by_name[name].status.STATUS_CODE_ERROR
        assert attributes(by_name[name])["error.type"] == "ModelError"
    assert attributes(by_name["octavo.answer"])["octavo.stage"] == "generation"
    assert not by_name["octavo.generation"].events[1:]


def test_without_an_endpoint_opentelemetrys_sdk_is_not_imported(built: Path):
    with serving(built) as server:
        server.call("ep_search", {"query": "water", "pack": "tiny"})
        mapped = Path(f"/proc/{server.process.pid}/maps").read_text()
    assert "google/_upb" not in mapped, "protobuf, which the exporter needs"
