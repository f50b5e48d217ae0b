from __future__ import annotations

import io
import json
import logging
from collections.abc import Generator
from typing import Any

import pytest

from octavo_serve.callers.keys import new_key
from octavo_serve.settings import ServerSettings
from octavo_serve.watching.logs import configure_logs, log_access
from octavo_serve.watching.notes import Note, current, request_id

_logger = logging.getLogger("octavo_serve.test")


@pytest.fixture(autouse=True)
def logging_as_before() -> Generator[None]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    token = current.set(None)
    yield
    current.reset(token)
    root.handlers[:], root.level = before


def logged(settings: ServerSettings) -> io.StringIO:
    stream = io.StringIO()
    configure_logs(settings, stream)
    return stream


def a_note(**values: Any) -> Note:
    return Note("r-1", "http", "GET", **values)


@pytest.mark.parametrize("form", ["text", "json"])
def test_nobody_writes_a_line_of_the_log_by_sending_one(form: Any):
    stream = logged(ServerSettings(log_format=form))
    forged = "\r\n2026-01-01T00:00:00.000Z ERROR octavo forged\x1b[2J\u202e"
    _logger.warning("found %s", forged)
    try:
        raise ValueError(forged)
    except ValueError:
        _logger.exception("failed")
    margin = [line for line in stream.getvalue().splitlines() if not line.startswith(" ")]
    assert len(margin) == 2
    assert not {"\r", "\x1b", "\u202e"} & set(stream.getvalue())


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_secret_is_logged_in_message_traceback_or_values(form: Any):
    stream, key = logged(ServerSettings(log_format=form, access_log=True)), new_key()
    try:
        raise ValueError(f"Authorization: Bearer {key}")
    except ValueError:
        _logger.exception("with %s", key)
    log_access(a_note(caller=key), 200, 0.001)
    assert key not in stream.getvalue()
    assert stream.getvalue().count("…") + stream.getvalue().count("\\u2026") >= 3


def test_a_line_of_json_has_the_request_and_the_traceback():
    stream = logged(ServerSettings(log_format="json"))
    current.set(a_note())
    try:
        raise ZeroDivisionError("why")
    except ZeroDivisionError:
        _logger.exception("it failed")
    line = json.loads(stream.getvalue())
    assert (line["level"], line["logger"], line["message"]) == ("error", "octavo_serve.test", "it failed")
    assert (line["request_id"], line["traceback"].splitlines()[-1]) == ("r-1", "ZeroDivisionError: why")


def test_an_access_line_tells_who_asked_what_and_how_it_went():
    stream = logged(ServerSettings(log_format="json", access_log=True))
    note = a_note(operation="/search", caller="alice", pack="pumps", digest="d" * 64)
    current.set(note)
    log_access(note, 200, 0.0031)
    line = json.loads(stream.getvalue())
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "info",
        "logger": "octavo.access",
        "request_id": "r-1",
        "message": "request",
        "face": "http",
        "method": "GET",
        "operation": "/search",
        "status": 200,
        "ms": 3.1,
        "caller": "alice",
        "pack": "pumps",
        "digest": "d" * 64,
    }


def test_without_access_log_a_request_leaves_no_line():
    stream = logged(ServerSettings(log_level="debug"))
    log_access(a_note(), 200, 0.001)
    assert stream.getvalue() == ""


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_what_is_below_the_level_is_not_logged(level: Any):
    stream = logged(ServerSettings(log_level=level))
    for number in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        _logger.log(number, "here")
    assert stream.getvalue().count("here") == 4 - ["debug", "info", "warning", "error"].index(level)


def test_a_client_may_name_its_request():
    assert request_id(b"abc-1.2_3") == "abc-1.2_3"


@pytest.mark.parametrize(
    "given",
    [None, b"", b"a b", b"a\r\nb", b"x" * 129, "ü".encode(), new_key().encode()],
    ids="none empty space lines long not-ascii key".split(),
)
def test_a_name_that_is_malformed_or_secret_is_replaced(given: bytes | None):
    first, second = request_id(given), request_id(given)
    assert given is None or first.encode() != given
    assert first != second
