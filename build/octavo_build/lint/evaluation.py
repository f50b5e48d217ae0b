"""The questions that come with a pack: whether some of them must be refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from octavo_build.findings import Finding
from octavo_build.frontmatter import read_yaml
from octavo_build.lint.subject import Subject
from octavo_build.values import items, mapping, text

EVAL_SETS = ("eval/benchmark.yaml", "eval/questions.yaml")
"""The first that a member has is its set."""

MIN_REFUSALS = 3
_REFUSED = frozenset({"refusal", "out-of-scope", "out_of_scope"})


def check_refusals(subject: Subject) -> Iterator[Finding]:
    """Questions out of the pack's scope in every member's set of questions; a pack without a set has no fault."""
    for member in subject.members:
        paths = [path for name in EVAL_SETS if (path := member.prefix + name) in subject.files]
        for path in paths[:1]:
            front = read_yaml(path, subject.files[path])
            yield from front.findings
            questions = [mapping(each) for each in items(front.metadata.get("questions")) if isinstance(each, dict)]
            refusals = sum(map(_is_refused, questions))
            if refusals < MIN_REFUSALS:
                message = f"{refusals} of {len(questions)} questions must be refused, expected {MIN_REFUSALS}"
                yield Finding(path, front.lines.get("questions", 0), "W-EVAL-01", message)


def _is_refused(question: Mapping[str, Any]) -> bool:
    refused = text(question.get("expected_refusal")).lower() == "true"
    return refused or text(question.get("category")).lower() in _REFUSED
