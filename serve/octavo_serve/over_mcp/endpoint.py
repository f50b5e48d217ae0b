"""Which packs one request of MCP may ask: it is looked up for each, so that a release that was swapped in is served."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext

from octavo_artifact.errors import NotFoundError
from octavo_serve.callers.access import view_of
from octavo_serve.callers.views import View
from octavo_serve.faces import Library, Pack
from octavo_serve.requests import AskRequest, SearchRequest
from octavo_serve.results import SearchResult

Context = ServerRequestContext[Any, Any]

# A pointer moves by hand or by a deployment; what was asked of one release never changes.
_MOVING_MS = 60_000
_FIXED_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Endpoint:
    """All packs that the caller may see, or the one that the path names."""

    library: Library
    """What the caller may see of it."""
    name: str | None = None
    """Slug of the only pack; with `@` and a digest that release of it."""

    @property
    def view(self) -> View:
        """What the caller may see of the library."""
        return self.library if isinstance(self.library, View) else View(self.library)

    @property
    def packs(self) -> Sequence[Pack]:
        """By slug."""
        return list(self.library.packs.values()) if self.name is None else [self.library.choose(self.name)]

    @property
    def several(self) -> bool:
        """Whether a request has to say which pack it means."""
        return self.name is None and len(self.library.packs) > 1

    @property
    def fixed(self) -> bool:
        """Whether one release answers for ever."""
        return self.name is not None and "@" in self.name

    def choose(self, name: str | None) -> Pack:
        """The pack that a request means. Raises RequestError or NotFoundError."""
        if self.name is None or name is None:
            return self.library.choose(name if self.name is None else self.name)
        slug, at, _ = self.name.partition("@")
        if name.partition("@")[0] != slug or (at and name not in (slug, self.name)):
            raise NotFoundError("pack", f"only {self.name} is served here")
        return self.library.choose(self.name if at else name)

    def search(self, request: SearchRequest) -> SearchResult:
        """Find passages in the pack that is named, or in all."""
        return self.library.search(request) if self.name is None else self.choose(request.pack).search(request)

    def narrowed(self, request: AskRequest) -> AskRequest:
        """The question as it is asked of `view`. Raises NotFoundError."""
        if self.name is None:
            return request
        self.choose(request.pack)
        return request.model_copy(update={"pack": self.name if self.fixed or not request.pack else request.pack})

    def hint(self, *, public: bool) -> CacheHint:
        """How long a client may keep a list or a document, and for whom: `public` where all callers see the same."""
        return CacheHint(_FIXED_MS if self.fixed else _MOVING_MS, "public" if public else "private")


Find = Callable[[Context], Endpoint]


def endpoint_of(ctx: Context) -> Endpoint:
    """That of a request over HTTP: its caller's view, and the pack in its path."""
    request: Any = ctx.request
    return Endpoint(view_of(request.scope), request.path_params.get("slug"))
