"""Figures as a table; verdicts for a person, for CI that reads JUnit, for GitHub, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from xml.etree import ElementTree

from octavo_evals.ablation import Ablation, Variation, certain
from octavo_evals.answering.agreement import Agreement, Verdicts
from octavo_evals.answering.faithfulness import Faithfulness
from octavo_evals.answering.measures import NAMES as ANSWER_COLUMNS
from octavo_evals.answering.results import AnswerResults
from octavo_evals.bootstrap import estimates
from octavo_evals.judge import Verdict
from octavo_evals.results import Estimate, Evaluation, Results

COLUMNS = ("R@1", "R@3", "R@5", "R@10", "RR", "nDCG@10", "right_refusal", "false_refusal", "must_not@10")


def table(runs: Sequence[Results], *, categories: bool = False) -> str:
    """Means with their intervals: a row a run, beneath it its categories, and last all questions together."""
    return _table([(f"{run.artifact.slug} {run.artifact.digest[:12]}", run) for run in runs], COLUMNS, categories)


def answer_table(runs: Sequence[AnswerResults], *, categories: bool = False) -> str:
    """The same of answers."""
    named = [(f"{run.artifact.slug} {run.artifact.digest[:12]} {run.model}", run) for run in runs]
    return _table(named, ANSWER_COLUMNS, categories)


def _table(runs: Sequence[tuple[str, Evaluation]], columns: Sequence[str], categories: bool) -> str:
    rows: list[tuple[str, int, Mapping[str, Estimate]]] = []
    for name, run in runs:
        rows.append((name, run.cases.count, run.measures))
        for category, measures in run.categories.items() if categories else ():
            count = sum(labels["category"] == category for labels in run.labels.values())
            rows.append((f"  {category or '(none)'}", count, measures))
    if len(runs) > 1:
        every = [figures for _, run in runs for figures in run.figures.values()]
        rows.append(("all", len(every), estimates(every, columns)))
    width = max(len(name) for name, _, _ in rows)
    wide = max(16, *map(len, columns))
    header = f"{'':<{width}} {'n':>5} " + " ".join(f"{name:>{wide}}" for name in columns)
    lines = [
        f"{name:<{width}} {count:>5} " + " ".join(f"{_cell(measures.get(column)):>{wide}}" for column in columns)
        for name, count, measures in rows
    ]
    return "\n".join([header, *lines])


def _cell(estimate: Estimate | None) -> str:
    return "" if estimate is None else f"{estimate.mean:.3f} {estimate.low:.2f}-{estimate.high:.2f}"


def faithfulness_text(found: Faithfulness) -> str:
    """What a judge said, in two lines."""
    said = ", ".join(f"{count} {what}" for what, count in found.counts.items()) or "nothing to judge"
    figures = ", ".join(f"{name} {_cell(estimate)}" for name, estimate in found.measures.items())
    return f"{found.judge} of {found.answered_by}: {said}\n{figures}".rstrip()


def agreement_text(first: Verdicts, second: Verdicts, found: Agreement) -> str:
    """Two judges in a table of two by two, and how far they agree."""

    def figure(value: float | None) -> str:
        return "undefined" if value is None else f"{value:.3f}"

    width = max(8, len(first.judge) + 4)
    lines = [
        f"{'':<{width}} {f'{second.judge} yes':>16} {f'{second.judge} no':>16}",
        f"{f'{first.judge} yes':<{width}} {found.both_yes:>16} {found.first_only:>16}",
        f"{f'{first.judge} no':<{width}} {found.second_only:>16} {found.both_no:>16}",
        f"pairs {found.count}, left out {found.left_out}; agreement {figure(found.observed)}, by chance "
        f"{figure(found.expected)}, kappa {figure(found.kappa)}",
    ]
    return "\n".join(lines)


def ablation_table(ablation: Ablation, measures: Sequence[str]) -> str:
    """A line a measure and variation: its mean, how it differs from the default, and the interval of the difference.

    `+` and `-` mark what is better or worse by more than chance.
    """
    width = max(len(one.name) for one in ablation.variations)
    lines = [
        f"{', '.join(f'{one.slug} {one.digest[:12]}' for one in ablation.artifacts)}: "
        f"{sum(each.count for each in ablation.cases)} questions"
    ]
    for measure in measures:
        for one in ablation.variations:
            if found := one.measures.get(measure):
                line = f"{measure:<16} {one.name:<{width}}  {found.mean:.3f}"
                lines.append(f"{line}  {_difference(measure, one)}".rstrip())
    return "\n".join(lines)


def _difference(measure: str, one: Variation) -> str:
    change = one.differences.get(measure)
    if change is None:
        return ""
    mark = {1: "+", 0: "", -1: "-"}[certain(measure, change)]
    return f"{change.mean:+.3f}  {change.low:+.3f} to {change.high:+.3f}  {mark}"


def text(name: str, verdicts: Sequence[Verdict]) -> str:
    """A line a verdict."""
    width = max((len(verdict.subject) for verdict in verdicts), default=0)
    lines = [f"{'ok  ' if one.passed else 'FAIL'} {one.subject:<{width}}  {one.message}" for one in verdicts]
    failed = sum(not verdict.passed for verdict in verdicts)
    return "\n".join([*lines, f"{name}: {f'{failed} of {len(verdicts)} failed' if failed else 'passed'}"])


def as_json(name: str, verdicts: Sequence[Verdict]) -> str:
    """An object with every verdict."""
    passed = all(verdict.passed for verdict in verdicts)
    return json.dumps(
        {"gate": name, "passed": passed, "verdicts": [asdict(verdict) for verdict in verdicts]}, ensure_ascii=False
    )


def junit(name: str, verdicts: Sequence[Verdict]) -> str:
    """A test suite with a test case a verdict."""
    failed = sum(not verdict.passed for verdict in verdicts)
    suite = ElementTree.Element("testsuite", name=name, tests=str(len(verdicts)), failures=str(failed), errors="0")
    for verdict in verdicts:
        case = ElementTree.SubElement(suite, "testcase", classname=name, name=verdict.subject)
        if not verdict.passed:
            ElementTree.SubElement(case, "failure", message=verdict.message)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode")


def github(name: str, verdicts: Sequence[Verdict]) -> str:
    """Workflow commands: an error for each verdict that did not pass, a notice when all did."""
    failed = [verdict for verdict in verdicts if not verdict.passed]
    lines = [f"::error title={_property(f'{name}: {one.subject}')}::{_data(one.message)}" for one in failed]
    return "\n".join(lines or [f"::notice title={_property(name)}::passed"])


FORMATS: Mapping[str, Callable[[str, Sequence[Verdict]], str]] = {
    "text": text,
    "json": as_json,
    "junit": junit,
    "github": github,
}


def _data(message: str) -> str:
    return message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(message: str) -> str:
    return _data(message).replace(":", "%3A").replace(",", "%2C")
