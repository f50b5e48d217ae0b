"""Results of an answer evaluation as a file: what was asked of which release and model, what came, how good it was.

The same release, cases, settings and answers give the same bytes: no clock, no latency. The text of passages is not
repeated; the release that is named has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from octavo_evals.answering.cases import Case, labels_of
from octavo_evals.results import ANSWERS, Artifact, Cases, Configuration, Estimate, content_of, parsed, written

End = Literal["answered", "refused", "failed"]


@dataclass(frozen=True, slots=True)
class Shown:
    """A passage that the model was shown."""

    number: int
    """By which it is cited, from 1."""
    fragment_id: str
    source_file: str
    shown: int
    """Characters of it that the model was shown."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A source that a sentence cites."""

    number: int
    supported: bool | None
    """Whether the server's check finds that the source says so."""
    score: float | None


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of an answer."""

    text: str
    range: tuple[int, int]
    """Characters of the answer."""
    citations: tuple[Citation, ...]
    supported: bool | None
    """Whether a source that it cites says so, or all of them together; None when it cites none."""
    reason: str | None
    """What is missing where it is not supported."""
    supported_by: int | None
    """Another source that says so."""


@dataclass(frozen=True, slots=True)
class Written:
    """What came of a question."""

    end: End
    reason: str | None = None
    """Why it was refused."""
    stage: str | None = None
    """Where it failed."""
    message: str | None = None
    """As a client is told."""
    answer: str = ""
    """What was written before, where it failed."""
    truncated: bool = False
    missing: tuple[str, ...] = ()
    sources: tuple[Shown, ...] = ()
    sentences: tuple[Sentence, ...] = ()
    """In the order of the answer."""
    invalid: tuple[int, ...] = ()
    """Cited numbers that point to no source."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_sha256: str | None = None
    """Of the messages to the model; None when it was not asked."""

    @property
    def cited(self) -> frozenset[int]:
        """Numbers of the sources that it cites."""
        return frozenset(each.number for sentence in self.sentences for each in sentence.citations)


@dataclass(frozen=True, slots=True)
class Answered:
    """A question, what came of it, and how good that was."""

    case: Case
    written: Written
    measures: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class AnswerResults:
    """One evaluation of the answers to one set of cases."""

    cases: Cases
    artifact: Artifact
    configuration: Configuration
    """As of a search, and `answers`: passages, model, sampling, and the hash of the prompt's template."""
    libraries: Mapping[str, str]
    date: str
    """Day by which the release told ages, `YYYY-MM-DD`."""
    measures: Mapping[str, Estimate]
    categories: Mapping[str, Mapping[str, Estimate]]
    answers: tuple[Answered, ...]
    """In the order of the cases."""

    @property
    def labels(self) -> dict[str, Any]:
        """The labels of each question, by its id."""
        return labels_of([each.case for each in self.answers])

    @property
    def figures(self) -> dict[str, Mapping[str, float]]:
        """The measures of each question, by its id."""
        return {each.case.id: each.measures for each in self.answers}

    @property
    def model(self) -> str:
        """What the model is called; `?` where nobody says."""
        return self.configuration.parameters["answers"]["model"] or "?"


def answers_bytes(results: AnswerResults) -> bytes:
    """Results as they stand in a file."""
    return written(ANSWERS, results)


def read_answers(path: Path) -> AnswerResults:
    """Read a file of results. Raises ConfigError when it is none, or one of another format."""
    return parse_answers(content_of(path), path.name)


def parse_answers(data: bytes, name: str) -> AnswerResults:
    """Results from the bytes of a file called `name`. Raises ConfigError."""
    return parsed(data, name, ANSWERS, "octavo eval answers run", _results)


def _results(fields: dict[str, Any]) -> AnswerResults:
    return AnswerResults(answers=tuple(_answered(each) for each in fields.pop("answers")), **fields)


def _answered(fields: dict[str, Any]) -> Answered:
    return Answered(_case(fields["case"]), _written(fields["written"]), fields["measures"])


def _case(fields: dict[str, Any]) -> Case:
    return Case(files=tuple(fields.pop("files")), facts=tuple(tuple(fact) for fact in fields.pop("facts")), **fields)


def _written(fields: dict[str, Any]) -> Written:
    return Written(
        missing=tuple(fields.pop("missing")),
        sources=tuple(Shown(**each) for each in fields.pop("sources")),
        sentences=tuple(_sentence(each) for each in fields.pop("sentences")),
        invalid=tuple(fields.pop("invalid")),
        **fields,
    )


def _sentence(fields: dict[str, Any]) -> Sentence:
    start, end = fields.pop("range")
    return Sentence(range=(start, end), citations=tuple(Citation(**each) for each in fields.pop("citations")), **fields)
