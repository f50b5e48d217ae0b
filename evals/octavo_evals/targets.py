"""What can be evaluated: a release in process, or an endpoint that serves it over HTTP or MCP."""

from __future__ import annotations

import json
import shlex
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any, Protocol, cast
from urllib.parse import urlencode, urlsplit

from octavo_artifact.errors import ArtifactError, ConfigError, NotFoundError, OctavoError, PackError
from octavo_artifact.ids import DIGEST
from octavo_artifact.manifest import fingerprint, read_pointer
from octavo_artifact.parameters import read_retrieval
from octavo_evals.results import Artifact
from octavo_serve.catalog import OpenPack, open_release
from octavo_serve.requests import ReadRequest, parse_request
from octavo_serve.requests import SearchRequest as Request

TIMEOUT = 60
"""Seconds to wait for one answer of an endpoint."""


class Target(Protocol):
    """One release of a pack that answers."""

    @property
    def artifact(self) -> Artifact:
        """Which release it is."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What decides its answers, as far as it tells; see `results.Configuration`."""
        ...

    def search(self, text: str, k: int, filters: Mapping[str, Any]) -> Mapping[str, Any]:
        """An answer as `octavo_serve.results.SearchResult`."""
        ...

    def has(self, path: str) -> bool:
        """Whether the pack has a file."""
        ...


class Release:
    """A release in process."""

    def __init__(self, pack: OpenPack, retrieval: Mapping[str, Any] | None = None) -> None:
        """`retrieval` has the parameters of the search that differ from the pack's own."""
        self.pack = pack
        self._varied = dict(retrieval or {})
        # the overrides, else the pack's own, else the defaults of this server
        self._retrieval = read_retrieval({**pack.manifest.parameters.get("retrieval", {}), **self._varied})

    def varied(self, retrieval: Mapping[str, Any]) -> Release:
        """The same release, searched with other parameters. Raises ConfigError for one that there is not."""
        return Release(self.pack, retrieval)

    @property
    def artifact(self) -> Artifact:
        """Which release it is."""
        pack = self.pack.manifest.pack
        return Artifact(self.pack.slug, self.pack.digest, pack.get("version"), "dist")

    @property
    def parameters(self) -> Mapping[str, Any]:
        """All of them."""
        manifest = self.pack.manifest
        return {**manifest.parameters, "retrieval": asdict(self._retrieval), "encoder": fingerprint(manifest.encoder)}

    def search(self, text: str, k: int, filters: Mapping[str, Any]) -> Mapping[str, Any]:
        """An answer."""
        values = {"retrieval": self._varied, **filters, "query": text, "max_results": k}
        return self.pack.search(parse_request(Request, values, strict=True, bounded=False))

    def has(self, path: str) -> bool:
        """Whether the pack has a file."""
        try:
            self.pack.read(ReadRequest(path=path))
        except NotFoundError:
            return False
        return True


def open_target(dist: Path, slug: str | None, digest: str | None, today: date | None) -> Release:
    """The release `digest` (at least 6 digits of it), else the current one, of the pack `slug` in a dist.

    Raises ConfigError when there is none such, ArtifactError when it is damaged, PackError when it has no passage.
    """
    if not dist.is_dir():
        raise ConfigError(f"{dist}: not a folder; expected one that `octavo build --out` filled")
    artifact = find_release(dist, slug, digest)
    pack = open_release(artifact, dist, {}, today)
    if not pack.manifest.counts.get("passages"):
        raise PackError(f"{pack.slug}: an empty pack; there is nothing to find in it")
    return Release(pack)


def find_release(dist: Path, slug: str | None, digest: str | None) -> Path:
    """Where a release lies; see `open_target`."""
    if digest is None:
        if slug is None:
            raise ConfigError("pack: missing; expected --pack SLUG, --release DIGEST, or `pack` in the query set")
        return dist / slug / read_pointer(dist / slug)
    matches = sorted(
        path for path in dist.glob(f"{slug or '*'}/*") if DIGEST.fullmatch(path.name) and path.name.startswith(digest)
    )
    if len(digest) < 6 or len(matches) != 1:
        found = "shorter than 6 digits" if len(digest) < 6 else f"{len(matches)} releases begin so"
        raise ConfigError(f"release: {digest}: {found}, expected the digest of one in {dist.name}")
    return matches[0]


class _Endpoint(ABC):
    """What endpoints of both protocols share: the release is known from the first answer, and must stay."""

    def __init__(self, slug: str | None, source: str) -> None:
        self._slug = slug
        self._source = source
        self._artifact: Artifact | None = None

    @property
    def artifact(self) -> Artifact:
        """Which release it is."""
        if self._artifact is None:
            self.search("octavo", 1, {})
        assert self._artifact is not None
        return self._artifact

    @property
    def parameters(self) -> Mapping[str, Any]:
        """None of them: endpoints do not tell."""
        return {"retrieval": None, "encoder": None}

    def search(self, text: str, k: int, filters: Mapping[str, Any]) -> Mapping[str, Any]:
        """An answer, from all of its pages. Raises ArtifactError when another release answers than before."""
        answer = dict(self._ask(text, k, filters))
        try:
            slug, digest = str(answer["pack"]), str(answer["digest"])
            _ = answer["results"], answer["refused"]
            while cursor := answer.get("next_cursor"):
                page = self._ask(text, k, {**filters, "cursor": cursor})
                answer |= {"results": [*answer["results"], *page["results"]], "next_cursor": page.get("next_cursor")}
        except KeyError as error:
            raise ArtifactError(f"the endpoint's answer has no {error.args[0]!r}; is it Octavo's?") from error
        if self._artifact is None:
            self._artifact = Artifact(slug, digest, self._version(slug), self._source)
        if digest != self._artifact.digest:
            raise ArtifactError(f"{slug}: the endpoint moved to release {digest[:12]} meanwhile; evaluate again")
        return answer

    @abstractmethod
    def _ask(self, text: str, k: int, filters: Mapping[str, Any]) -> Mapping[str, Any]: ...

    def _version(self, slug: str) -> str | None:
        return None


class HttpEndpoint(_Endpoint):
    """A server's HTTP face."""

    def __init__(self, url: str, slug: str | None, key: str | None) -> None:
        super().__init__(slug, "http")
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    def has(self, path: str) -> bool:
        """Whether the pack has a file."""
        try:
            self._get("/graph", {"path": path, "depth": 1, **self._named()})
        except NotFoundError:
            return False
        return True

    def _ask(self, text: str, k: int, filters: Mapping[str, Any]) -> Mapping[str, Any]:
        given = {name: ",".join(value) if name == "tags" else value for name, value in filters.items()}
        if isinstance(given.get("graph"), bool):
            given["graph"] = json.dumps(given["graph"])
        return self._get("/search", {**given, "q": text, "n": k, **self._named()})

    def _version(self, slug: str) -> str | None:
        return self._get("/healthz", {}).get("packs", {}).get(slug, {}).get("version")

    def _named(self) -> dict[str, str]:
        return {"pack": self._slug} if self._slug else {}

    def _get(self, path: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(f"{self._url}{path}?{urlencode(parameters)}", headers=self._headers)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                return cast(dict[str, Any], json.load(answer))
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 404:
                    raise NotFoundError("path", "the endpoint does not have it") from error
                raise ArtifactError(f"the endpoint answered {error.code} to {path}") from error
        except (OSError, ValueError) as error:
            raise ArtifactError(f"the endpoint does not answer as Octavo does ({type(error).__name__})") from error


class McpEndpoint(_Endpoint):
    """A server's MCP face, asked with the official client."""

    def __init__(self, call: Any, slug: str | None) -> None:
        """`call(name, arguments)` calls a tool and returns its structured content, or None for an error."""
        super().__init__(slug, "mcp")
        self._call = call

    def has(self, path: str) -> bool:
        """Whether the pack has a file."""
        return self._call("ep_read", {"path": path, **self._named()}) is not None

    def _ask(self, text: str, k: int, filters: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = self._call("ep_search", {**filters, "query": text, "max_results": k, **self._named()})
        if answer is None:
            raise ArtifactError("the endpoint's ep_search answers with an error; does it serve the pack?")
        return answer

    def _named(self) -> dict[str, str]:
        return {"pack": self._slug} if self._slug else {}


def connect(endpoint: str, slug: str | None, key: str | None) -> AbstractContextManager[Target]:
    """The target of `--url`: an address (HTTP), a URL whose path ends in `/mcp`, or a command that speaks MCP on
    stdio, such as `octavo stdio dist`. `key` is sent to URLs as a bearer token.
    """
    if not endpoint.startswith(("http://", "https://")):
        return _mcp(_over_stdio(endpoint), slug)
    if urlsplit(endpoint).path.endswith("/mcp"):
        return _mcp(_over_http(endpoint, key), slug)
    return nullcontext(HttpEndpoint(endpoint, slug, key))


@contextmanager
def _mcp(session: AbstractAsyncContextManager[Any], slug: str | None) -> Generator[McpEndpoint]:
    """A session of the official client, kept open in a thread of its own while questions are asked."""
    from anyio.from_thread import start_blocking_portal
    from mcp.shared.exceptions import MCPError

    failure: OctavoError | None = None
    try:
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(session) as client:

            def call(name: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
                answer = portal.call(client.call_tool, name, arguments)
                return None if answer.is_error else answer.structured_content

            try:
                yield McpEndpoint(call, slug)
            except OctavoError as error:  # kept from the client's task groups, which would wrap it
                failure = error
    except (ExceptionGroup, OSError, MCPError) as error:
        raise ArtifactError(f"the endpoint does not speak MCP ({type(error).__name__})") from error
    if failure is not None:
        raise failure


@asynccontextmanager
async def _over_http(url: str, key: str | None) -> AsyncGenerator[Any]:
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        create_mcp_http_client(headers) as http_client,
        Client(streamable_http_client(url, http_client=http_client), read_timeout_seconds=TIMEOUT) as client,
    ):
        yield client


@asynccontextmanager
async def _over_stdio(command: str) -> AsyncGenerator[Any]:
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    program, *arguments = shlex.split(command) or [""]
    target = stdio_client(StdioServerParameters(command=program, args=arguments))
    async with Client(target, read_timeout_seconds=TIMEOUT) as client:
        yield client
