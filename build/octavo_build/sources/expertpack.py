"""ExpertPack folders (schema family 4.1): manifest, composite packs, tiers, navigation files.

A composite pack is one pack here: its children's files keep their ids as written and their own manifests' tiers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, cast

from octavo_artifact.ids import canonical_json
from octavo_artifact.schema import Document
from octavo_build.findings import Finding
from octavo_build.freshness import refresh_cycle, with_freshness
from octavo_build.frontmatter import Frontmatter, read_yaml
from octavo_build.graph_files import GRAPH, ONTOLOGY
from octavo_build.pack import Pack
from octavo_build.sidecars import SUFFIX, read_sidecar, sidecar_name
from octavo_build.sources.adapter import Adapter, Options
from octavo_build.sources.audience import ACCESS_FILE, Access, Said, audience_of, read_access
from octavo_build.sources.documents import read_document, with_unique_ids
from octavo_build.sources.files import MARKDOWN, SourceFile, read_files
from octavo_build.sources.identity import Identity, pack_slug, read_identity
from octavo_build.sources.tiers import Tiers, tiers_of
from octavo_build.values import items, mapping

MANIFEST = "manifest.yaml"
OVERRIDES = "overrides/context.yaml"
"""Where a composite may say its children's tiers besides its manifest."""
SPEECH = "presentation/speech-patterns.md"
"""How the pack with the role of the voice speaks: always in context."""
YAML = (".yaml", ".yml")
NAVIGATION_FILES = frozenset({"_index.md", "source-coverage.md"})
SKIPPED = frozenset({"eval"})
"""Questions about the pack, not knowledge of it."""
EXTRAS = (GRAPH, ONTOLOGY)
"""Files beside a manifest that are no documents."""


_UNREAD = frozenset({"yaml-invalid", "encoding-utf16"})
"""Why nobody knows what a file's frontmatter says."""

_ACTIVATION = ("tools", "constraints", "next")
ACTIVATED = frozenset({"workflow", "decision", "gotcha", "phase"})
"""Types of documents that may say what they activate."""


@dataclass(frozen=True, slots=True)
class _Member:
    """The pack itself, or a child of a composite one."""

    prefix: str
    """What stands before the child's paths: empty for the pack itself, else `child/`."""
    root: Path
    slug: str
    tiers: Mapping[str, str]
    """Path, folder or pattern (from the composite's root) to tier."""
    cycle: str | None
    """How long a verification of the member's files lasts, where they do not say."""
    access: Access


@dataclass(frozen=True, slots=True)
class _Composition:
    """The pack and its children, and what the composite says over them."""

    members: tuple[_Member, ...]
    """The pack itself first."""
    overrides: Tiers
    tiers: Mapping[str, Tiers]
    """By a member's prefix: its own and the composite's."""

    def tier(self, member: _Member, path: str) -> str:
        """The tier of a file: the composite's override, else the most specific of what the manifests say."""
        return self.overrides.of(path) or self.tiers[member.prefix].of(path) or "searchable"


def read(root: Path, options: Options) -> Pack:  # every adapter's signature
    """Read the ExpertPack in `root`; whatever is wrong with a file or a field is a finding, not an error."""
    findings: list[Finding] = []
    manifest = _manifest(root, MANIFEST, findings)
    identity = Identity(MANIFEST, manifest, findings)
    slug = pack_slug(identity, root, required=True)
    name = identity.text("name", required=True)
    kind = identity.text("type", required=True)
    composition = _composition(root, slug, manifest, findings)
    files = _files(composition.members, findings)

    read_all = [
        _document(file, slug, member, composition, findings)
        for member, file in files
        if file.path.casefold().endswith(MARKDOWN)
    ]
    unread = {finding.path for finding in findings if finding.code in _UNREAD}
    without_id = (each.path for each in read_all if not each.id and each.path not in unread)
    findings += (Finding(path, 1, "id-missing", "the file has no id") for path in without_id)
    unique, duplicates = with_unique_ids(slug, read_all)
    cut, sidecars = _with_sidecars(unique, files, findings)
    paths = {document.path for document in cut}
    entry = identity.text("entry_point") or "overview.md"
    if entry not in paths:
        findings.append(Finding(MANIFEST, 0, "manifest-entry", f"entry_point {entry!r} is no file of the pack"))
    return Pack(
        slug=slug,
        name=name or slug,
        type=kind or "product",
        version=identity.text("version") or "1.0.0",
        description=identity.text("description") or "",
        entry_point=entry if entry in paths else None,
        source_format="expertpack",
        retrieval=identity.retrieval(),
        metadata=manifest,
        documents=cut,
        findings=tuple(sorted(findings + duplicates)),
        sidecars=sidecars,
        extras={file.path: file.raw for member, file in files if file.path.removeprefix(member.prefix) in EXTRAS},
    )


def _document(
    file: SourceFile, slug: str, member: _Member, composition: _Composition, findings: list[Finding]
) -> Document:
    document, front, found = read_document(file, slug, second_block=True, needs_frontmatter=True)
    findings += found
    said = Said(front.metadata.get("sensitivity"), file.path, front.lines.get("sensitivity", 1))
    audience = audience_of(said, member.access.of(file.path.removeprefix(member.prefix)), findings)
    document = with_freshness(document, front, member.cycle, findings)
    document = replace(document, audience=audience, activation=_activation(document, front, findings))
    return _place(document, front, member, composition.tier(member, document.path))


def _activation(document: Document, front: Frontmatter, findings: list[Finding]) -> str | None:
    """What a document activates: its tools, constraints and next steps, each a list of words, as JSON."""
    written = front.metadata.get("activation")
    if written is None or document.type not in ACTIVATED:
        return None
    given = cast(dict[str, Any], written) if isinstance(written, dict) else {"": written}
    wrong = sorted(key for key, value in given.items() if key not in _ACTIVATION or not _is_words(value))
    if wrong:
        expected = f"{', '.join(_ACTIVATION)}, each a list of words"
        message = f"activation: found {', '.join(map(repr, wrong))}, expected {expected}"
        findings.append(Finding(document.path, front.lines["activation"], "frontmatter-value", message))
    kept = {key: items(given[key]) for key in _ACTIVATION if key in given and key not in wrong}
    return canonical_json(kept).decode().rstrip("\n") if kept else None


def _is_words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in items(value))


def _with_sidecars(
    documents: Sequence[Document], files: Sequence[tuple[_Member, SourceFile]], findings: list[Finding]
) -> tuple[tuple[Document, ...], dict[str, str]]:
    """The documents with what their sidecars say, and whose each sidecar is."""
    beside = {file.path: file.raw for _, file in files if file.path.endswith(YAML)}
    prefixes = {file.path: member.prefix for member, file in files}
    used: dict[str, str] = {}
    cut: list[Document] = []
    for document in documents:
        named = json.loads(document.frontmatter).get("chunks_sidecar")
        sidecar = sidecar_name(document.path, named, prefixes[document.path])
        chunks = document.chunks
        if sidecar in beside:
            used[sidecar] = document.path
            chunks = read_sidecar(sidecar, beside[sidecar], document, findings)
        elif named is not None:
            message = f"chunks_sidecar: {named!r} is no file of the pack"
            findings.append(Finding(document.path, 1, "sidecar-missing", message))
        cut.append(replace(document, chunks=chunks))
    alone = sorted(path for path in beside if path.endswith(SUFFIX) and path not in used)
    findings += (Finding(path, 0, "sidecar-missing", "no document has this sidecar") for path in alone)
    return tuple(cut), used


def _manifest(root: Path, shown: str, findings: list[Finding], file: str = MANIFEST) -> dict[str, Any]:
    try:
        front = read_yaml(shown, (root / file).read_bytes())
    except OSError as error:
        findings.append(Finding(shown, 0, "file-unreadable", error.strerror or "cannot be read"))
        return {}
    findings += front.findings
    return front.metadata


def _composition(root: Path, slug: str, manifest: Mapping[str, Any], findings: list[Finding]) -> _Composition:
    own = _member("", root, slug, MANIFEST, manifest, findings)
    children = list(_children(root, manifest, findings))
    members = (own, *children)
    tiers = {member.prefix: Tiers({**own.tiers, **member.tiers}) for member in members}
    return _Composition(members, _overrides(root, manifest, children, findings), tiers)


def _member(  # noqa: PLR0917  # a pack's place and its manifest's
    prefix: str, root: Path, slug: str, shown: str, manifest: Mapping[str, Any], findings: list[Finding]
) -> _Member:
    return _Member(
        prefix=prefix,
        root=root,
        slug=slug,
        tiers={f"{prefix}overview.md": "always", **tiers_of(manifest.get("context"), prefix)},
        cycle=refresh_cycle(shown, manifest, findings),
        access=read_access(root, f"{prefix}{ACCESS_FILE}", findings),
    )


def _children(root: Path, manifest: Mapping[str, Any], findings: list[Finding]) -> Iterator[_Member]:
    """The child packs a composite names; one that lies outside the composite's folder goes by its folder's name."""
    for item in items(manifest.get("packs")):
        fields = cast(dict[str, Any], item) if isinstance(item, dict) else {"path": item}
        path = fields.get("path")
        child = root / path if isinstance(path, str) else None
        if child is None or not (child / MANIFEST).is_file():
            findings.append(Finding(MANIFEST, 0, "manifest-path", f"packs: {path!r} is no pack with a {MANIFEST}"))
            continue
        prefix = child_prefix(root, child)
        shown = f"{prefix}{MANIFEST}"
        own = _manifest(child, shown, findings)
        slug = pack_slug(Identity(shown, own, findings), child, required=True)
        member = _member(prefix, child, slug, shown, own, findings)
        if fields.get("role") == "voice":
            member = replace(member, tiers={**member.tiers, f"{prefix}{SPEECH}": "always"})
        yield member


def child_prefix(root: Path, child: Path) -> str:
    """What stands before the paths of a child pack's files."""
    resolved, inside = child.resolve(), root.resolve()
    relative = resolved.relative_to(inside) if resolved.is_relative_to(inside) else Path(resolved.name)
    return f"{relative.as_posix()}/"


def _files(members: Sequence[_Member], findings: list[Finding]) -> list[tuple[_Member, SourceFile]]:
    """Every file once, with the innermost member that governs it."""
    prefixes = {member.prefix for member in members}
    found: list[tuple[_Member, SourceFile]] = []
    for member in members:
        deeper = tuple(prefix for prefix in prefixes if len(prefix) > len(member.prefix))
        files, walked = read_files(member.root, suffixes=(*MARKDOWN, *YAML), skip=SKIPPED)
        for finding in walked:
            if not (member.prefix + finding.path).startswith(deeper):
                findings.append(replace(finding, path=member.prefix + finding.path))
        for file in files:
            if not (member.prefix + file.path).startswith(deeper):
                found.append((member, replace(file, path=member.prefix + file.path)))
    return found


def _overrides(root: Path, manifest: Mapping[str, Any], children: list[_Member], findings: list[Finding]) -> Tiers:
    """The composite's `context.overrides`, keyed by a child's path, folder name or slug, and those in OVERRIDES."""
    written: dict[str, Any] = {MANIFEST: mapping(manifest.get("context")).get("overrides")}
    if (root / OVERRIDES).is_file():
        written[OVERRIDES] = _manifest(root, OVERRIDES, findings, OVERRIDES)
    tiers: dict[str, str] = {}
    for file, overrides in written.items():
        for key, context_of_child in mapping(overrides).items():
            wanted = key.strip("/")
            child = next(
                (c for c in children if wanted in (c.prefix.rstrip("/"), PurePosixPath(c.prefix).name, c.slug)), None
            )
            if child is None:
                findings.append(Finding(file, 0, "manifest-path", f"context.overrides: {key!r} is no child pack"))
            else:
                tiers |= tiers_of(context_of_child, child.prefix)
    return Tiers(tiers)


def _place(document: Document, front: Frontmatter, member: _Member, tier: str) -> Document:
    """The document with what the format decides: its governing pack, tier, strategy and place in the search pool."""
    scope = _text(front.metadata.get("concept_scope")) or "single"
    legacy = mapping(front.metadata.get("retrieval"))
    strategy = _text(front.metadata.get("retrieval_strategy")) or _text(legacy.get("strategy"))
    raw_notes = document.type == "source" and strategy is None
    if scope == "navigation" or PurePosixPath(document.path).name in NAVIGATION_FILES:
        strategy = "navigation"
    return replace(
        document,
        pack=member.slug,
        tier=tier,
        strategy=strategy or "standard",
        scope=scope,
        searchable=document.searchable and strategy != "navigation" and tier != "on_demand" and not raw_notes,
    )


def _text(value: object) -> str | None:
    # with the space around it, which `values.text` takes away: strategies and scopes are compared as written
    return value if isinstance(value, str) else None


def _recognises(root: Path) -> bool:
    return (root / MANIFEST).is_file()


def _slug(root: Path, options: Options) -> str:  # every adapter's signature
    return pack_slug(read_identity(root, MANIFEST), root)


ADAPTER = Adapter("expertpack", _recognises, _slug, read)
