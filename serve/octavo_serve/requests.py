"""What a client may ask, checked: the one place where a stranger's values become ours.

The models are both the validators and the source of the JSON Schemas that MCP and OpenAPI publish.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from datetime import date
from typing import Annotated, Any, Literal, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from octavo_artifact.errors import RequestError
from octavo_artifact.parameters import DEFAULTS, GateMode, Retrieval, Tier

MAX_QUERY = 2000
MAX_RESULTS = 50
MAX_SOURCES = 20
"""Passages that an answer may rest on."""
MAX_DEPTH = 3
MAX_NODES = 100
MIN_TOKENS = 500
DEFAULT_TOKENS = 10_000
"""Of an answer to a stranger: a host that shows a model the text and the record of it stays below the 25,000 at which
clients cut."""
MAX_TOKENS = 100_000

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _day(value: object) -> object:
    """A day as a client writes it; Python takes other spellings too, and pydantic numbers."""
    if value is None or type(value) is date:
        return value
    try:
        if isinstance(value, str) and _DAY.fullmatch(value):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise ValueError("expected a day as YYYY-MM-DD")


AsOf = Annotated[
    date | None,
    BeforeValidator(_day),
    WithJsonSchema({"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]}),
    Field(description="Day, YYYY-MM-DD, by which ages and expiry are told; without it today."),
]

AnyPack = Annotated[
    str | None,
    Field(
        description="Slug of the pack to ask, with `@` and a digest for one of its releases; without it all packs "
        "are asked, and ranked together."
    ),
]
OfType = Annotated[str | None, Field(max_length=200, description="Only documents of this type.")]
WithTags = Annotated[
    tuple[Annotated[str, Field(max_length=200)], ...],
    Field(max_length=20, description="Only documents that carry all of these tags."),
]
InPath = Annotated[
    str | None, Field(max_length=2000, description="Only documents in this folder of the pack, or this one file.")
]
OfTier = Annotated[Tier | None, Field(description="Only documents of this context tier.")]
VerifiedWithin = Annotated[
    int | None, Field(ge=0, le=36_500, description="Only documents that were verified in so many days.")
]
PackSlug = Annotated[
    str | None,
    Field(description="Slug of the pack to ask, with `@` and a digest for one of its releases."),
]
MaxTokens = Annotated[
    int | None,
    Field(
        ge=MIN_TOKENS,
        le=MAX_TOKENS,
        description=f"Size of the answer at most, in tokens of 4 bytes each; {DEFAULT_TOKENS:,} without it.",
    ),
]
Cursor = Annotated[
    str | None,
    Field(max_length=200, description="`next_cursor` of the answer before, to go on; all else as it was asked."),
]


def _kind(value: object) -> str:
    match value:
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case dict():
            return "a mapping"
        case _:
            return "nothing"


def _typed(values: dict[str, Any]) -> dict[str, Any]:
    """Parameters with JSON's types; in a pack they may be spelled as text. Unknown ones are the search's to refuse."""
    for name in Retrieval.__slots__:
        expected = _kind(getattr(DEFAULTS, name))
        if name in values and _kind(values[name]) != expected:
            raise ValueError(f"{name}: expected {expected}")
    if any(_kind(value) != "a number" for value in values.get("boosts", {}).values()):
        raise ValueError("boosts: expected numbers")
    return values


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=False)


class SearchRequest(_Request):
    """Find passages that answer a query."""

    query: Annotated[
        str,
        Field(
            max_length=MAX_QUERY,
            description="A question or keywords, in plain words; what is quoted is looked for word by word.",
        ),
    ]
    pack: AnyPack = None
    max_results: Annotated[int, Field(ge=1, le=MAX_RESULTS, description="How many passages to return at most.")] = 10
    type: OfType = None
    tags: WithTags = ()
    path: InPath = None
    tier: OfTier = None
    verified_within: VerifiedWithin = None
    graph: Annotated[
        bool | None,
        Field(
            description="Give up to two places to documents that are linked with the best ones; without it the pack's "
            "own choice."
        ),
    ] = None
    gate: Annotated[
        GateMode | None,
        Field(
            description="What becomes of an answer that probably is none: `refuse` returns nothing, `flag` marks it as "
            "doubtful, `off` does not judge; without it the pack's own choice, mostly `refuse`."
        ),
    ] = None
    reconstruct: Annotated[
        bool, Field(description="Also return each passage's exact source and an excerpt to quote.")
    ] = False
    retrieval: Annotated[
        dict[str, Any],
        AfterValidator(_typed),
        Field(
            max_length=len(fields(Retrieval)),
            description="Parameters of the search that are to differ from the pack's, by name.",
        ),
    ] = {}  # pydantic copies it
    explain: Annotated[
        bool, Field(description="Also return what each stage of the search made of each passage, with its time.")
    ] = False
    as_of: AsOf = None
    compact: Annotated[
        bool,
        Field(
            description="Of each passage only what is needed to cite it and to read on; over MCP its text is in the "
            "text block only."
        ),
    ] = False
    max_tokens: MaxTokens = None
    cursor: Cursor = None


class ReadRequest(_Request):
    """Read one document: give its id, its path, or the URI or fragment id of a search result."""

    id: Annotated[
        str | None,
        Field(max_length=2000, description="The `id`, `uri`, `fragment_id` or `source_file` of a search result."),
    ] = None
    path: Annotated[str | None, Field(max_length=2000, description="Path of the file inside the pack.")] = None
    pack: PackSlug = None
    section: Annotated[
        str | None,
        Field(max_length=400, description="Only this section: its heading, or the anchor in a fragment id."),
    ] = None
    neighbors: Annotated[bool, Field(description="With `section`: also the sections before and after it.")] = False
    start_line: Annotated[
        int, Field(ge=1, le=2**31 - 1, description="First line to return; lines count from 1 over the whole file.")
    ] = 1
    as_of: AsOf = None
    max_tokens: MaxTokens = None
    cursor: Cursor = None


class TraverseRequest(_Request):
    """Follow the edges from one document, or from an entity of the pack's ontology: give its id, path or URI."""

    id: Annotated[
        str | None,
        Field(max_length=2000, description="Id of a node, or the `id`, `uri`, `fragment_id` of a search result."),
    ] = None
    path: Annotated[str | None, Field(max_length=2000, description="Path of the file inside the pack.")] = None
    pack: PackSlug = None
    depth: Annotated[int, Field(ge=1, le=MAX_DEPTH, description="How many edges away at most.")] = 1
    kinds: Annotated[
        tuple[Annotated[str, Field(max_length=200)], ...],
        Field(
            max_length=20,
            description="Only edges of these kinds: requires, related, wikilink, link, context, sequence, "
            "entity_mention, or one of the pack's own.",
        ),
    ] = ()
    direction: Annotated[
        Literal["out", "in", "both"], Field(description="Edges that lead out of a node, into it, or both.")
    ] = "both"
    query: Annotated[
        str | None,
        Field(max_length=MAX_QUERY, description="Score nodes by this question; without it by nearness to the start."),
    ] = None
    decay: Annotated[float, Field(ge=0.1, le=1, description="Factor of a node's score for each edge.")] = 0.85
    min_score: Annotated[
        float, Field(ge=0, le=1, description="Leave out nodes that score less, and do not go on from them.")
    ] = 0.0
    max_nodes: Annotated[
        int, Field(ge=1, le=MAX_NODES, description="How many nodes to return, the start included.")
    ] = 50
    max_tokens: MaxTokens = None
    cursor: Cursor = None


class TopicsRequest(_Request):
    """List what a pack knows about."""

    pack: PackSlug = None
    type: Annotated[str | None, Field(max_length=200, description="Only documents of this type.")] = None
    as_of: AsOf = None
    max_tokens: MaxTokens = None
    cursor: Cursor = None


class PacksRequest(_Request):
    """List the packs."""

    as_of: AsOf = None


class Filters(_Request):
    """Which documents may answer; as of a search."""

    type: OfType = None
    tags: WithTags = ()
    path: InPath = None
    tier: OfTier = None
    verified_within: VerifiedWithin = None

    @model_validator(mode="before")
    @classmethod
    def _of_json(cls, value: Any) -> Any:
        """JSON values are those of Python one level down too; see `parse_request`."""
        if not isinstance(value, dict):
            return value
        return {name: _python(each) for name, each in cast(dict[str, Any], value).items()}


class AskRequest(_Request):
    """Answer a question from a pack, with citations."""

    question: Annotated[str, Field(min_length=1, max_length=MAX_QUERY, description="The question, in plain words.")]
    pack: AnyPack = None
    k: Annotated[
        int | None,
        Field(ge=1, le=MAX_SOURCES, description="Passages to answer from at most; the server's choice without it."),
    ] = None
    filters: Annotated[Filters, Field(description="Which documents may answer.")] = Filters()
    as_of: AsOf = None


Paged = SearchRequest | ReadRequest | TraverseRequest | TopicsRequest
"""What is answered by pages. In process, without `max_tokens`, an answer has no bound."""

RequestT = TypeVar("RequestT", bound=_Request)


def parse_request(model: type[RequestT], values: Mapping[str, Any], *, strict: bool, bounded: bool = True) -> RequestT:
    """Check `values` against `model`.

    `strict` takes JSON types as they are (MCP); without it numbers may be spelled as strings (query strings). `bounded`
    gives the answer its default size where none is asked for, as strangers get it.
    Raises RequestError naming the first bad field and what is allowed; the value itself is not repeated.
    """
    if bounded and values.get("max_tokens") is None and "max_tokens" in model.model_fields:
        values = {**values, "max_tokens": DEFAULT_TOKENS}
    try:
        if strict:
            return model.model_validate({name: _python(value) for name, value in values.items()}, strict=True)
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "request"
        known = ", ".join(model.model_fields)
        said = first["msg"].removeprefix("Value error, ")
        message = said if first["type"] != "extra_forbidden" else f"unknown; known are {known}"
        raise RequestError(field, message) from error


def _python(value: Any) -> Any:
    """What a JSON value is in Python: an array is a tuple, and 10.0 is a whole number as it is in JSON Schema."""
    if isinstance(value, list):
        return tuple(cast(list[Any], value))
    return int(value) if isinstance(value, float) and value.is_integer() else value
