"""The skills extension of MCP (SEP-2640): skills/list, skills/get, resources/directory/read.

Their files are read by resources/read, as every resource is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mcp.types as t
from mcp.server import Server
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from octavo_artifact.errors import NotFoundError, RequestError
from octavo_serve.faces import Pack, UnavailableError, Workers, message, pack_of
from octavo_serve.over_mcp.paging import page_after
from octavo_serve.skills import Entry, Skill

EXTENSION = "io.modelcontextprotocol/skills"

SKILLS_PAGE = 8
"""Skills on a page; one with 512 files takes about 80 kB."""
DIRECTORY_PAGE = 200

_Context = ServerRequestContext[Any, Any]


class _UriParams(t.RequestParams):
    uri: str


class _DirectoryParams(t.PaginatedRequestParams):
    uri: str


def offer_skills(server: Server[Any], packs: Callable[[], Sequence[Pack]], workers: Workers, hint: CacheHint) -> None:
    """Declare the extension and add its methods to a server whose packs are `packs()` at each call."""
    face = _SkillsFace(packs, workers, hint)
    server.extensions[EXTENSION] = {"directoryRead": True}
    server.add_request_handler("skills/list", t.PaginatedRequestParams, face.list_skills)
    server.add_request_handler("skills/get", _UriParams, face.get_skill)
    server.add_request_handler("resources/directory/read", _DirectoryParams, face.read_directory)


class _SkillsFace:
    def __init__(self, packs: Callable[[], Sequence[Pack]], workers: Workers, hint: CacheHint) -> None:
        self._packs = packs
        self._workers = workers
        self._hint = hint

    async def list_skills(self, ctx: _Context, params: t.PaginatedRequestParams) -> dict[str, Any]:
        skills = await self._workers.run(_all_skills, self._packs())
        page, cursor = page_after(skills, params.cursor, SKILLS_PAGE)
        return self._answer(ctx, {"skills": [_describe(skill) for skill in page]}, cursor)

    async def get_skill(self, ctx: _Context, params: _UriParams) -> dict[str, Any]:
        return self._answer(ctx, {"skill": _describe(await self._asked(_find_skill, params.uri))})

    async def read_directory(self, ctx: _Context, params: _DirectoryParams) -> dict[str, Any]:
        entries = await self._asked(_find_directory, params.uri)
        page, cursor = page_after(entries, params.cursor, DIRECTORY_PAGE)
        return self._answer(ctx, {"resources": [_list(entry) for entry in page]}, cursor)

    async def _asked(self, find: Callable[[Pack, str], Any], uri: str) -> Any:
        try:
            pack = pack_of(self._packs(), uri)
            return await self._workers.run(lambda asked: find(pack, asked), uri)
        except RequestError as error:
            raise MCPError(t.INVALID_PARAMS, message(error), {"uri": uri}) from error
        except UnavailableError as error:
            raise MCPError(t.INTERNAL_ERROR, message(error)) from error

    def _answer(self, ctx: _Context, result: dict[str, Any], cursor: str | None = None) -> dict[str, Any]:
        if cursor is not None:
            result["nextCursor"] = cursor
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            # the SDK adds these to its own methods only
            result |= {"ttlMs": self._hint.ttl_ms, "cacheScope": self._hint.scope}
        return result


def _all_skills(packs: Sequence[Pack]) -> list[Skill]:
    return [skill for pack in packs for skill in pack.skills().values()]


def _find_skill(pack: Pack, uri: str) -> Skill:
    skill = pack.skills().get(uri)
    if skill is None:
        raise NotFoundError("uri", "no SKILL.md of this server; list the skills first")
    return skill


def _find_directory(pack: Pack, uri: str) -> Sequence[Entry]:
    return pack.directory(uri)


def _describe(skill: Skill) -> dict[str, Any]:
    files = [{"uri": file.uri, "digest": f"sha256:{file.sha256}", "size": file.size} for file in skill.files]
    return {"uri": skill.uri, "frontmatter": skill.frontmatter, "resources": files}


def _list(entry: Entry) -> dict[str, Any]:
    if entry.file is None:
        return {"uri": entry.uri, "name": entry.name, "mimeType": "inode/directory"}
    return {"uri": entry.uri, "name": entry.name, "mimeType": entry.file.mime_type, "size": entry.file.size}
