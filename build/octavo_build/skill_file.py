"""A SKILL.md: the one that an author wrote, checked, and the one that is made where there is none.

The rules are those of Agent Skills and of SEP-2640 (skills over MCP). A host compares the frontmatter it was told with
the one it parses from the file, field by field; so only text may stand in it, which every YAML parser reads alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from octavo_artifact.ids import SLUG, uri_path
from octavo_artifact.schema import Document
from octavo_build.frontmatter import read_frontmatter, text_start
from octavo_build.pack import Pack
from octavo_build.values import mapping, one_or_more

SKILL_FILE = "SKILL.md"
MAX_NAME = 64
MAX_DESCRIPTION = 1024
MAX_SKILL_FILE = 64 * 2**10
"""Bytes of a SKILL.md that is made, about 16,000 tokens."""

_MAX_LABEL = 200
_MAX_LISTED = 12
_TEXT = "tag:yaml.org,2002:str"
_RESOLVER = yaml.resolver.Resolver()
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|0o[0-7]+")
"""What is a number in YAML 1.2; the resolver knows 1.1."""


class SkillFileError(Exception):
    """A SKILL.md that a host would refuse, and the line (from 1) where that shows."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


@dataclass(frozen=True, slots=True)
class Index:
    """What a SKILL.md that is made tells of its skill."""

    name: str
    part: str
    """Which part of the pack it is, in words; empty for the whole pack."""
    folder: str
    """What the paths of its files begin with: empty, or a folder and `/`."""
    documents: Sequence[Document]
    siblings: Sequence[str]
    """URIs of the SKILL.md files of the pack's other skills."""


def written_frontmatter(document: Document, name: str) -> dict[str, Any]:
    """The frontmatter of a SKILL.md that an author wrote for the skill called `name`.

    Raises SkillFileError when a host would refuse the file.
    """
    try:
        document.raw.decode()
    except UnicodeDecodeError as error:
        raise SkillFileError(1, "not UTF-8") from error
    front = read_frontmatter(document.path, document.raw)
    if front.findings:
        raise SkillFileError(front.findings[0].line, front.findings[0].message)
    written = front.metadata.get("name")
    if not isinstance(written, str):
        raise SkillFileError(1, f"name: missing, expected {name!r}")
    line = front.lines["name"]
    if len(written) > MAX_NAME or SLUG.fullmatch(written) is None:
        raise SkillFileError(line, f"name: {written!r}, expected a-b-c (a-z, 0-9, hyphens), at most {MAX_NAME}")
    if written != name:
        raise SkillFileError(line, f"name: {written!r}, expected {name!r}, as the URI of its directory ends")
    description = front.metadata.get("description")
    if not isinstance(description, str) or not description.strip():
        raise SkillFileError(front.lines.get("description", 1), "description: missing; it says when to use the skill")
    if len(description) > MAX_DESCRIPTION:
        found = f"description: {len(description)} characters, expected at most {MAX_DESCRIPTION}"
        raise SkillFileError(front.lines["description"], found)
    for line, value in _not_text(document.raw[: front.body_offset]):
        raise SkillFileError(line, f"{value!r} is not text to every YAML parser; quote it")
    return front.metadata


def _not_text(block: bytes) -> Iterator[tuple[int, str]]:
    """Line and text of each scalar of a frontmatter block that some parser takes for a number, a date or a boolean."""
    start = text_start(block)
    for event in yaml.parse(block[start:].decode(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if isinstance(event, yaml.DocumentEndEvent):
            return
        if isinstance(event, yaml.AliasEvent):
            yield event.start_mark.line + 1, f"*{event.anchor}"
        if isinstance(event, yaml.ScalarEvent) and (event.tag or (event.implicit[0] and _is_special(event.value))):
            yield event.start_mark.line + 1, event.value


def _is_special(plain: str) -> bool:
    return _RESOLVER.resolve(yaml.ScalarNode, plain, (True, False)) != _TEXT or bool(_NUMBER.fullmatch(plain))


def make_skill_file(pack: Pack, index: Index) -> tuple[dict[str, Any], bytes]:
    """The frontmatter and the bytes of a SKILL.md that introduces a pack, or a part of it, and lists its files."""
    frontmatter = {"name": index.name, "description": _describe(pack, index)}
    lines = ["---", *(f"{key}: {_quoted(value)}" for key, value in frontmatter.items()), "---", ""]
    lines += _introduction(pack, index)
    room = MAX_SKILL_FILE - 1024 - sum(len(line.encode()) + 1 for line in lines)
    lines += _within([*_files(pack, index)], room // 2, "files")
    if index.siblings:
        lines += ["", "## The pack's other skills", ""]
        lines += _within([f"- <{uri}>" for uri in index.siblings], room // 2, "skills")
    return frontmatter, "\n".join([*lines, ""]).encode()


def _describe(pack: Pack, index: Index) -> str:
    scope = _boundary(pack, "in_scope")
    about = [f"{index.part} of {pack.name}." if index.part else "", _about(pack)]
    if scope:
        about.append(f"Use it for: {'; '.join(scope)}.")
    return _cut(" ".join(filter(None, about)), MAX_DESCRIPTION)


def _introduction(pack: Pack, index: Index) -> Iterator[str]:
    yield f"# {_cut(f'{pack.name}: {index.part}' if index.part else pack.name)}"
    yield ""
    yield _cut(_about(pack), MAX_DESCRIPTION)
    boundary = {
        "Use it for": _boundary(pack, "in_scope"),
        "It does not cover": _boundary(pack, "out_of_scope"),
        "Refuse to answer when": _boundary(pack, "refuse_when"),
    }
    if any(boundary.values()):
        yield from ("", "## When to use it")
    for says, items in boundary.items():
        if items:
            yield from ("", f"{says}:", "", *(f"- {item}" for item in items))
    yield from ("", "## How to search", "")
    yield (
        f"Ask the tool `ep_search` with the question in plain words and `pack` set to `{pack.slug}`: it finds the "
        "passages that answer, each with its file and lines. `ep_read` reads more of a result. Cite file and lines. "
        "Without these tools, read the files below that fit the question, and only those."
    )
    yield from ("", "## Files", "")


def _files(pack: Pack, index: Index) -> Iterator[str]:
    """A line a file, those of a folder together, the page to begin with first."""
    entry = [document for document in index.documents if document.path == pack.entry_point]
    if entry:
        yield from (f"Begin with {_link(entry[0], index)}.", "")
    topic = None
    for document in sorted(index.documents, key=lambda each: (each.path.rpartition("/")[0], each.path)):
        folder = document.path.removeprefix(index.folder).rpartition("/")[0]
        if folder != topic and folder:
            yield from ("", f"### {_cut(folder)}", "")
        topic = folder
        description = _cut(document.description or "")
        yield f"- {_link(document, index)}{f': {description}' if description else ''}"


def _link(document: Document, index: Index) -> str:
    label = _cut(document.title).replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    target = uri_path(document.path.removeprefix(index.folder))
    return f"[{label}](<{target}>)" if set("()") & set(target) else f"[{label}]({target})"


def _within(lines: Sequence[str], room: int, things: str) -> list[str]:
    """As many lines as fit `room` bytes, and how many things the others name."""
    for place, line in enumerate(lines):
        room -= len(line.encode()) + 1
        if room < 0:
            rest = sum(each.startswith("- ") for each in lines[place:])
            return [*lines[:place], "", f"And {rest} more {things}: list the directory, or search."]
    return [*lines]


def _boundary(pack: Pack, key: str) -> list[str]:
    """What the manifest's `authority_boundary` lists under a key."""
    written = one_or_more(mapping(pack.metadata.get("authority_boundary")).get(key))
    words = (_cut(item).rstrip(".") for item in written[:_MAX_LISTED] if isinstance(item, str))
    return [word for word in words if word]


def _quoted(text: str) -> str:
    # quoted always: what is plain to one version of YAML is a number to another
    return yaml.safe_dump(text, default_style='"', allow_unicode=True, width=2**20).strip()


def _about(pack: Pack) -> str:
    words = " ".join((pack.description or f"What {pack.name} knows").split())
    return words if words.endswith((".", "!", "?")) else f"{words}."


def _cut(text: str, room: int = _MAX_LABEL) -> str:
    words = " ".join(text.split())
    return words if len(words) <= room else f"{words[: room - 1]}…"
