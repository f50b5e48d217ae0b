"""Query sets: questions with the files that answer them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from octavo_artifact.errors import PackError


@dataclass(frozen=True, slots=True)
class Query:
    """A question and its labels."""

    id: str
    text: str
    expected: tuple[str, ...]
    """Paths of the files that answer it, best first; empty when the pack cannot answer."""
    category: str


@dataclass(frozen=True, slots=True)
class QuerySet:
    """The questions about one pack."""

    file: str
    pack: str
    queries: tuple[Query, ...]


def read_query_set(path: Path) -> QuerySet:
    """Read a YAML query set: `pack`, and `queries` of `id, query, expected, category`.

    Raises PackError for a file that is none, holds no question or repeats an id.
    """
    data: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(data, dict) or not isinstance(items := cast(dict[str, Any], data).get("queries"), list):
        raise PackError(f"{path.name}: expected a mapping with `pack` and a list `queries`")
    queries = tuple(_query(path.name, item) for item in cast(list[Any], items))
    if not queries:
        raise PackError(f"{path.name}: no questions")
    ids = [query.id for query in queries]
    if repeated := sorted({identifier for identifier in ids if ids.count(identifier) > 1}):
        raise PackError(f"{path.name}: the id {repeated[0]!r} stands twice")
    return QuerySet(path.name, str(cast(dict[str, Any], data).get("pack")), queries)


def _query(file: str, item: Any) -> Query:
    if not isinstance(item, Mapping):
        raise PackError(f"{file}: a question is not a mapping")
    fields = cast(Mapping[str, Any], item)
    try:
        expected = fields["expected"] or []
        return Query(str(fields["id"]), str(fields["query"]), tuple(expected), str(fields.get("category", "")))
    except KeyError as error:
        raise PackError(f"{file}: a question has no {error.args[0]!r}") from error
