"""Results of an evaluation as a file: what was asked, of which release, how, what came back and how good that was.

The same release, cases, configuration and day give the same bytes: canonical JSON, no clock, no latency.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from octavo_artifact.errors import ConfigError
from octavo_artifact.ids import canonical_json, sha256_hex

T = TypeVar("T")

FORMAT = 1
RETRIEVAL = "retrieval"
ANSWERS = "answers"
"""Kinds of results: of searches, and of answers that a model wrote (`answering.results`)."""

LOWER_IS_BETTER = frozenset({"must_not@5", "must_not@10", "false_refusal", "error"})
"""Measures of what should not happen; all others are better the higher they are."""


@dataclass(frozen=True, slots=True)
class Cases:
    """The query set that was asked."""

    file: str
    """Name of the file or folder."""
    sha256: str
    """Over the questions and their labels, not over how the file spells them; see `cases_sha256`."""
    count: int


@dataclass(frozen=True, slots=True)
class Artifact:
    """The release that answered."""

    slug: str
    digest: str
    version: str | None
    """As the pack's author gave it; None when an endpoint does not tell."""
    source: str
    """How it was asked: `dist` (in process), `http` or `mcp`."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """What decides an answer beside the pack's text and the question."""

    parameters: Mapping[str, Any]
    """`k` (passages asked for), `gate` (the mode that was asked for, None for the pack's own), `retrieval` (every
    parameter in force), `encoder` (fingerprint), and the parameters of the build; what an endpoint does not tell is
    None. The gate's scale is no part of it: it follows from the text, and changes with each edit.
    """

    @property
    def sha256(self) -> str:
        """Equal for equal configurations."""
        return sha256_hex(canonical_json(self.parameters))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A measure over questions."""

    mean: float
    low: float
    """Lower end of the bootstrap 95% interval of the mean."""
    high: float
    count: int
    """Questions that it is the mean of."""


@dataclass(frozen=True, slots=True)
class Qrel:
    """A label: a file that answers the question."""

    doc_id: str
    """Path of the file in the pack."""
    relevance: int
    """1 or more; higher is better."""


@dataclass(frozen=True, slots=True)
class ScoredDoc:
    """A file that was found."""

    doc_id: str
    score: float
    """Of its first passage, as the server gave it. The order of the list counts, not the score: documents that a hit
    requires come last whatever theirs is.
    """


@dataclass(frozen=True, slots=True)
class ScoredPassage:
    """A passage that was found."""

    fragment_id: str
    source_file: str
    score: float


@dataclass(frozen=True, slots=True)
class QueryResult:
    """A question, its labels, what came back and how good it was."""

    id: str
    text: str
    category: str
    expected: tuple[Qrel, ...]
    """Best first."""
    must_not: tuple[str, ...]
    """Files that must not be among the first."""
    filters: Mapping[str, Any]
    """Fields of the search request besides the question, such as `type` or `tags`."""
    answerable: bool
    """Whether the pack has an answer; a question may be answerable and yet have no labels."""
    facts: tuple[str, ...]
    """What the text of the passages has to contain."""
    refused: bool
    run: tuple[ScoredDoc, ...]
    """Files, best first, each at its best place; at most 50."""
    passages: tuple[ScoredPassage, ...]
    """The first 10."""
    measures: Mapping[str, float]
    """By name; only those that the question's labels give a meaning to."""
    answer_probability: float | None = None
    """The relevance gate's, that the passages answer the question; None when it did not judge."""


@dataclass(frozen=True, slots=True)
class Results:
    """One evaluation of one release over one query set."""

    cases: Cases
    artifact: Artifact
    configuration: Configuration
    libraries: Mapping[str, str]
    """Versions of what decides an answer or a figure."""
    date: str
    """Day by which the release told ages, `YYYY-MM-DD`: given, never the clock's."""
    measures: Mapping[str, Estimate]
    """Over all questions."""
    categories: Mapping[str, Mapping[str, Estimate]]
    """By category, then by measure."""
    queries: tuple[QueryResult, ...]
    """In the order of the query set."""

    @property
    def labels(self) -> dict[str, Any]:
        """The labels of each question, by its id."""
        return {query.id: labels(query) for query in self.queries}

    @property
    def figures(self) -> dict[str, Mapping[str, float]]:
        """The measures of each question, by its id."""
        return {query.id: query.measures for query in self.queries}


class Evaluation(Protocol):
    """What results of every kind have."""

    @property
    def cases(self) -> Cases: ...  # noqa: D102
    @property
    def artifact(self) -> Artifact: ...  # noqa: D102
    @property
    def configuration(self) -> Configuration: ...  # noqa: D102
    @property
    def measures(self) -> Mapping[str, Estimate]: ...  # noqa: D102
    @property
    def categories(self) -> Mapping[str, Mapping[str, Estimate]]: ...  # noqa: D102
    @property
    def labels(self) -> Mapping[str, Any]: ...  # noqa: D102
    @property
    def figures(self) -> Mapping[str, Mapping[str, float]]: ...  # noqa: D102


class Labelled(Protocol):
    """A question with its labels, whether it was asked or not."""

    @property
    def id(self) -> str: ...  # noqa: D102
    @property
    def text(self) -> str: ...  # noqa: D102
    @property
    def category(self) -> str: ...  # noqa: D102
    @property
    def expected(self) -> tuple[Qrel, ...]: ...  # noqa: D102
    @property
    def must_not(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def filters(self) -> Mapping[str, Any]: ...  # noqa: D102
    @property
    def answerable(self) -> bool: ...  # noqa: D102
    @property
    def facts(self) -> tuple[str, ...]: ...  # noqa: D102


def labels(query: Labelled) -> dict[str, Any]:
    """What makes a question the same question, as JSON."""
    return {
        "id": query.id,
        "text": query.text,
        "category": query.category,
        "expected": [asdict(qrel) for qrel in query.expected],
        "must_not": list(query.must_not),
        "filters": dict(query.filters),
        "answerable": query.answerable,
        "facts": list(query.facts),
    }


def cases_sha256(queries: Sequence[Labelled]) -> str:
    """Identity of a query set: sha256 over the labels of its questions, in their order."""
    return sha256_hex(canonical_json([labels(query) for query in queries]))


def kind_of(path: Path) -> str:
    """Which kind of results a file holds. Raises ConfigError when it holds none."""
    try:
        return str(json.loads(content_of(path))["kind"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigError(f"{path.name}: not results of `octavo eval` ({type(error).__name__})") from error


def results_bytes(results: Results) -> bytes:
    """Results as they stand in a file."""
    return written(RETRIEVAL, results)


def written(kind: str, results: Any) -> bytes:
    """Results of a kind, a dataclass with a `configuration`, as they stand in a file."""
    fields = asdict(results)
    fields["configuration"]["sha256"] = results.configuration.sha256
    return canonical_json({"format": FORMAT, "kind": kind, **fields})


def write_results(results: Results, path: Path) -> None:
    """Write results to a file."""
    path.write_bytes(results_bytes(results))


def read_results(path: Path) -> Results:
    """Read a file of results. Raises ConfigError when it is none, or one of another format."""
    return parse_results(content_of(path), path.name)


def content_of(path: Path) -> bytes:
    """The bytes of a file of results. Raises ConfigError when it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path.name}: cannot be read ({error.strerror})") from error


def parse_results(data: bytes, name: str) -> Results:
    """Results from the bytes of a file called `name`. Raises ConfigError."""
    return parsed(data, name, RETRIEVAL, "octavo eval run", _results)


def parsed(data: bytes, name: str, kind: str, command: str, make: Callable[[dict[str, Any]], T]) -> T:
    """Results of a kind, which `command` writes: what `make` makes of the fields of a file called `name`.

    It gets those that all kinds have as they are meant, and all others as they are written. Raises ConfigError.
    """
    try:
        fields = cast(dict[str, Any], json.loads(data))
        found = (fields.pop("format"), fields.pop("kind"))
        if found != (FORMAT, kind):
            raise ConfigError(f"{name}: {found[1]} of format {found[0]}, expected {kind} of format {FORMAT}")
        common = {
            "cases": Cases(**fields["cases"]),
            "artifact": Artifact(**fields["artifact"]),
            "configuration": Configuration(fields["configuration"]["parameters"]),
            "measures": read_estimates(fields["measures"]),
            "categories": {category: read_estimates(each) for category, each in fields["categories"].items()},
        }
        return make(fields | common)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{name}: not results of `{command}` ({type(error).__name__})") from error


def _results(fields: dict[str, Any]) -> Results:
    return Results(queries=tuple(_query(query) for query in fields.pop("queries")), **fields)


def read_estimates(written: Mapping[str, Any]) -> dict[str, Estimate]:
    """Measures by name, as a file has them."""
    return {name: Estimate(**fields) for name, fields in written.items()}


def _query(written: dict[str, Any]) -> QueryResult:
    return QueryResult(
        expected=tuple(Qrel(**each) for each in written.pop("expected")),
        must_not=tuple(written.pop("must_not")),
        facts=tuple(written.pop("facts")),
        run=tuple(ScoredDoc(**each) for each in written.pop("run")),
        passages=tuple(ScoredPassage(**each) for each in written.pop("passages")),
        **written,
    )
