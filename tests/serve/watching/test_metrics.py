"""What `/metrics` tells and to whom, and what is logged of a failure; over real sockets."""

from __future__ import annotations

import http.client
import io
import json
import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fakes import SECRET, FakeLibrary, FakePack
from octavo_artifact.ids import sha256_hex
from octavo_serve.callers.keys import Key, new_key
from octavo_serve.callers.rates import RateLimit
from octavo_serve.over_http.run import bind, make_server
from octavo_serve.settings import ServerSettings
from octavo_serve.watching.logs import configure_logs

ALL, FANS = new_key(), new_key()
KEYS = (
    Key("ops", sha256_hex(ALL.encode()), ("*",)),
    Key("fans", sha256_hex(FANS.encode()), ("fans",)),
)


class Server:
    """A server of the packs `fans` and `pumps`."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address

    def ask(self, target: str, key: str | None = None, *, method: str = "GET", **options: Any) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(*self._address, timeout=20)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        try:
            connection.request(method, target, headers=headers | options.get("headers", {}), body=options.get("body"))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def call(self, method: str, params: dict[str, Any], target: str = "/mcp", key: str | None = None) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
        }
        return self.ask(target, key, method="POST", body=body, headers=headers)

    def metrics(self, key: str | None = None) -> dict[tuple[str, frozenset[str]], float]:
        """Samples by name and the values of their labels."""
        status, body = self.ask("/metrics", key)
        assert status == 200
        return {
            (sample.name, frozenset(sample.labels.values())): sample.value
            for family in text_string_to_metric_families(body.decode())
            for sample in family.samples
            if not sample.name.endswith("_bucket")
        }


@contextmanager
def serving(**settings: Any) -> Generator[Server]:
    settings = {"port": 0, **settings}
    listener = bind(ServerSettings(**settings))
    packs = {slug: FakePack(slug) for slug in ("fans", "pumps")}
    server = make_server(FakeLibrary(packs, {"valves": "damaged"}), ServerSettings(**settings))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield Server(listener.getsockname()[:2])
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()


def test_requests_are_counted_by_face_operation_and_status():
    with serving() as server:
        server.ask("/search?pack=fans&q=oil")
        server.ask("/search?pack=fans&q=oil")
        server.ask("/search?q=")
        server.call("tools/call", {"name": "ep_read", "arguments": {"id": "a", "pack": "fans"}}, "/packs/fans/mcp")
        found = server.metrics()
    name = "octavo_requests_total"
    assert found[name, frozenset({"http", "/search", "200"})] == 2
    assert found[name, frozenset({"http", "/search", "422"})] == 1
    assert found[name, frozenset({"mcp", "tools/call ep_read", "200"})] == 1
    assert found["octavo_request_seconds_count", frozenset({"http", "/search"})] == 3
    assert found["octavo_answers_total", frozenset({"search", "fans"})] == 2
    assert found["octavo_answers_total", frozenset({"read", "fans"})] == 1


def test_refusals_failures_and_errors_of_tools_are_counted_by_cause():
    with serving() as server:
        server.ask("/search?pack=fans&q=nothing")
        server.ask("/search?pack=fans&q=crash")
        server.call("tools/call", {"name": "ep_read", "arguments": {"pack": "fans"}}, "/packs/fans/mcp")
        found = server.metrics()
    assert found["octavo_refusals_total", frozenset({"no_relevant_passage"})] == 1
    assert found["octavo_failures_total", frozenset({"search", "internal"})] == 1
    assert found["octavo_failures_total", frozenset({"read", "bad_request"})] == 1
    assert found["octavo_mcp_errors_total", frozenset({"tools/call ep_read"})] == 1


def test_what_a_client_makes_up_is_no_label():
    with serving() as server:
        made_up = "made-up"
        server.ask(f"/{made_up}?{made_up}=1")
        server.ask("/", method=made_up.upper())
        server.ask("/search?q=x", headers={"Host": f"{made_up}.example.org"})
        server.call("tools/call", {"name": made_up, "arguments": {}})
        server.call(made_up, {})
        server.call("prompts/get", {"name": made_up})
        server.ask(f"/packs/{made_up}/mcp", method="POST", body="{}")
        status, body = server.ask("/metrics")
    assert status == 200
    assert made_up not in body.decode().lower()
    assert b'operation="tools/call other"' in body
    assert b'operation="/packs/{slug}/mcp",status="404"' in body


def test_who_is_refused_is_counted_and_never_named():
    with serving(keys=KEYS, rate_limit=RateLimit(6, 3600)) as server:
        server.ask("/search?q=x")
        server.ask("/search?q=x", new_key())
        for _ in range(7):
            server.ask("/search?pack=fans&q=x", FANS)
        status, body = server.ask("/metrics", ALL)
        found = server.metrics(ALL)
    assert status == 200
    assert found["octavo_auth_failures_total", frozenset({"missing"})] == 1
    assert found["octavo_auth_failures_total", frozenset({"invalid_token"})] == 1
    assert found["octavo_requests_total", frozenset({"http", "none", "429"})] == 1
    assert b"octavo_" in body
    assert ALL.encode() not in body
    assert sha256_hex(ALL.encode()).encode() not in body


def test_a_key_for_one_pack_gets_no_metrics_as_of_an_address_that_is_not_there():
    with serving(keys=KEYS) as server:
        absent, metrics = server.ask("/metrix", FANS), server.ask("/metrics", FANS)
        assert absent == metrics
        assert metrics[0] == 404
        assert server.ask("/metrics")[0] == 401


def test_the_state_of_the_server_and_its_releases_is_told():
    with serving() as server:
        found = server.metrics()
    assert found["octavo_release_info", frozenset({"fans", "d" * 12, "1.2"})] == 1
    assert found["octavo_packs_refused", frozenset()] == 1
    assert found["octavo_in_flight", frozenset()] == 1
    assert found["octavo_waiting", frozenset()] == 0
    assert found["octavo_tasks", frozenset()] > 1
    assert found["octavo_threads", frozenset()] > 1
    assert found["process_resident_memory_bytes", frozenset()] > 10_000_000
    assert found["process_open_fds", frozenset()] > 3
    assert found["process_cpu_seconds_total", frozenset()] > 0


def test_metrics_may_be_switched_off():
    with serving(metrics=False) as server:
        assert server.ask("/metrics")[0] == 404


@pytest.mark.parametrize("accept", ["application/openmetrics-text; version=1.0.0", "text/plain"])
def test_metrics_come_in_the_format_that_is_asked_for(accept: str):
    with serving() as server:
        status, body = server.ask("/metrics", headers={"Accept": accept})
    assert (status, body.endswith(b"# EOF\n")) == (200, "openmetrics" in accept)


@pytest.mark.parametrize("query", ["bug", "crash"])
def test_a_failure_is_logged_under_the_id_that_the_client_gets(query: str):
    root, stream = logging.getLogger(), io.StringIO()
    before = root.handlers[:], root.level
    configure_logs(ServerSettings(log_format="json"), stream)
    try:
        with serving() as server:
            status, body = server.ask(f"/search?pack=fans&q={query}", headers={"X-Request-Id": "mine-1"})
    finally:
        root.handlers[:], root.level = before
    assert (status, json.loads(body)["request_id"], SECRET.encode() in body) == (500, "mine-1", False)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert lines
    assert {line["request_id"] for line in lines} == {"mine-1"}
    assert SECRET in stream.getvalue()
