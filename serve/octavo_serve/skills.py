"""Skills (SEP-2640) as a pack has them: which there are, which files each holds, what lies in a directory.

The resources of a pack are sorted by URI, so all below a directory stand together.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from octavo_artifact.errors import NotFoundError
from octavo_artifact.schema import Resource
from octavo_serve.labels import MAX_DESCRIPTION, MAX_TITLE, label

SCHEME = "skill://"


@dataclass(frozen=True, slots=True)
class Skill:
    """A directory of files with its SKILL.md."""

    uri: str
    """Of its SKILL.md."""
    frontmatter: Mapping[str, Any]
    files: Sequence[Resource]
    """Every file below its directory once, SKILL.md included, sorted by URI."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What lies directly in a directory."""

    uri: str
    name: str
    file: Resource | None
    """None for a directory."""


def list_skills(resources: Sequence[Resource]) -> Mapping[str, Skill]:
    """The skills among a pack's resources by the URI of their SKILL.md, sorted."""
    uris = [resource.uri for resource in resources]
    return {
        resource.uri: Skill(
            uri=resource.uri,
            frontmatter=json.loads(resource.frontmatter),
            files=_below(resources, uris, resource.uri.rpartition("/")[0]),
        )
        for resource in resources
        if resource.frontmatter is not None
    }


def read_directory(resources: Sequence[Resource], uri: str) -> Sequence[Entry]:
    """What lies directly in a directory of a pack's skills, sorted by URI. Raises NotFoundError."""
    below = _below(resources, [resource.uri for resource in resources], uri) if uri.startswith(SCHEME) else ()
    if not below:
        raise NotFoundError("uri", "no directory of a skill of this server")
    entries: dict[str, Entry] = {}
    for resource in below:
        name, slash, _ = resource.uri[len(uri) + 1 :].partition("/")
        entry = Entry(f"{uri}/{name}", unquote(name), None if slash else resource)
        entries.setdefault(entry.uri, entry)
    return [entries[uri] for uri in sorted(entries)]


def _labelled(resource: Resource) -> Resource:
    described = resource.description
    return replace(
        resource,
        name=label(resource.name, MAX_DESCRIPTION),
        title=label(resource.title, MAX_TITLE),
        description=None if described is None else label(described, MAX_DESCRIPTION),
    )


def listed(resources: Sequence[Resource]) -> Sequence[Resource]:
    """The resources that a list of all names: of a skill only its SKILL.md, which leads to the rest.

    A document that is a SKILL.md is listed as that only: under another URI a host would take its directory for a skill.
    """
    skill_files = {resource.document for resource in resources if resource.frontmatter} - {None}
    return [
        _labelled(resource)
        for resource in resources
        if resource.frontmatter or not (resource.uri.startswith(SCHEME) or resource.document in skill_files)
    ]


def _below(resources: Sequence[Resource], uris: Sequence[str], directory: str) -> Sequence[Resource]:
    first, last = (bisect_left(uris, directory + end) for end in ("/", "0"))  # "0" follows "/" in Unicode
    return resources[first:last]
