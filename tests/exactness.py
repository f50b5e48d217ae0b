"""Packs compiled up to their vectors, and all that holds for what comes out, whatever the files are."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as pq

from octavo_artifact.ids import document_uri, fragment_id
from octavo_artifact.layout import EDGES, NODES, PASSAGES, RESOURCES, SECTIONS
from octavo_artifact.schema import Document, Edge, Node, Passage, Resource, Section
from octavo_artifact.text import unix_lines
from octavo_build import stages
from octavo_build.bodies import body_of
from octavo_build.content_cache import ContentCache
from octavo_build.stages import Work
from octavo_build.tables import read_table


def compiled(root: Path, folder: Path, adapter: str, encoder: Path) -> Work:
    """All that a build makes of a pack but its vectors."""
    work = Work(folder / "work")
    stages.source(root, work, {"format": adapter, "owner": "me", "roots": "."})
    stages.passages(work, encoder, ContentCache(folder / "cache.sqlite"), "compiler")
    stages.graph(work)
    stages.resources(work)
    return work


def contents(work: Work) -> dict[str, bytes]:
    return {str(path.relative_to(work.root)): path.read_bytes() for path in work.root.rglob("*") if path.is_file()}


def check_documents(documents: list[Document], sources: Collection[bytes]) -> None:
    for document in documents:
        assert document.raw in sources
        assert document.file_sha256 == hashlib.sha256(document.raw).hexdigest()
        assert "\ufeff" not in document.title + "".join(document.tags)


def check_passages(documents: list[Document], work: Work) -> None:
    texts = pq.read_table(work.texts)
    found: defaultdict[int, list[tuple[Passage, str, str]]] = defaultdict(list)
    rows = read_table(work.parts / PASSAGES.file, Passage)
    columns = (texts["shown"].to_pylist(), texts["visible"].to_pylist())
    for passage, shown, visible in zip(rows, *columns, strict=True):
        found[passage.document].append((passage, shown, visible))
    told = {finding["path"] for finding in json.loads(work.passage_findings.read_bytes())}
    for row, document in enumerate(documents):
        cut = found.pop(row, [])
        if not document.searchable:
            assert not cut
        elif not cut:
            assert document.path in told
        else:
            check_cut(document, cut)
    assert not found
    for row in read_table(work.parts / SECTIONS.file, Section):
        assert 1 <= row.start_line <= row.end_line


def check_cut(document: Document, cut: list[tuple[Passage, str, str]]) -> None:
    """The spans are exact, partition the body, and all that is visible is in one of them."""
    body = body_of(document)
    passages = [passage for passage, _, _ in cut]
    assert (passages[0].start_byte, passages[-1].end_byte) == (document.body_offset, len(document.raw))
    assert all(before.end_byte == after.start_byte for before, after in pairwise(passages))
    for passage, shown, visible in cut:
        span = document.raw[passage.start_byte : passage.end_byte]
        assert passage.span_sha256 == hashlib.sha256(span).hexdigest()
        assert shown == passage.prefix + unix_lines(body.shown(passage.start_byte, passage.end_byte))
        assert visible.strip()
    own = "".join(each.removeprefix(prefix_of(passage)) for passage, _, each in cut)
    assert "".join(own.split()) == "".join(body.visible(document.body_offset, len(document.raw)).split())


def prefix_of(passage: Passage) -> str:
    return (f"{passage.context_prefix}\n\n" if passage.context_prefix else "") + passage.prefix


def check_addresses(documents: list[Document], work: Work, adapter: str) -> None:
    """Every id and URI is one document's, and leads to it."""
    ids, uris = {each.id for each in documents}, {each.uri for each in documents}
    assert len(ids) == len(uris) == len({each.path for each in documents}) == len(documents)
    slug = json.loads(work.pack.read_bytes())["slug"]
    if adapter != "repository":
        assert all(unquote(each.uri) == unquote(document_uri(slug, each.path)) for each in documents)
        assert all(unquote(each.uri).endswith(f"/file/{each.path}") for each in documents)
    passages = read_table(work.parts / PASSAGES.file, Passage)
    assert len({fragment_id(documents[p.document].id, p.section, p.span_sha256) for p in passages}) == len(passages)
    nodes = {node.id for node in read_table(work.parts / NODES.file, Node)}
    assert ids <= nodes
    assert all({edge.source, edge.target} <= nodes for edge in read_table(work.parts / EDGES.file, Edge))
    listed = read_table(work.parts / RESOURCES.file, Resource)
    assert len({each.uri for each in listed}) == len(listed)
    assert uris <= {each.uri for each in listed}
    for each in listed:
        content = each.content
        if content is None:
            assert each.document is not None
            content = documents[each.document].raw[each.start :][: each.size]
        assert (len(content), hashlib.sha256(content).hexdigest()) == (each.size, each.sha256)
