"""`octavo ask`: a cited answer, in a shell."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import secrets
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from octavo_artifact.command import Command
from octavo_artifact.errors import ConfigError, OctavoError
from octavo_artifact.ids import sha256_hex
from octavo_artifact.parameters import Tier
from octavo_serve.commands.arguments import (
    audience_argument,
    dist_argument,
    is_colourful,
    json_argument,
    opened_packs,
    styles,
    today_argument,
)
from octavo_serve.commands.asking import past
from octavo_serve.commands.serving import operator_of
from octavo_serve.labels import label

if TYPE_CHECKING:
    from octavo_serve.requests import AskRequest
    from octavo_serve.settings import ServerSettings

REFUSED = 3
"""Exit code of a question without an answer."""

_PATIENCE = 600.0
"""Seconds for a search: nobody else waits for the machine, and the encoder may still be cold."""

_CITATION = re.compile(r"\[[0-9]+\]")
_ERASE = "\r\x1b[K"

_REASONS = {
    "terms": "its words are not there",
    "number": "a number is not there",
    "negation": "one says no where the other says yes",
    "meaning": "that speaks of something else",
}


def _arguments(parser: ArgumentParser) -> None:
    dist_argument(parser)
    parser.add_argument("question", metavar="QUESTION", help="a question in plain words")
    parser.add_argument("--pack", metavar="SLUG", help="only from this pack (all packs of DIST, ranked together)")
    parser.add_argument("-k", "--k", type=int, metavar="N", help="passages to answer from, 1 to 20 (5)")
    parser.add_argument("--type", help="only documents of this type")
    parser.add_argument("--tag", action="append", default=[], help="only documents with this tag; may be repeated")
    parser.add_argument("--path", metavar="FOLDER", help="only documents in this folder, or this one file")
    parser.add_argument("--tier", choices=get_args(Tier), help="only documents of this context tier")
    parser.add_argument("--verified-within", type=int, metavar="DAYS", help="only documents verified in so many days")
    parser.add_argument("--config", type=Path, metavar="FILE", help="octavo.yaml whose `answers` names the model")
    parser.add_argument("--model-url", metavar="URL", help="base URL of a model's API instead, such as http://host/v1")
    parser.add_argument("--model", metavar="NAME", help="name of the model, where its server has several")
    parser.add_argument("--key-env", metavar="VAR", help="environment variable with the key of the model's API")
    parser.add_argument(
        "--files", type=Path, metavar="FOLDER", help="where the sources' files are: on a terminal, links lead there"
    )
    today_argument(parser)
    audience_argument(parser, None)
    json_argument(parser)


def _ask(arguments: Namespace) -> int:
    from octavo_serve.requests import AskRequest, parse_request

    filters = {name: getattr(arguments, name) for name in ("type", "path", "tier", "verified_within")}
    values = {
        "question": arguments.question,
        "pack": arguments.pack,
        "k": arguments.k,
        "filters": {**filters, "tags": tuple(arguments.tag)},
        "as_of": arguments.today,
    }
    asked = parse_request(AskRequest, values, strict=True)
    settings = _settings(arguments)
    arguments.audience = settings.audience
    packs = opened_packs(arguments, operator=operator_of(settings))
    shown = _Silence() if arguments.json else _Terminal()
    notes = _Notes(shown)
    logging.getLogger("octavo_serve").addHandler(notes)
    try:
        given = asyncio.run(_answered(asked, packs, settings, shown))
    finally:
        logging.getLogger("octavo_serve").removeHandler(notes)
    if arguments.json:
        print(json.dumps(given, ensure_ascii=False))
    elif given["refused"]:
        _tell_refusal(given)
    else:
        _show_sources(given, arguments.files)
        _tell_doubts(given, settings)
    if not arguments.json:
        _tell_costs(given)
    return REFUSED if given["refused"] else 0


def _settings(arguments: Namespace) -> ServerSettings:
    """Those of the file and the environment, with the model that the options name. Raises ConfigError without one."""
    from octavo_serve.configuration import configure

    chosen = {"name": arguments.model, "key_env": arguments.key_env}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    flags: dict[str, Any] = {} if arguments.audience is None else {"audience": arguments.audience}
    if arguments.model_url is not None:
        # nothing of another model's: its key is not for this place
        flags["answers"] = {"model": {"url": arguments.model_url, **chosen}}
    settings = configure(arguments.config, os.environ, flags)
    if settings.answers is None:
        raise ConfigError(
            "answers: no model is named; expected --model-url URL, or `answers` in octavo.yaml (--config FILE) or in "
            "OCTAVO_ANSWERS"
        )
    return replace(settings, answers=replace(settings.answers, model=replace(settings.answers.model, **chosen)))


class _Silence:
    """For JSON: nothing is shown before the end."""

    def reads(self, sources: int) -> None:
        """The model begins to read."""

    def says(self, text: str) -> None:
        """A piece of the answer."""

    def ends(self) -> None:
        """No more pieces come, or something else is to be said."""


class _Notes(logging.Handler):
    """What the model's client logs, to whoever asked: in a shell that is the operator."""

    def __init__(self, shown: _Silence) -> None:
        super().__init__(logging.WARNING)
        self._shown = shown

    def emit(self, record: logging.LogRecord) -> None:
        """Print it, on a line of its own."""
        self._shown.ends()
        print(f"octavo: {self.format(record)}", file=sys.stderr)


class _Terminal(_Silence):
    """Shows an answer as it comes: on stdout, and while the model reads a line on stderr that goes away.

    A refusal is no answer: as long as the words may become one, they are held back.
    """

    def __init__(self) -> None:
        self._held = ""
        self._begun = self._open = False
        self._waits = is_colourful(sys.stderr)
        self._looked_at = sys.stdout.isatty()
        self._bold, _, self._plain = styles()

    def reads(self, sources: int) -> None:
        if self._waits and sources:
            print(f"reading {sources} source{'s' * (sources != 1)}…", end="", file=sys.stderr, flush=True)
        self._waits = self._waits and sources > 0

    def says(self, text: str) -> None:
        from octavo_serve.answering.answerer import may_become_refusal

        self._held += text
        if self._begun or not may_become_refusal(self._held):
            self._show()

    def ends(self) -> None:
        self._clear()
        if self._open:
            print(flush=True)
        self._open = False

    def _show(self) -> None:
        self._clear()
        self._begun = self._open = True
        text = safe(self._held) if self._looked_at else self._held
        if self._bold:
            text = _CITATION.sub(lambda found: f"{self._bold}{found[0]}{self._plain}", text)
        print(text, end="", flush=True)
        self._held = ""

    def _clear(self) -> None:
        if self._waits:
            print(_ERASE, end="", file=sys.stderr, flush=True)
        self._waits = False


def safe(text: str) -> str:
    """Text of a model for a terminal: nothing in it moves the cursor, or turns the line around."""
    from octavo_serve.answering.prompt import visible

    return visible(text).replace("\r", "")


async def _answered(asked: AskRequest, packs: Any, settings: ServerSettings, shown: _Silence) -> dict[str, Any]:
    """The answer as a server gives it at once. Raises OctavoError when there is none."""
    from datetime import UTC, datetime

    from octavo_serve.answering.opening import open_answerer
    from octavo_serve.answering.retriever import InProcess
    from octavo_serve.faces import Workers

    assert settings.answers is not None
    workers = Workers(_PATIENCE)
    answerer = open_answerer(
        settings.answers,
        workers,
        os.environ,
        today=lambda: datetime.now(UTC).date(),
        observe=lambda _: None,
    )
    given: dict[str, Any] = {}
    try:
        events = answerer.events(asked, InProcess(packs, workers), secrets.token_hex(16))
        async with aclosing(events):
            async for event in events:
                match event.name:
                    case "sources":
                        given |= event.data
                        shown.reads(len(given["sources"]))
                    case "token":
                        shown.says(event.data["text"])
                    case "done":
                        given |= event.data
                    case "error":
                        shown.ends()
                        raise OctavoError(_failure(event.data, settings.answers.model.url))
        shown.ends()
    except asyncio.CancelledError:
        shown.ends()
        raise
    finally:
        await answerer.close()
        workers.close()
    return given


def _failure(failure: Mapping[str, Any], url: str) -> str:
    where = f" (asked at {url})" if failure["stage"] == "generation" else ""
    cut = "; what it said until then is no answer" if failure["partial"] else ""
    return f"{failure['message']}{where}{cut}"


def _tell_refusal(given: Mapping[str, Any]) -> None:
    """Why there is no answer, and where one might look."""
    found = given["nearest"] or given["sources"]
    titles = "; ".join(dict.fromkeys(label(each["title"], 100) for each in found))
    if given["reason"] == "not_in_sources":
        said, what = "the sources do not answer this question", "read"
    else:
        said, what = "nothing found", "nearest"
    print(f"octavo: {said} ({given['reason']}){f'; {what}: {titles}' if titles else ''}", file=sys.stderr)


def _show_sources(given: Mapping[str, Any], files: Path | None) -> None:
    """The sources that the answer cites, or where it cites none all that the model was shown."""
    bold, dim, plain = styles()
    cited = {citation["number"] for citation in given["citations"]}
    print()
    for source in given["sources"]:
        if cited and source["number"] not in cited:
            continue
        first, last = source["line_range"]
        path = [source["title"], *(each for each in source["heading_path"] if each != source["title"])]
        title = label(" > ".join(path), 300)
        link = _link(source, files) if bold else None
        title = f"\x1b]8;;{link}\x1b\\{title}\x1b]8;;\x1b\\" if link else title
        pack = "" if given["pack"] else f"{source['pack']}: "
        print(f"{bold}[{source['number']}]{plain} {pack}{title}")
        print(f"    {dim}{label(source['source_file'])}:{first}-{last}{past(source)}{plain}")


def _link(source: Mapping[str, Any], files: Path | None) -> str | None:
    """The URI of a source's file, if it is there and still says so."""
    if files is None:
        return None
    for folder in (files, files / source["pack"]):
        path = folder / source["source_file"]
        try:
            span = path.read_bytes()[slice(*source["byte_range"])]
        except OSError:
            continue
        if sha256_hex(span) == source["span_sha256"]:
            return path.resolve().as_uri()
    return None


def _tell_doubts(given: Mapping[str, Any], settings: ServerSettings) -> None:
    for line in _doubts(given, settings):
        print(f"octavo: {line}", file=sys.stderr)


def _doubts(given: Mapping[str, Any], settings: ServerSettings) -> Iterator[str]:
    """What is to be known of an answer before it is relied on, and what to do."""
    assert settings.answers is not None
    for each in given["unsupported"]:
        numbers = "".join(f"[{number}]" for number in each["numbers"])
        other = each["supported_by"]
        advice = f"[{other}] does say so" if other else "read the source before you rely on it"
        reason = _REASONS.get(each["reason"], each["reason"])
        yield f'{numbers} does not say "{safe(each["sentence"])}" ({reason}); {advice}'
    if wrong := given["invalid_citations"]:
        numbers = _listed(f"[{each['number']}]" for each in wrong)
        yield f"left out {numbers}, which points to no source; what it stood by may be made up"
    if uncited := len(given["uncited"]):
        yield f"{_counted(uncited, 'sentence')} without a source; take nothing from there that you cannot check"
    if given["truncated"]:
        yield f"the answer is cut at {settings.answers.model.max_tokens} tokens; raise answers.model.max_tokens"
    if given["missing"]:
        yield f"degraded: without {', '.join(given['missing'])}"


def _listed(items: Iterator[str]) -> str:
    return ", ".join(dict.fromkeys(items))


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _tell_costs(given: Mapping[str, Any]) -> None:
    """What it took, in one line, to whoever looks at a terminal."""
    if not sys.stderr.isatty():
        return
    told = [*_times(given["timings"]), *_sizes(given)]
    dim, plain = ("\x1b[2m", "\x1b[0m") if is_colourful(sys.stderr) else ("", "")
    print(f"{dim}{', '.join(told)}{plain}", file=sys.stderr)


def _times(timings: Mapping[str, Any]) -> Iterator[str]:
    yield f"search {_seconds(timings['retrieval_ms'])}"
    if timings["ttft_ms"] is not None:
        yield f"first word after {_seconds(timings['ttft_ms'])}"
    yield f"{_seconds(timings['total_ms'])} in all"


def _sizes(given: Mapping[str, Any]) -> Iterator[str]:
    if usage := given["usage"]:
        yield f"{usage['prompt_tokens']:,} tokens read, {usage['completion_tokens']:,} written"
    if given["cost_usd"] is not None:
        yield f"cost {given['cost_usd']:.6f}"
    if given["receipt"] and given["receipt"]["model"]:
        yield label(given["receipt"]["model"], 60)
    yield f"{given['pack'] or 'several packs'} {given['digest'][:12]}"


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


ASK = Command(
    name="ask",
    summary="answer a question from packs, with citations",
    description="Answer QUESTION by a language model that you name from the passages of DIST that a search finds, and\n"
    "list the sources that it cites. Every cited sentence is checked against them.\n"
    "stdout gets the answer as it comes and its sources, nothing else; refusals, doubts and errors go to stderr.\n"
    "The model has an OpenAI-compatible API: --model-url, or `answers` in octavo.yaml or OCTAVO_ANSWERS.\n"
    "Exit codes: 0 answered, 3 refused (the packs do not say), 1 the model or a pack failed, 2 wrong arguments.",
    examples=(
        "octavo ask dist 'how do I roll back?' --model-url http://127.0.0.1:8080/v1",
        "octavo ask dist 'what is a digest?' --pack octavo --config octavo.yaml -k 3",
        "octavo ask dist 'how do I roll back?' --config octavo.yaml --json | octavo verify-answer",
    ),
    add_arguments=_arguments,
    run=_ask,
)
