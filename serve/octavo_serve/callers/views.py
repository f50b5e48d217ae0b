"""Which packs are there for one who may not know of all.

Light to import: the shell's commands choose packs too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from octavo_artifact.errors import NotFoundError, RequestError

if TYPE_CHECKING:
    from octavo_serve.callers.keys import Key
    from octavo_serve.faces import Library, Pack
    from octavo_serve.requests import SearchRequest
    from octavo_serve.results import SearchResult

PackT = TypeVar("PackT")


def choose(packs: Mapping[str, PackT], slug: str | None) -> PackT:
    """The pack that a request means.

    Raises RequestError when it names none of several, NotFoundError when there is none of that name.
    """
    if slug is None and len(packs) == 1:
        return next(iter(packs.values()))
    known = ", ".join(packs) or "none"
    if slug is None and packs:
        raise RequestError("pack", f"missing; name one of {known}")
    if slug is None or slug not in packs:
        raise NotFoundError("pack", f"not served here; known are {known}")
    return packs[slug]


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """The packs of a library that a caller may know of; to whoever holds the view there are no others."""

    library: Library = field(repr=False)
    slugs: frozenset[str] | None = None
    """None for all."""

    @property
    def packs(self) -> Mapping[str, Pack]:
        """By slug, sorted."""
        return self._seen(self.library.packs)

    @property
    def refused(self) -> Mapping[str, str]:
        """Slug to reason."""
        return self._seen(self.library.refused)

    def search(self, request: SearchRequest, slugs: frozenset[str] | None = None) -> SearchResult:
        """Find passages in the pack that is named, or in all that are seen; see `faces.Library`."""
        seen = self.slugs if slugs is None else slugs if self.slugs is None else slugs & self.slugs
        return self.library.search(request, seen)

    def choose(self, slug: str | None) -> Pack:
        """The pack called `slug`, or the only one; see `choose`."""
        return choose(self.packs, slug)

    def releases(self, slug: str) -> Sequence[str]:
        """Digests of the releases of a pack that answer, the current one first."""
        return [self.packs[slug].digest]

    def _seen(self, by_slug: Mapping[str, PackT]) -> Mapping[str, PackT]:
        if self.slugs is None:
            return by_slug
        return {slug: value for slug, value in by_slug.items() if slug in self.slugs}


class Views:
    """The views of a library: one for each different set of packs that keys open, or one of everything."""

    def __init__(self, library: Library, keys: Sequence[Key]) -> None:
        self._by_slugs = {slugs: View(library, slugs) for slugs in ([key.slugs for key in keys] or [None])}

    @property
    def all(self) -> Sequence[View]:
        """Each once."""
        return list(self._by_slugs.values())

    def of(self, key: Key | None) -> View:
        """That of a key, or that of a server without keys."""
        return self._by_slugs[key.slugs if key else None]
