"""How a pack wants to be searched: written in its manifest, checked by the compiler, kept in the artifact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from octavo_artifact.errors import ConfigError

GateMode = Literal["refuse", "flag", "off"]
"""What becomes of an answer that is improbable: nothing is returned, it is marked, or it is not judged at all."""

_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The parameters of the search."""

    candidates: int = 100
    """Passages each retriever gives to fusion."""
    words_weight: float = 2.0
    passage_weight: float = 3.0
    document_weight: float = 1.0
    """Weights in fusion of BM25, of the nearest window, and of the document's mean window; only their ratio counts.
    Chosen in the middle of a plateau: 2:3:0.5 to 2:3:1.5 and 1:2:0.3 to 1:2:1 measure alike."""
    passages_per_document: int = 2
    """A document's passages in one answer."""
    freshness_penalty: float = 0.0
    """Share of its score that a stale or expired passage loses."""
    graph: bool = False
    """Whether neighbours in the graph take places of an answer when a request does not say."""
    gate: GateMode = "refuse"
    """What becomes of an improbable answer when a request does not say."""

    def __post_init__(self) -> None:
        for name, (least, most) in RANGES.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise ConfigError(f"{name}: {value}, expected {least:g} to {most:g}")
        if not self.words_weight + self.passage_weight + self.document_weight:
            raise ConfigError("words_weight, passage_weight, document_weight: all 0, expected one above")


RANGES: Mapping[str, tuple[float, float]] = {
    "candidates": (10, 1000),
    "words_weight": (0, 100),
    "passage_weight": (0, 100),
    "document_weight": (0, 100),
    "passages_per_document": (1, 50),
    "freshness_penalty": (0, 1),
}
"""Least and most of each parameter that is a number."""

DEFAULTS = Retrieval()


def read_retrieval(written: Mapping[str, Any]) -> Retrieval:
    """The parameters that a mapping gives, its scalars as written in YAML or as in JSON; the others are defaults.

    Raises ConfigError naming the key that is unknown or out of its range.
    """
    return Retrieval(**{name: _value(name, value) for name, value in written.items()})


def _value(name: str, value: Any) -> Any:
    default = getattr(DEFAULTS, name) if name in Retrieval.__slots__ else None
    if default is None:
        raise ConfigError(f"{name}: unknown, expected one of {', '.join(Retrieval.__slots__)}")
    if isinstance(default, bool):
        found = _BOOLEANS.get(value) if isinstance(value, str) else value
        if isinstance(found, bool):
            return found
        raise ConfigError(f"{name}: expected true or false")
    if isinstance(default, str):
        if value in get_args(GateMode):
            return value
        raise ConfigError(f"{name}: expected one of {', '.join(get_args(GateMode))}")
    try:
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return type(default)(value)
    except ValueError:
        pass
    raise ConfigError(f"{name}: expected a number")
