from __future__ import annotations

import os
import pty
from argparse import ArgumentTypeError
from datetime import date
from io import StringIO

import pytest

from octavo_serve.commands.arguments import day, is_colourful


def test_a_day_is_written_one_way():
    assert day("2026-11-30") == date(2026, 11, 30)
    for other in ("20261130", "2026-W49-1", "2026-11-31", "today", ""):
        with pytest.raises(ArgumentTypeError, match="expected a day as YYYY-MM-DD"):
            day(other)


def test_colours_are_for_terminals_whose_reader_did_not_refuse_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    controller, terminal = pty.openpty()
    try:
        with open(terminal, "w") as stream:
            assert is_colourful(stream)
            assert not is_colourful(StringIO())
            monkeypatch.setenv("NO_COLOR", "1")
            assert not is_colourful(stream)
    finally:
        os.close(controller)
