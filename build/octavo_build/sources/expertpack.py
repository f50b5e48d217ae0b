"""ExpertPack folders (schema family 4.1): manifest, composite packs, tiers, navigation files.

A composite pack is one pack here: its children's files keep their ids as written and their own manifests' tiers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, cast

from octavo_artifact.schema import Document
from octavo_build.findings import Finding
from octavo_build.freshness import refresh_cycle, with_freshness
from octavo_build.frontmatter import Frontmatter, read_yaml
from octavo_build.graph_files import GRAPH, ONTOLOGY
from octavo_build.pack import Pack
from octavo_build.sources.adapter import Adapter, Options
from octavo_build.sources.audience import ACCESS_FILE, Said, audience_of, read_access
from octavo_build.sources.documents import read_document, with_unique_ids
from octavo_build.sources.files import MARKDOWN, SourceFile, read_files
from octavo_build.sources.identity import Identity, pack_slug, read_identity

MANIFEST = "manifest.yaml"
TIERS = ("always", "searchable", "on_demand")
NAVIGATION_FILES = frozenset({"_index.md", "source-coverage.md"})
SKIPPED = frozenset({"eval"})
"""Questions about the pack, not knowledge of it."""
EXTRAS = (GRAPH, ONTOLOGY)
"""Files beside a manifest that are no documents."""


@dataclass(frozen=True, slots=True)
class _Member:
    """The pack itself, or a child of a composite one."""

    prefix: str
    """What stands before the child's paths: empty for the pack itself, else `child/`."""
    root: Path
    slug: str
    tiers: Mapping[str, str]
    """Path or directory (relative to the composite's root) to tier."""
    cycle: str | None
    """How long a verification of the member's files lasts, where they do not say."""


def read(root: Path, options: Options) -> Pack:  # every adapter's signature
    """Read the ExpertPack in `root`; whatever is wrong with a file or a field is a finding, not an error."""
    findings: list[Finding] = []
    manifest = _manifest(root, MANIFEST, findings)
    identity = Identity(MANIFEST, manifest, findings)
    slug = pack_slug(identity, root, required=True)
    name = identity.text("name", required=True)
    kind = identity.text("type", required=True)
    children = list(_children(root, manifest, findings))
    members = [_Member("", root, slug, _tiers(manifest, ""), refresh_cycle(MANIFEST, manifest, findings)), *children]
    overrides = _overrides(manifest, children, findings)

    documents: list[Document] = []
    extras: dict[str, bytes] = {}
    access = {m.prefix: read_access(m.root, f"{m.prefix}{ACCESS_FILE}", findings) for m in members}
    for member, file in _files(members, findings):
        if not file.path.casefold().endswith(MARKDOWN):
            if file.path.removeprefix(member.prefix) in EXTRAS:
                extras[file.path] = file.raw
            continue
        document, front, found = read_document(file, slug, second_block=True, needs_frontmatter=True)
        said = Said(front.metadata.get("sensitivity"), file.path, front.lines.get("sensitivity", 1))
        within = file.path.removeprefix(member.prefix)
        audience = audience_of(said, access[member.prefix].of(within), findings)
        findings += found
        document = with_freshness(document, front, member.cycle, findings)
        tiers = {**members[0].tiers, **member.tiers, **overrides}
        document = replace(document, audience=audience)
        documents.append(_place(document, front, member, _tier(document.path, tiers)))
    findings += (
        Finding(document.path, 1, "id-missing", "the file has no id") for document in documents if not document.id
    )
    unique, duplicates = with_unique_ids(slug, documents)
    paths = {document.path for document in unique}
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
        metadata=manifest,
        documents=unique,
        findings=tuple(sorted(findings + duplicates)),
        extras=extras,
    )


def _manifest(root: Path, shown: str, findings: list[Finding]) -> dict[str, Any]:
    try:
        front = read_yaml(shown, (root / MANIFEST).read_bytes())
    except OSError as error:
        findings.append(Finding(shown, 0, "file-unreadable", error.strerror or "cannot be read"))
        return {}
    findings += front.findings
    return front.metadata


def _children(root: Path, manifest: Mapping[str, Any], findings: list[Finding]) -> Iterator[_Member]:
    """The child packs a composite names; one that lies outside the composite's folder goes by its folder's name."""
    for item in _list(manifest.get("packs")):
        path = cast(dict[str, Any], item).get("path") if isinstance(item, dict) else item
        child = root / path if isinstance(path, str) else None
        if child is None or not (child / MANIFEST).is_file():
            findings.append(Finding(MANIFEST, 0, "manifest-path", f"packs: {path!r} is no pack with a {MANIFEST}"))
            continue
        prefix = child_prefix(root, child)
        shown = f"{prefix}{MANIFEST}"
        own = _manifest(child, shown, findings)
        slug = pack_slug(Identity(shown, own, findings), child, required=True)
        yield _Member(prefix, child, slug, _tiers(own, prefix), refresh_cycle(shown, own, findings))


def child_prefix(root: Path, child: Path) -> str:
    """What stands before the paths of a child pack's files."""
    resolved, inside = child.resolve(), root.resolve()
    relative = resolved.relative_to(inside) if resolved.is_relative_to(inside) else Path(resolved.name)
    return f"{relative.as_posix()}/"


def _files(members: list[_Member], findings: list[Finding]) -> Iterator[tuple[_Member, SourceFile]]:
    """Every file once, with the innermost member that governs it."""
    prefixes = {member.prefix for member in members}
    for member in members:
        deeper = tuple(prefix for prefix in prefixes if len(prefix) > len(member.prefix))
        files, walked = read_files(member.root, suffixes=(*MARKDOWN, *EXTRAS), skip=SKIPPED)
        for finding in walked:
            if not (member.prefix + finding.path).startswith(deeper):
                findings.append(replace(finding, path=member.prefix + finding.path))
        for file in files:
            if not (member.prefix + file.path).startswith(deeper):
                yield member, replace(file, path=member.prefix + file.path)


def _tiers(manifest: Mapping[str, Any], prefix: str) -> dict[str, str]:
    """The tier of each path or directory that a manifest's `context` names."""
    context = manifest.get("context")
    tiers = {f"{prefix}overview.md": "always"}
    if isinstance(context, dict):
        for tier in TIERS:
            for path in _list(cast(dict[str, Any], context).get(tier)):
                if isinstance(path, str):
                    tiers[prefix + path.strip("/")] = tier
    return tiers


def _overrides(manifest: Mapping[str, Any], children: list[_Member], findings: list[Finding]) -> dict[str, str]:
    """The composite's `context.overrides`, keyed by a child's path, folder name or slug."""
    context = manifest.get("context")
    overrides = cast(dict[str, Any], context).get("overrides") if isinstance(context, dict) else None
    tiers: dict[str, str] = {}
    for key, context_of_child in (cast(dict[str, Any], overrides) if isinstance(overrides, dict) else {}).items():
        wanted = key.strip("/")
        child = next(
            (c for c in children if wanted in (c.prefix.rstrip("/"), PurePosixPath(c.prefix).name, c.slug)), None
        )
        if child is None:
            findings.append(Finding(MANIFEST, 0, "manifest-path", f"context.overrides: {key!r} is no child pack"))
        else:
            tiers |= _tiers({"context": context_of_child}, child.prefix)
    return tiers


def _tier(path: str, tiers: Mapping[str, str]) -> str:
    """The tier of the most specific entry: the file itself, else its nearest directory, else searchable."""
    for candidate in (path, *(str(parent) for parent in PurePosixPath(path).parents)):
        if candidate in tiers:
            return tiers[candidate]
    return "searchable"


def _place(document: Document, front: Frontmatter, member: _Member, tier: str) -> Document:
    """The document with what the format decides: its governing pack, tier, strategy and place in the search pool."""
    scope = _text(front.metadata.get("concept_scope")) or "single"
    legacy = front.metadata.get("retrieval")
    strategy = _text(front.metadata.get("retrieval_strategy")) or _text(
        cast(dict[str, Any], legacy).get("strategy") if isinstance(legacy, dict) else None
    )
    if scope == "navigation" or PurePosixPath(document.path).name in NAVIGATION_FILES:
        strategy = "navigation"
    return replace(
        document,
        pack=member.slug,
        tier=tier,
        strategy=strategy or "standard",
        scope=scope,
        searchable=document.searchable and strategy != "navigation" and tier != "on_demand",
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _list(value: object) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else []


def _recognises(root: Path) -> bool:
    return (root / MANIFEST).is_file()


def _slug(root: Path, options: Options) -> str:  # every adapter's signature
    return pack_slug(read_identity(root, MANIFEST), root)


ADAPTER = Adapter("expertpack", _recognises, _slug, read)
