from __future__ import annotations

import json
from typing import Any

import pytest

from octavo_serve.over_mcp.envelope import parse_message

CALL: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in CALL.items() if name != key}


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(CALL, id="request"),
        pytest.param({**CALL, "id": "a"}, id="an id of text"),
        pytest.param(without("params"), id="without parameters"),
        pytest.param(without("id"), id="notification"),
        pytest.param({"jsonrpc": "2.0", "id": 1, "result": {}}, id="answer"),
    ],
)
def test_a_message_passes(message: dict[str, Any]) -> None:
    assert parse_message(json.dumps(message).encode()) == message


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(b"", -32700, id="nothing"),
        pytest.param(b'{"jsonrpc": "2.0"', -32700, id="cut off"),
        pytest.param(b'"\xff"', -32700, id="bad UTF-8"),
        pytest.param(json.dumps({**CALL, "params": {"x": float("nan")}}).encode(), -32700, id="NaN"),
        pytest.param(json.dumps(CALL).replace("list", r"\ud800").encode(), -32700, id="half of a pair"),
        pytest.param(b"[" * 100_000, -32700, id="deep"),
        pytest.param(json.dumps([CALL]).encode(), -32600, id="batch"),
        pytest.param(b"null", -32600, id="null"),
        pytest.param(json.dumps(without("jsonrpc")).encode(), -32600, id="no version"),
        pytest.param(json.dumps({**CALL, "id": None}).encode(), -32600, id="null as id"),
        pytest.param(json.dumps({**CALL, "id": True}).encode(), -32600, id="true as id"),
        pytest.param(json.dumps({**CALL, "method": 1}).encode(), -32600, id="a number as method"),
        pytest.param(json.dumps({**CALL, "params": [1]}).encode(), -32600, id="a list as parameters"),
        pytest.param(json.dumps({"jsonrpc": "2.0", "id": 1}).encode(), -32600, id="neither asked nor answered"),
    ],
)
def test_what_is_no_message_is_told_so_in_two_words(body: bytes, code: int) -> None:
    refusal = parse_message(body)
    assert isinstance(refusal, bytes)
    assert json.loads(refusal)["error"]["code"] == code
    assert len(refusal) < 120
