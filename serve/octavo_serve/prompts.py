"""A pack's workflows as prompts that a person picks in an MCP client.

A manifest may list them (`mcp.prompts`: name, description, source); otherwise every document of type workflow is one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, cast

from octavo_serve.labels import MAX_DESCRIPTION, MAX_TITLE, label
from octavo_serve.metadata import mapping

_PREFIX = re.compile(r"^(?:wf|proc|workflow|process)-")
_NAME = re.compile(r"[^a-z0-9_]+")


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
            yield Prompt(_name(name), _title(documents[row]), _description({**documents[row], **fields}), row)


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
