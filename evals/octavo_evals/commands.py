"""`octavo eval`: its verbs and their arguments. Everything heavy is imported when a verb runs."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from octavo_artifact.command import Command
from octavo_artifact.errors import ArtifactError, ConfigError
from octavo_artifact.parameters import GateMode
from octavo_evals import drafting, labelling
from octavo_evals.answering import command
from octavo_serve.commands.arguments import day

if TYPE_CHECKING:
    from octavo_evals.answering.results import AnswerResults
    from octavo_evals.judge import Questions, Verdict
    from octavo_evals.queries import QuerySet
    from octavo_evals.results import Results
    from octavo_evals.retrieval import Timing
    from octavo_evals.targets import Target

QUESTIONS = "questions.yaml"
FLOORS = "floors.yaml"
NOISE = "noise.json"
"""What the folder of a pack's evaluation holds, besides the committed results."""

ABLATED = ("R_cap@1", "R_cap@5", "RR", "nDCG@10", "must_not@5", "right_refusal", "false_refusal")
"""Measures that `ablate` shows unless it is asked for others."""

KEY_VARIABLE = "OCTAVO_KEY"


def _arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(required=True, metavar="VERB", title="verbs")
    run = _verb(verbs, "run", "ask the questions and write the results", _run)
    run.add_argument("cases", nargs="+", type=Path, metavar="CASES", help="YAML, BEIR folder, or TREC qrels")
    _cases_options(run)
    _target_options(run)
    run.add_argument("--k", type=_k, default=50, metavar="N", help="passages to ask for (50)")
    run.add_argument("--gate", choices=get_args(GateMode), help="what becomes of an improbable answer (the pack's own)")
    run.add_argument("--out", type=Path, metavar="PATH", help="file of results; with several CASES, a folder")
    run.add_argument("--run", type=Path, metavar="FILE", dest="trec", help="also write what was found as a TREC run")
    run.add_argument("--timings", type=Path, metavar="FILE", help="also write how long each search took, as JSON")
    run.add_argument("--categories", action="store_true", help="show the figures of each category too")

    table = _verb(verbs, "table", "show results, of searches or answers", _table)
    table.add_argument("results", nargs="+", type=Path, metavar="RESULTS")
    table.add_argument("--categories", action="store_true", help="show the figures of each category too")

    ablate = _verb(verbs, "ablate", "ask the questions with each stage of the search off in turn", _ablate)
    ablate.add_argument("cases", nargs="+", type=Path, metavar="CASES", help="query sets; the table is over all")
    _cases_options(ablate)
    _release_options(ablate)
    ablate.add_argument("--k", type=_k, default=50, metavar="N", help="passages to ask for (50)")
    ablate.add_argument(
        "--gate", choices=get_args(GateMode), help="what becomes of an improbable answer (the pack's own)"
    )
    ablate.add_argument("--variations", type=Path, metavar="FILE", help="YAML: name to parameters of the search")
    ablate.add_argument("--only", action="append", metavar="NAME", help="only this variation; may be repeated")
    ablate.add_argument(
        "--measures", type=_measures, default=ABLATED, metavar="LIST", help=f"measures to show ({','.join(ABLATED)})"
    )
    ablate.add_argument("--out", type=Path, metavar="FILE", help="also write the figures, as JSON")

    report = _verb(verbs, "report", "write results as one HTML page, with what was won and lost", _report)
    report.add_argument(
        "results",
        nargs="+",
        type=Path,
        metavar="RESULTS",
        help="of one pack and query set from the oldest to the newest",
    )
    report.add_argument("--out", type=Path, default=Path("report.html"), metavar="FILE", help="(report.html)")
    report.add_argument("--dist", type=Path, metavar="DIR", help="releases, to show what their passages say")

    gate = verbs.add_parser("gate", help="judge results: check, compare, noise, release")
    gates = gate.add_subparsers(required=True, metavar="VERB", title="verbs")
    check = _verb(gates, "check", "are results of these cases and this configuration, and good enough?", _check)
    check.add_argument("results", type=Path, metavar="RESULTS")
    check.add_argument("--cases", type=Path, required=True, help="the query set as it is now")
    _cases_options(check)
    check.add_argument("--dist", type=Path, help="folder of releases; without it the configuration is not checked")
    check.add_argument("--release", metavar="DIGEST", help="release to hold them against (the current one)")
    check.add_argument("--floors", type=Path, metavar="FILE", help="YAML: measure to the bound it has to clear")
    _format(check)

    compare = _verb(gates, "compare", "is NEW worse than BASE by more than chance and noise?", _compare)
    compare.add_argument("base", type=Path, metavar="BASE")
    compare.add_argument("new", type=Path, metavar="NEW")
    compare.add_argument("--across-releases", action="store_true", help="the two runs are of different releases")
    compare.add_argument("--noise", type=Path, metavar="FILE", help="what `gate noise` wrote (no noise)")
    compare.add_argument("--cases", type=Path, help="the query set as it is now: an edit after the runs is an error")
    _cases_options(compare)
    _format(compare)

    noise = _verb(gates, "noise", "measure how far runs of the same release differ", _noise)
    noise.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    noise.add_argument("--out", type=Path, required=True, metavar="FILE", help="where the noise goes")

    release = _verb(gates, "release", "evaluate a release and the current one, and judge both", _release)
    release.add_argument("artifact", type=Path, metavar="ARTIFACT", help="dist/SLUG/DIGEST")
    release.add_argument(
        "--evals",
        type=Path,
        required=True,
        metavar="DIR",
        help=f"folder with {QUESTIONS}, and {FLOORS} and {NOISE} if there are any",
    )
    release.add_argument("--today", type=day, metavar="YYYY-MM-DD", help="day of the answers (that of the questions)")
    _format(release)

    citations = _verb(verbs, "citations", "measure the citation checker on labelled sentences", _citations)
    citations.add_argument("pairs", type=Path, metavar="PAIRS", help="YAML: sentences, what they cite, labels")
    citations.add_argument("--dist", type=Path, default=Path("dist"), help="releases with the passages (dist)")
    citations.add_argument("--split", choices=("dev", "test"), help="only these pairs (all)")
    citations.add_argument("--lexical", action="store_true", help="check by words alone, without the encoder")
    citations.add_argument("--wrong", action="store_true", help="also list the pairs that are judged wrongly")
    citations.add_argument("--json", action="store_true", help="print JSON")
    command.add_arguments(verbs.add_parser("answers", help=command.SUMMARY, description=command.SUMMARY))

    for name, module in (("draft", drafting), ("label", labelling)):
        module.add_arguments(_verb(verbs, name, module.SUMMARY, module.run))


def _verb(verbs: Any, name: str, summary: str, verb: Callable[[Namespace], int]) -> ArgumentParser:
    """A parser among those that `add_subparsers` returned."""
    parser: ArgumentParser = verbs.add_parser(name, help=summary, description=summary)
    parser.set_defaults(verb=verb)
    return parser


def _cases_options(parser: ArgumentParser) -> None:
    parser.add_argument("--queries", type=Path, metavar="FILE", help="texts of TREC qrels: id, tab, question")
    parser.add_argument(
        "--doc-path", default="{}", metavar="PATTERN", help="path of a TREC or BEIR document, such as {}.md ({})"
    )


def _target_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--url",
        metavar="ENDPOINT",
        help="ask a server instead: its address, its MCP endpoint, or a command that speaks MCP on stdio; "
        f"{KEY_VARIABLE} in the environment is its key",
    )
    _release_options(parser)


def _release_options(parser: ArgumentParser) -> None:
    parser.add_argument("--dist", type=Path, default=Path("dist"), help="folder of releases (dist)")
    parser.add_argument("--pack", metavar="SLUG", help="pack to ask (the one that the query set names)")
    parser.add_argument("--release", metavar="DIGEST", help="release in DIST to ask (the current one)")
    parser.add_argument("--today", type=day, metavar="YYYY-MM-DD", help="day of the answers (that of the questions)")


def _format(parser: ArgumentParser) -> None:
    parser.add_argument("--format", choices=("text", "json", "junit", "github"), default="text", help="(text)")


def _measures(text: str) -> tuple[str, ...]:
    from octavo_evals.measures import NAMES

    names = tuple(text.split(","))
    if unknown := [name for name in names if name not in NAMES]:
        raise ArgumentTypeError(f"{unknown[0]!r}, expected some of {', '.join(NAMES)}")
    return names


def _k(text: str) -> int:
    if text.isdecimal() and 1 <= int(text) <= 50:
        return int(text)
    raise ArgumentTypeError(f"{text!r}, expected 1 to 50")


def _run(arguments: Namespace) -> int:
    from octavo_artifact.ids import canonical_json
    from octavo_evals.render import table
    from octavo_evals.results import write_results
    from octavo_evals.trec import trec_run

    timings: list[Timing] | None = [] if arguments.timings else None
    runs = [_evaluated(arguments, path, timings) for path in arguments.cases]
    if arguments.out and len(runs) == 1:
        write_results(runs[0], arguments.out)
    elif arguments.out:
        arguments.out.mkdir(exist_ok=True)
        for path, run in zip(arguments.cases, runs, strict=True):
            write_results(run, arguments.out / f"{run.artifact.slug}-{path.stem}.json")
    if arguments.trec:
        arguments.trec.write_text("".join(map(trec_run, runs)), encoding="utf-8")
    if arguments.timings:
        arguments.timings.write_bytes(canonical_json(_latency(timings or [])))
    print(table(runs, categories=arguments.categories))
    return 0


def _evaluated(arguments: Namespace, path: Path, timings: list[Timing] | None) -> Results:
    from octavo_evals.retrieval import check_files, evaluate

    cases = _cases(arguments, path)
    today = _today(arguments.today, cases)
    with _target(arguments, cases, today) as target:
        check_files(target, cases)
        return evaluate(target, cases, today, k=arguments.k, gate=arguments.gate, timings=timings)


def _cases(arguments: Namespace, path: Path) -> QuerySet:
    from octavo_evals.queries import read_query_set

    return read_query_set(path, arguments.queries, arguments.doc_path)


def _today(given: date | None, cases: QuerySet) -> str:
    today = given.isoformat() if given else cases.today
    if today is None:
        raise ConfigError(f"today: missing; expected --today YYYY-MM-DD, or `today` in {cases.file}")
    return today


def _target(arguments: Namespace, cases: QuerySet, today: str) -> AbstractContextManager[Target]:
    from octavo_evals.targets import connect, open_target

    slug = arguments.pack or cases.pack
    if arguments.url:
        return connect(arguments.url, slug, os.environ.get(KEY_VARIABLE))
    return nullcontext(open_target(arguments.dist, slug, arguments.release, _date(today)))


def _date(today: str) -> date:
    try:
        return date.fromisoformat(today)
    except ValueError as error:
        raise ConfigError(f"today: {today!r}, expected a day as YYYY-MM-DD") from error


def _latency(timings: Iterable[Timing]) -> dict[str, Any]:
    import numpy as np

    seconds = {timing.id: round(timing.seconds, 6) for timing in timings}
    p50, p95 = np.quantile(list(seconds.values()), (0.5, 0.95)).tolist()
    return {"p50": round(p50, 6), "p95": round(p95, 6), "total": round(sum(seconds.values()), 6), "seconds": seconds}


def _ablate(arguments: Namespace) -> int:
    from octavo_evals.ablation import STAGES, ablate, ablation_bytes, read_variations
    from octavo_evals.render import ablation_table
    from octavo_evals.targets import open_target

    variations = read_variations(arguments.variations) if arguments.variations else STAGES
    if unknown := sorted(set(arguments.only or ()) - variations.keys()):
        raise ConfigError(f"--only: {unknown[0]!r}, expected one of {', '.join(variations)}")
    chosen = {name: each for name, each in variations.items() if name in (arguments.only or variations)}
    sets = [_cases(arguments, path) for path in arguments.cases]
    today = _today(arguments.today, sets[0])
    asked = [
        (open_target(arguments.dist, arguments.pack or cases.pack, arguments.release, _date(today)), cases)
        for cases in sets
    ]
    found = ablate(asked, chosen, today, k=arguments.k, gate=arguments.gate)
    if arguments.out:
        arguments.out.write_bytes(ablation_bytes(found))
    print(ablation_table(found, arguments.measures))
    return 0


def _table(arguments: Namespace) -> int:
    from octavo_evals.answering.results import read_answers
    from octavo_evals.render import answer_table, table
    from octavo_evals.results import read_results

    answers, searches = _by_kind(arguments.results)
    tables = [table([read_results(path) for path in searches], categories=arguments.categories)] if searches else []
    if answers:
        tables.append(answer_table([read_answers(path) for path in answers], categories=arguments.categories))
    print("\n\n".join(tables))
    return 0


def _by_kind(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Files of answers, and all others."""
    from octavo_evals.results import ANSWERS, kind_of

    answers = [path for path in paths if kind_of(path) == ANSWERS]
    return answers, [path for path in paths if path not in answers]


def _report(arguments: Namespace) -> int:
    from octavo_evals.answering.results import read_answers
    from octavo_evals.pages import answers_page, report_page, write_page
    from octavo_evals.report.contents import series_of
    from octavo_evals.results import read_results

    answers, searches = _by_kind(arguments.results)
    if answers and searches:
        raise ConfigError("results of searches and of answers: expected one kind, for they have a page each")
    if answers:
        write_page(arguments.out, answers_page([read_answers(path) for path in answers]))
        return 0
    series = series_of([read_results(path) for path in arguments.results], arguments.dist)
    write_page(arguments.out, report_page(series))
    return 0


def _check(arguments: Namespace) -> int:
    from octavo_evals.judge import check, read_floors
    from octavo_evals.targets import open_target

    results, cases = _evaluation(arguments.results), _questions(arguments, arguments.results)
    floors = read_floors(arguments.floors) if arguments.floors else {}
    target = None
    if arguments.dist:
        target = open_target(arguments.dist, results.artifact.slug, arguments.release, _date(results.date))
    return _judge(arguments, "check", check(results, cases, target, floors))


def _evaluation(path: Path) -> Results | AnswerResults:
    """Results of either kind."""
    from octavo_evals.answering.results import read_answers
    from octavo_evals.results import ANSWERS, kind_of, read_results

    return read_answers(path) if kind_of(path) == ANSWERS else read_results(path)


def _questions(arguments: Namespace, results: Path) -> Questions:
    """The cases as they are now, of the kind that the results are of."""
    from octavo_evals.answering.cases import read_cases
    from octavo_evals.results import ANSWERS, kind_of

    return read_cases(arguments.cases) if kind_of(results) == ANSWERS else _cases(arguments, arguments.cases)


def _compare(arguments: Namespace) -> int:
    from octavo_evals.judge import ComparisonError, compare, edited, judged, read_noise

    base, new = _evaluation(arguments.base), _evaluation(arguments.new)
    if type(base) is not type(new):
        raise ComparisonError("results of searches and of answers; expected two of one kind")
    if arguments.cases and (different := edited(new.labels, _questions(arguments, arguments.new).labels)):
        raise ComparisonError(f"{arguments.cases.name}: {different} since the run; run both again")
    noise = read_noise(arguments.noise) if arguments.noise else None
    return _judge(arguments, "compare", judged(compare(base, new, noise, across_releases=arguments.across_releases)))


def _noise(arguments: Namespace) -> int:
    from octavo_evals.judge import noise_bytes, read_noise

    arguments.out.write_bytes(noise_bytes([_evaluation(path) for path in arguments.runs]))
    for name, value in read_noise(arguments.out).items():
        print(f"{name:<20} {value:.6f}")
    return 0


def _release(arguments: Namespace) -> int:
    from octavo_evals.judge import check, compare, judged, read_floors, read_noise
    from octavo_evals.queries import read_query_set
    from octavo_evals.retrieval import check_files, evaluate
    from octavo_evals.targets import open_target

    artifact, evals = arguments.artifact.absolute(), arguments.evals
    dist, slug = artifact.parents[1], artifact.parent.name
    cases = read_query_set(evals / QUESTIONS)
    floors = read_floors(evals / FLOORS) if (evals / FLOORS).exists() else {}
    noise = read_noise(evals / NOISE) if (evals / NOISE).exists() else None
    today = _today(arguments.today, cases)
    target = open_target(dist, slug, artifact.name, _date(today))
    check_files(target, cases)
    new = evaluate(target, cases, today)
    verdicts = check(new, cases, target, floors)
    current = _current(dist, slug, _date(today))
    if isinstance(current, str):
        verdicts.append(_told(current))
    elif current.artifact.digest != new.artifact.digest:
        # a question may name a file that is new: the current release misses it, and scores 0
        base = evaluate(current, cases, today)
        verdicts += judged(compare(base, new, noise, across_releases=True))
    return _judge(arguments, slug, verdicts)


def _current(dist: Path, slug: str, today: date) -> Target | str:
    """The current release, or why there is none to compare with: a damaged one must not keep a good one away."""
    from octavo_evals.targets import open_target

    try:
        return open_target(dist, slug, None, today)
    except ArtifactError as error:
        return f"judged by its own figures only: {error}"


def _told(message: str) -> Verdict:
    from octavo_evals.judge import Verdict

    return Verdict("current release", True, message)


def _citations(arguments: Namespace) -> int:
    from octavo_evals.answering import support

    packs = support.Packs(arguments.dist)
    pairs = [pair for pair in support.read_pairs(arguments.pairs) if arguments.split in (None, pair.split)]
    there, left_out = support.present(pairs, packs)
    judged = support.judge(there, packs, support.checker(), lexical=arguments.lexical)
    for slug, count in left_out.items():
        print(f"octavo: {slug}: not in {arguments.dist.name}; {count} pairs are left out", file=sys.stderr)
    if arguments.json:
        shown = support.as_json(judged, left_out, lexical=arguments.lexical, wrong=arguments.wrong)
        print(json.dumps(shown, ensure_ascii=False))
        return 0
    print(support.table(judged))
    if arguments.wrong:
        print(support.wrong_ones(judged))
    return 0


def _judge(arguments: Namespace, name: str, verdicts: Sequence[Verdict]) -> int:
    from octavo_evals.render import FORMATS

    print(FORMATS[arguments.format](name, verdicts))
    failed = not all(verdict.passed for verdict in verdicts)
    if failed and arguments.format != "text":
        print(f"octavo: {name}: the gate does not pass", file=sys.stderr)
    return int(failed)


def _do(arguments: Namespace) -> int:
    return arguments.verb(arguments)


EVAL = Command(
    name="eval",
    summary="measure how well releases answer, and judge them",
    description="Ask the questions of CASES of a release, in process or over an endpoint, write what came back and\n"
    "how good it was, compare such results, and judge whether a release may go out.\n"
    "`octavo eval VERB --help` shows each verb.\n"
    "Exit codes: 0 done or passed, 1 the gate does not pass or the questions are wrong, 2 nothing could be judged.",
    examples=(
        "octavo eval run evals/octavo/questions.yaml --dist dist --out new.json",
        "octavo eval run golden.yaml --url https://kb.example.org/mcp --pack octavo --today 2026-11-30",
        "octavo eval ablate evals/octavo/questions.yaml --dist dist --measures RR,nDCG@10",
        "octavo eval table evals/*/results.json --categories",
        "octavo eval gate check evals/octavo/results.json --cases evals/octavo/questions.yaml --dist dist \\\n"
        "      --floors evals/octavo/floors.yaml",
        "octavo eval answers run evals/octavo/answers.yaml --dist dist --quoting --out answers.json",
        "octavo eval draft dist --pack octavo --log queries.jsonl --out draft.yaml",
        "octavo eval label draft.yaml --dist dist",
        "octavo eval citations evals/answers/support.yaml --dist dist --wrong",
        "octavo eval gate compare evals/octavo/results.json new.json --across-releases --format github",
    ),
    add_arguments=_arguments,
    run=_do,
    extra="evals",
)
