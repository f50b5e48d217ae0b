"""Which context tier a file is in: what manifests say of paths, folders and patterns, and who of them has the word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from pathspec import GitIgnoreSpec

from octavo_build.values import items, mapping

TIERS = ("always", "searchable", "on_demand")

_WILDCARDS = frozenset("*?[")


@dataclass(frozen=True)
class Tiers:
    """Tiers by path, folder or pattern, all from the pack's root."""

    by_path: Mapping[str, str]

    def of(self, path: str) -> str | None:
        """The tier of the most specific entry that a file is under: the file itself, else the entry with the most parts
        without a wildcard, a pattern before a folder of as many; None when there is none.
        """
        parents = (str(parent) for parent in PurePosixPath(path).parents)
        # a folder named on the way to the root never has more parts than one below it
        folder = next((each for each in parents if each in self.by_path), None)
        found = [(_plain_parts(folder), False, folder)] if folder is not None else []
        found += [(_plain_parts(each), True, each) for each, spec in self._patterns if spec.match_file(path)]
        return self.by_path.get(path) or (self.by_path[max(found)[2]] if found else None)

    @cached_property
    def _patterns(self) -> list[tuple[str, GitIgnoreSpec]]:
        # a leading slash holds a pattern to the root, as a path without one is
        patterns = sorted(path for path in self.by_path if _WILDCARDS.intersection(path))
        return [(pattern, GitIgnoreSpec.from_lines([f"/{pattern}"])) for pattern in patterns]


def tiers_of(context: object, prefix: str) -> dict[str, str]:
    """What a manifest's `context` says of files whose paths begin with `prefix`; of two tiers the later one counts."""
    tiers: dict[str, str] = {}
    for tier in TIERS:
        for path in _entries(context, tier):
            tiers[f"{prefix}{path.removeprefix('./').strip('/')}"] = tier
    return tiers


def _entries(context: object, tier: str) -> Iterator[str]:
    return (path for path in items(mapping(context).get(tier)) if isinstance(path, str))


def _plain_parts(path: str) -> int:
    return sum(not _WILDCARDS.intersection(part) for part in path.split("/") if part not in (".", ""))
