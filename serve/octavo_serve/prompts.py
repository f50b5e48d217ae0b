"""A pack's workflows as prompts that a person picks in an MCP client.

A manifest may list them (`mcp.prompts`: name, description, source, arguments); otherwise every document of type
workflow is one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, cast
from urllib.parse import unquote

from octavo_serve.labels import MAX_DESCRIPTION, MAX_TITLE, label
from octavo_serve.metadata import mapping
from octavo_serve.skills import SCHEME, Skill

_PREFIX = re.compile(r"^(?:wf|proc|workflow|process)-")
_NAME = re.compile(r"[^a-z0-9_]+")


_ARGUMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_PLACE = re.compile(r"\{\{ *([A-Za-z_][A-Za-z0-9_]{0,63}) *\}\}")


@dataclass(frozen=True, slots=True)
class Argument:
    """What a person fills in."""

    name: str
    description: str | None
    required: bool
    values: tuple[str, ...]
    """Some that it may be, to choose from."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A document offered as a prompt."""

    name: str
    """Lower-case letters, digits and `_`; unique in the pack."""
    title: str
    description: str
    """The title where the document tells none: clients show it, and some want one."""
    document: int
    """Row of the document whose body is the prompt."""
    arguments: tuple[Argument, ...] = ()

    def filled(self, body: str, given: Mapping[str, str]) -> str:
        """The body with each `{{argument}}` replaced by what was given, once: nothing in a value is replaced again."""
        known = {argument.name for argument in self.arguments}
        return _PLACE.sub(lambda found: given.get(found[1], "") if found[1] in known else found[0], body)


def list_prompts(metadata: Mapping[str, Any], documents: Sequence[Mapping[str, Any]]) -> list[Prompt]:
    """The prompts of a pack, sorted by name; the first of two with one name stays."""
    declared = _declared(metadata, documents)
    prompts = list(declared) or [
        Prompt(_name(PurePosixPath(document["path"]).stem), _title(document), _description(document), row)
        for row, document in enumerate(documents)
        if document["type"] == "workflow" and document["tier"] != "on_demand"
    ]
    unique = {prompt.name: prompt for prompt in reversed(prompts) if prompt.name}
    return [unique[name] for name in sorted(unique)]


def _declared(metadata: Mapping[str, Any], documents: Sequence[Mapping[str, Any]]) -> Iterator[Prompt]:
    rows = {name: row for row, document in enumerate(documents) for name in (document["path"], document["id"])}
    declared = mapping(metadata.get("mcp")).get("prompts")
    for item in cast(list[Any], declared) if isinstance(declared, list) else []:
        fields = mapping(item)
        name, source = str(fields.get("name") or ""), str(fields.get("source") or "")
        # a prompt whose document is not there cannot be given; the linter tells its author
        if name and (row := rows.get(source)) is not None:
            described = _description({**documents[row], **fields})
            yield Prompt(_name(name), _title(documents[row]), described, row, tuple(_arguments(fields)))


def skill_prompt_name(skill: Skill) -> str:
    """What the prompt is called that gives a SKILL.md: `skill_` and the skill's path."""
    return "skill_" + _NAME.sub("_", unquote(skill.uri).removeprefix(SCHEME).rpartition("/")[0].lower())


def _arguments(fields: Mapping[str, Any]) -> Iterator[Argument]:
    """Those of a prompt that a template can name; each once."""
    declared = fields.get("arguments")
    seen: set[str] = set()
    for item in cast(list[Any], declared) if isinstance(declared, list) else []:
        argument = mapping(item)
        name, values = str(argument.get("name") or ""), argument.get("values")
        if _ARGUMENT.fullmatch(name) and name not in seen:
            seen.add(name)
            described = argument.get("description")
            yield Argument(
                name,
                label(described, MAX_DESCRIPTION) if isinstance(described, str) else None,
                # scalars of a manifest are kept as written
                str(argument.get("required") or "").lower() in ("true", "yes"),
                tuple(map(str, cast(list[Any], values))) if isinstance(values, list) else (),
            )


def _description(document: Mapping[str, Any]) -> str:
    """What a document is for, and what it activates; else its title."""
    described = document.get("description")
    words = [described] if isinstance(described, str) and described else []
    activation: dict[str, list[str]] = json.loads(document.get("activation") or "{}")
    words += [f"{key.capitalize()}: {', '.join(items)}." for key, items in sorted(activation.items()) if items]
    return label(" ".join(words), MAX_DESCRIPTION) or _title(document)


def _title(document: Mapping[str, Any]) -> str:
    return label(document["title"], MAX_TITLE)


def _name(text: str) -> str:
    return _NAME.sub("_", _PREFIX.sub("", text.lower())).strip("_")
