"""The manifests: fields, values, tiers and the wiring of composite packs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any, cast

from octavo_build.findings import Finding
from octavo_build.lint.fields import check_fields, schema
from octavo_build.lint.subject import Member, Subject, child_paths, entries, nested, text
from octavo_build.skills import skill_resources
from octavo_build.sources.audience import released
from octavo_build.sources.expertpack import MANIFEST, TIERS

_TOLD_BY_THE_BUILD = frozenset({"slug", "name", "type"})
_CODES = {"type": "manifest-type", "slug": ""}
"""Fields whose wrong value has a code of its own; the build tells of the slug."""


def check_presence(subject: Subject) -> Iterator[Finding]:
    """A folder of which half the files name their pack and type, but that has no manifest."""
    if subject.pack.source_format != "expertpack":
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
            found = text(member.manifest, "schema_version")
            yield member.finding("schema-version", f"schema_version: {found!r} is no version", "schema_version")


def check_tiers(subject: Subject) -> Iterator[Finding]:
    """Paths in `context` and `mcp` of every member."""
    for member in subject.members:
        inner = {page.inner for page in member.pages}
        inner |= {path.removeprefix(member.prefix) for path in subject.files if path.startswith(member.prefix)}
        known = inner | {str(parent) for path in inner for parent in PurePosixPath(path).parents}
        context = nested(member.manifest, "context")
        tiers: dict[str, str] = {}
        for tier in TIERS:
            for path in (entry for entry in entries(context, tier) if isinstance(entry, str)):
                shown = path.strip("/")
                if tiers.setdefault(shown, tier) != tier:
                    message = f"context: {path!r} is in {tiers[shown]} and in {tier}"
                    yield member.finding("context-duplicate", message, "context")
                if shown not in known and not ("*" in shown and any(fnmatchcase(name, shown) for name in inner)):
                    yield member.finding("context-path", f"context.{tier}: {path!r}", "context")
        for prompt in entries(nested(member.manifest, "mcp"), "prompts"):
            source = text(cast(dict[str, Any], prompt), "source") if isinstance(prompt, dict) else ""
            if source and source.strip("/") not in known:
                yield member.finding("manifest-path", f"mcp.prompts: {source!r} is no file of the pack", "mcp")


def check_composite(subject: Subject) -> Iterator[Finding]:
    """The child packs; that each has a manifest is the build's to say."""
    root, *children = subject.members
    manifest = root.manifest
    composite = text(manifest, "type") == "composite"
    paths = child_paths(manifest)

    def wrong(message: str, key: str = "packs") -> Finding:
        return root.finding("composite-packs", message, key)

    if composite and not entries(manifest, "packs"):
        yield wrong("a composite pack names no child pack")
    if not composite and "packs" in manifest:
        yield wrong(f"packs: only a composite has them, and type is {text(manifest, 'type')!r}")
    for path in sorted(path for path, count in Counter(paths).items() if count > 1):
        yield wrong(f"packs: {path!r} is named twice")
    items = [cast(dict[str, Any], item) for item in entries(manifest, "packs") if isinstance(item, dict)]
    voices = [text(item, "path") for item in items if text(item, "role") == "voice"]
    if len(voices) > 1:
        yield wrong(f"packs: {', '.join(voices)} all have the role voice, at most one may")
    if composite:
        listed = {child.prefix for child in children}
        for path in sorted(subject.files):
            folder = path.removesuffix(MANIFEST)
            if path.endswith(f"/{MANIFEST}") and not any(folder.startswith(prefix) for prefix in listed):
                yield wrong(f"packs: {folder!r} has a {MANIFEST} and is not named")
    for wanted in entries(nested(manifest, "conflicts"), "priority"):
        if isinstance(wanted, str) and not any(_is_called(child, wanted) for child in children):
            yield wrong(f"conflicts.priority: {wanted!r} is no child pack", "conflicts")


def _is_called(child: Member, name: str) -> bool:
    folder = child.prefix.rstrip("/")
    return name.strip("/") in (folder, PurePosixPath(folder).name, text(child.manifest, "slug"))
