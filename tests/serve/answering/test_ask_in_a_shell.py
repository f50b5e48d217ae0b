"""`octavo ask` as a person and a script meet it: what goes to stdout, what to stderr, and the exit codes."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from octavo_serve.answering.results import Answer
from octavo_serve.cli import main
from octavo_serve.commands.answering import REFUSED
from running import OCTAVO, TINY, octavo
from scripted import CUT, Gate, Scripted, answer, refusal, scripted

QUESTION = "What do I do when the display shows E-17?"
GOOD = answer("Open the tank ", "and descale it [1]. ", "Then wait [2][1].", usage=(900, 12))


def ask(built: Path, model: Scripted | str, *options: str, question: str = QUESTION) -> int:
    url = model if isinstance(model, str) else model.url
    return main(["ask", str(built), question, "--pack", "tiny", "--model-url", url, *options])


def test_stdout_gets_the_answer_and_the_sources_that_it_cites(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with scripted(answer("Descale it [2].", usage=(900, 12))) as model:
        assert ask(built, model) == 0
    told = capsys.readouterr()
    said, empty, source, place = told.out.splitlines()
    assert (said, empty) == ("Descale it [2].", "")
    assert source.startswith("[2] ")
    assert re.fullmatch(r"    \S+\.md:\d+-\d+.*", place)
    assert "\x1b" not in told.out
    assert "reading" not in told.err


def test_an_answer_that_cites_nothing_has_all_its_sources_and_says_so(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with scripted(answer("Descale it.")) as model:
        assert ask(built, model) == 0
    told = capsys.readouterr()
    assert "[1] " in told.out
    assert "[2] " in told.out
    assert "octavo: 1 sentence without a source" in told.err


def test_json_is_the_answer_of_the_server(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with scripted(GOOD) as model:
        assert ask(built, model, "--json", "--model", "big", "-k", "2") == 0
    (line,) = capsys.readouterr().out.splitlines()
    given = json.loads(line)
    assert given.keys() == Answer.__annotations__.keys()
    assert given["answer"] == "Open the tank and descale it [1]. Then wait [2][1]."
    assert [each["number"] for each in given["sources"]][:2] == [1, 2]
    assert model.requests[0].body["model"] == "big"


def test_what_a_person_has_to_doubt_is_told_with_what_to_do(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = answer("The moon is made of purple cheese, they say everywhere [1].", finish="length")
    with scripted(script) as model:
        assert ask(built, model) == 0
    told = capsys.readouterr().err
    assert 'octavo: [1] does not say "The moon is made of purple cheese' in told
    assert "octavo: the answer is cut at 512 tokens; raise answers.model.max_tokens" in told


@pytest.mark.parametrize("json_too", [False, True], ids=["text", "json"])
def test_a_refusal_by_the_model_is_exit_3_and_no_answer(
    built: Path, capsys: pytest.CaptureFixture[str], *, json_too: bool
) -> None:
    with scripted(answer("The sources do ", "not answer this question. [1]")) as model:
        assert ask(built, model, *(["--json"] if json_too else [])) == REFUSED == 3
    told = capsys.readouterr()
    if json_too:
        assert json.loads(told.out)["reason"] == "not_in_sources"
    else:
        assert told.out == ""
        assert "octavo: the sources do not answer this question (not_in_sources); read: " in told.err


def test_a_question_about_something_else_is_exit_3_and_costs_no_model(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with scripted(GOOD) as model:
        assert ask(built, model, question="Who won the football game yesterday?") == REFUSED
    assert model.requests == []
    told = capsys.readouterr()
    assert told.out == ""
    assert "octavo: nothing found (no_relevant_passage)" in told.err


def test_what_begins_as_a_refusal_and_is_none_is_shown_whole(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with scripted(answer("The sources ", "do not answer this question ", "in full, but descale it [1].")) as model:
        assert ask(built, model) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first == "The sources do not answer this question in full, but descale it [1]."


def test_a_model_that_fails_is_exit_1_and_what_it_said_is_no_answer(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with scripted(answer("Open the", CUT)) as model:
        assert ask(built, model) == 1
    told = capsys.readouterr()
    assert told.out == "Open the\n"
    assert f"(asked at {model.url}); what it said until then is no answer" in told.err.splitlines()[-1]
    with scripted(refusal(400)) as model:
        assert ask(built, model, "--json") == 1
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        ([], 2, "octavo: answers: no model is named; expected --model-url URL, or `answers`"),
        (["--model-url", "ftp://x"], 2, "octavo: answers: model.url, expected http(s)://"),
        (["--model-url", "http://x/v1", "--key-env", "NO_SUCH_KEY"], 2, "the variable NO_SUCH_KEY holds no key"),
        (["--model-url", "http://x/v1", "--key-env", "OCTAVO_KEY"], 2, "octavo: answers: model.key_env, expected"),
        (["--model-url", "http://x/v1", "-k", "21"], 2, "octavo: k: "),
        (["--model-url", "http://x/v1", "--pack", "none"], 1, "octavo: pack: "),
        (["--config", "/no/such/octavo.yaml"], 2, "octavo: /no/such/octavo.yaml: cannot be read"),
    ],
    ids=["no model", "address", "no key", "variable", "too many", "no pack", "no file"],
)
def test_a_wrong_argument_says_what_was_expected(
    built: Path, capsys: pytest.CaptureFixture[str], options: list[str], code: int, told: str
) -> None:
    assert main(["ask", str(built), QUESTION, *options]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert told in shown.err


@pytest.mark.parametrize(
    ("question", "told"), [("", "question: "), ("x" * 2001, "question: "), ("\udcff", "question: ")]
)
def test_a_question_that_is_none_is_exit_2(
    built: Path, capsys: pytest.CaptureFixture[str], question: str, told: str
) -> None:
    assert ask(built, "http://127.0.0.1:9/v1", question=question) == 2
    assert told in capsys.readouterr().err


def test_the_model_comes_from_the_file_and_options_change_it(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FIRST_KEY", "one")
    monkeypatch.setenv("SECOND_KEY", "two")
    file = tmp_path / "octavo.yaml"
    with scripted(GOOD) as model:
        file.write_text(f"answers: {{passages: 1, model: {{url: '{model.url}', name: small, key_env: FIRST_KEY}}}}")
        command = ["ask", str(built), QUESTION, "--json"]
        assert main([*command, "--config", str(file)]) == 0
        assert main([*command, "--config", str(file), "--model", "big", "--key-env", "SECOND_KEY"]) == 0
        assert main([*command, "--config", str(file), "--model-url", model.url]) == 0
    asked = [(each.body.get("model"), each.headers.get("authorization")) for each in model.requests]
    assert asked == [("small", "Bearer one"), ("big", "Bearer two"), (None, None)]
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(answers[0]["sources"]) < len(answers[2]["sources"])


def test_filters_and_the_day_are_those_of_a_search(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with scripted(GOOD) as model:
        options = ["--path", "workflows", "--tier", "searchable", "--today", "2031-01-01", "--json"]
        assert ask(built, model, *options) == 0
    given = json.loads(capsys.readouterr().out)
    assert given["receipt"]["as_of"] == "2031-01-01"
    assert all(each["source_file"].startswith("workflows/") for each in given["sources"])


# On a terminal.


def on_a_terminal(arguments: Sequence[object], **environment: str) -> tuple[int, str]:
    """The exit code, and all that a person at a terminal gets."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [str(OCTAVO), *map(str, arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", **environment},
    )
    os.close(theirs)
    shown = bytearray()
    try:
        while data := os.read(ours, 65536):
            shown += data
    except OSError:
        pass  # how Linux says that nobody has the other end any more
    finally:
        os.close(ours)
    return process.wait(30), shown.decode().replace("\r\n", "\n")


def test_a_terminal_shows_that_the_model_reads_then_citations_and_links(built: Path) -> None:
    with scripted(answer("Descale it [1].", usage=(900, 12))) as model:
        arguments = ["ask", built, QUESTION, "--pack", "tiny", "--model-url", model.url, "--files", TINY]
        code, shown = on_a_terminal(arguments)
    assert code == 0
    reading, _, rest = shown.partition("\r\x1b[K")
    assert re.fullmatch(r"reading \d+ sources?…", reading)
    lines = rest.splitlines()
    assert lines[0] == "Descale it \x1b[1m[1]\x1b[0m."
    link = re.match(r"\x1b\[1m\[1\]\x1b\[0m \x1b\]8;;file://(\S+?)\x1b\\[^\x1b]+\x1b\]8;;\x1b\\$", lines[2])
    assert link
    assert Path(link[1]).is_relative_to(TINY)
    assert Path(link[1]).is_file()
    assert "900 tokens read, 12 written, scripted-1, tiny " in lines[-1]


@pytest.mark.slow
def test_a_terminal_without_colours_gets_plain_text(built: Path) -> None:
    with scripted(answer("Descale it [1].")) as model:
        arguments = ["ask", built, QUESTION, "--pack", "tiny", "--model-url", model.url, "--files", TINY]
        _, shown = on_a_terminal(arguments, NO_COLOR="1")
    assert "\x1b" not in shown
    assert "\r" not in shown


@pytest.mark.slow
def test_words_of_a_model_do_not_move_the_cursor_of_a_terminal(built: Path) -> None:
    with scripted(answer("It is\x1b[2J\x1b]0;x\x07 so\rnot \u202eevil [1].")) as model:
        _, shown = on_a_terminal(["ask", built, QUESTION, "--pack", "tiny", "--model-url", model.url])
    line = shown.partition("\x1b[K")[2].splitlines()[0]
    assert line == "It is\ufffd[2J\ufffd]0;x\ufffd sonot \ufffdevil \x1b[1m[1]\x1b[0m."


# Leaving early.


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param((), id="while it reads"),
        pytest.param(("Open the tank",), id="while it writes", marks=pytest.mark.slow),
    ],
)
def test_ctrl_c_stops_the_model_and_is_exit_130(built: Path, pieces: tuple[str, ...]) -> None:
    with scripted(answer(*pieces, Gate())) as model:
        process = subprocess.Popen(
            [str(OCTAVO), "ask", str(built), QUESTION, "--pack", "tiny", "--model-url", model.url],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        if pieces:
            assert process.stdout.read(4) == "Open"
        else:
            assert model.until(lambda: len(model.requests) == 1, 30)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
        assert process.returncode == 130
        assert model.left.wait(10)
    assert "Traceback" not in told


def test_an_answer_can_be_verified_right_away(built: Path) -> None:
    with scripted(GOOD) as model:
        asked = octavo("ask", built, QUESTION, "--model-url", model.url, "--json")
    assert asked.returncode == 0, asked.stderr
    proven = octavo("verify-answer", "--dist", built, input=asked.stdout)
    assert (proven.returncode, proven.stderr) == (0, "")
