"""`evals/RETRIEVAL.md`: a table a collection, ours beside the field's figures.

No clock and no timings: the same figures give the same page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from octavo_evals.ablation import DEFAULT, Ablation, Variation, certain
from octavo_evals.evidence.collections import Collection

HEAD = """# Retrieval, measured

Made by `doit retrieval` from `evals/retrieval/`; do not edit.

Each table is one collection. Its first row is the search as it is; each row below is the same search with one thing
changed, as [the end of this page](#what-each-row-changes) says. A cell has the mean over all questions, how far it is
from the first row, and the 95% interval of that difference (paired bootstrap over the questions, fixed seed); `=` is no
difference on any question, **bold** one that chance does not explain. Last come figures of others and the target.

A file counts once, at its best passage; a question for which nothing comes back scores 0, one that the gate refuses
too. `R_cap@k` is the share of the relevant files in the first k, of those that could be there; `context_recall@10` the
share of them in the ten passages that a model is given. `must_not@5` is how often a file was among the first five that
must not be; `right_refusal` and `false_refusal` are the shares refused of the questions without and with an answer. Of
`must_not@5` and `false_refusal`, less is better.
"""


def page(found: Sequence[tuple[Collection, Ablation]]) -> str:
    """The page, as Markdown."""
    parts = [HEAD, *(_section(collection, ablation) for collection, ablation in found), _changes(found)]
    return "\n".join(parts)


def _section(collection: Collection, ablation: Ablation) -> str:
    count = sum(cases.count for cases in ablation.cases)
    digests = dict.fromkeys(f"`{one.slug} {one.digest[:12]}`" for one in ablation.artifacts)
    gate = "the pack's own" if ablation.gate is None else ablation.gate
    return "\n".join(
        (
            f"## {collection.title}",
            "",
            collection.about.strip(),
            f"{count:,} questions of {', '.join(digests)}; gate: {gate}.",
            "",
            *_table(collection, ablation),
            "",
        )
    )


def _table(collection: Collection, ablation: Ablation) -> Iterator[str]:
    measures = [name for name in collection.measures if any(name in one.measures for one in ablation.variations)]
    yield _row(["", *measures])
    yield _row(["---", *("---:" for _ in measures)])
    for one in ablation.variations:
        name = "as it is" if one.name == DEFAULT else one.name
        yield _row([name, *(_cell(measure, one) for measure in measures)])
    for system, figures in (collection.known or {}).items():
        yield _row([f"*{system}*", *_plain(figures, measures)])
    if collection.target:
        yield _row(["*target*", *_plain(collection.target, measures)])


def _cell(measure: str, one: Variation) -> str:
    mean = one.measures.get(measure)
    if mean is None:
        return ""
    change = one.differences.get(measure)
    if change is None:
        return f"{mean.mean:.3f}"
    if change.mean == change.low == change.high == 0:
        return f"{mean.mean:.3f} ="
    told = f"{mean.mean:.3f} {change.mean:+.3f} ({change.low:+.3f} to {change.high:+.3f})"
    return f"**{told}**" if certain(measure, change) else told


def _plain(figures: Mapping[str, float], measures: Iterable[str]) -> list[str]:
    return [f"{figures[measure]:.3f}" if measure in figures else "" for measure in measures]


def _changes(found: Sequence[tuple[Collection, Ablation]]) -> str:
    changes = {one.name: one.retrieval for _, ablation in found for one in ablation.variations if one.retrieval}
    libraries = {name: version for _, ablation in found for name, version in ablation.libraries.items()}
    return "\n".join(
        (
            "## What each row changes",
            "",
            _row(["row", "parameters of the search"]),
            _row(["---", "---"]),
            *(
                _row([name, ", ".join(f"`{key}: {_scalar(value)}`" for key, value in retrieval.items())])
                for name, retrieval in changes.items()
            ),
            "",
            "Measured with " + ", ".join(f"{name} {version}" for name, version in libraries.items()) + ".",
            "",
        )
    )


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
