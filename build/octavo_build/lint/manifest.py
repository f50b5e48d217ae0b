"""The manifests: fields, values, tiers, prompts, authority and the wiring of composite packs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

from octavo_build.findings import Finding
from octavo_build.lint.fields import check_fields, schema
from octavo_build.lint.subject import Member, Subject, child_paths
from octavo_build.skills import skill_resources
from octavo_build.sources.audience import released
from octavo_build.sources.expertpack import MANIFEST
from octavo_build.sources.tiers import TIERS
from octavo_build.values import items, mapping, text

_TOLD_BY_THE_BUILD = frozenset({"slug", "name", "type"})
_CODES = {"type": "manifest-type", "slug": "", "authority_boundary": "W-AUTH-02", "mcp.instructions": "W-MCP-03"}
"""Fields whose wrong value has a code of its own; the build tells of the slug."""

_ALWAYS_BYTES = 5 * 1024
_WHOLE = frozenset({"atomic", "always"})
"""Strategies of documents that are given whole; the second is one that ep-mcp knows."""


def check_presence(subject: Subject) -> Iterator[Finding]:
    """A folder of which half the files name their pack and type, but that has no manifest."""
    if subject.pack.source_format == "docs":
        claims = sum("pack" in page.metadata and "type" in page.metadata for page in subject.pages)
        if claims and claims * 2 >= len(subject.pages):
            yield Finding(
                MANIFEST, 0, "manifest-missing", f"{claims} files name their pack, and there is no {MANIFEST}"
            )


def check_skills(subject: Subject) -> Iterator[Finding]:
    """The skills that a release of the pack would offer."""
    yield from skill_resources(released(subject.pack))[1]


def check_manifest(subject: Subject) -> Iterator[Finding]:
    """Fields and values of every member's manifest."""
    for member in subject.members:
        if not member.manifest:
            continue
        for field in schema("manifest")["required"]:
            if field not in member.manifest and field not in _TOLD_BY_THE_BUILD:
                yield member.finding("manifest-field", f"{field}: missing")
        for where, code, message in check_fields("manifest", member.manifest):
            if code := _CODES.get(where, code):
                yield member.finding(code, message, where.partition(".")[0])
        if member.schema == (0, 0):
            found = text(member.manifest.get("schema_version"))
            yield member.finding("schema-version", f"schema_version: {found!r} is no version", "schema_version")


def check_tiers(subject: Subject) -> Iterator[Finding]:
    """Paths in `context` of every member."""
    for member in subject.members:
        # a composite may name its children's files
        paths = {page.path for page in subject.pages} | subject.files.keys()
        inner = {path.removeprefix(member.prefix) for path in paths if path.startswith(member.prefix)}
        known = inner | {str(parent) for path in inner for parent in PurePosixPath(path).parents}
        context = mapping(member.manifest.get("context"))
        tiers: dict[str, str] = {}
        for tier in TIERS:
            for path in (entry for entry in items(context.get(tier)) if isinstance(entry, str)):
                shown = path.strip("/")
                if tiers.setdefault(shown, tier) != tier:
                    message = f"context: {path!r} is in {tiers[shown]} and in {tier}"
                    yield member.finding("context-duplicate", message, "context")
                if shown not in known and not ("*" in shown and any(fnmatchcase(name, shown) for name in inner)):
                    yield member.finding("context-path", f"context.{tier}: {path!r}", "context")


def check_always(subject: Subject) -> Iterator[Finding]:
    """What every session begins with: how large it is, whether its files are named, and whether they last.

    A composite's own `context` counts the whole pack, and may have twice as much.
    """
    for number, member in enumerate(subject.members):
        context = mapping(member.manifest.get("context"))
        if not context:
            continue
        whole = number == 0 and len(subject.members) > 1
        pages = subject.pages if whole else member.pages
        size = sum(len(page.document.raw) for page in pages if page.document.tier == "always")
        limit = 2 * _ALWAYS_BYTES if whole else _ALWAYS_BYTES
        if size > limit:
            message = f"the always tier has {size} bytes, expected at most {limit}"
            yield member.finding("W-TIER-01", message, "context")
        folders = {str(parent) for page in member.pages for parent in PurePosixPath(page.inner).parents}
        for path in (entry for entry in items(context.get("always")) if isinstance(entry, str)):
            shown = path.strip("/")
            if shown in folders:
                yield member.finding("W-TIER-01", f"context.always: {path!r} is a folder", "context")
            if shown.partition("/")[0] == "volatile":
                yield member.finding("W-TIER-03", f"context.always: {path!r}", "context")


def check_prompts(subject: Subject) -> Iterator[Finding]:
    """The documents that `mcp.prompts` offers: there, workflows, and atomic. Paths begin at the member."""
    for member in subject.members:
        prompts = items(mapping(member.manifest.get("mcp")).get("prompts"))
        if not prompts:
            continue
        documents = [document for document in subject.pack.documents if document.path.startswith(member.prefix)]
        named = {document.id: document for document in documents}
        named |= {document.path.removeprefix(member.prefix): document for document in documents}
        for source in (text(mapping(prompt).get("source")) for prompt in prompts):
            document = named.get(source)
            if source and document is None:
                yield member.finding("E-MCP-01", f"mcp.prompts: {source!r} is no document of the pack", "mcp")
            if document and document.type != "workflow":
                yield member.finding("W-MCP-01", f"mcp.prompts: {source!r} has the type {document.type!r}", "mcp")
            if document and document.strategy not in _WHOLE:
                yield member.finding("W-MCP-02", f"mcp.prompts: {source!r} is {document.strategy}", "mcp")


def check_authority(subject: Subject) -> Iterator[Finding]:
    """Whether every member says what it answers and what it does not."""
    for member in subject.members:
        written = member.manifest.get("authority_boundary")
        boundary = mapping(member.manifest.get("authority_boundary"))
        if member.manifest and not written:
            yield member.finding("W-AUTH-01", "authority_boundary: missing")
        missing = [key for key in ("in_scope", "out_of_scope") if not _says_something(boundary, key)]
        if boundary and missing:
            message = f"authority_boundary: no {' and no '.join(missing)}"
            yield member.finding("W-AUTH-02", message, "authority_boundary")


def _says_something(boundary: Mapping[str, Any], key: str) -> bool:
    said = items(boundary.get(key)) or [boundary.get(key)]
    return any(isinstance(each, str) and each.strip() for each in said)


def check_composite(subject: Subject) -> Iterator[Finding]:
    """The child packs; that each has a manifest is the build's to say."""
    root, *children = subject.members
    manifest = root.manifest
    composite = text(manifest.get("type")) == "composite"
    paths = child_paths(manifest)

    def wrong(message: str, key: str = "packs") -> Finding:
        return root.finding("composite-packs", message, key)

    if composite and not items(manifest.get("packs")):
        yield wrong("a composite pack names no child pack")
    if not composite and "packs" in manifest:
        yield wrong(f"packs: only a composite has them, and type is {text(manifest.get('type'))!r}")
    for path in sorted(path for path, count in Counter(paths).items() if count > 1):
        yield wrong(f"packs: {path!r} is named twice")
    named = [mapping(item) for item in items(manifest.get("packs"))]
    voices = [text(pack.get("path")) for pack in named if text(pack.get("role")) == "voice"]
    if len(voices) > 1:
        yield wrong(f"packs: {', '.join(voices)} all have the role voice, at most one may")
    if composite:
        listed = {child.prefix for child in children}
        for path in sorted(subject.files):
            folder = path.removesuffix(MANIFEST)
            if path.endswith(f"/{MANIFEST}") and not any(folder.startswith(prefix) for prefix in listed):
                yield wrong(f"packs: {folder!r} has a {MANIFEST} and is not named")
    for wanted in items(mapping(manifest.get("conflicts")).get("priority")):
        if isinstance(wanted, str) and not any(_is_called(child, wanted) for child in children):
            yield wrong(f"conflicts.priority: {wanted!r} is no child pack", "conflicts")


def _is_called(child: Member, name: str) -> bool:
    folder = child.prefix.rstrip("/")
    return name.strip("/") in (folder, PurePosixPath(folder).name, text(child.manifest.get("slug")))
