"""The tools as they are listed: what they are for, and the schemas of what they take and give."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, cast

from pydantic import BaseModel, TypeAdapter

from octavo_serve.answering.results import Answer
from octavo_serve.faces import Pack
from octavo_serve.over_mcp.endpoint import Endpoint
from octavo_serve.over_mcp.renditions import answer_text, read_text, search_text, topics_text, traverse_text
from octavo_serve.requests import AskRequest, ReadRequest, SearchRequest, TopicsRequest, TraverseRequest
from octavo_serve.results import ReadResult, SearchResult, TopicsResult, TraverseResult

_MAX_NAMED = 20
"""Packs that the description of `pack` names."""

_READS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_ASKS = {**_READS, "idempotentHint": False, "openWorldHint": True}
"""Each call costs what a model's answer costs, may be worded in another way, and has a model that is not ours read the
question."""


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """A tool."""

    name: str
    title: str
    description: str
    example: dict[str, Any]
    request: type[SearchRequest] | type[ReadRequest] | type[TopicsRequest] | type[TraverseRequest] | type[AskRequest]
    result: Any
    """The TypedDict of the answer."""
    text: Callable[[Any], str]
    """The answer for a model to read."""

    @property
    def hints(self) -> dict[str, bool]:
        """What a client may think of a call."""
        return _ASKS if self.request is AskRequest else _READS

    @property
    def asks_all(self) -> bool:
        """Whether all packs are asked where a request names none of several."""
        return self.request in (SearchRequest, AskRequest)


@dataclass(frozen=True, slots=True, eq=False)
class PackTool(Tool):
    """A tool whose work a pack does."""

    work: Callable[[Pack], Callable[[Any], Any]]

    def asked_of(self, endpoint: Endpoint, request: Any) -> Callable[[Any], Any]:
        """What answers the request. Raises RequestError or NotFoundError when that is not clear."""
        return endpoint.search if self.request is SearchRequest else self.work(endpoint.choose(request.pack))


TOOLS = {
    tool.name: tool
    for tool in (
        PackTool(
            "ep_search",
            "Search passages",
            "Find the passages that answer a question, best first, each with its file, lines and release. Use it for "
            "any question the pack may cover, and again in other words when the first answer does not fit.",
            {"query": "how do I replace the filter?", "max_results": 5},
            SearchRequest,
            SearchResult,
            search_text,
            lambda pack: pack.search,
        ),
        PackTool(
            "ep_read",
            "Read a document",
            "Read one document of the pack, whole or from a line on. Use it when a search result is not enough: give "
            "the result's id, uri, fragment_id or source_file. When `truncated` is true, ask again with `cursor`.",
            {"path": "guides/filters.md", "start_line": 1},
            ReadRequest,
            ReadResult,
            read_text,
            lambda pack: pack.read,
        ),
        PackTool(
            "ep_list_topics",
            "List topics",
            "List the pack's documents by type, with what the pack says of itself. Use it to see what is covered, or "
            "to find a document by its title.",
            {"type": "guide"},
            TopicsRequest,
            TopicsResult,
            topics_text,
            lambda pack: pack.topics,
        ),
        PackTool(
            "ep_graph_traverse",
            "Follow the graph",
            "Show what a document is joined to: what it requires, what it relates and links to, what links to it, and "
            "the entities it mentions. Use it to find the context of a search result; read a node with ep_read, "
            "giving its id or uri.",
            {"id": "pump/guides/filters", "depth": 2, "direction": "out"},
            TraverseRequest,
            TraverseResult,
            traverse_text,
            lambda pack: pack.traverse,
        ),
    )
}


ASK = Tool(
    "ep_ask",
    "Answer a question",
    "Have a question answered from the pack by the server's language model, with numbered citations that are checked. "
    "Use it for a finished answer; use ep_search to read the passages and answer yourself. `refused: true` means that "
    "the pack does not answer it: say so. Sentences under `unsupported` are not what their sources say.",
    {"question": "how do I replace the filter?"},
    AskRequest,
    Answer,
    answer_text,
)
"""Offered where the operator has chosen a language model."""


@lru_cache(maxsize=256)
def described(tools: tuple[Tool, ...], slugs: tuple[str, ...]) -> Sequence[dict[str, Any]]:
    """These tools in their order, as JSON; `slugs` has the packs to choose from where there are several."""
    return [_describe(tool, slugs) for tool in tools]


def _describe(tool: Tool, slugs: tuple[str, ...]) -> dict[str, Any]:
    schema, example = _schema(tool.request), tool.example
    if slugs:
        may_choose = tool.asks_all
        named = ", ".join(slugs[:_MAX_NAMED]) + (", ..." if len(slugs) > _MAX_NAMED else "")
        rule = "without it all of them are searched" if may_choose else "`@` and a digest name one of its releases"
        pack = {"type": "string", "description": f"Slug of the pack to ask, one of {named}; {rule}."}
        schema = {**schema, "properties": {**schema["properties"], "pack": pack}}
        if not may_choose:
            schema["required"] = [*schema.get("required", ()), "pack"]
            example = {**example, "pack": slugs[0]}
    return {
        "name": tool.name,
        "title": tool.title,
        "description": f"{tool.description} Example: {json.dumps(example)}",
        "inputSchema": schema,
        "outputSchema": _shortened(_schema(tool.result)),
        "annotations": {"title": tool.title, **tool.hints},
    }


@cache
def _schema(shape: Any) -> dict[str, Any]:
    schema = shape.model_json_schema() if issubclass(shape, BaseModel) else TypeAdapter(shape).json_schema()
    schema.pop("description", None)  # the tool's own says it
    return _without_noise(schema)


def _without_noise(value: Any) -> Any:
    """A schema that says the same in fewer words."""
    if isinstance(value, list):
        return [_without_noise(item) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        return {k: _without_noise(v) for k, v in cast(dict[str, Any], value).items() if not _is_noise(k, v)}
    return " ".join(value.split()) if isinstance(value, str) else value


def _is_noise(key: str, value: Any) -> bool:
    # pydantic titles every property with its own name. A property that is called title holds a schema, not a string.
    titled = key == "title" and isinstance(value, str)
    return titled or (key == "default" and value is None) or (key == "additionalProperties" and value is True)


def _shortened(value: Any) -> Any:
    """The same schema, with `{"type": [a, "null"]}` for what pydantic writes as a union of two.

    For schemas of results only: some clients read those of arguments with parsers that know one type at a time.
    """
    if isinstance(value, list):
        return [_shortened(item) for item in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    schema = {name: _shortened(item) for name, item in cast(dict[str, Any], value).items()}
    union = schema.get("anyOf")
    if isinstance(union, list) and all(each.keys() == {"type"} for each in cast(list[dict[str, Any]], union)):
        del schema["anyOf"]
        return {"type": [each["type"] for each in cast(list[dict[str, Any]], union)], **schema}
    return schema
