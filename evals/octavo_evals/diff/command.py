"""`octavo diff`. What it needs is imported when it runs."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path

from octavo_artifact.command import Command
from octavo_artifact.errors import ConfigError, OctavoError
from octavo_serve.commands.arguments import day, is_colourful

SAMPLED = 50


def _arguments(parser: ArgumentParser) -> None:
    for name in ("old", "new"):
        parser.add_argument(name, metavar=name.upper(), help="dist/SLUG/DIGEST, dist/SLUG (current) or SLUG@DIGEST")
    parser.add_argument(
        "--dist", type=Path, default=Path("dist"), metavar="DIR", help="where SLUG@DIGEST is looked up (dist)"
    )
    parser.add_argument(
        "--cases",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="ask the questions of a query set too; may be repeated",
    )
    parser.add_argument(
        "--sample",
        type=_number(0, 10_000),
        default=SAMPLED,
        metavar="N",
        help=f"ask at most N headings of the releases as questions, 0 for none ({SAMPLED})",
    )
    parser.add_argument("-k", type=_number(1, 50), default=10, help="passages of an answer to compare, 1 to 50 (10)")
    parser.add_argument(
        "--today",
        type=day,
        metavar="YYYY-MM-DD",
        help="day by which passages count as stale (without it, none is)",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown, for release notes")
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write one self-contained HTML page")


def _number(least: int, most: int):
    def number(text: str) -> int:
        if text.isascii() and text.isdigit() and least <= int(text) <= most:
            return int(text)
        raise ArgumentTypeError(f"{text!r}, expected {least} to {most}")

    return number


def _run(arguments: Namespace) -> int:
    try:
        return _diff(arguments)
    except OctavoError as error:
        raise ConfigError(str(error)) from error  # as with diff(1), 1 means a difference and 2 trouble


def _diff(arguments: Namespace) -> int:
    from octavo_evals.diff.comparison import compare, comparison_json
    from octavo_evals.diff.questions import Question
    from octavo_evals.diff.releases import resolve
    from octavo_evals.diff.text import markdown, terminal
    from octavo_evals.queries import read_query_set

    old, new = (resolve(name, arguments.dist) for name in (arguments.old, arguments.new))
    cases = [
        Question(query.id, query.text, query.category, query.files, query.filters)
        for path in arguments.cases
        for query in read_query_set(path).queries
    ]
    comparison = compare(old, new, cases=cases, sampled=arguments.sample, k=arguments.k, today=arguments.today)
    if arguments.html:
        from octavo_evals.pages import diff_page, write_page

        write_page(arguments.html, diff_page(comparison))
    if arguments.json:
        sys.stdout.write(comparison_json(comparison).decode())
    elif arguments.markdown:
        sys.stdout.write(markdown(comparison))
    else:
        sys.stdout.write(terminal(comparison, colours=is_colourful(sys.stdout)))
    return 0 if comparison.same else 1


DIFF = Command(
    name="diff",
    summary="compare two releases of a pack",
    description="Show what changed from the release OLD to the release NEW: documents, passages, edges, citations\n"
    "that break, questions whose answers move, encoder, parameters, findings and sizes.\n"
    "Exit codes: 0 the same release, 1 they differ, 2 trouble.",
    examples=(
        "octavo diff octavo@3f9a01c2b7de octavo@88d2e6f01a4b --cases evals/octavo/questions.yaml",
        "octavo diff dist/octavo/3f9a… dist/octavo --markdown > notes.md",
        "octavo diff dist/octavo/3f9a… dist/octavo --html diff.html",
    ),
    add_arguments=_arguments,
    run=_run,
    extra="evals",
)
