"""The relevance gate over query sets: what is refused, rightly and wrongly, and the weights that fit.

    python -m octavo_evals.gate DIST QUERIES.yaml... [--fit]

A question without expected files has no answer in the pack; of the others the gate must refuse none. `--fit` prints
the weights and thresholds that `octavo_build.calibrate` should have by these questions, and how they judge each pack
when they were fitted without it.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from octavo_artifact.gate import Weights
from octavo_evals.queries import read_query_set
from octavo_serve.catalog import open_catalog
from octavo_serve.requests import SearchRequest

Floats = NDArray[np.float64]

FALSE_REFUSALS = 0.03
DOUBTED = 0.10
_RIDGE = 5.0


@dataclass(frozen=True, slots=True)
class Judged:
    """A question, as the gate sees it."""

    pack: str
    answerable: bool
    inputs: tuple[float, ...]
    """What the weights but the intercept multiply."""
    probability: float
    refused: bool


def judge(dist: Path, files: Sequence[Path]) -> list[Judged]:
    """Ask every question that the gate judges; those in a language that is not the pack's are left out."""
    catalog = open_catalog(dist)
    judged: list[Judged] = []
    for queries in map(read_query_set, files):
        pack = catalog.choose(queries.pack)
        gate = pack.manifest.gate
        if gate is None:
            continue
        for query in queries.queries:
            request = SearchRequest(query=query.text)
            features = pack.compare(request)
            if features is not None:
                refused = pack.search(request)["refused"]
                judged.append(
                    Judged(pack.slug, bool(query.expected), gate.inputs(features), gate.probability(features), refused)
                )
    return judged


def area(answerable: Sequence[float], unanswerable: Sequence[float]) -> float:
    """Under the ROC curve: how often an answerable question scores above an unanswerable one; ties count half."""
    above = np.subtract.outer(np.array(answerable), np.array(unanswerable))
    return float(((above > 0) + 0.5 * (above == 0)).mean()) if above.size else float("nan")


def fit(judged: Sequence[Judged]) -> Weights:
    """Logistic regression with a ridge, by Newton's steps; each pack weighs the same, and each kind in it."""
    inputs = np.array([each.inputs for each in judged])
    spread = inputs.std(axis=0)
    spread[spread == 0] = 1
    design = np.column_stack([np.ones(len(judged)), inputs / spread])
    answerable = np.array([each.answerable for each in judged], dtype=np.float64)
    kinds = Counter((each.pack, each.answerable) for each in judged)
    weight = np.array([50 / kinds[each.pack, each.answerable] for each in judged])
    ridge = np.diag([0.0, *[_RIDGE] * inputs.shape[1]])
    found = np.zeros(design.shape[1])
    for _ in range(30):
        probability = 1 / (1 + np.exp(-design @ found))
        curvature = design.T @ (design * (weight * probability * (1 - probability))[:, None]) + ridge
        found += np.linalg.solve(curvature, design.T @ (weight * (answerable - probability)) - ridge @ found)
    return Weights(*(round(float(value), 2) for value in (found[0], *(found[1:] / spread))))


def probabilities(weights: Weights, judged: Sequence[Judged]) -> list[float]:
    """What these weights say of the questions."""
    values = np.array([getattr(weights, field.name) for field in fields(Weights)])
    inputs = np.array([(1.0, *each.inputs) for each in judged])
    return (1 / (1 + np.exp(-inputs @ values))).tolist()


def without_each_pack(judged: Sequence[Judged]) -> list[float]:
    """What weights that were fitted without a pack say of its questions."""
    found = [0.0] * len(judged)
    for pack in {each.pack for each in judged}:
        rows = [row for row, each in enumerate(judged) if each.pack == pack]
        weights = fit([each for each in judged if each.pack != pack])
        for row, value in zip(rows, probabilities(weights, [judged[row] for row in rows]), strict=True):
            found[row] = value
    return found


def threshold(judged: Sequence[Judged], found: Sequence[float], share: float) -> float:
    """The highest that at most this share of the answerable questions stays below."""
    answerable = sorted(value for each, value in zip(judged, found, strict=True) if each.answerable)
    return answerable[int(share * len(answerable))]


def table(judged: Sequence[Judged], found: Sequence[float], refuses: Callable[[int], bool]) -> str:
    """Refusals and the area under the curve, a line a pack and one over all; `refuses` says it of a row."""
    lines = [f"{'pack':<16} {'unanswerable':>12} {'refused':>8} {'answerable':>11} {'refused':>8} {'AUC':>6}"]
    for pack in [*sorted({each.pack for each in judged}), "all"]:
        rows = [row for row, each in enumerate(judged) if pack in (each.pack, "all")]
        kinds = [[row for row in rows if judged[row].answerable is kind] for kind in (True, False)]
        yes, no = kinds
        shares = [f"{sum(map(refuses, kind)) / len(kind):.3f}" if kind else "" for kind in kinds]
        curve = area([found[row] for row in yes], [found[row] for row in no])
        lines.append(f"{pack:<16} {len(no):>12} {shares[1]:>8} {len(yes):>11} {shares[0]:>8} {curve:6.3f}")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Print how the releases' own gates judge; with `--fit`, what would fit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dist", type=Path)
    parser.add_argument("queries", type=Path, nargs="+")
    parser.add_argument("--fit", action="store_true")
    arguments = parser.parse_args(argv)
    judged = judge(arguments.dist, arguments.queries)
    print(table(judged, [each.probability for each in judged], lambda row: judged[row].refused))
    if arguments.fit:
        found = without_each_pack(judged)
        refuse_below, doubt_below = (threshold(judged, found, share) for share in (FALSE_REFUSALS, DOUBTED))
        print(f"\n{fit(judged)}\nrefuse below {refuse_below:.2f}, doubt below {doubt_below:.2f}; each pack left out:")
        print(table(judged, found, lambda row: found[row] < refuse_below))
    return 0


if __name__ == "__main__":
    sys.exit(main())
