"""Retrieval figures of released packs over query sets, as a table.

    python -m octavo_evals.retrieval DIST QUERIES.yaml... [--misses] [--gate MODE]

Drives the server's own code in process. A question without an answer in the results counts 0 and is never dropped;
questions that the pack cannot answer are counted apart. The relevance gate refuses some of either kind; `--gate off`
shows the ranking alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from octavo_artifact.errors import PackError
from octavo_artifact.parameters import GateMode
from octavo_evals.measures import files_of, recall, reciprocal_rank
from octavo_evals.queries import Query, QuerySet, read_query_set
from octavo_serve.catalog import OpenPack, open_catalog
from octavo_serve.requests import ReadRequest, SearchRequest

RESULTS = 50
CUTS = (1, 3, 5, 10)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one question brought."""

    query: Query
    files: tuple[str, ...]
    """Best first."""
    refused: bool

    def measures(self) -> list[float]:
        """`R@k` for each of CUTS, then `RR`."""
        relevant = self.query.expected
        return [*(recall(self.files, relevant, k) for k in CUTS), reciprocal_rank(self.files, relevant)]


def evaluate(pack: OpenPack, queries: QuerySet, gate: GateMode | None = None) -> list[Outcome]:
    """Ask every question. Raises PackError when one expects a file that the pack does not have."""
    for path in sorted({path for query in queries.queries for path in query.expected}):
        try:
            pack.read(ReadRequest(path=path))
        except Exception as error:
            raise PackError(f"{queries.file}: expects {path}, which {pack.slug} does not have") from error
    return [_ask(pack, query, gate) for query in queries.queries]


def _ask(pack: OpenPack, query: Query, gate: GateMode | None) -> Outcome:
    result = pack.search(SearchRequest(query=query.text, max_results=RESULTS, gate=gate))
    return Outcome(query, tuple(files_of([hit["source_file"] for hit in result["results"]])), result["refused"])


def table(rows: Sequence[tuple[str, Sequence[Outcome]]]) -> str:
    """The figures a line a set, and over all questions."""
    every = [outcome for _, outcomes in rows for outcome in outcomes]
    names = " ".join(f"{name:>6}" for name in (*(f"R@{k}" for k in CUTS), "RR"))
    header = f"{'questions':<34} {'n':>4} {names} refused  unanswerable"
    lines = [header, *(_line(name, outcomes) for name, outcomes in [*rows, ("all", every)])]
    return "\n".join(lines)


def _line(name: str, outcomes: Sequence[Outcome]) -> str:
    answerable = [outcome.measures() for outcome in outcomes if outcome.query.expected]
    means = [sum(column) / len(answerable) for column in zip(*answerable, strict=True)]
    without = [outcome for outcome in outcomes if not outcome.query.expected]
    refused = f"{sum(outcome.refused for outcome in without)} of {len(without)} refused" if without else ""
    wrongly = sum(outcome.refused for outcome in outcomes if outcome.query.expected)
    figures = " ".join(f"{mean:6.3f}" for mean in means)
    return f"{name:<34} {len(answerable):>4} {figures:<{7 * len(CUTS) + 6}} {wrongly:>7}  {refused}"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; with `--misses`, also each question whose first file is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dist", type=Path)
    parser.add_argument("queries", type=Path, nargs="+")
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--gate", choices=get_args(GateMode))
    arguments = parser.parse_args(argv)
    catalog = open_catalog(arguments.dist)
    rows: list[tuple[str, Sequence[Outcome]]] = []
    for path in arguments.queries:
        queries = read_query_set(path)
        rows.append((f"{queries.pack} {path.stem}", evaluate(catalog.choose(queries.pack), queries, arguments.gate)))
    print(table(rows))
    if arguments.misses:
        for outcome in (outcome for _, outcomes in rows for outcome in outcomes if outcome.query.expected):
            if outcome.files[:1] and outcome.files[0] not in outcome.query.expected:
                print(f"\n{outcome.query.id}: {outcome.query.text}")
                print(f"  expected {', '.join(outcome.query.expected)}\n  found    {', '.join(outcome.files[:4])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
