"""What a report says: results brought together by pack and query set, the last of them against the one before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from octavo_artifact.errors import ConfigError
from octavo_artifact.ids import DIGEST, SLUG, canonical_json
from octavo_evals.bootstrap import paired
from octavo_evals.diff.releases import Release, read_release
from octavo_evals.report.charts import Chart, Reliability, reliability, trend
from octavo_evals.results import LOWER_IS_BETTER, Estimate, QueryResult, Results, labels

PRIMARY = "nDCG@10"
"""Decides which questions were won and lost."""

HEADLINE = (PRIMARY, "RR", "R@5", "right_refusal", "false_refusal", "must_not@10")
"""The measures that come first; all others are in the table."""

REFUSAL = "right_refusal"
"""Decides for a question that has no answer."""

DECIDING = (PRIMARY, "context_recall@10", REFUSAL)
"""The first that a question has is its value; without one, whether it was answered."""

SHOWN = 5
"""Passages shown of an answer."""

EXCERPT = 420
"""Characters shown of a passage."""

LINES = 7
"""Lines of its text shown."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A measure of the last results, and how it changed."""

    name: str
    new: Estimate
    old: Estimate | None
    """Of the results before; None when there are none, or they have no such measure."""
    change: Estimate | None
    """Of new less old, paired by question."""

    @property
    def verdict(self) -> str:
        """`better` or `worse` when the interval of the change leaves out 0, else `no clear change`; empty without."""
        if self.change is None:
            return ""
        if self.change.low <= 0 <= self.change.high:
            return "no clear change"
        return "better" if (self.change.mean > 0) != (self.name in LOWER_IS_BETTER) else "worse"


@dataclass(frozen=True, slots=True)
class Category:
    """The questions of one category."""

    name: str
    count: int
    new: Mapping[str, Estimate]
    old: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class Found:
    """A passage of an answer."""

    rank: int
    file: str
    section: str
    score: float
    text: str | None
    """Its beginning; None when the release is not at hand."""
    expected: bool
    forbidden: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """What one of the releases answered."""

    value: float
    """From 0 to 1; see DECIDING."""
    refused: bool
    passages: tuple[Found, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its last answer and, when there is one to compare with, the answer before."""

    query: QueryResult
    new: Answer
    old: Answer | None

    @property
    def gain(self) -> float:
        """How much better the last answer is."""
        return round(self.new.value - self.old.value, 6) if self.old else 0.0


@dataclass(frozen=True, slots=True)
class Trend:
    """A measure over all results, among which it differs."""

    name: str
    chart: Chart


@dataclass(frozen=True, slots=True)
class Series:
    """Results over one query set of one pack, in the order given."""

    slug: str
    cases: str
    results: tuple[Results, ...]
    figures: tuple[Figure, ...]
    """Every measure; those of HEADLINE first."""
    categories: tuple[Category, ...]
    questions: tuple[Asked, ...]
    """Of the last results, in their order."""
    changed: tuple[Asked, ...]
    """Those that were lost, the greatest loss first, then those that were won."""
    paired: int
    """Questions that the last results and those before have alike."""
    weak: tuple[Asked, ...]
    """Those whose value is less than 1, the least first."""
    trends: tuple[Trend, ...]
    reliability: Reliability | None
    """None when the results hold no probability of an answer."""

    @property
    def last(self) -> Results:
        """The results that are reported."""
        return self.results[-1]

    @property
    def base(self) -> Results | None:
        """The results that they are compared with."""
        return self.results[-2] if len(self.results) > 1 else None


def series_of(results: Sequence[Results], dist: Path | None = None) -> tuple[Series, ...]:
    """The results by pack and query set, sorted; the texts of passages are read from the releases in `dist`.

    Raises ConfigError when there are no results, ArtifactError for a damaged release.
    """
    if not results:
        raise ConfigError("no results: expected at least one file of `octavo eval run`")
    groups: dict[tuple[str, str], list[Results]] = {}
    for each in results:
        groups.setdefault((each.artifact.slug, each.cases.file), []).append(each)
    return tuple(_series(group, dist) for _, group in sorted(groups.items()))


def _series(results: Sequence[Results], dist: Path | None) -> Series:
    last, base = results[-1], results[-2] if len(results) > 1 else None
    asked_before = {_identity(query): query for query in base.queries} if base else {}
    texts = [_texts(each, dist) if each else {} for each in (last, base)]
    questions = tuple(
        Asked(query, _answer(query, texts[0]), _answer(before, texts[1]) if before else None)
        for query in last.queries
        for before in [asked_before.get(_identity(query))]
    )
    pairs = [(asked_before[_identity(q)], q) for q in last.queries if _identity(q) in asked_before]
    names = [name for name in HEADLINE if name in last.measures]
    names += sorted(last.measures.keys() - {*names}, key=_by_name_and_cut)
    return Series(
        slug=last.artifact.slug,
        cases=last.cases.file,
        results=tuple(results),
        figures=tuple(_figure(name, last, base, pairs) for name in names),
        categories=tuple(_category(name, last, base) for name in sorted(last.categories)),
        questions=questions,
        changed=tuple(
            sorted((each for each in questions if each.gain), key=lambda each: (each.gain > 0, -abs(each.gain)))
        ),
        paired=len(pairs),
        weak=tuple(sorted((each for each in questions if each.new.value < 1), key=lambda each: each.new.value)),
        trends=tuple(_trends(results, names)) if base else (),
        reliability=_reliability(last),
    )


def _by_name_and_cut(name: str) -> tuple[str, int]:
    measure, _, cut = name.partition("@")
    return measure, int(cut) if cut.isdecimal() else 0


def _identity(query: QueryResult) -> bytes:
    """What must be equal for two answers to be compared: the question and its labels."""
    return canonical_json(labels(query))


def _figure(name: str, last: Results, base: Results | None, pairs: Sequence[tuple[QueryResult, QueryResult]]) -> Figure:
    both = [
        (old.measures[name], new.measures[name]) for old, new in pairs if name in old.measures and name in new.measures
    ]
    change = paired([old for old, _ in both], [new for _, new in both]) if both else None
    return Figure(name, last.measures[name], base.measures.get(name) if base else None, change)


def _category(name: str, last: Results, base: Results | None) -> Category:
    count = sum(query.category == name for query in last.queries)
    return Category(name, count, last.categories[name], base.categories.get(name, {}) if base else {})


def _trends(results: Sequence[Results], names: Sequence[str]) -> list[Trend]:
    names_of = [label(each) for each in results]
    return [
        Trend(name, trend([each.measures[name] for each in results], names_of))
        for name in names
        if name in HEADLINE
        and all(name in each.measures for each in results)
        and len({each.measures[name].mean for each in results}) > 1
    ]


def label(results: Results) -> str:
    """A release as a reader knows it: its version, if any, and the beginning of its digest."""
    return f"{results.artifact.version or ''} {results.artifact.digest[:8]}".strip()


def _answer(query: QueryResult, texts: Mapping[str, str]) -> Answer:
    expected = {qrel.doc_id for qrel in query.expected}
    value = next((query.measures[name] for name in DECIDING if name in query.measures), float(not query.refused))
    passages = tuple(
        Found(
            rank=rank,
            file=passage.source_file,
            section=passage.fragment_id.rpartition("#")[2].rpartition(":")[0],
            score=passage.score,
            text=texts.get(passage.fragment_id),
            expected=passage.source_file in expected,
            forbidden=passage.source_file in query.must_not,
        )
        for rank, passage in enumerate(query.passages[:SHOWN], 1)
    )
    return Answer(value, query.refused, passages)


def _texts(results: Results, dist: Path | None) -> dict[str, str]:
    """Excerpts of the release's passages by fragment id; none when it is not in `dist`."""
    slug, digest = results.artifact.slug, results.artifact.digest
    if dist is None or not SLUG.fullmatch(slug) or not DIGEST.fullmatch(digest):
        return {}
    artifact = dist.resolve() / slug / digest
    if not artifact.is_dir():
        return {}
    release = read_release(artifact)
    return {passage["fragment"]: _excerpt(release, row) for row, passage in enumerate(release.passages)}


def _excerpt(release: Release, row: int) -> str:
    passage = release.passages[row]
    raw = release.documents[passage["document"]]["raw"]
    span = raw[passage["start_byte"] : passage["end_byte"]][: 8 * EXCERPT]
    written = [line.strip() for line in span.decode("utf-8", "replace").splitlines() if line.strip()]
    text = "\n".join(written[:LINES])
    return text if len(text) <= EXCERPT and len(written) <= LINES else text[:EXCERPT].rsplit(" ", 1)[0] + " …"


def _reliability(results: Results) -> Reliability | None:
    judged = [
        (query.answer_probability, _right(query)) for query in results.queries if query.answer_probability is not None
    ]
    return reliability(judged) if judged else None


def _right(query: QueryResult) -> bool:
    """Whether one of the first passages is of a file that answers; of a refused question, whose passages are not told,
    whether the pack has an answer.
    """
    if query.refused:
        return query.answerable
    expected = {qrel.doc_id for qrel in query.expected}
    return any(passage.source_file in expected for passage in query.passages)
