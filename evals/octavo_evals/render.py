"""Figures as a table; verdicts for a person, for CI that reads JUnit, for GitHub, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from xml.etree import ElementTree

from octavo_evals.ablation import Ablation, Variation, certain
from octavo_evals.bootstrap import estimates
from octavo_evals.judge import Verdict
from octavo_evals.results import Estimate, Results

COLUMNS = ("R@1", "R@3", "R@5", "R@10", "RR", "nDCG@10", "right_refusal", "false_refusal", "must_not@10")


def table(runs: Sequence[Results], *, categories: bool = False) -> str:
    """Means with their intervals: a row a run, beneath it its categories, and last all questions together."""
    rows: list[tuple[str, int, Mapping[str, Estimate]]] = []
    for run in runs:
        rows.append((f"{run.artifact.slug} {run.artifact.digest[:12]}", run.cases.count, run.measures))
        for category, measures in run.categories.items() if categories else ():
            count = sum(query.category == category for query in run.queries)
            rows.append((f"  {category or '(none)'}", count, measures))
    if len(runs) > 1:
        every = [query.measures for run in runs for query in run.queries]
        rows.append(("all", len(every), estimates(every, COLUMNS)))
    width = max(len(name) for name, _, _ in rows)
    header = f"{'':<{width}} {'n':>5} " + " ".join(f"{name:>16}" for name in COLUMNS)
    lines = [
        f"{name:<{width}} {count:>5} " + " ".join(f"{_cell(measures.get(column)):>16}" for column in COLUMNS)
        for name, count, measures in rows
    ]
    return "\n".join([header, *lines])


def _cell(estimate: Estimate | None) -> str:
    return "" if estimate is None else f"{estimate.mean:.3f} {estimate.low:.2f}-{estimate.high:.2f}"


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
