"""The release gate: whether the results of evaluating a release let it go out.

Two kinds of trouble are kept apart. What cannot be judged, such as runs over different questions, is an error. What was
judged and found wanting is a verdict that did not pass.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Protocol, cast

import yaml

from octavo_artifact.errors import ConfigError
from octavo_artifact.ids import canonical_json, sha256_hex
from octavo_evals.answering.measures import NAMES as OF_ANSWERS
from octavo_evals.bootstrap import paired
from octavo_evals.measures import NAMES as OF_RETRIEVAL
from octavo_evals.results import ANSWERS, LOWER_IS_BETTER, Estimate, Evaluation
from octavo_evals.targets import Target

NOISE_FORMAT = 1
NAMES = tuple(dict.fromkeys((*OF_RETRIEVAL, *OF_ANSWERS)))
"""Every measure there is, of either kind of results."""

ASKED = ("k", "gate", ANSWERS)
"""Parameters of a run that are no release's."""

SHOWN = 5
"""Questions or parameters that a message names at most."""


class ComparisonError(ConfigError):
    """Two runs, or a run and what it is held against, do not belong together: run again, or say that it is meant."""


class Questions(Protocol):
    """A query set, or answer cases, as they are now."""

    @property
    def labels(self) -> Mapping[str, Any]:
        """By the id of each question, in their order."""
        ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """One thing that was judged."""

    subject: str
    """What was judged: `cases`, `configuration`, or a measure."""
    passed: bool
    message: str


@dataclass(frozen=True, slots=True)
class Difference:
    """A measure of two runs over the same questions."""

    measure: str
    base: float
    new: float
    change: Estimate
    """New minus base, paired by question."""
    noise: float
    """How far runs of the same code differ."""
    worse: tuple[str, ...]
    """Ids of the questions that lost, in the order of the query set."""
    better: tuple[str, ...]

    @property
    def regression(self) -> bool:
        """Whether it is worse by more than chance and noise."""
        return _certain(self.change, -_sign(self.measure)) and abs(self.change.mean) > self.noise

    @property
    def improvement(self) -> bool:
        """Whether it is better by more than chance and noise."""
        return _certain(self.change, _sign(self.measure)) and abs(self.change.mean) > self.noise


def check(results: Evaluation, cases: Questions, target: Target | None, floors: Mapping[str, float]) -> list[Verdict]:
    """Whether results are of exactly these cases, of the configuration of this release, and clear the floors.

    The release itself may be another one: its text may have been edited since. That is told and passes, for whether
    the edit made it worse is what `compare` finds out.
    """
    verdicts = [_of_cases(results, cases.labels)]
    if target is not None:
        verdicts += _of_release(results, target)
    if ANSWERS in results.configuration.parameters:
        verdicts.append(_of_prompt(results))
    return [*verdicts, *_of_floors(results, floors)]


def _of_cases(results: Evaluation, labels: Mapping[str, Any]) -> Verdict:
    if different := edited(results.labels, labels):
        return Verdict("cases", False, f"{results.cases.file}: {different} since the run; run it again")
    if results.cases.sha256 != sha256_hex(canonical_json(list(labels.values()))):
        return Verdict("cases", False, f"{results.cases.file}: its questions stand in another order; run it again")
    return Verdict("cases", True, f"exactly the {len(labels)} questions of {results.cases.file}")


def _of_release(results: Evaluation, target: Target) -> Iterator[Verdict]:
    artifact = target.artifact
    if results.artifact.slug != artifact.slug:
        raise ComparisonError(f"the results are of the pack {results.artifact.slug}, the release is of {artifact.slug}")
    run = results.configuration.parameters
    changed = _changed(run, {**target.parameters, **{name: run[name] for name in ASKED if name in run}})
    if changed:
        yield Verdict("configuration", False, f"{_listed(changed)} changed since the run; run it again")
    else:
        yield Verdict("configuration", True, "the one that the release has")
    if results.artifact.digest != artifact.digest:
        message = (
            f"the run was of {results.artifact.digest[:12]}, this is {artifact.digest[:12]}: other text, same search"
        )
        yield Verdict("release", True, message if not changed else message.partition(":")[0])


def _of_prompt(results: Evaluation) -> Verdict:
    """Whether models are still asked in the words of the run."""
    from octavo_serve.answering.prompt import TEMPLATE_SHA256  # which loads what only answers need

    same = results.configuration.parameters[ANSWERS]["template_sha256"] == TEMPLATE_SHA256
    return Verdict(
        "prompt", same, "the template of now" if same else "its template changed since the run; run it again"
    )


def _of_floors(results: Evaluation, floors: Mapping[str, float]) -> Iterator[Verdict]:
    for name, bound in floors.items():
        found = results.measures.get(name)
        if found is None:
            yield Verdict(name, False, "no question of the run has it, and there is a floor for it")
            continue
        passed = found.mean <= bound if name in LOWER_IS_BETTER else found.mean >= bound
        word = "at most" if name in LOWER_IS_BETTER else "at least"
        yield Verdict(name, passed, f"{found.mean:.3f}, expected {word} {bound:g}")


def compare(
    base: Evaluation, new: Evaluation, noise: Mapping[str, float] | None = None, *, across_releases: bool = False
) -> list[Difference]:
    """Each measure of two runs over the same questions, in the order of `NAMES`.

    Raises ComparisonError for runs over different packs or questions, and for runs of different releases unless that
    is said to be meant.
    """
    if base.artifact.slug != new.artifact.slug:
        raise ComparisonError(f"runs of different packs: {base.artifact.slug} and {new.artifact.slug}")
    if different := edited(base.labels, new.labels):
        raise ComparisonError(f"runs over different questions: {different}; run both over the same cases")
    if base.artifact.digest != new.artifact.digest and not across_releases:
        raise ComparisonError(
            f"runs of different releases, {base.artifact.digest[:12]} and {new.artifact.digest[:12]}; "
            "if that is meant, say --across-releases"
        )
    return [_difference(name, base, new, (noise or {}).get(name, 0.0)) for name in NAMES if name in base.measures]


def _difference(name: str, base: Evaluation, new: Evaluation, noise: float) -> Difference:
    after = new.figures
    rows = [(each, values[name], after[each][name]) for each, values in base.figures.items() if name in values]
    gains = [(query_id, (new_value - old) * _sign(name)) for query_id, old, new_value in rows]
    return Difference(
        measure=name,
        base=base.measures[name].mean,
        new=new.measures[name].mean,
        change=paired([old for _, old, _ in rows], [new_value for _, _, new_value in rows]),
        noise=noise,
        worse=tuple(query_id for query_id, gain in gains if gain < 0),
        better=tuple(query_id for query_id, gain in gains if gain > 0),
    )


def judged(differences: Sequence[Difference]) -> list[Verdict]:
    """A verdict a measure."""
    return [Verdict(one.measure, not one.regression, _told(one)) for one in differences]


def _told(one: Difference) -> str:
    change = (
        f"{one.base:.3f} -> {one.new:.3f} ({one.change.mean:+.3f}, {one.change.low:+.3f} to {one.change.high:+.3f})"
    )
    if one.regression:
        return f"{change}: worse by more than chance and noise ({one.noise:.3f}); lost {_listed(one.worse)}"
    if one.improvement:
        return f"{change}: better; won {_listed(one.better)}"
    return change if one.worse or one.better else f"{one.new:.3f}, unchanged"


def noise_of(runs: Sequence[Evaluation]) -> dict[str, float]:
    """By measure, how far the means of two runs of the same code over the same release lie apart at most.

    Raises ComparisonError for fewer than two runs, and for runs that are not of the same release, cases and
    configuration.
    """
    if len(runs) < 2:
        raise ComparisonError(f"{len(runs)} run, expected two or more of the same release")
    for one, other in combinations(runs, 2):
        compare(one, other)
        if changed := _changed(one.configuration.parameters, other.configuration.parameters):
            raise ComparisonError(f"runs of different configurations: {_listed(changed)}")
    columns = {name: [run.measures[name].mean for run in runs] for name in NAMES if name in runs[0].measures}
    return {name: round(max(means) - min(means), 6) for name, means in columns.items()}


def noise_bytes(runs: Sequence[Evaluation]) -> bytes:
    """The noise of runs as a file."""
    measures = noise_of(runs)
    described = {"artifact": asdict(runs[0].artifact), "cases": asdict(runs[0].cases), "runs": len(runs)}
    return canonical_json({"format": NOISE_FORMAT, "kind": "noise", **described, "measures": measures})


def read_noise(path: Path) -> dict[str, float]:
    """What `octavo eval gate noise` wrote, by measure. Raises ConfigError."""
    try:
        fields = json.loads(path.read_bytes())
        if (fields["format"], fields["kind"]) == (NOISE_FORMAT, "noise"):
            return {str(name): float(value) for name, value in fields["measures"].items()}
    except OSError as error:
        raise ConfigError(f"{path.name}: cannot be read ({error.strerror})") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise ConfigError(f"{path.name}: expected what `octavo eval gate noise` writes")


def read_floors(path: Path) -> dict[str, float]:
    """The bounds that a pack's results have to clear, by measure: the least, or the most where lower is better.

    Raises ConfigError for a measure that there is not, and for a bound that is no number from 0 to 1.
    """
    try:
        data: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path.name}: cannot be read ({error.strerror})") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path.name}: not YAML") from error
    if not isinstance(data, dict) or not data:
        raise ConfigError(f"{path.name}: expected a mapping of measures to bounds")
    for name, bound in (floors := cast(dict[Any, Any], data)).items():
        if name not in NAMES:
            raise ConfigError(f"{path.name}: {name}: no measure; expected one of {', '.join(NAMES)}")
        if isinstance(bound, bool) or not isinstance(bound, int | float) or not 0 <= bound <= 1:
            raise ConfigError(f"{path.name}: {name}: {bound!r}, expected a number from 0 to 1")
    return {name: float(floors[name]) for name in NAMES if name in floors}


def edited(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """In words, which questions were added, removed or edited, from their labels by id; empty when none was."""
    groups = {
        "added": [query_id for query_id in new if query_id not in old],
        "removed": [query_id for query_id in old if query_id not in new],
        "edited": [query_id for query_id in old if query_id in new and old[query_id] != new[query_id]],
    }
    return ", ".join(f"{_listed(ids)} {what}" for what, ids in groups.items() if ids)


def _changed(before: Mapping[str, Any], after: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Names of the parameters that differ, `retrieval.candidates`."""
    names: list[str] = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            names += _changed(cast(Mapping[str, Any], old), cast(Mapping[str, Any], new), f"{prefix}{name}.")
        elif old != new:
            names.append(f"{prefix}{name}")
    return names


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _sign(measure: str) -> int:
    return -1 if measure in LOWER_IS_BETTER else 1


def _certain(change: Estimate, sign: int) -> bool:
    """Whether the whole interval lies on the side of `sign`."""
    return min(change.low * sign, change.high * sign) > 0
