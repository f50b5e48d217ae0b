"""The packs a server serves: opened, checked, and refused one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from threading import Lock

from octavo_artifact.errors import ArtifactError, ConfigError, NotFoundError
from octavo_artifact.gate import Features
from octavo_artifact.layout import ENCODERS, LEXICAL, MANIFEST
from octavo_artifact.manifest import (
    Manifest,
    check_files,
    fingerprint,
    read_manifest,
)
from octavo_artifact.parameters import Retrieval, read_retrieval
from octavo_artifact.schema import AUDIENCES, Resource
from octavo_serve import reading
from octavo_serve.callers.views import allowed, choose
from octavo_serve.collection import Collection, Index
from octavo_serve.completion import Names
from octavo_serve.encoder import AbsentEncoder, Encoder, Vector, open_encoder
from octavo_serve.graph import Relations, traverse
from octavo_serve.lexical import LexicalIndex
from octavo_serve.prompts import Prompt, list_prompts
from octavo_serve.requests import ReadRequest, SearchRequest, TopicsRequest, TraverseRequest
from octavo_serve.results import PackSummary, ReadResult, SearchResult, TopicsResult, TraverseResult
from octavo_serve.search import NO_OPERATOR, Operator, documents_near, features_of, search
from octavo_serve.skills import Entry, Skill, read_directory
from octavo_serve.tables import Tables
from octavo_serve.vectors import VectorIndex


class OpenPack:
    """One release of a pack, checked against its manifest and ready to answer. Safe to call from several threads."""

    def __init__(
        self,
        artifact: Path,
        encoder: Encoder,
        manifest: Manifest,
        today: date | None = None,
        operator: Operator = NO_OPERATOR,
    ) -> None:
        """Open the parts of a checked artifact; `today` is the day of every answer, by default that of its request.

        Raises ArtifactError naming the part that does not open.
        """
        _check_dimensions(manifest)
        self._encoder = encoder
        self._today = today
        self._operator = operator
        self._parameters = _parameters(manifest)
        self.manifest = manifest
        self.slug = manifest.slug
        self.digest = manifest.digest
        self.audience = manifest.pack.get("audience", AUDIENCES[0])
        """The narrowest for which it holds anything."""
        self._tables = Tables(artifact)
        self._relations = Relations(artifact, manifest.counts)
        label = f"{manifest.slug}/{manifest.digest[:12]}/{LEXICAL}"
        lexical = LexicalIndex([artifact / LEXICAL], label, manifest.parameters["lexical"]["languages"])
        self.index = Index(
            slug=manifest.slug,
            digest=manifest.digest,
            directory=artifact / LEXICAL,
            lexical=lexical,
            vectors=VectorIndex(artifact, manifest, lexical.documents),
            encoder=encoder,
            tables=self._tables,
            relations=self._relations,
            gate=manifest.gate,
            reads=tuple(manifest.parameters.get("encoder", {}).get("languages", ())),
            documents=manifest.counts["documents"],
        )
        self._collection = Collection([self.index])

    @property
    def degraded(self) -> str | None:
        """Why searches go by words only, in words that clients may see; None when they do not."""
        return self._encoder.failure

    def search(self, request: SearchRequest) -> SearchResult:
        """Find passages."""
        return search(self._collection, request, request.as_of or self.day(), self._parameters, self._operator)

    def encode(self, text: str) -> Vector:
        """The vector of a text, as of a query; see `encoder.Encoder.encode`."""
        return self._encoder.encode(text)

    def compare(self, request: SearchRequest) -> Features | None:
        """What the relevance gate would judge a search by; for calibration."""
        return features_of(self._collection, request, request.as_of or self.day(), self._parameters)

    def read(self, request: ReadRequest) -> ReadResult:
        """Read a document; see `reading.read`."""
        day = request.as_of or self.day()
        return reading.read(self.manifest, self._tables, request, day, self._relations.parts_around)

    def traverse(self, request: TraverseRequest) -> TraverseResult:
        """Follow the edges from a node; see `graph.traverse`."""

        def nearness(start: int | None) -> Mapping[int, float]:
            return documents_near(self.index, request.query, start)

        return traverse(self.manifest, self._tables, self._relations, request, nearness)

    def topics(self, request: TopicsRequest) -> TopicsResult:
        """List the documents by type."""
        return reading.topics(self.manifest, self._tables, request, request.as_of or self.day())

    def summary(self, day: date) -> PackSummary:
        """What the pack says of itself."""
        return reading.summary(self.manifest, self._tables, day)

    def resources(self) -> Sequence[Resource]:
        """What MCP lists, sorted by URI."""
        return self._tables.listed_resources

    def skills(self) -> Mapping[str, Skill]:
        """The pack's skills by the URI of their SKILL.md, sorted."""
        return self._tables.skills

    def directory(self, uri: str) -> Sequence[Entry]:
        """What lies directly in a directory of a skill. Raises NotFoundError."""
        return read_directory(self._tables.resources, uri)

    def names(self, prefix: str, pattern: str) -> Names:
        """What follows a prefix in the URIs of resources; see `faces.Pack`."""
        return self._tables.names(prefix, pattern)

    def always(self) -> Names:
        """The paths of the documents that are meant to be always in context."""
        return self._tables.always

    def prompts(self) -> Sequence[Prompt]:
        """The prompts the pack offers, sorted by name."""
        return list_prompts(self.manifest.pack["metadata"], self._tables.documents)

    def prompt(self, name: str) -> tuple[Prompt, str]:
        """A prompt and its text: the document's body. Raises NotFoundError."""
        found = next((prompt for prompt in self.prompts() if prompt.name == name), None)
        if found is None:
            raise NotFoundError("name", "no prompt of the pack has this name")
        return found, reading.body(self._tables, found.document)

    def resource(self, uri: str) -> tuple[Resource, bytes]:
        """A resource and its bytes. Raises NotFoundError."""
        return reading.resource(self._tables, uri)

    def day(self) -> date:
        """By which ages are told."""
        # UTC, so that servers in several time zones answer alike
        return self._today or datetime.now(UTC).date()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A release that is not served, and why."""

    digest: str | None
    """None where it is the pointer that is wrong."""
    reason: str
    """One line that clients may see."""
    audience: str | None = None
    """The narrower one that it is for, where that is the reason; the operator's to know, no client's."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Catalog:
    """The packs of a `dist` folder at one moment."""

    packs: Mapping[str, OpenPack]
    """By slug, sorted: of each its current release."""
    refused: Mapping[str, str]
    """Slug, or slug@digest of a release that was to be mounted, to the reason why it is not served."""
    withheld: Mapping[str, str] = field(default_factory=dict[str, str])
    """Slug to audience of packs that are for a narrower one than is served; the operator's to know, no client's."""
    operator: Operator = NO_OPERATOR
    """What is added to every search."""
    failed: Mapping[str, Refusal] = field(default_factory=dict[str, Refusal])
    """By slug, of packs whose current release should have been replaced: the release that could not."""
    beside: tuple[OpenPack, ...] = ()
    """Releases that are mounted beside the current ones, by slug and digest."""
    _collections: dict[tuple[OpenPack, ...], Collection] = field(
        default_factory=dict[tuple[OpenPack, ...], Collection], init=False, repr=False, compare=False
    )
    _lock: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)

    @property
    def releases(self) -> Mapping[str, OpenPack]:
        """Every release that is mounted, the current ones included, by slug@digest."""
        return {f"{pack.slug}@{pack.digest}": pack for pack in (*self.packs.values(), *self.beside)}

    def search(self, request: SearchRequest, slugs: frozenset[str] | None = None) -> SearchResult:
        """Find passages in the pack that the request names, else in all packs of these slugs by one ranking.

        Several packs are searched by the default parameters: they cannot be ranked together by different ones.
        """
        seen = allowed(self.packs, slugs)
        if request.pack is not None or len(seen) < 2:
            return choose(seen, request.pack, lambda: allowed(self.releases, slugs)).search(request)
        packs = tuple(seen.values())
        with self._lock:
            collection = self._collections.get(packs)
            if collection is None:
                collection = self._collections[packs] = Collection([pack.index for pack in packs])
        return search(collection, request, request.as_of or packs[0].day(), operator=self.operator)

    def choose(self, name: str | None) -> OpenPack:
        """The release that a request means; see `views.choose`."""
        return choose(self.packs, name, lambda: self.releases)


def open_catalog(
    dist: Path, today: date | None = None, audience: str = AUDIENCES[0], operator: Operator = NO_OPERATOR
) -> Catalog:
    """Open the current release of every pack in `dist`; one that is damaged is refused, the others serve.

    A release that holds anything for a narrower audience than `audience` is withheld as a whole.

    `today` is the day by which ages and expiries are told; without it each request takes the system's date in UTC.
    All packs share what the `operator` adds to every search; where it allows for that, a pack whose encoder cannot be
    had is served all the same, and searched by words. Raises ConfigError when `dist` holds no pack at all, and
    when there is no folder for temporary files.
    """
    from octavo_serve.releases import Releases  # which makes catalogs, and so imports this module

    return Releases(dist, today, audience, operator).current


def open_release(
    artifact: Path,
    dist: Path,
    encoders: dict[str, Encoder],
    today: date | None = None,
    operator: Operator = NO_OPERATOR,
) -> OpenPack:
    """Check an artifact file by file and open it; encoders are shared through `encoders`, by fingerprint.

    Raises ArtifactError naming what is wrong, and EndpointError when the encoder cannot be asked; but nothing that is
    wrong with the encoder stops an operator who is content with words.
    """
    manifest = read_manifest(artifact)
    if manifest.slug != artifact.parent.name:
        raise ArtifactError(f"{artifact.parent.name}/{MANIFEST}: is of the pack {manifest.slug}")
    check_files(artifact, manifest)
    name = fingerprint(manifest.encoder)
    if name not in encoders:
        try:
            encoders[name] = open_encoder(dist / ENCODERS / name, name, trusting=operator.lexical_only)
        except ArtifactError as error:
            if not operator.lexical_only:
                raise
            encoders[name] = AbsentEncoder(manifest.encoder, str(error))
    return OpenPack(artifact, encoders[name], manifest, today, operator)


def _check_dimensions(manifest: Manifest) -> None:
    found, expected = manifest.columns["vector"].width, manifest.encoder.dimensions
    if found != expected:
        raise ArtifactError(
            f"{manifest.slug}/{manifest.digest[:12]}/{MANIFEST}: vectors of {found} dimensions, its encoder makes "
            f"{expected}"
        )


def _parameters(manifest: Manifest) -> Retrieval:
    try:
        return read_retrieval(manifest.parameters.get("retrieval", {}))
    except ConfigError as error:
        raise ArtifactError(f"{manifest.slug}/{manifest.digest[:12]}/{MANIFEST}: retrieval.{error}") from error
