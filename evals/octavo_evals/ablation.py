"""What each stage of the search is worth: the same questions under variations of its parameters.

Each variation is compared with the first, which is the release as it stands, question by question: the interval is of
the paired difference, so it tells a small gain on every question from a large one on a few.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

import yaml

from octavo_artifact.errors import ConfigError
from octavo_artifact.ids import canonical_json
from octavo_artifact.parameters import SWITCHED_OFF, GateMode, read_retrieval
from octavo_evals.bootstrap import estimates, paired
from octavo_evals.measures import NAMES
from octavo_evals.queries import QuerySet
from octavo_evals.results import LOWER_IS_BETTER, Artifact, Cases, Estimate, cases_sha256
from octavo_evals.retrieval import RESULTS, ask, check_files, libraries
from octavo_evals.targets import Release
from octavo_serve.encoder import CACHED_QUERIES

FORMAT = 1
ABLATION = "ablation"

DEFAULT = "default"
"""The release as it stands."""

Variations = Mapping[str, Mapping[str, Any]]
"""By name, the parameters of the search that differ from the release's own."""

STAGES: Variations = {
    # a release that is asked in process has no reranker
    **{f"{name} off": overrides for name, overrides in SWITCHED_OFF.items() if name != "rerank"},
    "graph on": {"graph": True},
    "MMR on": {"diversity": 0.3},
    "fusion minmax": {"fusion": "minmax"},
    "fusion tmm": {"fusion": "tmm"},
    "fusion rrf": {"fusion": "rrf"},
}
"""Each stage off in turn, and what is off by default on."""

Figures = list[Mapping[str, float]]
"""Measures of each question, in the order of the questions."""


@dataclass(frozen=True, slots=True)
class Variation:
    """How well the questions are answered under one setting."""

    name: str
    retrieval: Mapping[str, Any]
    """The parameters that differ from the release's own."""
    measures: Mapping[str, Estimate]
    differences: Mapping[str, Estimate]
    """Of each measure from the first variation's, paired by question; the first has none."""


@dataclass(frozen=True, slots=True)
class Ablation:
    """Variations over the questions of one or several releases, all questions together."""

    artifacts: tuple[Artifact, ...]
    cases: tuple[Cases, ...]
    """Of each artifact of the same place."""
    configurations: tuple[Mapping[str, Any], ...]
    """What decides the answers of each artifact; see `results.Configuration`."""
    libraries: Mapping[str, str]
    """Versions of what decides an answer or a figure."""
    k: int
    """Passages asked for."""
    gate: GateMode | None
    """The mode that was asked for; None for the pack's own."""
    date: str
    variations: tuple[Variation, ...]
    """The release as it stands comes first."""


def ablate(
    asked: Sequence[tuple[Release, QuerySet]],
    variations: Variations,
    today: str,
    *,
    k: int = RESULTS,
    gate: GateMode | None = None,
) -> Ablation:
    """Ask releases their questions under the default and under each variation that changes anything in one of them.

    Raises PackError when a question names a file that its pack lacks, ConfigError for an unknown parameter.
    """
    base: Mapping[str, Any] = {} if gate is None else {"gate": gate}
    named = {DEFAULT: base, **{name: {**base, **retrieval} for name, retrieval in variations.items()}}
    targets = {name: [release.varied(retrieval) for release, _ in asked] for name, retrieval in named.items()}
    same = [target.parameters for target in targets[DEFAULT]]
    figures: dict[str, Figures] = {
        name: []
        for name, varied in targets.items()
        if name == DEFAULT or [target.parameters for target in varied] != same
    }
    for place, (release, cases) in enumerate(asked):
        check_files(release, cases)
        for some in _batches(cases):
            for name, found in figures.items():
                found += [query.measures for query in ask(targets[name][place], some, k, None)]
    return Ablation(
        artifacts=tuple(release.artifact for release, _ in asked),
        cases=tuple(Cases(cases.file, cases_sha256(cases.queries), len(cases.queries)) for _, cases in asked),
        configurations=tuple(same),
        libraries=libraries(),
        k=k,
        gate=gate,
        date=today,
        variations=tuple(
            _variation(name, variations.get(name, {}), each, figures[DEFAULT]) for name, each in figures.items()
        ),
    )


def _batches(cases: QuerySet) -> Iterator[QuerySet]:
    # as many questions as the encoder remembers: each is encoded once, however many variations there are
    for start in range(0, len(cases.queries), CACHED_QUERIES):
        yield replace(cases, queries=cases.queries[start : start + CACHED_QUERIES])


def _variation(name: str, retrieval: Mapping[str, Any], figures: Figures, base: Figures) -> Variation:
    differences: dict[str, Estimate] = {}
    if name != DEFAULT:
        for measure in NAMES:
            pairs = [(old[measure], new[measure]) for old, new in zip(base, figures, strict=True) if measure in old]
            if pairs:
                differences[measure] = paired(*zip(*pairs, strict=True))
    return Variation(name, retrieval, estimates(figures, NAMES), differences)


def certain(measure: str, difference: Estimate) -> int:
    """1 for a difference that is better by more than chance, -1 for worse, 0 when its interval holds zero."""
    sign = (difference.low > 0) - (difference.high < 0)
    return -sign if measure in LOWER_IS_BETTER else sign


def read_variations(path: Path) -> Variations:
    """A YAML mapping of names to parameters. Raises ConfigError."""
    try:
        # scalars as they are written: `gate: off` is not false
        data: Any = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    except OSError as error:
        raise ConfigError(f"{path.name}: cannot be read ({error.strerror})") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path.name}: not YAML") from error
    if not isinstance(data, dict) or not data:
        raise ConfigError(f"{path.name}: expected a mapping of names to parameters of the search")
    read: dict[str, Mapping[str, Any]] = {}
    for name, written in cast(dict[str, Any], data).items():
        if not isinstance(written, dict):
            raise ConfigError(f"{path.name}: {name}: expected a mapping such as `words_weight: 0`")
        try:
            parameters = asdict(read_retrieval(cast(dict[str, Any], written)))
        except ConfigError as error:
            raise ConfigError(f"{path.name}: {name}: {error}") from error
        read[name] = {parameter: parameters[parameter] for parameter in written}
    return read


def ablation_bytes(ablation: Ablation) -> bytes:
    """An ablation as it stands in a file."""
    return canonical_json({"format": FORMAT, "kind": ABLATION, **asdict(ablation)})


def read_ablation(path: Path) -> Ablation:
    """What `ablation_bytes` made. Raises ConfigError."""
    try:
        fields = cast(dict[str, Any], json.loads(path.read_bytes()))
        if (fields.pop("format"), fields.pop("kind")) == (FORMAT, ABLATION):
            return Ablation(
                artifacts=tuple(Artifact(**each) for each in fields.pop("artifacts")),
                cases=tuple(Cases(**each) for each in fields.pop("cases")),
                configurations=tuple(fields.pop("configurations")),
                variations=tuple(map(_read_variation, fields.pop("variations"))),
                **fields,
            )
    except OSError as error:
        raise ConfigError(f"{path.name}: cannot be read ({error.strerror})") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise ConfigError(f"{path.name}: expected what `octavo eval ablate --out` writes")


def _read_variation(written: dict[str, Any]) -> Variation:
    return Variation(
        written["name"],
        written["retrieval"],
        *({name: Estimate(**fields) for name, fields in written[part].items()} for part in ("measures", "differences")),
    )
