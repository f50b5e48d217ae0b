"""Query sets: questions with the files that answer them, in every format that Octavo reads.

* a YAML file with `queries`: ours, which is also that of ep-mcp's golden files
* a YAML file with `questions`: an ExpertPack's `eval/questions.yaml` or `eval/benchmark.yaml`
* a folder: BEIR's `queries.jsonl` with `qrels.tsv` or `qrels/*.tsv` (`trec`)
* any other file: TREC qrels, whose questions stand in a file of their own (`trec`)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml

from octavo_artifact.errors import ConfigError, PackError
from octavo_artifact.ids import slugify
from octavo_evals.results import Qrel, labels
from octavo_evals.trec import Topic, read_beir, read_trec

FILTERS = ("type", "tags", "graph")
"""Fields of a search request that a question may set."""

_REFUSE = frozenset({"out-of-scope", "unanswerable", "refusal"})
"""Categories in which an ExpertPack puts the questions that it cannot answer."""


@dataclass(frozen=True, slots=True)
class Query:
    """A question and its labels; see `results.QueryResult` for the fields."""

    id: str
    text: str
    expected: tuple[Qrel, ...]
    category: str = ""
    must_not: tuple[str, ...] = ()
    filters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    answerable: bool = True
    facts: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of the files that answer it, best first."""
        return tuple(qrel.doc_id for qrel in self.expected)


@dataclass(frozen=True, slots=True)
class QuerySet:
    """The questions about one pack."""

    file: str
    """Name of the file or folder."""
    pack: str | None
    """Slug, when the file gives it."""
    today: str | None
    """Day on which the labels hold, when the file gives it."""
    queries: tuple[Query, ...]

    @property
    def labels(self) -> dict[str, Any]:
        """The labels of each question, by its id."""
        return {query.id: labels(query) for query in self.queries}


def read_query_set(path: Path, topics: Path | None = None, document: str = "{}") -> QuerySet:
    """Read a query set in any of the formats.

    `topics` has the questions of TREC qrels, `document` makes a path in the pack of the document ids of TREC and BEIR,
    such as `{}.md`. Raises PackError for a file that is no query set, holds no question, repeats an id or labels
    nothing, ConfigError when it cannot be read.
    """
    try:
        if path.is_dir():
            read = _collection(path, read_beir(path), document)
        elif path.suffix in (".yaml", ".yml"):
            read = _yaml(path)
        elif topics is None:
            raise ConfigError(f"{path.name}: TREC qrels, expected also --queries FILE with the questions")
        else:
            read = _collection(path, read_trec(path, topics), document)
    except OSError as error:
        raise ConfigError(f"{Path(str(error.filename)).name}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise PackError(f"{path.name}: not UTF-8 at byte {error.start}") from error
    if not read.queries:
        raise PackError(f"{path.name}: no questions")
    counts = Counter(query.id for query in read.queries)
    if repeated := sorted(identifier for identifier, count in counts.items() if count > 1):
        raise PackError(f"{path.name}: the id {repeated[0]!r} stands twice")
    return read


def _collection(path: Path, topics: Iterable[Topic], document: str) -> QuerySet:
    queries = tuple(
        Query(
            topic.query_id,
            topic.text,
            tuple(Qrel(document.replace("{}", doc_id), grade) for doc_id, grade in topic.qrels if grade > 0),
            answerable=any(grade > 0 for _, grade in topic.qrels),
        )
        for topic in topics
    )
    return QuerySet(path.name, None, None, queries)


def _yaml(path: Path) -> QuerySet:
    try:
        data: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        raise PackError(f"{path.name}:{mark.line + 1 if mark else 1}: not YAML") from error
    fields = cast(dict[str, Any], data) if isinstance(data, dict) else {}
    for key, read, slug in (("queries", _query, "pack"), ("questions", _question, "pack_slug")):
        if isinstance(items := fields.get(key), list):
            queries = tuple(read(path.name, item) for item in cast(list[Any], items))
            return QuerySet(path.name, _text(fields.get(slug)), _text(fields.get("today")), queries)
    raise PackError(f"{path.name}: expected a mapping with `pack` and a list `queries`")


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _query(file: str, item: Any) -> Query:
    """A question of our own format."""
    fields = _fields(file, item)
    name = str(fields.get("id"))
    try:
        expected = _expected(fields["expected"] or [])
        filters = dict(cast(Mapping[str, Any], fields.get("filters") or {}))
        query = Query(
            str(fields["id"]),
            str(fields["query"]),
            expected,
            str(fields.get("category") or ""),
            _strings(fields.get("must_not")),
            filters,
            bool(expected),
            _strings(fields.get("facts")),
        )
    except KeyError as error:
        raise PackError(f"{file}: a question has no {error.args[0]!r}") from error
    except (TypeError, ValueError) as error:
        raise PackError(
            f"{file}: {name}: a label is not as expected: `expected` is a list of paths or a mapping of paths to "
            "grades from 1, `must_not` and `facts` are lists, `filters` is a mapping"
        ) from error
    if unknown := sorted(filters.keys() - set(FILTERS)):
        raise PackError(f"{file}: {name}: filters.{unknown[0]}: unknown, expected one of {', '.join(FILTERS)}")
    if both := sorted({*query.files} & {*query.must_not}):
        raise PackError(f"{file}: {name}: {both[0]} is both expected and must not be found")
    return query


def _question(file: str, item: Any) -> Query:
    """A question of an ExpertPack's own evaluation, in either layout."""
    fields = _fields(file, item)
    category = str(fields.get("category") or "")
    try:
        expected = _expected(_strings(fields.get("expected_sources")))
        refuse = fields.get("expected_refusal") is True or slugify(category) in _REFUSE
        facts = (*_strings(fields.get("required_facts")), *_strings(fields.get("expected_contains")))
        return Query(
            str(fields["id"]),
            str(fields["question"]),
            expected,
            category,
            answerable=bool(expected) or not refuse,
            facts=() if refuse else facts,
        )
    except KeyError as error:
        raise PackError(f"{file}: a question has no {error.args[0]!r}") from error
    except (TypeError, ValueError) as error:
        message = f"{file}: {fields.get('id')}: expected_sources, required_facts and expected_contains are lists"
        raise PackError(message) from error


def _fields(file: str, item: Any) -> Mapping[str, Any]:
    if not isinstance(item, Mapping):
        raise PackError(f"{file}: a question is not a mapping")
    return cast(Mapping[str, Any], item)


def _expected(value: Any) -> tuple[Qrel, ...]:
    """Files, best first, all of grade 1; or a mapping of files to grades. Raises TypeError, ValueError."""
    if isinstance(value, Mapping):
        graded = [Qrel(str(path), int(grade)) for path, grade in cast(Mapping[Any, Any], value).items()]
        if any(qrel.relevance < 1 for qrel in graded):
            raise ValueError
        return tuple(sorted(graded, key=lambda qrel: -qrel.relevance))
    return tuple(Qrel(path, 1) for path in dict.fromkeys(_strings(value)))


def _strings(value: Any) -> tuple[str, ...]:
    """A list of strings. Raises TypeError."""
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise TypeError
    return tuple(str(item) for item in cast(list[Any], value))
