"""The rows of an artifact as frozen data: documents, passages, sections, edges, nodes, resources, encoder.

Field names are the column names of `layout`; `layout` says how they are stored, this module what they mean.
"""

from __future__ import annotations

from dataclasses import dataclass

from octavo_artifact.text import DEFAULT_LANGUAGE

AUDIENCES = ("public", "friends", "family", "self")
"""Who may read a document, from the widest circle to the narrowest; each holds those before it (ExpertPack)."""


@dataclass(frozen=True, slots=True)
class Document:
    """One source file of a pack."""

    path: str
    """Relative to the pack's root, `/` between parts, Unicode NFC."""
    id: str
    """As the author wrote it, else `{slug}/{path without its ending}`; unique in the pack."""
    uri: str
    title: str
    description: str | None
    type: str | None
    tags: tuple[str, ...]
    pack: str
    """Slug of the (child) pack whose manifest governs the file."""
    tier: str
    """`always`, `searchable` or `on_demand` (ExpertPack context tiers)."""
    strategy: str
    """`standard`, `atomic` or `navigation`."""
    scope: str
    searchable: bool
    """False for navigation and on-demand files: they can be read, never found."""
    mime_type: str
    frontmatter: str
    """The author's metadata as a JSON object, scalars as written."""
    raw: bytes
    """The file, byte for byte."""
    body_offset: int
    """Byte offset in `raw` at which the body begins: after BOM and frontmatter blocks."""
    file_sha256: str
    body_sha256: str
    """Of the body without leading newlines, as ExpertPack's `content_hash` is defined."""
    verified_at: str | None
    """ISO 8601 date or time, as written."""
    verified_by: str | None
    confidence: str | None
    requires: tuple[str, ...]
    related: tuple[str, ...]
    refresh: str | None = None
    """ISO 8601 duration after which a verification is too old: the file's own, else its pack's."""
    expires_at: str | None = None
    """ISO 8601 date of the last day on which the document holds."""
    marks: str = "[]"
    """What the author put in HTML comments, in order: a JSON list of {kind, line, start_byte, end_byte, data}."""
    activation: str | None = None
    """What a workflow, decision, gotcha or phase activates: JSON, lists of words `tools`, `constraints`, `next`."""
    chunks: str = "[]"
    """Where the author cut the document: a JSON list of {start_byte, section, context_prefix}; empty for ours."""
    audience: str = "public"
    """One of AUDIENCES."""
    language: str | None = None
    """BCP-47 tag as the author or the folders have it, its primary subtag in lower case; None when nothing says it."""


@dataclass(frozen=True, slots=True)
class Passage:
    """The unit of retrieval: an exact span of a document; a document's passages partition its body."""

    document: int
    """Row of the document."""
    ordinal: int
    """0 for the document's first passage."""
    section: str
    """Anchor of the heading the passage stands under, unique in its document; empty before any heading."""
    heading_path: tuple[str, ...]
    """Plain text of the headings above the passage, outermost first, its own last."""
    start_line: int
    end_line: int
    """Lines of the raw file, counted from 1, both included."""
    start_byte: int
    end_byte: int
    """Bytes of the raw file, half open: `raw[start_byte:end_byte]` is the passage."""
    span_sha256: str
    tokens: int
    """Estimate: characters / 4, rounded up (ExpertPack's measure)."""
    prefix: str
    """Text shown before the span that is not part of it: the header rows of a table that was split."""
    context_prefix: str = ""
    """Text that is embedded and indexed with the span and never shown: an author's words on its context."""
    expires_at: str | None = None
    """ISO 8601 date of the last day on which every `refresh` block in the span or directly below it holds."""
    language: str = DEFAULT_LANGUAGE
    """BCP-47 primary subtag by which its words are stemmed: the document's, else what its commonest words say."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of a document and all that stands under it; the outline that reading by heading follows."""

    document: int
    """Row of the document."""
    ordinal: int
    """0 for the document's first heading."""
    level: int
    """1 to 6."""
    title: str
    """The heading's plain text."""
    anchor: str
    """As in the fragment ids of the document's passages; unique in it."""
    start_line: int
    end_line: int
    """Lines of the raw file, counted from 1, both included; subsections belong to the section."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A directed relation between two nodes."""

    source: str
    target: str
    kind: str
    """`requires`, `related`, `wikilink`, `link`, `context`, `entity_mention`, a field of an OKF concept (`source`,
    `resource`, `computation`, `executor`, `attester`), or what the pack's ontology names."""


@dataclass(frozen=True, slots=True)
class Node:
    """A thing that edges join; a document unless `file` is None."""

    id: str
    title: str
    type: str | None
    file: str | None
    """Path of the document."""
    kind: str = "document"
    """`document`, or the kind of thing that the pack's ontology calls it."""
    aliases: tuple[str, ...] = ()
    """Other names of it."""
    status: str | None = None
    """As the author wrote it."""


@dataclass(frozen=True, slots=True)
class Resource:
    """Something MCP lists and reads: a document's bytes, or bytes of its own."""

    uri: str
    name: str
    title: str
    description: str | None
    mime_type: str
    size: int
    sha256: str
    document: int | None
    content: bytes | None
    start: int = 0
    """Byte of the document at which the resource begins; `size` bytes from there are its content."""
    frontmatter: str | None = None
    """Of a skill's SKILL.md, as a JSON object; the skill's files are the resources below its directory."""


POOLINGS = ("mean", "cls", "last")
"""The mean of all tokens' vectors, the first token's, the last one's."""


@dataclass(frozen=True, slots=True)
class EncoderSpec:
    """All that decides a vector. Its fingerprint, never its name, says whether two encoders are the same."""

    name: str
    """For people only; not part of the fingerprint."""
    model_sha256: str
    """Of `model.onnx`; empty for an encoder behind an endpoint."""
    tokenizer_sha256: str
    """Of the tokenizer that sizes windows; where the model is a file, its own."""
    dimensions: int
    max_tokens: int
    """Longest input, special tokens included; longer ones would be cut silently by the tokenizer."""
    pooling: str
    """How the vectors of tokens become one: one of POOLINGS; `endpoint` when that does it."""
    normalize: bool
    """Whether rows have unit length, so that a dot product is a cosine."""
    query_prefix: str = ""
    passage_prefix: str = ""
    """What stands before a query and before a window when it is encoded, where the model was trained so."""
    model: str = ""
    """The endpoint's name of the model; empty when the model is a file."""
    probe: tuple[float, ...] = ()
    """Of a model behind an endpoint: the first values of the vector of a fixed sentence, rounded."""
