"""What is told of questions to the model: statistics, metrics, the query log; over real sockets."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pydantic import TypeAdapter

from fakes import DIGEST, FakeLibrary, FakePack
from listening import Running, listening
from octavo_artifact.errors import ConfigError
from octavo_artifact.ids import sha256_hex
from octavo_serve.answering.model import Usage
from octavo_serve.answering.outcomes import End, Outcome
from octavo_serve.answering.settings import AnswerSettings, ModelSettings
from octavo_serve.answering.stats import LAST, Stats, StatsResult
from octavo_serve.callers.keys import Key, new_key
from octavo_serve.settings import ServerSettings
from scripted import Gate, Scripted, answer, refusal, scripted

ALL, FANS = new_key(), new_key()
KEYS = (Key("ops", sha256_hex(ALL.encode()), ("*",)), Key("fans", sha256_hex(FANS.encode()), ("fans",)))
QUESTION = "How long does the oil last?"


@contextmanager
def answering(**settings: Any) -> Generator[tuple[Running, Scripted]]:
    """A server of `fans` and `pumps` with one slot, whose answers a script writes."""
    with scripted(answer("ready")) as model:
        answers = AnswerSettings(ModelSettings(model.url, retries=0, price_in=2.0, price_out=10.0), max_concurrent=1)
        library = FakeLibrary({slug: FakePack(slug) for slug in ("fans", "pumps")})
        with listening(library, ServerSettings(port=0, answers=answers, **settings)) as running:
            assert model.until(lambda: len(model.requests) == 1 and not model.busy)  # the warm-up
            yield running, model


def call(question: str, pack: str = "fans") -> bytes:
    params = {"name": "ep_ask", "arguments": {"question": question, "pack": pack}}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


def ask(running: Running, question: str = QUESTION, key: str | None = None, pack: str = "fans") -> Any:
    given = running.ask("/mcp", key, method="POST", body=call(question, pack))
    lines = [line.removeprefix(b"data: ") for line in given.body.splitlines() if line.startswith((b"data: {", b"{"))]
    return json.loads(lines[-1])["result"]


def stats(running: Running, key: str | None = None) -> Any:
    found = running.ask("/stats", key).json
    TypeAdapter(StatsResult).validate_python(found, strict=True)
    return found


def samples(running: Running) -> dict[tuple[str, frozenset[str]], float]:
    return {
        (sample.name, frozenset(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(running.ask("/metrics").body.decode())
        for sample in family.samples
    }


def test_statistics_tell_how_questions_ended_and_what_they_cost():
    with answering() as (running, model):
        model.script = answer("Five ", "years [1].", usage=(100, 7))
        ask(running)
        model.script = answer("The sources do not say.", usage=(100, 5))
        ask(running)
        ask(running, "nothing of the kind")
        model.script = refusal(500)
        ask(running)
        ask(running, pack="valves")
        told = stats(running)
    reasons = told["since_start"]["refused"]
    assert reasons["no_relevant_passage"] == 1
    ends = {name: told["since_start"][name] for name in ("failed", "left", "busy", "invalid")}
    assert ends == {"failed": {"generation": 1}, "left": 0, "busy": 0, "invalid": 1}
    assert told["since_start"]["answered"] + reasons.get("not_in_sources", 0) == 2
    assert {name: told["last"][name] for name in ("answered", "refused", "failed", "left")} == {
        name: told["since_start"][name] for name in ("answered", "refused", "failed", "left")
    }
    assert (told["last"]["questions"], told["last"]["tokens"]) == (4, {"prompt": 200, "completion": 12})
    assert told["last"]["cost_usd"] == pytest.approx((200 * 2 + 12 * 10) / 1e6)
    times = told["last"]["milliseconds"]
    assert 0 < times["first_token"]["p50"] <= times["generation"]["p50"] <= times["total"]["p50"]
    assert (told["workers"], told["slots"], told["in_flight"]) == (1, 1, 0)


def test_who_is_turned_away_and_who_leaves_is_counted():
    gate = Gate()
    with answering() as (running, model):
        model.script = answer("word ", gate)
        with socket.create_connection(("127.0.0.1", urlsplit(running.url).port)) as connection:
            body = call(QUESTION)
            head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
            types = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\r\n"
            connection.sendall((head + types).encode() + body)
            assert model.until(lambda: len(model.requests) == 2)
            assert ask(running)["isError"]
            assert (stats(running)["in_flight"], samples(running)["octavo_ask_in_flight", frozenset()]) == (1, 1)
        assert model.left.wait(10)
        until(lambda: stats(running)["in_flight"] == 0)
        told, counted = stats(running), samples(running)
    assert (told["since_start"]["busy"], told["since_start"]["left"], told["last"]["left"]) == (1, 1, 1)
    assert counted["octavo_ask_total", frozenset({"busy", ""})] == 1
    assert counted["octavo_ask_total", frozenset({"left", "", "generation"})] == 1
    assert counted["octavo_failures_total", frozenset({"ask", "busy"})] == 1


def until(holds: Callable[[], bool]) -> None:
    """Wait for the server's own thread, which goes on by itself."""
    for _ in range(1000):
        if holds():
            return
        threading.Event().wait(0.01)
    raise AssertionError("in vain")


def test_metrics_count_answers_stages_tokens_and_cost():
    with answering() as (running, model):
        model.script = answer("Five ", "years [1].", usage=(100, 7))
        ask(running)
        ask(running, "nothing of the kind")
        model.script = refusal(500)
        ask(running)
        found = samples(running)
    assert found["octavo_ask_total", frozenset({"answered", ""})] == 1
    assert found["octavo_ask_total", frozenset({"refused", "no_relevant_passage", ""})] == 1
    assert found["octavo_ask_total", frozenset({"failed", "", "generation"})] == 1
    counts = {stage: found["octavo_ask_seconds_count", frozenset({stage})] for stage in ("retrieval", "total")}
    assert counts == {"retrieval": 2, "total": 2}
    assert found["octavo_ask_seconds_count", frozenset({"first_token"})] == 1
    assert found["octavo_ask_seconds_bucket", frozenset({"generation", "120.0"})] == 1
    assert found["octavo_ask_tokens_total", frozenset({"prompt"})] == 100
    assert found["octavo_ask_tokens_total", frozenset({"completion"})] == 7
    assert found["octavo_ask_tokens_per_second_count", frozenset()] == 1
    assert found["octavo_ask_cost_usd_total", frozenset()] == pytest.approx((100 * 2 + 7 * 10) / 1e6)
    assert (found["octavo_ask_slots", frozenset()], found["octavo_ask_in_flight", frozenset()]) == (1, 0)
    assert found["octavo_answers_total", frozenset({"ask", "fans"})] == 2
    assert found["octavo_refusals_total", frozenset({"no_relevant_passage"})] == 1
    assert found["octavo_failures_total", frozenset({"ask", "generation"})] == 1
    assert ("octavo_answers_total", frozenset({"search", "fans"})) not in found, "its search is a part of the answer"


@pytest.mark.parametrize("text", [True, False])
def test_the_query_log_has_a_line_a_question_and_its_words_only_where_that_is_wanted(tmp_path: Path, text: bool):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "log"))
        receiver.settimeout(20)
        with answering(query_log=f"unix:{tmp_path / 'log'}", query_log_text=text) as (running, model):
            model.script = answer("Five years [1].")
            ask(running)
            ask(running, "nothing of the kind")
            model.script = refusal(500)
            ask(running)
            lines = [json.loads(receiver.recv(65536)) for _ in range(3)]
    assert [(line["tool"], line["pack"], line["error"]) for line in lines] == [
        ("ask", "fans", None),
        ("ask", "fans", None),
        ("ask", "fans", "generation"),
    ]
    asked = {"query": QUESTION} if text else {"query_sha256": sha256_hex(QUESTION.encode())}
    assert asked.items() <= lines[0].items()
    assert (QUESTION in json.dumps(lines)) == text
    assert (lines[0]["digest"], lines[0]["refused"], lines[0]["reason"]) == (DIGEST, False, None)
    assert [hit["fragment_id"] for hit in lines[0]["results"]] == ["pumps/a#opening:0123456789ab"] * 2
    assert (lines[1]["refused"], lines[1]["reason"], lines[1]["results"]) == (True, "no_relevant_passage", [])
    assert "Five years" not in json.dumps(lines)


def test_statistics_are_for_those_who_may_see_every_pack():
    with answering(keys=KEYS) as (running, _):
        assert stats(running, ALL)["slots"] == 1
        absent, hidden = running.ask("/statz", FANS), running.ask("/stats", FANS)
        assert (hidden.status, hidden) == (404, absent)
        assert running.ask("/stats").status == 401
        given = running.ask("/stats?since=1", ALL)
        assert (given.status, given.json["field"]) == (422, "since")
        assert running.ask("/stats", ALL).headers["cache-control"] == "no-store"


def test_a_server_without_answers_has_no_statistics_of_them():
    with listening(FakeLibrary({"fans": FakePack("fans")}), ServerSettings(port=0)) as running:
        assert running.ask("/stats").status == 404
        assert samples(running)["octavo_ask_slots", frozenset()] == 0


def outcome(end: End, milliseconds: float, usage: Usage | None = None) -> Outcome:
    times: Any = {"retrieval_ms": 1.0, "ttft_ms": milliseconds, "generation_ms": milliseconds, "total_ms": milliseconds}
    return Outcome(end, timings=times, usage=usage, stage="generation" if end == "failed" else None)


def told(outcomes: list[Outcome]) -> StatsResult:
    kept = Stats()
    for each in outcomes:
        kept.add(each)
    return kept.told(worker=1, workers=1, slots=4, in_flight=0)


def test_percentiles_are_times_that_were_measured():
    times = told([outcome("answered", float(number)) for number in range(1, 101)])["last"]["milliseconds"]
    assert times["total"] == {"p50": 50.0, "p95": 95.0}
    assert times["retrieval"] == {"p50": 1.0, "p95": 1.0}


def test_the_last_thousand_are_kept_and_all_are_counted():
    found = told([outcome("answered", 9.0)] * 5 + [outcome("answered", 1.0)] * LAST)
    assert (found["since_start"]["answered"], found["last"]["questions"]) == (LAST + 5, LAST)
    assert found["last"]["milliseconds"]["total"] == {"p50": 1.0, "p95": 1.0}


def test_a_failure_s_time_is_no_answer_s_time():
    found = told([outcome("answered", 1.0), outcome("failed", 9.0), outcome("left", 9.0)])["last"]
    assert (found["questions"], found["failed"], found["left"]) == (3, {"generation": 1}, 1)
    assert found["milliseconds"]["total"] == {"p50": 1.0, "p95": 1.0}


def test_nothing_yet_is_null_and_no_zero():
    found = told([])["last"]
    assert set(found["milliseconds"].values()) == {None}
    assert (found["cost_usd"], found["tokens"]) == (None, {"prompt": 0, "completion": 0})


@pytest.mark.parametrize(("slots", "workers", "each"), [(4, 1, 4), (4, 2, 2), (7, 3, 2), (2, 2, 1)])
def test_workers_share_the_slots_of_the_model(slots: int, workers: int, each: int):
    answers = AnswerSettings(ModelSettings("http://127.0.0.1:1/v1"), max_concurrent=slots)
    settings = ServerSettings(workers=workers, answers=answers).of_worker()
    assert settings.answers is not None
    assert (settings.answers.max_concurrent, settings.workers) == (each, workers)


def test_workers_without_a_slot_each_are_refused():
    answers = AnswerSettings(ModelSettings("http://127.0.0.1:1/v1"), max_concurrent=3)
    with pytest.raises(ConfigError, match=r"answers: max_concurrent 3, expected one at least for each of 4 workers"):
        ServerSettings(workers=4, answers=answers).of_worker()
    assert ServerSettings(workers=4).of_worker() == ServerSettings(workers=4)
