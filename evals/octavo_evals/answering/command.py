"""`octavo eval answers`: its verbs and their arguments."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from octavo_artifact.errors import ConfigError
from octavo_serve.commands.arguments import day

if TYPE_CHECKING:
    from octavo_evals.answering.results import Answered
    from octavo_serve.answering.model import Model
    from octavo_serve.answering.results import Timings
    from octavo_serve.answering.settings import AnswerSettings

OF_THE_MODEL = ("context_tokens", "max_tokens", "chunk_timeout")
"""Settings of the model that have an option."""

SUMMARY = "evaluate the answers that a model writes: run, judge, agree"


def add_arguments(parser: ArgumentParser) -> None:
    """Those of `octavo eval answers`."""
    verbs = parser.add_subparsers(required=True, metavar="VERB", title="verbs")
    run_ = _verb(verbs, "run", "ask the cases of a model and write what it answered, with figures", run)
    run_.add_argument("cases", type=Path, metavar="CASES", help="YAML: questions with files, facts or refusal")
    _release_options(run_)
    run_.add_argument("--today", type=day, metavar="YYYY-MM-DD", help="day of the answers (that of the cases)")
    models = run_.add_mutually_exclusive_group(required=True)
    models.add_argument("--model-url", metavar="URL", help="base URL of an OpenAI-compatible API")
    models.add_argument("--config", type=Path, metavar="FILE", help="octavo.yaml whose `answers` names the model")
    models.add_argument("--quoting", action="store_true", help="a model that only quotes: the baseline")
    run_.add_argument("--model", metavar="NAME", help="name of the model, where its server has several")
    run_.add_argument("--key-env", metavar="NAME", help="environment variable that holds the API's key")
    run_.add_argument("--passages", type=_whole, metavar="N", help="passages that the model is shown (5)")
    run_.add_argument("--context-tokens", type=_whole, metavar="N", help="tokens that it reads and writes (4096)")
    run_.add_argument("--max-tokens", type=_whole, metavar="N", help="tokens of an answer (512)")
    run_.add_argument("--chunk-timeout", type=_whole, metavar="SECONDS", help="time for a piece of an answer (60)")
    run_.add_argument("--concurrent", type=_whole, default=1, metavar="N", help="cases at once (1)")
    run_.add_argument("--out", type=Path, metavar="FILE", help="file of results")
    run_.add_argument("--timings", type=Path, metavar="FILE", help="also write how long each answer took, as JSON")
    run_.add_argument("--categories", action="store_true", help="show the figures of each category too")

    judge_ = _verb(verbs, "judge", "ask a judge model of each citation whether the passage says so", judge)
    judge_.add_argument("results", type=Path, metavar="RESULTS", help="what `answers run` wrote")
    judge_.add_argument("--dist", type=Path, default=Path("dist"), help="folder of releases, for the passages (dist)")
    judge_.add_argument("--judge-url", required=True, metavar="URL", help="base URL of an OpenAI-compatible API")
    judge_.add_argument("--judge-model", metavar="NAME", help="name of the model, where its server has several")
    judge_.add_argument("--key-env", metavar="NAME", help="environment variable that holds the API's key")
    judge_.add_argument("--chunk-timeout", type=_whole, default=60, metavar="SECONDS", help="time for an answer (60)")
    judge_.add_argument("--concurrent", type=_whole, default=1, metavar="N", help="questions at once (1)")
    judge_.add_argument("--out", type=Path, metavar="FILE", help="where the verdicts go")

    agree_ = _verb(verbs, "agree", "how far do two judges of the same answers agree?", agree)
    for name in ("first", "second"):
        agree_.add_argument(name, type=Path, help="what `answers judge` wrote, or results: the server's own check")


def _verb(verbs: Any, name: str, summary: str, verb: Callable[[Namespace], int]) -> ArgumentParser:
    parser: ArgumentParser = verbs.add_parser(name, help=summary, description=summary)
    parser.set_defaults(verb=verb)
    return parser


def _release_options(parser: ArgumentParser) -> None:
    parser.add_argument("--dist", type=Path, default=Path("dist"), help="folder of releases (dist)")
    parser.add_argument("--pack", metavar="SLUG", help="pack to ask (the one that the cases name)")
    parser.add_argument("--release", metavar="DIGEST", help="release in DIST to ask (the current one)")


def _whole(text: str) -> int:
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    raise ArgumentTypeError(f"{text!r}, expected a whole number from 1")


def run(arguments: Namespace) -> int:
    """Ask the cases."""
    from octavo_artifact.ids import canonical_json
    from octavo_evals.answering.asking import Asking, check_files, evaluate
    from octavo_evals.answering.cases import read_cases
    from octavo_evals.answering.results import answers_bytes
    from octavo_evals.render import answer_table
    from octavo_evals.targets import open_target

    cases = read_cases(arguments.cases)
    today = arguments.today.isoformat() if arguments.today else cases.today
    if today is None:
        raise ConfigError(f"today: missing; expected --today YYYY-MM-DD, or `today` in {cases.file}")
    target = open_target(arguments.dist, arguments.pack or cases.pack, arguments.release, _date(today))
    check_files(target, cases)
    model, settings, name = _model(arguments)
    timings: dict[str, Timings] = {}
    progress = Progress(len(cases.cases))

    def told(answered: Answered, took: Timings | None) -> None:
        if took is not None:
            timings[answered.case.id] = took
        progress.told(f"{answered.case.id} {answered.written.end}")

    found = evaluate(Asking(target, model, settings, name, today), cases, concurrent=arguments.concurrent, told=told)
    if arguments.out:
        arguments.out.write_bytes(answers_bytes(found))
    if arguments.timings:
        arguments.timings.write_bytes(canonical_json({each.id: timings.get(each.id) for each in cases.cases}))
    print(answer_table([found], categories=arguments.categories))
    return 0


def _date(today: str) -> date:
    try:
        return date.fromisoformat(today)
    except ValueError as error:
        raise ConfigError(f"today: {today!r}, expected a day as YYYY-MM-DD") from error


def _model(arguments: Namespace) -> tuple[Model, AnswerSettings, str | None]:
    """The model, how it is asked, and what it is called."""
    from octavo_evals.answering.quoting import NAME, Quoting
    from octavo_serve.answering.model import ChatEndpoint
    from octavo_serve.answering.settings import AnswerSettings, ModelSettings, key_of

    if (arguments.model or arguments.key_env) and not arguments.model_url:
        raise ConfigError("--model, --key-env: they go with --model-url")
    if arguments.config:
        from octavo_serve.configuration import configure

        configured = configure(arguments.config, {}, {}).answers
        if configured is None:
            raise ConfigError(f"{arguments.config.name}: has no `answers`; expected a model that writes them")
    else:
        # the address is never asked where the model only quotes
        address = arguments.model_url or "http://127.0.0.1"
        configured = AnswerSettings(ModelSettings(address, arguments.model, arguments.key_env))
    given = {name: value for name in OF_THE_MODEL if (value := getattr(arguments, name)) is not None}
    settings = replace(configured, model=replace(configured.model, **given))
    if arguments.passages is not None:
        settings = replace(settings, passages=arguments.passages)
    if arguments.quoting:
        return Quoting(), settings, NAME
    key = key_of("model.key_env", settings.model.key_env, os.environ)
    return ChatEndpoint(settings.model, key), settings, settings.model.name


def judge(arguments: Namespace) -> int:
    """Ask a judge of each citation."""
    from octavo_artifact.ids import sha256_hex
    from octavo_evals.answering.faithfulness import Judged, faithfulness_bytes, pairs_of
    from octavo_evals.answering.faithfulness import judge as ask
    from octavo_evals.answering.results import read_answers
    from octavo_evals.render import faithfulness_text
    from octavo_evals.targets import open_target
    from octavo_serve.answering.model import ChatEndpoint
    from octavo_serve.answering.settings import ModelSettings, key_of

    results = read_answers(arguments.results)
    artifact = results.artifact
    target = open_target(arguments.dist, artifact.slug, artifact.digest, _date(results.date))
    settings = ModelSettings(
        arguments.judge_url, arguments.judge_model, arguments.key_env, chunk_timeout=arguments.chunk_timeout
    )
    model = ChatEndpoint(settings, key_of("--key-env", arguments.key_env, os.environ))
    progress = Progress(sum(len(pairs_of(each)) for each in results.answers))

    def told(judged: Judged) -> None:
        progress.told(f"{judged.pair.id} {judged.said}")

    found = ask(
        results,
        sha256_hex(arguments.results.read_bytes()),
        target.pack,
        model,
        arguments.judge_model or "?",
        concurrent=arguments.concurrent,
        told=told,
    )
    if arguments.out:
        arguments.out.write_bytes(faithfulness_bytes(found))
    print(faithfulness_text(found))
    return 0


def agree(arguments: Namespace) -> int:
    """Compare two judges."""
    from octavo_evals.answering.agreement import agreement, read_verdicts
    from octavo_evals.render import agreement_text

    first, second = read_verdicts(arguments.first), read_verdicts(arguments.second)
    print(agreement_text(first, second, agreement(first, second)))
    return 0


class Progress:
    """A line on a terminal that says how far it is; nothing elsewhere."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._done = 0
        self._shows = sys.stderr.isatty()

    def told(self, what: str) -> None:
        """One more is done."""
        self._done += 1
        if self._shows:
            end = "\n" if self._done == self._count else ""
            print(f"\r\x1b[K{self._done}/{self._count} {what}", end=end, file=sys.stderr, flush=True)
