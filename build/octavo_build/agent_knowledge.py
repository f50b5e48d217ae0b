"""A pack as Agent Knowledge (AKS, `expertpack.agent_knowledge.v1`): a small record a document, for agents' own stores.

Only what is public is exported, and of that what has an id of its author's: a record that changes its id with a rename
cannot be cited.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from octavo_artifact.schema import Document, Edge
from octavo_build.graph import build_graph
from octavo_build.graph_files import texts
from octavo_build.markdown import Block, Body, parse_body
from octavo_build.pack import Pack
from octavo_build.plain import plain_text
from octavo_build.sources.audience import released

SCHEMA = "expertpack.agent_knowledge.v1"
MAX_STATEMENT = 800
MIN_STATEMENT = 30
"""Characters below which a statement says too little to be found by (the official validator's bound)."""

_LEAD = re.compile(r">[>\s*_]*lead summary[\s*_]*:", re.IGNORECASE)
_READ = 4 * MAX_STATEMENT
"""Characters of a block, for its Markdown takes some."""


def records(pack: Pack) -> list[dict[str, Any]]:
    """The records of a pack, sorted by id; fields that have no value are left out."""
    pack = released(pack)
    joined: defaultdict[str, list[Edge]] = defaultdict(list)
    for edge in build_graph(pack.documents, pack.extras).edges:
        joined[edge.source].append(edge)
    named = [document for document in pack.documents if _is_knowledge(document) and _has_id(document)]
    return [_record(pack.slug, document, joined[document.id]) for document in sorted(named, key=lambda each: each.id)]


def without_id(pack: Pack) -> int:
    """How many public documents of knowledge have no record for want of an id."""
    return sum(_is_knowledge(document) and not _has_id(document) for document in released(pack).documents)


def _is_knowledge(document: Document) -> bool:
    return document.strategy != "navigation" and not PurePosixPath(document.path).name.startswith("_")


def _has_id(document: Document) -> bool:
    return json.loads(document.frontmatter).get("id") == document.id


def _record(slug: str, document: Document, edges: Sequence[Edge]) -> dict[str, Any]:
    metadata: dict[str, Any] = json.loads(document.frontmatter)
    checksum = f"sha256:{document.body_sha256}"
    statement = canonical_statement(parse_body(document.raw, document.body_offset))
    optional = {
        **{name: metadata.get(name) for name in ("verified_at", "verified_by", "recorded_at", "valid_from")},
        "tags": document.tags,
        "requires": [edge.target for edge in edges if edge.kind == "requires"],
        "related": [{"id": edge.target, "kind": edge.kind} for edge in edges if edge.kind != "requires"],
        "supersedes": texts(metadata.get("supersedes")),
    }
    return {
        "schema": SCHEMA,
        "id": document.id,
        "canonical_statement": statement or document.description or document.title,
        "title": document.title,
        "type": document.type or "reference",
        "pack": slug,
        "canonical_path": document.path,
        "source_span_uri": f"{slug}/{document.path}",
        "content_hash": checksum,
        "source_checksum": checksum,
        **{name: value for name, value in optional.items() if value},
    }


def canonical_statement(body: Body) -> str:
    """What a document says in one paragraph, as plain text of at most `MAX_STATEMENT` characters: its lead summary,
    else its first paragraph or list; empty when it has none.
    """
    quotes = (_read(body, block) for block in body.blocks if block.kind == "quote")
    lead = _plain(next(filter(_LEAD.match, quotes), ""))
    prose = (_read(body, block) for block in body.blocks if block.kind in ("paragraph", "list"))
    first = next((text for text in prose if text and not text.startswith("![")), "")
    return lead.partition(":")[2].strip() or _plain(first)


def _read(body: Body, block: Block) -> str:
    return body.visible(block.start, block.end)[:_READ].strip()


def _plain(text: str) -> str:
    words = " ".join(plain_text(text).split())
    return words if len(words) <= MAX_STATEMENT else f"{words[: MAX_STATEMENT - 1]}…"
