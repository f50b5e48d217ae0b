"""A pack as skills (SEP-2640), when its manifest says `mcp.skills.enabled: true`.

The whole pack is one skill at `skill://{slug}`. A host may refuse a skill of more than 512 files or 16 MiB, so a larger
pack is cut into skills side by side: by folder, by deeper folders where one is still too large, and the files that lie
together in one folder into numbered parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from octavo_artifact.ids import canonical_json, sha256_hex, uri_path
from octavo_artifact.schema import Document, Resource
from octavo_build.findings import Finding
from octavo_build.pack import Pack, file_resource
from octavo_build.skill_file import (
    MAX_NAME,
    MAX_SKILL_FILE,
    SKILL_FILE,
    Index,
    SkillFileError,
    make_skill_file,
    written_frontmatter,
)
from octavo_build.sources.identity import ascii_slug
from octavo_build.values import mapping, truth

MAX_FILES = 512
MAX_BYTES = 16 * 2**20
"""Limits of one skill, its SKILL.md counted, that every host must accept."""

_Files = Sequence[tuple[int, Document]]
"""Documents with their rows, sorted by path."""


@dataclass(frozen=True, slots=True)
class _Skill:
    root: str
    """Its URI without `skill://` and without a `/` at the end."""
    folder: str
    """What the paths of its files begin with: empty, or a folder and `/`."""
    part: str
    files: _Files

    @property
    def uri(self) -> str:
        return _uri(self.root, SKILL_FILE)


def skill_resources(pack: Pack) -> tuple[list[Resource], list[Finding]]:
    """The files of a pack's skills, each once, sorted by URI; and what is wrong with them.

    A SKILL.md by which a host can use its directory as a skill has its frontmatter, every other file has none.
    """
    if not _is_enabled(pack.metadata):
        return [], []
    if len(pack.slug) > MAX_NAME:
        found = f"slug: {len(pack.slug)} characters, expected at most {MAX_NAME} to be the name of a skill"
        return [], [Finding("", 0, "skill-invalid", found)]
    findings: list[Finding] = []
    offered = [(row, document) for row, document in enumerate(pack.documents) if document.tier != "on_demand"]
    files = [(row, document) for row, document in offered if len(document.raw) <= MAX_BYTES - MAX_SKILL_FILE]
    for _, document in offered:
        if len(document.raw) > MAX_BYTES - MAX_SKILL_FILE:
            found = f"{len(document.raw)} bytes, at most {MAX_BYTES - MAX_SKILL_FILE} fit into a skill"
            findings.append(Finding(document.path, 0, "skill-file-over-limit", found))
    skills = sorted(_cut(pack.slug, files), key=lambda skill: skill.root)
    if len(skills) > 1:
        found = f"more than {MAX_FILES} files or {MAX_BYTES} bytes; {len(skills)} skills are made of the pack"
        findings.append(Finding("", 0, "skill-split", found))
    uris = [skill.uri for skill in skills]
    resources = [resource for skill in skills for resource in _resources(pack, skill, uris, findings)]
    return sorted(resources, key=lambda resource: resource.uri), sorted(findings)


def _is_enabled(metadata: Mapping[str, Any]) -> bool:
    return truth(mapping(mapping(metadata.get("mcp")).get("skills")).get("enabled")) is True


def _cut(slug: str, files: _Files) -> Iterator[_Skill]:
    """The skills of a pack, each within the limits."""
    waiting = [_Skill(slug, "", "", files)]
    while waiting:
        skill = waiting.pop()
        if _fits(skill):
            yield skill
            continue
        direct, folders = _by_folder(skill)
        taken: set[str] = set()
        # a folder whose name can be a skill's keeps it, so that links between its files and others hold
        for name, inside in sorted(folders.items(), key=lambda each: (ascii_slug(each[0]) != each[0], each[0])):
            root = f"{skill.root}/{_free(ascii_slug(name) or 'pack', taken)}"
            waiting.append(_Skill(root, f"{skill.folder}{name}/", f"{skill.folder}{name}", inside))
        stem = skill.root.rpartition("/")[2]
        where = skill.folder.rstrip("/") or "the top folder"
        for number, part in enumerate(_parts(direct), 1):
            root = f"{skill.root}/{_free(f'{stem}-{number}', taken)}"
            yield _Skill(root, skill.folder, f"{where}, part {number}", part)


def _by_folder(skill: _Skill) -> tuple[_Files, dict[str, list[tuple[int, Document]]]]:
    """The files that lie in the skill's folder itself, and those below by the folder they lie in or under."""
    direct: list[tuple[int, Document]] = []
    folders: dict[str, list[tuple[int, Document]]] = {}
    for row, document in skill.files:
        name, slash, _ = document.path.removeprefix(skill.folder).partition("/")
        (folders.setdefault(name, []) if slash else direct).append((row, document))
    return direct, folders


def _parts(files: _Files) -> Iterator[_Files]:
    """Files in their order, as few parts as hold the limits."""
    part: list[tuple[int, Document]] = []
    size = 0
    for row, document in files:
        if len(part) == MAX_FILES - 1 or size + len(document.raw) > MAX_BYTES - MAX_SKILL_FILE:
            yield part
            part, size = [], 0
        part.append((row, document))
        size += len(document.raw)
    if part:
        yield part


def _fits(skill: _Skill) -> bool:
    size = sum(len(document.raw) for _, document in skill.files)
    own = _own(skill) is not None
    return len(skill.files) + (not own) <= MAX_FILES and size <= MAX_BYTES - MAX_SKILL_FILE


def _free(wanted: str, taken: set[str]) -> str:
    """A name for a skill that none beside it has."""
    name, number = wanted[:MAX_NAME].rstrip("-"), 1
    while name in taken:
        number += 1
        ending = f"-{number}"
        name = wanted[: MAX_NAME - len(ending)].rstrip("-") + ending
    taken.add(name)
    return name


def _own(skill: _Skill) -> Document | None:
    path = skill.folder + SKILL_FILE
    return next((document for _, document in skill.files if document.path == path), None)


def _resources(pack: Pack, skill: _Skill, uris: Sequence[str], findings: list[Finding]) -> Iterator[Resource]:
    """Every file of a skill once, its SKILL.md among them."""
    has_own = False
    for row, document in skill.files:
        resource = _file(skill, row, document, findings)
        if resource.uri != skill.uri:
            yield resource
        elif resource.frontmatter is not None:
            has_own = True
            yield resource
    if not has_own:
        yield _made(pack, skill, uris)


def _file(skill: _Skill, row: int, document: Document, findings: list[Finding]) -> Resource:
    path = document.path.removeprefix(skill.folder)
    name, description, frontmatter = path, document.description, None
    directory, _, file = f"{skill.root}/{path}".rpartition("/")
    if file == SKILL_FILE:
        try:
            written = written_frontmatter(document, directory.rpartition("/")[2])
        except SkillFileError as error:
            findings.append(Finding(document.path, error.line, "skill-invalid", str(error)))
        else:
            name, description = written["name"], written["description"]
            frontmatter = canonical_json(written).decode()
    return replace(
        file_resource(row, document),
        uri=_uri(skill.root, path),
        name=name,
        description=description,
        frontmatter=frontmatter,
    )


def _made(pack: Pack, skill: _Skill, uris: Sequence[str]) -> Resource:
    own = skill.folder + SKILL_FILE
    index = Index(
        name=skill.root.rpartition("/")[2],
        part=skill.part,
        folder=skill.folder,
        documents=[document for _, document in skill.files if document.path != own],
        siblings=[uri for uri in uris if uri != skill.uri],
    )
    frontmatter, content = make_skill_file(pack, index)
    return Resource(
        uri=skill.uri,
        name=frontmatter["name"],
        title=f"{pack.name}: {skill.part}" if skill.part else pack.name,
        description=frontmatter["description"],
        mime_type="text/markdown",
        size=len(content),
        sha256=sha256_hex(content),
        document=None,
        content=content,
        frontmatter=canonical_json(frontmatter).decode(),
    )


def _uri(root: str, path: str) -> str:
    return f"skill://{root}/{uri_path(path)}"
