from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from fakes import DIGEST, FakePack
from octavo_artifact.errors import ConfigError
from octavo_artifact.ids import sha256_hex
from octavo_evals.drafting import logged, read_log
from octavo_serve.callers.keys import new_key
from octavo_serve.requests import ReadRequest, SearchRequest, TopicsRequest
from octavo_serve.watching.notes import Note
from octavo_serve.watching.query_log import BUFFER, QueryLog, open_sink
from octavo_serve.watching.watch import answer_of

NOTE = Note("r-1", "mcp", "POST", caller="alice")
PACK = FakePack("pumps")


class Kept:
    """A sink that keeps lines, when it is let to."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.let = threading.Event()

    def write(self, line: bytes) -> None:
        self.let.wait(20)
        self.lines.append(line)

    def close(self) -> None:
        self.lines.append(b"closed")


def written(
    *, tool: str = "search", text: bool = True, note: Note | None = NOTE, request: Any, answer: Any
) -> dict[str, Any]:
    sink = Kept()
    sink.let.set()
    log = QueryLog(sink, text=text, clock=lambda: 0)
    log.put(note, tool, request, answer, failure=None, seconds=0.0031)
    log.close()
    (line, _) = sink.lines
    return json.loads(line)


def test_a_line_tells_what_was_asked_and_what_came_of_it():
    request = SearchRequest(query="oil", tags=("a",), max_results=5)
    assert written(request=request, answer=PACK.search(request)) == {
        "time": "1970-01-01T00:00:00.000+00:00",
        "request_id": "r-1",
        "caller": "alice",
        "face": "mcp",
        "tool": "search",
        "pack": "pumps",
        "digest": DIGEST,
        "query": "oil",
        "asked": {"tags": ["a"], "max_results": 5},
        "error": None,
        "ms": 3.1,
        "results": [{"fragment_id": "pumps/a#opening:0123456789ab", "score": 0.5}] * 2,
        "refused": False,
        "reason": None,
        "answer_probability": None,
        "degraded": False,
    }


def test_without_text_only_repetitions_can_be_told():
    request = SearchRequest(query="private")
    line = written(text=False, request=request, answer=PACK.search(request))
    assert line["query_sha256"] == sha256_hex(b"private")
    assert "private" not in json.dumps(line)


def test_no_secret_is_written():
    key = new_key()
    request = SearchRequest(query=f'what is {key}"', path=key)
    assert key not in json.dumps(written(request=request, answer=PACK.search(request)))


def test_an_answer_of_mcp_is_read_as_one_over_http():
    request = SearchRequest(query="oil")
    answer = PACK.search(request)
    assert answer_of({"content": [], "structuredContent": answer}) == answer_of(answer) == answer
    assert answer_of(ValueError()) == answer_of(b"") == {}


def test_topics_name_their_pack_as_the_others_do():
    assert written(tool="topics", request=TopicsRequest(), answer=PACK.topics(TopicsRequest()))["pack"] == "pumps"


def test_what_was_not_answered_names_the_pack_that_was_asked_for():
    assert written(request=ReadRequest(pack="fans"), answer={})["pack"] == "fans"


def test_stdio_has_no_request_id_and_no_caller():
    request = SearchRequest(query="oil")
    line = written(note=None, request=request, answer=PACK.search(request))
    assert (line["face"], line["request_id"], line["caller"]) == ("stdio", None, None)


def test_an_answer_never_waits_for_the_log_and_what_is_lost_is_counted():
    sink, request = Kept(), SearchRequest(query="oil")
    log = QueryLog(sink, text=True)
    for _ in range(BUFFER + 50):
        log.put(None, "search", request, {}, failure="busy", seconds=0)
    # the thread may hold one line that it took from the buffer
    assert log.dropped in (49, 50)
    sink.let.set()
    log.close()
    assert sink.lines.pop() == b"closed"
    assert len(sink.lines) + log.dropped == BUFFER + 50


def received(address: str, receiver: socket.socket) -> bytes:
    receiver.settimeout(10)
    sink = open_sink(address)
    sink.write(b"line\n")
    sink.close()
    return receiver.recv(100)


def test_a_unix_socket_gets_a_datagram_a_line(tmp_path: Path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "log"))
        assert received(f"unix:{tmp_path / 'log'}", receiver) == b"line\n"


def test_a_udp_socket_gets_a_datagram_a_line():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        assert received(f"udp:127.0.0.1:{receiver.getsockname()[1]}", receiver) == b"line\n"


def test_nobody_at_the_socket_loses_lines_and_nothing_else(tmp_path: Path):
    log = QueryLog(open_sink(f"unix:{tmp_path / 'nobody'}"), text=True)
    log.put(None, "read", ReadRequest(id="a"), {}, failure="not_found", seconds=0)
    log.close()
    assert log.dropped == 1


@pytest.mark.parametrize("address", ["", "stderr", "unix:relative", "udp:host", "udp:127.0.0.1:99999"])
def test_what_is_no_address_is_refused(address: str):
    with pytest.raises(ConfigError, match=r"^query_log: "):
        open_sink(address)


def test_evaluations_draft_questions_from_the_log(tmp_path: Path):
    requests = [SearchRequest(query=query) for query in ("how is oil changed?", "How is oil changed", "what pumps?")]
    lines = [written(request=request, answer=PACK.search(request)) for request in requests]
    (tmp_path / "log").write_text("\n".join(map(json.dumps, lines)))
    drafts = logged(read_log(tmp_path / "log"), "pumps")
    assert [draft.source for draft in drafts] == ["the log, 2 times", "the log, 1 times"]
    assert logged(read_log(tmp_path / "log"), "fans") == []
