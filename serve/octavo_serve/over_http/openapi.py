"""The OpenAPI 3.1 description of the HTTP face, made of the models that check requests and shape answers.

It says what the server does and nothing of its packs, so it is the same bytes for every caller. It is imported when it
is first asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from http import HTTPStatus
from typing import Any, get_args

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from octavo_artifact import __version__
from octavo_artifact.ids import canonical_json
from octavo_artifact.parameters import BOOSTED, DEFAULTS, MAX_BOOSTS, RANGES, Fusion, GateMode, Retrieval
from octavo_serve.answering.results import Done, Failure, Sources, Token
from octavo_serve.answering.stats import StatsResult
from octavo_serve.over_http.answers import Answered, Health, Index, NotAnswered, Problem, Readiness
from octavo_serve.over_http.asking import EVENTS
from octavo_serve.over_http.bodies import JSON
from octavo_serve.over_http.edge import PROBES
from octavo_serve.over_http.parameters import Parameter, parameters_of
from octavo_serve.over_http.problems import PROBLEM
from octavo_serve.requests import AskRequest, PacksRequest, ReadRequest, SearchRequest, TopicsRequest, TraverseRequest
from octavo_serve.results import PacksResult, ReadResult, SearchResult, TopicsResult, TraverseResult

OF_PACK = "OfPack"
"""Ends the name of a request's schema without `pack`, which the path names."""

_CHOICES: Mapping[str, tuple[str, ...]] = {"gate": get_args(GateMode), "fusion": get_args(Fusion)}
_WEIGHTS = ("words_weight", "passage_weight", "document_weight")

_PROBLEMS: Mapping[int, str] = {
    400: "The body is no JSON, or the query string holds a key.",
    401: "No key of this server was sent.",
    403: "Pages of this origin may not call.",
    404: "There is no such pack, document or file.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The body is of another type.",
    421: "The host is none that the server answers to.",
    422: "A parameter or field is missing, unknown or out of its range.",
    429: "More requests than are allowed.",
    500: "The server failed.",
    503: "The server is busy, or was too slow.",
}
_NOT_ANSWERED: Mapping[int, str] = {
    **_PROBLEMS,
    502: "The model, or who finds passages for it, failed.",
    503: "As many answers are being written as there are slots, or the search was too slow.",
}
_OF_ASK = "OfAsk"
"""Ends the name of a response that may come in an envelope."""

_HEADERS: Mapping[str, Any] = {
    "octavo-digest": {
        "description": "Release that answered: sha256 of its manifest; of several packs that of their digests by slug.",
        "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    },
    "ETag": {
        "description": "Changes with the release, the request, the day and the server's parameters. Not sent with an "
        "answer that is not to be kept.",
        "schema": {"type": "string"},
    },
    "Cache-Control": {"description": "How long the answer may be kept.", "schema": {"type": "string"}},
    "Retry-After": {
        "description": "Seconds after which to ask again.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[1-9][0-9]*$"},
    },
    "WWW-Authenticate": {"description": "How to send a key.", "required": True, "schema": {"type": "string"}},
    "Accept-Post": {"description": "The type that is taken.", "required": True, "schema": {"const": JSON}},
}
_PROBLEM_HEADERS: Mapping[int, str] = {
    401: "WWW-Authenticate",
    415: "Accept-Post",
    429: "Retry-After",
    503: "Retry-After",
}

_SLUG = {
    "name": "slug",
    "in": "path",
    "required": True,
    "description": "Slug of the pack: its current release. `slug@digest` is one release that is mounted, by its digest "
    "or the first 12 or more digits of it.",
    "schema": {"type": "string"},
}
_PATH = {
    "name": "path",
    "in": "path",
    "required": True,
    "description": "Path of the file inside the pack; its slashes may stand as they are.",
    "schema": {"type": "string"},
}
_CONDITION = {
    "name": "If-None-Match",
    "in": "header",
    "description": "Tags of answers that the client has, or `*`.",
    "schema": {"type": "string"},
}


@dataclass(frozen=True, slots=True)
class Operation:
    """What can be asked at a path."""

    path: str
    summary: str
    name: str
    request: type[BaseModel] | None
    result: Any
    """What is answered as JSON; None for a file."""
    post: bool = False
    tagged: bool = True
    """Whether its answer has a tag, by which a client may ask whether it still holds."""


OPERATIONS: Sequence[Operation] = (
    Operation("/", "What there is to ask; a page for browsers", "index", None, Index, tagged=False),
    Operation("/search", "Find passages that answer a query", "search", SearchRequest, SearchResult, post=True),
    Operation("/read", "Read a document by its id, path or URI", "read", ReadRequest, ReadResult),
    Operation("/graph", "Follow the edges from a node", "graph", TraverseRequest, TraverseResult),
    Operation("/packs", "List the packs", "packs", PacksRequest, PacksResult),
    Operation("/packs/{slug}", "List the documents of a pack by type", "topics", TopicsRequest, TopicsResult),
    Operation("/packs/{slug}/search", "Search one pack", "searchPack", SearchRequest, SearchResult, post=True),
    Operation("/packs/{slug}/read", "Read a document of one pack", "readPack", ReadRequest, ReadResult),
    Operation("/packs/{slug}/graph", "Follow the edges in one pack", "graphPack", TraverseRequest, TraverseResult),
    Operation("/packs/{slug}/files/{path}", "The bytes of a file of a pack", "file", None, None),
    Operation("/openapi.json", "This description", "openapi", None, dict[str, Any]),
    Operation("/healthz", "Whether all is well", "health", None, Health, tagged=False),
    Operation("/readyz", "Whether requests may come", "ready", None, Readiness, tagged=False),
)


STATS = Operation("/stats", "How the last answers went", "stats", None, StatsResult, tagged=False)
"""Where questions are answered, for those who may see every pack."""

ASKED: Mapping[str, str] = {"/ask": "ask", "/packs/{slug}/ask": "askPack"}
"""Paths at which questions are answered to their operations."""

STREAM_EVENTS: Mapping[str, Any] = {"sources": Sources, "token": Token, "done": Done, "error": Failure}
"""The events of an answer and their data."""


@cache
def described(keyed: bool, answers: bool) -> bytes:
    """The description as JSON; `keyed` where callers need a key, `answers` where a model answers questions."""
    return canonical_json(describe(keyed=keyed, answers=answers))


def describe(*, keyed: bool, answers: bool = False) -> dict[str, Any]:
    """The description."""
    schemas = _schemas(answers=answers)
    asked = {path: _ask_item(path, name, keyed=keyed) for path, name in ASKED.items()} if answers else {}
    asked |= {STATS.path: _path_item(STATS, keyed=keyed)} if answers else {}
    not_answered = {
        f"{status}{_OF_ASK}": _enveloped(status, said)
        for status, said in _NOT_ANSWERED.items()
        if answers and (keyed or status != 401)
    }
    return {
        "openapi": "3.1.1",
        "info": {
            "title": "Octavo",
            "version": __version__,
            "description": "Packs of knowledge, read-only. Every path that answers GET answers HEAD too. MCP is spoken "
            "at `/mcp` and `/packs/{slug}/mcp`, and describes itself.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": {each.path: _path_item(each, keyed=keyed) for each in OPERATIONS} | asked,
        "components": {
            "schemas": schemas,
            "parameters": dict(_parameters(schemas)) | {"slug": _SLUG, "path": _PATH, "If-None-Match": _CONDITION},
            "headers": dict(_HEADERS),
            "responses": {
                str(status): _problem(status, said) for status, said in _PROBLEMS.items() if keyed or status != 401
            }
            | not_answered,
            **({"securitySchemes": {"key": _SCHEME}} if keyed else {}),
        },
        **({"security": [{"key": []}]} if keyed else {}),
    }


_SCHEME = {"type": "http", "scheme": "bearer", "description": "A key that `octavo key new` made; it opens some packs."}


class _Schemas(GenerateJsonSchema):
    """Schemas whose fields have no titles: pydantic repeats their names there."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _schemas(*, answers: bool) -> dict[str, Any]:
    """All schemas by name."""
    shapes: set[Any] = {Problem}.union(*({each.request, each.result} for each in OPERATIONS)) - {None, dict[str, Any]}
    if answers:
        shapes |= {STATS.result, AskRequest, Answered, NotAnswered, *STREAM_EVENTS.values()}
    adapters: list[tuple[str, JsonSchemaMode, TypeAdapter[Any]]] = [
        (shape.__name__, "validation", TypeAdapter(shape)) for shape in sorted(shapes, key=lambda each: each.__name__)
    ]
    template = "#/components/schemas/{model}"
    _, made = TypeAdapter.json_schemas(adapters, ref_template=template, schema_generator=_Schemas)
    schemas: dict[str, Any] = made["$defs"]
    asked = schemas["SearchRequest"]["properties"]["retrieval"]
    schemas["SearchRequest"]["properties"]["retrieval"] = {
        "$ref": template.format(model="Retrieval"),
        "description": asked["description"],
        "default": {},
    }
    schemas["Retrieval"] = _retrieval()
    for name in ("SearchRequest", *(["AskRequest"] if answers else [])):
        schemas[name + OF_PACK] = _without_pack(schemas[name])
    return dict(sorted(schemas.items()))


def _without_pack(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = {name: each for name, each in schema["properties"].items() if name != "pack"}
    return {**schema, "properties": properties, "title": schema["title"] + OF_PACK}


def _retrieval() -> dict[str, Any]:
    """The schema of the parameters that a request may set."""
    return {
        "type": "object",
        "title": "Retrieval",
        "description": "Parameters of the search that are to differ from the pack's.",
        "additionalProperties": False,
        "properties": {each.name: _of_parameter(each.name) for each in fields(Retrieval)},
        # One of the three is needed to rank by.
        "not": {"required": list(_WEIGHTS), "properties": {name: {"const": 0} for name in _WEIGHTS}},
    }


def _of_parameter(name: str) -> dict[str, Any]:
    default = getattr(DEFAULTS, name)
    if name == "boosts":
        return {
            "type": "object",
            "maxProperties": MAX_BOOSTS,
            "propertyNames": {"pattern": rf"^(?:{'|'.join(BOOSTED)}):[\s\S]{{1,200}}$"},
            "additionalProperties": {"type": "number", "minimum": -1, "maximum": 1},
        }
    if isinstance(default, bool):
        return {"type": "boolean"}
    if name in _CHOICES:
        return {"enum": list(_CHOICES[name])}
    least, most = RANGES[name]
    return {"type": "integer" if isinstance(default, int) else "number", "minimum": least, "maximum": most}


def _parameters(schemas: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The parameters of every query string, by the name they are referred to."""
    for model in dict.fromkeys(each.request for each in OPERATIONS if each.request):
        for parameter in parameters_of(model).values():
            yield f"{model.__name__}.{parameter.name}", _parameter(parameter, schemas[model.__name__])


def _parameter(parameter: Parameter, model: Mapping[str, Any]) -> dict[str, Any]:
    schema = dict(model["properties"][parameter.field])
    described = {
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": schema.pop("description"),
    }
    if parameter.kind is dict:
        # A JSON object as text.
        return {**described, "content": {JSON: {"schema": {"$ref": schema["$ref"]}}}}
    if "anyOf" in schema:
        # What is left out is null; it cannot be written.
        (only,) = (each for each in schema["anyOf"] if each != {"type": "null"})
        schema = only
    return {**described, "schema": schema}


def _path_item(operation: Operation, *, keyed: bool) -> dict[str, Any]:
    named = [name for name in ("slug", "path") if f"{{{name}}}" in operation.path]
    item: dict[str, Any] = {}
    if named:
        item["parameters"] = [_ref("parameters", name) for name in named]
    of_pack = "slug" in named
    parameters = (
        [
            _ref("parameters", f"{operation.request.__name__}.{name}")
            for name in parameters_of(operation.request, of_pack=of_pack)
        ]
        if operation.request
        else []
    )
    condition = [_ref("parameters", "If-None-Match")] if operation.tagged else []
    item["get"] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [*parameters, *condition],
        "responses": _responses(operation, keyed=keyed),
        **({"security": [{}, {"key": []}]} if keyed and operation.path in PROBES else {}),
    }
    if operation.post and operation.request:
        schema = operation.request.__name__ + (OF_PACK if of_pack else "")
        item["post"] = {
            "operationId": f"{operation.name}ByPost",
            "summary": operation.summary,
            "requestBody": {"required": True, "content": {JSON: {"schema": _ref("schemas", schema)}}},
            "responses": _responses(operation, keyed=keyed, post=True),
        }
    return item


def _ask_item(path: str, name: str, *, keyed: bool) -> dict[str, Any]:
    of_pack = "{slug}" in path
    stream = {
        "description": "An event: `sources` is the first, `token` comes any number of times, and `done` or `error` at "
        "last. Comments break a silence.",
        "oneOf": [_event(event, shape.__name__) for event, shape in STREAM_EVENTS.items()],
    }
    content = {EVENTS: {"schema": stream}, JSON: {"schema": _ref("schemas", "Answered")}}
    answer = {"description": "The answer, or a refusal.", "content": content}
    headers = {"headers": _header_refs("Cache-Control", "octavo-digest")}
    failures = {str(status): _ref("responses", f"{status}{_OF_ASK}") for status in _NOT_ANSWERED}
    if not keyed:
        del failures["401"]
    item: dict[str, Any] = {"parameters": [_ref("parameters", "slug")]} if of_pack else {}
    item["post"] = {
        "operationId": name,
        "summary": "Answer a question from one pack, with citations" if of_pack else "Answer a question with citations",
        "parameters": [
            {
                "name": "stream",
                "in": "query",
                "description": "Whether the answer comes as it is written, or at once in an envelope.",
                "schema": {"type": "boolean", "default": True},
            }
        ],
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": _ref("schemas", "AskRequest" + (OF_PACK if of_pack else ""))}},
        },
        "responses": {"200": answer | headers, **failures},
    }
    return item


def _event(name: str, schema: str) -> dict[str, Any]:
    """A server-sent event with JSON in its data, as OpenAPI 3.2 writes them."""
    data = {"type": "string", "contentMediaType": JSON, "contentSchema": _ref("schemas", schema)}
    return {"type": "object", "required": ["event", "data"], "properties": {"event": {"const": name}, "data": data}}


def _enveloped(status: int, said: str) -> dict[str, Any]:
    """A problem, which `stream=false` puts into an envelope."""
    response = _problem(status, said)
    return {**response, "content": {**response["content"], JSON: {"schema": _ref("schemas", "NotAnswered")}}}


def _responses(operation: Operation, *, keyed: bool, post: bool = False) -> dict[str, Any]:
    fails = {403, 413, 421, 429, 500}
    if operation.request or operation.result is None:
        fails |= {404, 422, 503}
    if operation is STATS:
        fails |= {404, 422} if keyed else {422}
    if post:
        fails |= {400, 408, 415}
    if keyed:
        fails |= {400, 401}
    if operation.path in PROBES:
        fails -= {400, 401, 421, 429}
    responses = {"200": _answer(operation, tagged=operation.tagged and not post)}
    if operation.tagged and not post:
        responses["304"] = {
            "description": "The client has this answer.",
            "headers": _header_refs("ETag", "Cache-Control"),
        }
    if operation.path in PROBES:
        down = _answer(operation, tagged=False)
        responses["503"] = {**down, "description": "No pack is served, or the server is about to end."}
    responses |= {str(status): _ref("responses", str(status)) for status in fails}
    return dict(sorted(responses.items()))


def _answer(operation: Operation, *, tagged: bool) -> dict[str, Any]:
    names = [*(["ETag"] if tagged else []), "Cache-Control"]
    if operation.result is None:
        content: dict[str, Any] = {"*/*": {}}
    elif operation.result == dict[str, Any]:
        content = {JSON: {"schema": {"type": "object"}}}
    else:
        content = {JSON: {"schema": _ref("schemas", operation.result.__name__)}}
    if operation.path == "/":
        content["text/html"] = {"schema": {"type": "string"}}
    if operation.result is None or "digest" in getattr(operation.result, "__annotations__", {}):
        names.append("octavo-digest")
    return {"description": "The answer.", "headers": _header_refs(*names), "content": content}


def _problem(status: int, said: str) -> dict[str, Any]:
    headers = [_PROBLEM_HEADERS[status]] if status in _PROBLEM_HEADERS else []
    return {
        "description": f"{HTTPStatus(status).phrase}. {said}",
        "headers": _header_refs("Cache-Control", *headers),
        "content": {PROBLEM: {"schema": _ref("schemas", "Problem")}},
    }


def _header_refs(*names: str) -> dict[str, Any]:
    return {name: _ref("headers", name) for name in names}


def _ref(kind: str, name: str) -> dict[str, str]:
    return {"$ref": f"#/components/{kind}/{name}"}
