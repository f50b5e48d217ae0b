"""Cases of an answer evaluation: questions with what an answer has to say and to cite, or that it has to refuse.

Read from a YAML file with `cases`, or from any YAML query set (`octavo_evals.queries`): of that the expected files and
the facts count, and what the pack cannot answer has to be refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, cast

import yaml

from octavo_artifact.errors import ConfigError, PackError, RequestError
from octavo_evals.answering.facts import Fact, words
from octavo_evals.queries import Query, read_query_set
from octavo_serve.requests import MAX_SOURCES, AskRequest, Filters, parse_request


@dataclass(frozen=True, slots=True)
class Case:
    """A question and its labels."""

    id: str
    question: str
    category: str = ""
    files: tuple[str, ...] = ()
    """Paths in the pack that answer it, best first."""
    facts: tuple[Fact, ...] = ()
    """What an answer has to say."""
    refusal: bool = False
    """Whether it has to be refused."""
    filters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Which documents may answer, as fields of `octavo_serve.requests.Filters`."""
    k: int | None = None
    """Passages to answer from at most; None for as many as the run has."""


@dataclass(frozen=True, slots=True)
class CaseSet:
    """The cases about one pack."""

    file: str
    """Name of the file."""
    pack: str | None
    """Slug, when the file gives it."""
    today: str | None
    """Day on which the labels hold, when the file gives it."""
    cases: tuple[Case, ...]

    @property
    def labels(self) -> dict[str, Any]:
        """The labels of each question, by its id."""
        return labels_of(self.cases)


def labels_of(cases: Sequence[Case]) -> dict[str, Any]:
    """The labels of each question, by its id, as JSON."""
    return {
        case.id: {**asdict(case), "files": list(case.files), "facts": [list(fact) for fact in case.facts]}
        for case in cases
    }


def read_cases(path: Path) -> CaseSet:
    """Read cases. Raises PackError for a file that has none, or a wrong one, ConfigError when it cannot be read."""
    try:
        data: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path.name}: cannot be read ({error.strerror})") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise PackError(f"{path.name}: not YAML in UTF-8") from error
    described = cast(dict[str, Any], data) if isinstance(data, dict) else {}
    if not isinstance(described.get("cases"), list):
        return _of_queries(path)
    cases = tuple(_case(path.name, item) for item in cast(list[Any], described["cases"]))
    if not cases:
        raise PackError(f"{path.name}: no cases")
    counts = Counter(case.id for case in cases)
    if repeated := sorted(name for name, count in counts.items() if count > 1):
        raise PackError(f"{path.name}: the id {repeated[0]!r} stands twice")
    return CaseSet(path.name, _text(described.get("pack")), _text(described.get("today")), cases)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _of_queries(path: Path) -> CaseSet:
    queries = read_query_set(path)
    return CaseSet(
        queries.file, queries.pack, queries.today, tuple(_of_query(path.name, query) for query in queries.queries)
    )


def _of_query(file: str, query: Query) -> Case:
    answerable = query.answerable
    case = Case(
        query.id,
        query.text,
        query.category,
        query.files,
        tuple((fact,) for fact in query.facts) if answerable else (),
        not answerable,
        query.filters,
    )
    _check(file, case)
    return case


_FIELDS = tuple(each.name for each in fields(Case))


def _case(file: str, item: Any) -> Case:
    if not isinstance(item, dict):
        raise PackError(f"{file}: a case is not a mapping")
    written = cast(dict[Any, Any], item)
    name = f"{file}: {written.get('id')}"
    if unknown := sorted(str(key) for key in written if key not in _FIELDS):
        raise PackError(f"{name}: {unknown[0]}: unknown, expected one of {', '.join(_FIELDS)}")
    for key in ("id", "question"):
        if not isinstance(written.get(key), str) or not written[key].strip():
            raise PackError(f"{name}: {key}: missing, expected text")
    if not isinstance(written.get("refusal", False), bool):
        raise PackError(f"{name}: refusal: expected true or false")
    if not isinstance(filters := written.get("filters") or {}, dict):
        raise PackError(f"{name}: filters: expected a mapping")
    case = Case(
        written["id"],
        written["question"],
        str(written.get("category") or ""),
        tuple(_phrases(name, "files", written.get("files"))),
        _facts(name, written.get("facts")),
        written.get("refusal", False),
        cast(dict[str, Any], filters),
        written.get("k"),
    )
    _check(file, case)
    return case


def _facts(name: str, value: Any) -> tuple[Fact, ...]:
    items: list[Any] = cast(list[Any], value) if isinstance(value, list) else [value] if value is not None else []
    facts = tuple(tuple(_phrases(name, "facts", item if isinstance(item, list) else [item])) for item in items)
    if any(not fact or not all(words(phrase) for phrase in fact) for fact in facts):
        raise PackError(f"{name}: facts: a phrase without a word")
    return facts


def _phrases(name: str, key: str, value: Any) -> list[str]:
    """Texts and whole numbers; another number would not come as it is written."""
    items = cast(list[Any], value or [])
    if not isinstance(value, list | None) or not all(type(item) in (str, int) for item in items):
        raise PackError(f"{name}: {key}: expected a list of texts; put numbers into quotes")
    return [str(item) for item in items]


def _check(file: str, case: Case) -> None:
    """Whether the case can be asked, and says what is expected. Raises PackError."""
    if case.refusal and (case.files or case.facts):
        raise PackError(f"{file}: {case.id}: has to be refused, and yet has files or facts")
    if not case.refusal and not (case.files or case.facts):
        raise PackError(f"{file}: {case.id}: expected files or facts, or `refusal: true`")
    if unknown := sorted(case.filters.keys() - Filters.model_fields.keys()):
        raise PackError(f"{file}: {case.id}: filters.{unknown[0]}: no filter of an answer")
    if not isinstance(case.filters.get("tags", []), list | tuple):
        raise PackError(f"{file}: {case.id}: filters.tags: expected a list")
    if case.k is not None and (type(case.k) is not int or not 1 <= case.k <= MAX_SOURCES):
        raise PackError(f"{file}: {case.id}: k: expected 1 to {MAX_SOURCES}")
    try:
        request_of(case, None)
    except RequestError as error:
        raise PackError(f"{file}: {case.id}: {error}") from error


def request_of(case: Case, pack: str | None) -> AskRequest:
    """What is asked. Raises RequestError."""
    # YAML has lists where Python has tuples
    filters = {name: tuple(value) if name == "tags" else value for name, value in case.filters.items()}
    values = {"question": case.question, "pack": pack, "k": case.k, "filters": filters}
    return parse_request(AskRequest, values, strict=True, bounded=False)
