"""The skills extension of MCP (SEP-2640): skills/list, skills/get, resources/directory/read.

Their files are read by resources/read, as every resource is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mcp.types as t
from mcp.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from octavo_artifact.errors import NotFoundError, RequestError
from octavo_serve.faces import Pack, UnavailableError, Workers, message, pack_of
from octavo_serve.over_mcp.endpoint import Context, Find
from octavo_serve.over_mcp.paging import page_after
from octavo_serve.skills import Entry, Skill

EXTENSION = "io.modelcontextprotocol/skills"

SKILLS_PAGE = 8
"""Skills on a page; one with 512 files takes about 80 kB."""
DIRECTORY_PAGE = 200


class _UriParams(t.RequestParams):
    uri: str


class _DirectoryParams(t.PaginatedRequestParams):
    uri: str


def offer_skills(server: Server[Any], find: Find, workers: Workers, *, public: bool) -> None:
    """Add the extension's methods to a server; where no pack has a skill there are no such methods."""
    face = _SkillsFace(find, workers, public=public)
    server.add_request_handler("skills/list", t.PaginatedRequestParams, face.list_skills)
    server.add_request_handler("skills/get", _UriParams, face.get_skill)
    server.add_request_handler("resources/directory/read", _DirectoryParams, face.read_directory)


class _SkillsFace:
    def __init__(self, find: Find, workers: Workers, *, public: bool) -> None:
        self._find = find
        self._workers = workers
        self._public = public

    async def list_skills(self, ctx: Context, params: t.PaginatedRequestParams) -> dict[str, Any]:
        skills = await self._workers.run(_all_skills, self._packs(ctx))
        page, cursor = page_after(skills, params.cursor, SKILLS_PAGE, lambda skill: skill.uri)
        return self._answer(ctx, {"skills": [_describe(skill) for skill in page]}, cursor)

    async def get_skill(self, ctx: Context, params: _UriParams) -> dict[str, Any]:
        return self._answer(ctx, {"skill": _describe(await self._asked(ctx, _find_skill, params.uri))})

    async def read_directory(self, ctx: Context, params: _DirectoryParams) -> dict[str, Any]:
        entries = await self._asked(ctx, _find_directory, params.uri)
        page, cursor = page_after(entries, params.cursor, DIRECTORY_PAGE, lambda entry: entry.uri)
        return self._answer(ctx, {"resources": [_list(entry) for entry in page]}, cursor)

    def _packs(self, ctx: Context) -> Sequence[Pack]:
        packs = [pack for pack in self._find(ctx).packs if pack.manifest.counts.get("skills", 0)]
        if not packs:
            raise MCPError(t.METHOD_NOT_FOUND, "Method not found", ctx.method)
        return packs

    async def _asked(self, ctx: Context, find: Callable[[Pack, str], Any], uri: str) -> Any:
        packs = self._packs(ctx)
        try:
            pack = pack_of(packs, uri)
            return await self._workers.run(lambda asked: find(pack, asked), uri)
        except RequestError as error:
            raise MCPError(t.INVALID_PARAMS, message(error), {"uri": uri}) from error
        except UnavailableError as error:
            raise MCPError(t.INTERNAL_ERROR, message(error)) from error

    def _answer(self, ctx: Context, result: dict[str, Any], cursor: str | None = None) -> dict[str, Any]:
        if cursor is not None:
            result["nextCursor"] = cursor
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            # the SDK adds these to its own methods only
            hint = self._find(ctx).hint(public=self._public)
            result |= {"ttlMs": hint.ttl_ms, "cacheScope": hint.scope}
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
