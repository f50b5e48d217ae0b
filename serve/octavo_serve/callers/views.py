"""Which packs are there for one who may not know of all.

Light to import: the shell's commands choose packs too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from octavo_artifact.errors import NotFoundError, RequestError

if TYPE_CHECKING:
    from octavo_serve.catalog import Refusal
    from octavo_serve.faces import Library, Pack
    from octavo_serve.requests import SearchRequest
    from octavo_serve.results import SearchResult

PackT = TypeVar("PackT")
T = TypeVar("T")


RELEASE = re.compile(r"[a-z0-9-]+@[0-9a-f]{12,64}")
"""How a release is named, as `slug@digest`: the first 12 digits are enough where they are one release's only."""


def choose(packs: Mapping[str, PackT], name: str | None, releases: Callable[[], Mapping[str, PackT]]) -> PackT:
    """The pack that a request means by its slug, or the release by slug@digest; both hold only what the caller may see.

    Raises RequestError when it names none of several, NotFoundError when there is none of that name.
    """
    if name is None and len(packs) == 1:
        return next(iter(packs.values()))
    known = ", ".join(packs) or "none"
    if name is None and packs:
        raise RequestError("pack", f"missing; name one of {known}")
    if name is not None and name in packs:
        return packs[name]
    if name is not None and RELEASE.fullmatch(name):
        found = [release for full, release in releases().items() if full.startswith(name)]
        if len(found) == 1:
            return found[0]
    raise NotFoundError("pack", f"not served here; known are {known}")


def allowed(named: Mapping[str, T], slugs: frozenset[str] | None) -> Mapping[str, T]:
    """What goes by the names of these packs and their releases; None for all packs."""
    return named if slugs is None else {name: value for name, value in named.items() if slug_of(name) in slugs}


def slug_of(name: str) -> str:
    """The pack of a name that may be a release's."""
    return name.partition("@")[0]


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """The packs of a library that a caller may know of; to whoever holds the view there are no others."""

    library: Library = field(repr=False)
    slugs: frozenset[str] | None = None
    """None for all."""

    @property
    def packs(self) -> Mapping[str, Pack]:
        """By slug, sorted."""
        return allowed(self.library.packs, self.slugs)

    @property
    def refused(self) -> Mapping[str, str]:
        """Slug or slug@digest to reason."""
        return allowed(self.library.refused, self.slugs)

    @property
    def releases(self) -> Mapping[str, Pack]:
        """By slug@digest."""
        return allowed(self.library.releases, self.slugs)

    @property
    def failed(self) -> Mapping[str, Refusal]:
        """By slug."""
        return allowed(self.library.failed, self.slugs)

    def search(self, request: SearchRequest, slugs: frozenset[str] | None = None) -> SearchResult:
        """Find passages in the pack that is named, or in all that are seen; see `faces.Library`."""
        seen = self.slugs if slugs is None else slugs if self.slugs is None else slugs & self.slugs
        return self.library.search(request, seen)

    def choose(self, name: str | None) -> Pack:
        """The pack or release of this name, or the only pack; see `choose`."""
        return choose(self.packs, name, lambda: self.releases)


@dataclass(frozen=True, slots=True, eq=False)
class Mounted:
    """A library of one release, which need not be its pack's current one."""

    release: Pack

    @property
    def packs(self) -> Mapping[str, Pack]:
        """The one, by its slug."""
        return {self.release.slug: self.release}

    @property
    def releases(self) -> Mapping[str, Pack]:
        """The one, by slug@digest."""
        return {f"{self.release.slug}@{self.release.digest}": self.release}

    @property
    def refused(self) -> Mapping[str, str]:
        """None."""
        return {}

    @property
    def failed(self) -> Mapping[str, Refusal]:
        """None."""
        return {}

    def search(self, request: SearchRequest, slugs: frozenset[str] | None = None) -> SearchResult:
        """Find passages in it."""
        return self.choose(request.pack).search(request)

    def choose(self, name: str | None) -> Pack:
        """It, unless another is named; see `choose`."""
        return choose(self.packs, name, lambda: self.releases)
