"""What an encoder adapter is: it makes of what the operator wrote a spec, and the files that go into `dist`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl

from octavo_artifact.errors import ConfigError
from octavo_artifact.schema import EncoderSpec


@dataclass(frozen=True, slots=True)
class Choice:
    """An encoder as somebody chose it: `KIND:LOCATION?OPTION=VALUE&...`."""

    kind: str
    location: str
    options: Mapping[str, str]
    folder: Path
    """What a relative path is relative to."""

    @property
    def shown(self) -> str:
        """What errors call it."""
        return f"encoder {self.kind}:{self.location}"

    def number(self, name: str) -> int | None:
        """The option as a whole number above 0. Raises ConfigError."""
        written = self.options.get(name)
        if written is None:
            return None
        if not written.isdecimal() or not int(written):
            raise ConfigError(f"{self.shown}: {name}: found {written!r}, expected a whole number above 0")
        return int(written)


@dataclass(frozen=True, slots=True)
class Prepared:
    """An encoder that can be installed."""

    spec: EncoderSpec
    files: Callable[[], Mapping[str, bytes]]
    """All files of `encoders/<fingerprint>/` but the spec, by name."""


@dataclass(frozen=True, slots=True)
class Places:
    """Folders that an adapter may look into, or write to."""

    dist: Path
    state: Path


@dataclass(frozen=True, slots=True)
class Adapter:
    """How encoders of one kind are had."""

    options: frozenset[str]
    """Names of the options that it knows."""
    prepare: Callable[[Choice, Places], Prepared]
    """Raises ConfigError naming what is missing or wrong."""


def parse(text: str, folder: Path) -> Choice:
    """Read `KIND:LOCATION?OPTIONS`. Options are written as in a URL's query: `%20` or `+` is a space.

    Raises ConfigError.
    """
    kind, colon, rest = text.strip().partition(":")
    location, _, query = rest.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    if not colon or len(dict(pairs)) < len(pairs) or (query and len(pairs) != query.count("&") + 1):
        raise ConfigError(f"encoder {kind}: expected KIND:LOCATION?OPTION=VALUE&..., each option once")
    return Choice(kind, location, dict(pairs), folder)
