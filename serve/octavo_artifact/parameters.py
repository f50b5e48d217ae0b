"""How a search is done: parameters that a pack writes in its manifest, a server in its settings, a client in its
request, each over the one before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from octavo_artifact.errors import ConfigError

GateMode = Literal["refuse", "flag", "off"]
"""What becomes of an answer that is improbable: nothing is returned, it is marked, or it is not judged at all."""

Tier = Literal["always", "searchable"]
"""Context tiers whose documents can be found; those of `on_demand` are read only."""

Fusion = Literal["convex", "minmax", "tmm", "rrf"]
"""How rankings are merged; see `octavo_serve.stages.fuse`."""

_BOOLEANS = {"true": True, "false": False}
_CHOICES: Mapping[str, tuple[str, ...]] = {"gate": get_args(GateMode), "fusion": get_args(Fusion)}

BOOSTED = ("type", "tag", "tier")
"""What a boost may name: `type:workflow`, `tag:safety`, `tier:always`."""

_BOOST = re.compile(rf"(?:{'|'.join(BOOSTED)}):[^\ud800-\udfff]{{1,200}}")
"""Halves of a surrogate pair are no text that an answer could repeat."""

MAX_BOOSTS = 100
"""Every answer repeats those that are not the pack's own."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The parameters of the search; each stage can be switched off by its own."""

    candidates: int = 100
    """Passages each retriever gives to fusion."""
    typo_cost: float = 0.5
    """Share of its weight that a word loses where it can only be a slip of another; 1 looks for none."""
    fusion: Fusion = "convex"
    words_weight: float = 2.0
    passage_weight: float = 3.0
    document_weight: float = 1.25
    """Weights in fusion of BM25, of the nearest window, and of the document's mean window; only their ratio counts.
    Chosen in the middle of a plateau: 2:3:1 to 2:3:1.5 measure alike; see evals/RETRIEVAL.md."""
    intents: bool = True
    """Whether what kind of question it is changes those weights; see `octavo_serve.query`."""
    literal_boost: float = 1.0
    """What a passage gains by having the literals and quoted words of a query: at 1 such passages come first."""
    boosts: Mapping[str, float] = field(default_factory=dict[str, float])
    """What a document's passages gain by its type, a tag or its tier: `{"type:workflow": 0.05}`."""
    freshness_penalty: float = 0.0
    """Share of its score that a stale or expired passage loses."""
    length_penalty: float = 0.0
    """Share of its score that a passage of fewer than `short_passage` tokens loses."""
    short_passage: int = 20
    rerank: bool = True
    """Whether the server's reranker is asked, if it has one."""
    duplicate_similarity: float = 0.98
    """Cosine from which on two passages with the same words are one result; 0 shows all."""
    diversity: float = 0.0
    """Weight of being unlike the results before (1 - lambda of MMR); 0 looks at relevance alone."""
    passages_per_document: int = 2
    """A document's passages in one answer."""
    gate: GateMode = "refuse"
    """What becomes of an improbable answer."""
    refuse_below: float = -1.0
    """Probability below which an answer is improbable; negative: what the pack's calibration found."""
    graph: bool = False
    """Whether neighbours in the graph take places of an answer."""
    requires: bool = True
    """Whether documents that the results require are added."""

    def __post_init__(self) -> None:
        for name, (least, most) in RANGES.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise ConfigError(f"{name}: {value:g}, expected {least:g} to {most:g}")
        if len(self.boosts) > MAX_BOOSTS:
            raise ConfigError(f"boosts: {len(self.boosts)} of them, expected at most {MAX_BOOSTS}")
        for name, value in self.boosts.items():
            if not -1 <= value <= 1:
                raise ConfigError(f"boosts: {name}: {value}, expected -1 to 1")
        if not self.words_weight + self.passage_weight + self.document_weight:
            raise ConfigError("words_weight, passage_weight, document_weight: all 0, expected one above")


RANGES: Mapping[str, tuple[float, float]] = {
    "candidates": (10, 1000),
    "typo_cost": (0, 1),
    "words_weight": (0, 100),
    "passage_weight": (0, 100),
    "document_weight": (0, 100),
    "literal_boost": (0, 1),
    "freshness_penalty": (0, 1),
    "length_penalty": (0, 1),
    "short_passage": (0, 1000),
    "duplicate_similarity": (0, 1),
    "diversity": (0, 1),
    "passages_per_document": (1, 50),
    "refuse_below": (-1, 1),
}
"""Least and most of each parameter that is a number."""

SWITCHED_OFF: Mapping[str, Mapping[str, Any]] = {
    "lexical": {"words_weight": 0.0},
    "vector": {"passage_weight": 0.0, "document_weight": 0.0},
    "document signal": {"document_weight": 0.0},
    "intents": {"intents": False},
    "typos": {"typo_cost": 1.0},
    "literals": {"literal_boost": 0.0},
    "boosts": {"boosts": {}},
    "freshness": {"freshness_penalty": 0.0},
    "length": {"length_penalty": 0.0},
    "rerank": {"rerank": False},
    "duplicates": {"duplicate_similarity": 0.0},
    "diversity": {"diversity": 0.0},
    "cap": {"passages_per_document": 50},
    "gate": {"gate": "off"},
    "graph": {"graph": False},
    "requires": {"requires": False},
}
"""By the name of a stage, or of what a stage does, the parameters that switch it off."""

DEFAULTS = Retrieval()


def read_retrieval(written: Mapping[str, Any], base: Retrieval = DEFAULTS) -> Retrieval:
    """The parameters that a mapping gives, its scalars as written in YAML or as in JSON; the others are those of
    `base`.

    Raises ConfigError naming the key that is unknown or out of its range.
    """
    return replace(base, **{name: _value(name, value) for name, value in written.items()})


def differences(found: Retrieval, base: Retrieval) -> dict[str, Any]:
    """The parameters in which `found` is not as `base`."""
    return {
        each.name: getattr(found, each.name)
        for each in fields(Retrieval)
        if getattr(found, each.name) != getattr(base, each.name)
    }


def _value(name: str, value: Any) -> Any:
    default = getattr(DEFAULTS, name) if name in Retrieval.__slots__ else None
    if default is None:
        raise ConfigError(f"{name}: unknown, expected one of {', '.join(Retrieval.__slots__)}")
    if name == "boosts":
        return _boosts(value)
    if isinstance(default, bool):
        found = _BOOLEANS.get(value) if isinstance(value, str) else value
        if isinstance(found, bool):
            return found
        raise ConfigError(f"{name}: expected true or false")
    if name in _CHOICES:
        if value in _CHOICES[name]:
            return value
        if value is False and "off" in _CHOICES[name]:
            return "off"  # as YAML reads the word
        raise ConfigError(f"{name}: expected one of {', '.join(_CHOICES[name])}")
    return _number(name, value, type(default))


def _boosts(value: Any) -> dict[str, float]:
    if not isinstance(value, Mapping):
        raise ConfigError("boosts: expected a mapping such as {'type:workflow': 0.05}")
    found: dict[str, float] = {}
    for name, number in sorted(value.items()):
        if not _BOOST.fullmatch(str(name)):
            raise ConfigError(f"boosts: {name}: expected one of {', '.join(f'{each}:…' for each in BOOSTED)}")
        found[name] = _number(f"boosts: {name}", number, float)
    return found


def _number(name: str, value: Any, kind: type[Any]) -> Any:
    try:
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            found = kind(value)
            if isinstance(value, str) or float(found) == float(value):
                return found
    except (ValueError, OverflowError):
        pass
    raise ConfigError(f"{name}: expected {'a whole number' if kind is int else 'a number'}")
