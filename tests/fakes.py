"""A pack and a library that answer what the tests of the faces know, without an artifact."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from octavo_artifact.errors import ArtifactError, NotFoundError, RequestError
from octavo_artifact.manifest import Manifest
from octavo_artifact.schema import EncoderSpec, Resource
from octavo_serve.callers.views import choose
from octavo_serve.catalog import Refusal
from octavo_serve.completion import Names
from octavo_serve.over_mcp.app import PAGE
from octavo_serve.prompts import Prompt
from octavo_serve.requests import ReadRequest, SearchRequest, TopicsRequest, TraverseRequest
from octavo_serve.results import Freshness, Hit, PackSummary, ReadResult, SearchResult, TopicsResult, TraverseResult
from octavo_serve.search import citation
from octavo_serve.skills import Entry, Skill

DIGEST = "d" * 64
SECRET = "/srv/secret/path"
FILES = 2 * PAGE + 50
UNKNOWN: Freshness = {"verified_age_days": None, "age_stale": None, "expired": False, "expires_at": None}


def _manifest(slug: str, description: str = "Everything about pumps.") -> Manifest:
    return Manifest(
        digest=DIGEST,
        pack={"slug": slug, "name": slug.title(), "version": "1.2", "description": description},
        encoder=EncoderSpec("none", "", "", 1, 1, "mean", True),
        parameters={},
        libraries={},
        counts={"documents": 3, "passages": 7},
        columns={},
        tables={},
        files={},
    )


def _hit(*, metadata: bool) -> Hit:
    return {
        "pack": "pumps",
        "text": "Öl 油\n",
        "added_text": "",
        "score": 0.5,
        "source_file": "a.md",
        "id": "pumps/a",
        "uri": "ep://pumps/file/a.md",
        "fragment_id": "pumps/a#opening:0123456789ab",
        "title": "A",
        "heading_path": ["A"],
        "type": "guide" if metadata else None,
        "tags": ["oil"] if metadata else [],
        "line_range": [1, 1],
        "byte_range": [0, 7],
        "span_sha256": "0" * 64,
        "content_hash": "sha256:" + "0" * 64,
        "verified_at": "2026-01-01" if metadata else None,
        "verified_by": "me" if metadata else None,
        "confidence": "crawled" if metadata else None,
        "verified_age_days": 3 if metadata else None,
        "age_stale": False if metadata else None,
        "expired": False,
        "expires_at": "2026-12-31" if metadata else None,
        "requires_expanded": False,
        "graph_expanded": False,
        "duplicates": [],
        "digest": DIGEST,
    }


@dataclass
class FakePack:
    """A pack of one document and many resources; queries called crash, bug, hang and nothing do what they say."""

    slug: str
    description: str = "Everything about pumps."
    digest: str = DIGEST
    contents: dict[str, tuple[str, bytes]] = field(default_factory=dict[str, tuple[str, bytes]])
    release: threading.Event = field(default_factory=threading.Event)
    """Ends a search that hangs."""
    degraded: str | None = None

    def __post_init__(self) -> None:
        self.manifest = _manifest(self.slug, self.description)
        self.contents = {
            f"ep://{self.slug}/file/broken.md": ("text/markdown", b"\xff\xfe"),
            f"ep://{self.slug}/file/pump.png": ("image/png", b"\x89PNG"),
            f"ep://{self.slug}/file/%C3%B6l%20%231.md": ("text/markdown", "Öl 油\r\n".encode()),
            f"ep://{self.slug}/manifest": ("application/json", b'{"a":null}\n'),
            **{f"ep://{self.slug}/file/{n:04}.md": ("text/markdown", b"") for n in range(FILES - 4)},
        }

    def encode(self, text: str) -> NDArray[np.float32]:
        raise ArtifactError("no encoder")

    def search(self, request: SearchRequest) -> SearchResult:
        if request.query == "crash":
            raise ArtifactError(f"{SECRET} is damaged")
        if request.query == "bug":
            raise ZeroDivisionError(SECRET)
        if request.query == "hang":
            self.release.wait(30)
        found = not request.query.startswith("nothing")
        hits: list[Any] = [_hit(metadata=True), _hit(metadata=False)] if found else []
        if request.compact:
            hits = [citation(hit) for hit in (_hit(metadata=True), _hit(metadata=False))]
        return {
            "query": request.query,
            "pack": self.slug,
            "digest": DIGEST,
            "degraded": False,
            "missing": [],
            "refused": not found,
            "reason": None if found else "no_relevant_passage",
            "answer_probability": None,
            "doubtful": False,
            "overrides": {},
            "total": 2 if found else 0,
            "truncated": False,
            "next_cursor": None,
            "results": hits,
            "nearest": [],
        }

    def read(self, request: ReadRequest) -> ReadResult:
        if not (request.id or request.path):
            raise RequestError("id", "missing; name a document by id or path")
        return {
            "pack": self.slug,
            "digest": DIGEST,
            "path": "a.md",
            "id": "pumps/a",
            "uri": "ep://pumps/file/a.md",
            "title": "A",
            "description": None,
            "type": None,
            "tags": [],
            "content": "Öl 油\n",
            "section": None,
            "line_range": [1, 1],
            "total_lines": 1,
            "truncated": False,
            "next_cursor": None,
            "content_hash": "sha256:" + "0" * 64,
            "file_sha256": "0" * 64,
            "verified_at": None,
            "verified_by": None,
            "confidence": None,
            "retrieval_strategy": "standard",
            "concept_scope": "single",
            "tier": "searchable",
            "requires": [],
            "related": [],
            "activation": None,
            "previous": None,
            "next": None,
            **UNKNOWN,
        }

    def traverse(self, request: TraverseRequest) -> TraverseResult:
        return {
            "pack": self.slug,
            "digest": DIGEST,
            "start": "e",
            "nodes": [
                {
                    "id": "e",
                    "title": "E",
                    "type": None,
                    "kind": "t",
                    "file": None,
                    "uri": None,
                    "depth": 0,
                    "score": 1.0,
                }
            ],
            "edges": [],
            "total": 1,
            "truncated": False,
            "next_cursor": None,
        }

    def day(self) -> date:
        return date(2026, 11, 30)

    def summary(self, day: date) -> PackSummary:
        return {
            "slug": self.slug,
            "name": self.slug.title(),
            "type": "composite",
            "version": "1.2",
            "description": self.description,
            "entry_point": None,
            "documents": 1,
            "passages": 1,
            "authority_boundary": None,
            "freshness": {"coverage_pct": None, "stale": 0, "expired": 0, "last_full_review": None},
        }

    def topics(self, request: TopicsRequest) -> TopicsResult:
        return {
            "pack": self.summary(self.day()),
            "digest": DIGEST,
            "total": 1,
            "truncated": False,
            "next_cursor": None,
            "topics": {
                "guide": [
                    {
                        "id": "a",
                        "path": "a.md",
                        "title": "A",
                        "description": None,
                        "retrieval_strategy": "standard",
                        "tier": "searchable",
                        "activation": {"tools": [], "constraints": [], "next": ["b.md"]},
                        **UNKNOWN,
                    }
                ]
            },
        }

    def resources(self) -> Sequence[Resource]:
        return [
            Resource(uri, uri.rpartition("/")[2], "Title", None, mime, len(content), "0" * 64, None, None)
            for uri, (mime, content) in sorted(self.contents.items())
        ]

    def skills(self) -> Mapping[str, Skill]:
        raise NotImplementedError

    def directory(self, uri: str) -> Sequence[Entry]:
        raise NotImplementedError

    def names(self, prefix: str, pattern: str) -> Names:
        rests = (re.fullmatch(pattern, uri.removeprefix(prefix)) for uri in self.contents if uri.startswith(prefix))
        return Names(unquote(rest[1]) for rest in rests if rest)

    def always(self) -> Names:
        return Names(["first.md"])

    def prompts(self) -> list[Prompt]:
        return [Prompt("prime", "Prime the pump", "How to prime it.", 0)]

    def prompt(self, name: str) -> tuple[Prompt, str]:
        (prompt,) = self.prompts()
        if name != prompt.name:
            raise NotFoundError("name", "no prompt of the pack has this name")
        return prompt, "Pour in water."

    def resource(self, uri: str) -> tuple[Resource, bytes]:
        listed = {resource.uri: resource for resource in self.resources()}
        if uri not in listed:
            raise NotFoundError("uri", "not in this pack")
        return listed[uri], self.contents[uri][1]


@dataclass
class FakeLibrary:
    """The packs of a server, chosen as a catalog chooses them."""

    packs: Mapping[str, FakePack]
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    failed: Mapping[str, Refusal] = field(default_factory=dict[str, Refusal])

    @property
    def releases(self) -> Mapping[str, FakePack]:
        return {f"{slug}@{pack.digest}": pack for slug, pack in self.packs.items()}

    def search(self, request: SearchRequest, slugs: frozenset[str] | None = None) -> SearchResult:
        return self.choose(request.pack).search(request)

    def choose(self, name: str | None) -> FakePack:
        return choose(self.packs, name, lambda: self.releases)
