"""The packs a server serves: opened, checked, and refused one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from threading import Lock

from octavo_artifact.errors import ArtifactError, ConfigError, NotFoundError, OctavoError
from octavo_artifact.gate import Features
from octavo_artifact.layout import ENCODERS, LEXICAL, MANIFEST
from octavo_artifact.manifest import (
    Manifest,
    check_files,
    fingerprint,
    pack_directories,
    read_manifest,
    read_pointer,
)
from octavo_artifact.parameters import Retrieval, read_retrieval
from octavo_artifact.schema import AUDIENCES, Resource
from octavo_serve import reading
from octavo_serve.callers.views import choose
from octavo_serve.collection import Collection, Index
from octavo_serve.encoder import AbsentEncoder, Encoder, open_encoder
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
class Catalog:
    """All packs of a `dist` folder."""

    packs: Mapping[str, OpenPack]
    """By slug, sorted."""
    refused: Mapping[str, str]
    """Slug to the reason why its pack is not served."""
    withheld: Mapping[str, str] = field(default_factory=dict[str, str])
    """Slug to audience of packs that are for a narrower one than is served; the operator's to know, no client's."""
    _operator: Operator = NO_OPERATOR
    _collections: dict[tuple[OpenPack, ...], Collection] = field(
        default_factory=dict[tuple[OpenPack, ...], Collection], init=False, repr=False, compare=False
    )
    _lock: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)

    def search(self, request: SearchRequest, slugs: frozenset[str] | None = None) -> SearchResult:
        """Find passages in the pack that the request names, else in all packs of these slugs by one ranking.

        Several packs are searched by the default parameters: they cannot be ranked together by different ones.
        """
        seen = {slug: pack for slug, pack in self.packs.items() if slugs is None or slug in slugs}
        if request.pack is not None or len(seen) < 2:
            return choose(seen, request.pack).search(request)
        packs = tuple(seen.values())
        with self._lock:
            collection = self._collections.get(packs)
            if collection is None:
                collection = self._collections[packs] = Collection([pack.index for pack in packs])
        return search(collection, request, request.as_of or packs[0].day(), operator=self._operator)

    def choose(self, slug: str | None) -> OpenPack:
        """The pack that a request means; see `views.choose`."""
        return choose(self.packs, slug)


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
    if not dist.is_dir():
        raise ConfigError(f"{dist}: not a folder; expected one that `octavo build --out` filled")
    directories = pack_directories(dist)
    if not directories:
        raise ConfigError(f"{dist}: no pack; build one with `octavo build PACK --out {dist}`")
    packs: dict[str, OpenPack] = {}
    refused: dict[str, str] = {}
    withheld: dict[str, str] = {}
    encoders: dict[str, Encoder] = {}
    for directory in directories:
        try:
            pack = open_release(directory / read_pointer(directory), dist, encoders, today, operator)
        except ConfigError:
            raise  # no pack's fault: none of them would open
        except OctavoError as error:
            refused[directory.name] = str(error)
        else:
            if pack.audience in AUDIENCES[: AUDIENCES.index(audience) + 1]:
                packs[pack.slug] = pack
            else:
                withheld[pack.slug] = pack.audience
    return Catalog(packs, refused, withheld, operator)


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
