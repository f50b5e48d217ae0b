"""What a client gets: the same objects over HTTP, MCP and the shell.

They are plain dictionaries, typed: made once, serialised as they are. Their JSON Schemas are MCP's output schemas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NotRequired

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

_CONFIG = ConfigDict(use_attribute_docstrings=True, extra="forbid")


class Reconstruction(TypedDict):
    """The source of a passage, when a search asks for it with `reconstruct`."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # pydantic's documented hook; TypedDict allows only annotations

    original_markdown: str
    """Exactly the bytes `byte_range` of the file."""
    excerpt: str
    """The first words of its prose, to quote."""
    file_sha256: str
    stale: bool
    """True when the bytes are not those that were indexed; never in an intact release."""


class Freshness(TypedDict):
    """How far a text can be relied on today."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see Reconstruction

    # pydantic passes on no docstrings of fields to classes that inherit them
    verified_age_days: Annotated[
        int | None, Field(description="Days since `verified_at`; 0 when that is to come, null when it is not known.")
    ]
    age_stale: Annotated[
        bool | None,
        Field(description="Whether it should have been verified again; null when a date or a cycle is missing."),
    ]
    expired: Annotated[bool, Field(description="Whether `expires_at` is past.")]
    expires_at: Annotated[str | None, Field(description="Last day on which the text holds, if its author gave one.")]


class Citation(TypedDict):
    """A passage in a compact answer: what is needed to cite it and to read on."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see Reconstruction

    pack: str
    fragment_id: str
    title: str
    heading_path: list[str]
    source_file: str
    line_range: list[int]
    """As a hit's, as are `shown_range` and `score`."""
    shown_range: NotRequired[list[int]]
    score: float
    expired: bool
    age_stale: bool | None
    text: NotRequired[str]
    """Absent in structured content of MCP, whose text block has it."""


class Hit(Freshness):
    """A passage that was found, with where it stands."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see Reconstruction

    pack: str
    text: str
    """The passage as written; a part of a split table begins with `added_text`."""
    added_text: str
    """Leading part of `text` that is repeated from above and not in the span; mostly empty."""
    score: float
    """Fused relevance from 0 to 1, comparable within one answer only."""
    source_file: str
    id: str
    uri: str
    fragment_id: str
    """Names this passage and its exact text; `ep_read` takes it."""
    title: str
    heading_path: list[str]
    type: str | None
    tags: list[str]
    line_range: list[int]
    """First and last line in the file, counted from 1, both included."""
    shown_range: NotRequired[list[int]]
    """Only when `text` is cut for its size: the lines it has, the last perhaps in part. Read on with `ep_read` from
    there."""
    byte_range: list[int]
    """Start and end byte in the file, end excluded."""
    span_sha256: str
    """Of exactly these bytes of the file."""
    content_hash: str
    """`sha256:` and the hash of the whole document's body."""
    verified_at: str | None
    verified_by: str | None
    confidence: str | None
    requires_expanded: bool
    """True for a whole document added because a hit requires it; its score is that hit's, less for each step."""
    graph_expanded: bool
    """True for a passage that is here only because its document is linked with one of the best."""
    duplicates: list[str]
    """Fragment ids of passages that say the same; they are results only where nothing else was left to show."""
    digest: str
    """Release that answered."""
    reconstruction: NotRequired[Reconstruction]
    """Only when the search asked for it."""


if TYPE_CHECKING:
    Hits = list[Hit]
    """To code; what asks for a compact answer knows that it gets citations."""
else:
    Hits = list[Hit] | list[Citation]


class Nearest(TypedDict):
    """A document that was nearest to a question without answering it."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see Reconstruction

    pack: str
    id: str
    title: str
    score: float
    """As a hit's."""


class Step(TypedDict):
    """A stage of a search."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see Reconstruction

    stage: str
    milliseconds: float
    passages: int | None
    """How many it ranked; null when it changed nothing."""


class StepOfHit(TypedDict):
    """Where a passage stood after a stage."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see Reconstruction

    stage: str
    """`lexical: words` is the ranking by words, `vector: nearest` by the best window, `vector: documents` by the
    document's mean; the others are the one ranking from fusion on."""
    rank: int | None
    """1 for the best; null when it was not among them."""
    score: float | None


class Explanation(TypedDict):
    """How a search came to its answer."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see Reconstruction

    intent: str
    """What kind of question it is: `when`, `how`, `why`, `entity`, `general`."""
    terms: list[list[str]]
    """Words that were looked up, each in its possible stems."""
    literals: list[str]
    """Looked up letter by letter."""
    phrases: list[str]
    """Looked up word by word, as quoted."""
    languages: list[str]
    """By whose rules words were stemmed."""
    parameters: dict[str, Any]
    """In force."""
    stages: list[Step]
    hits: dict[str, list[StepOfHit]]
    """By fragment id."""


class SearchResult(TypedDict):
    """Passages for a query, best first."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see Reconstruction

    query: str
    pack: str | None
    """Null when several packs were asked; each result names its own."""
    digest: str
    """Release of the pack that answered: sha256 of its manifest; of several packs that of their digests by slug."""
    degraded: bool
    """True when something could not be done, and the answer may be worse for it."""
    missing: list[str]
    """What that is: `encoder` when meaning could not be compared and only words were matched, `reranker`."""
    refused: bool
    reason: str | None
    """Why nothing is returned: `empty_query`, `no_relevant_passage`."""
    answer_probability: float | None
    """That the best passages answer the query, from 0 to 1; null when it was not judged."""
    doubtful: bool
    """True when that is too low to rely on: read before you cite."""
    overrides: dict[str, Any]
    """Parameters in force that are not the pack's own: the server's or the request's."""
    total: int
    """Passages of the whole answer."""
    truncated: bool
    """True when the answer had to be cut for its size: passages follow, or one has `shown_range`."""
    next_cursor: str | None
    """Asks for what follows, as `cursor` of the same request."""
    results: Hits
    """Citations when the answer is compact."""
    nearest: list[Nearest]
    """What was nearest when it was refused for no relevant passage, three at most: where to look, not an answer."""
    explanation: NotRequired[Explanation]
    """Only when the search asked for it."""


class Activation(TypedDict):
    """What a workflow, decision, gotcha or phase activates."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see Reconstruction

    tools: list[str]
    constraints: list[str]
    next: list[str]


class ReadResult(Freshness):
    """One document, or the lines of it that fit an answer."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see Reconstruction

    pack: str
    digest: str
    path: str
    id: str
    uri: str
    title: str
    description: str | None
    type: str | None
    tags: list[str]
    content: str
    """Of the file, frontmatter included when it begins at line 1."""
    section: str | None
    """Anchor of the section that was asked for."""
    line_range: list[int]
    """First and last line of `content`; where one line fills an answer it comes in parts."""
    total_lines: int
    truncated: bool
    """True when more of what was asked for follows."""
    next_cursor: str | None
    """Asks for what follows, as `cursor` of the same request."""
    content_hash: str
    file_sha256: str
    verified_at: str | None
    verified_by: str | None
    confidence: str | None
    retrieval_strategy: str
    concept_scope: str
    tier: str
    """`always`, `searchable` or `on_demand`."""
    requires: list[str]
    related: list[str]
    activation: Activation | None
    previous: str | None
    """Id of the part before, when the document is part of a sequence."""
    next: str | None
    """Id of the part after."""


class GraphNode(TypedDict):
    """A document, or an entity of the pack's ontology."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see Reconstruction

    id: str
    title: str
    type: str | None
    kind: str
    """`document`, or what the ontology calls the entity."""
    file: str | None
    uri: str | None
    """Null for an entity: it has no file to read."""
    depth: int
    """Edges between it and the start."""
    score: float
    """Nearness to the question, else to the start, less for each edge; 1 for the start."""


class GraphEdge(TypedDict):
    """A directed relation between two of the nodes."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see Reconstruction

    source: str
    target: str
    kind: str


class TraverseResult(TypedDict):
    """What a node is joined to, nearest first."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see Reconstruction

    pack: str
    digest: str
    start: str
    """Id of the node that the request named; the first of `nodes`."""
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    """Those that were walked, each with the later of its two nodes."""
    total: int
    """Nodes of the whole walk."""
    truncated: bool
    """True when there are nodes or edges within reach that the answer has not."""
    next_cursor: str | None
    """Asks for the nodes that follow, as `cursor` of the same request; beyond `max_nodes` none do."""


class Topic(Freshness):
    """A document of the pack."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see Reconstruction

    id: str
    path: str
    title: str
    description: str | None
    retrieval_strategy: str
    tier: str
    activation: Activation | None


class PackFreshness(TypedDict):
    """How far a pack's searchable documents can be relied on today."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see Hit

    coverage_pct: float | None
    """Share of them with a date of verification, counted and not believed; null when there are none."""
    stale: int
    """How many should have been verified again."""
    expired: int
    last_full_review: str | None
    """As the manifest says."""


class Authority(TypedDict):
    """What a pack may be relied on for, in its own words."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see Reconstruction

    in_scope: str
    out_of_scope: list[str]
    refuse_when: list[str]
    no_source_no_claim: bool
    """Whether nothing is to be claimed without a source from the pack."""


class PackSummary(TypedDict):
    """What a pack says of itself."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see Reconstruction

    slug: str
    name: str
    type: str
    version: str
    description: str
    entry_point: str | None
    documents: int
    passages: int
    authority_boundary: Authority | None
    """Null when the pack says nothing of it."""
    freshness: PackFreshness


class TopicsResult(TypedDict):
    """The documents of a pack by type."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see Reconstruction

    pack: PackSummary
    digest: str
    total: int
    """Documents of the whole list."""
    truncated: bool
    next_cursor: str | None
    """Asks for the documents that follow, as `cursor` of the same request."""
    topics: dict[str, list[Topic]]


class ListedPack(PackSummary):
    """A pack that the caller may ask."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see Reconstruction

    digest: str
    """Its current release."""
    releases: list[str]
    """Digests of all its releases that answer, the current one first: each is asked as `slug@digest`."""


class PacksResult(TypedDict):
    """The packs that the caller may ask, by slug."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]  # see Reconstruction

    packs: list[ListedPack]
