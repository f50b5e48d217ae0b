"""Log lines on standard error, as text or JSON: ours, uvicorn's and the libraries'.

Clients choose part of what is logged. So each line is escaped, secrets are taken out of it, and a traceback stands
indented below its line: nothing that a client sends can look like a line of the log.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

from octavo_serve.settings import ServerSettings
from octavo_serve.watching.notes import Note, current
from octavo_serve.watching.redaction import printable, redact

ACCESS = "octavo.access"
"""Name of the logger of one line a request."""

_OURS = ("octavo_serve", "octavo_artifact")

OTHERS = {"debug": "INFO", "info": "WARNING", "warning": "WARNING", "error": "ERROR"}
"""Level of libraries, uvicorn's too, by ours: what they do when all is well is of use to those who look for a fault."""

_access = logging.getLogger(ACCESS)


def configure_logs(settings: ServerSettings, stream: TextIO | None = None) -> None:
    """Send everything that is logged in this process to `stream` (standard error), as the settings want it."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if settings.log_format == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(OTHERS[settings.log_level])
    for name in _OURS:
        logging.getLogger(name).setLevel(settings.log_level.upper())
    _access.setLevel(logging.INFO if settings.access_log else logging.CRITICAL)


def log_access(note: Note, status: int, seconds: float) -> None:
    """One line for a request that is over."""
    if _access.isEnabledFor(logging.INFO):
        told = {
            "face": note.face,
            "method": note.method,
            "operation": note.operation,
            "status": status,
            "ms": round(seconds * 1000, 2),
            "caller": note.caller,
            "pack": note.pack,
            "digest": note.digest,
        }
        _access.info("request", extra={"told": told})


class TextLines(logging.Formatter):
    """`time LEVEL logger [request id] message name=value …`, a traceback indented below."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as lines of which only the first begins at the margin."""
        note, told = current.get(), _told(record)
        words = [_time(record), record.levelname, record.name]
        words += [f"[{note.request_id}]"] if note else []
        words.append(_clean(record.getMessage()))
        words += [f"{name}={_clean(str(value))}" for name, value in told.items() if value is not None]
        lines = [printable(redact(line)) for line in _traceback(self, record).splitlines()]
        return "\n    ".join([" ".join(words), *lines])


class JsonLines(logging.Formatter):
    """One JSON object a line: `time`, `level`, `logger`, `request_id`, `message`, `traceback` and named values."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line of ASCII."""
        note = current.get()
        line = {"time": _time(record), "level": record.levelname.lower(), "logger": record.name}
        line |= {"request_id": note.request_id} if note else {}
        line |= {"message": redact(record.getMessage())}
        line |= {name: redact(value) if isinstance(value, str) else value for name, value in _told(record).items()}
        traceback = redact(_traceback(self, record))
        return json.dumps(line | ({"traceback": traceback} if traceback else {}))


def _clean(text: str) -> str:
    return printable(redact(text))


def _told(record: logging.LogRecord) -> dict[str, Any]:
    return getattr(record, "told", {})


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    # not `record.exc_text`: it may hold what another handler formatted
    found = formatter.formatException(record.exc_info) if record.exc_info else ""
    return found + (("\n" if found else "") + formatter.formatStack(record.stack_info) if record.stack_info else "")


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
