"""An `octavo.yaml` with every setting: what it means, and its default or an example, made from the JSON Schema."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from octavo_serve.configuration import json_schema

HEAD = """\
# yaml-language-server: $schema=octavo.schema.json
#
# Every setting of `octavo serve`: take the `#` away from those that are to differ. Each has a variable too, OCTAVO_ and
# its name in capitals. `octavo config FILE` checks this file, `octavo doctor --config FILE` the machine as well.
"""
_WIDTH = 120


def example_file() -> str:
    """The text of the file; every line of it is a comment, and without its `#` a setting is valid."""
    schema = json_schema()
    return HEAD + "".join(_setting(name, shape, schema["$defs"]) for name, shape in schema["properties"].items())


def example_of(shape: Mapping[str, Any]) -> Any:
    """What the schema of a setting gives as an example, else its default."""
    return shape["examples"][0] if shape.get("examples") else shape.get("default")


def _setting(name: str, shape: Mapping[str, Any], shapes: Mapping[str, Any]) -> str:
    import yaml

    about = [shape["description"]]
    for field, inner in _fields(shape, shapes):
        about.append(f"  {field}: {inner.get('description', '')}")
    prose = (line for text in about for line in textwrap.wrap(text, _WIDTH - 2, subsequent_indent=_indent(text)))
    # in braces, so that it is one line whatever it is
    value = yaml.safe_dump(
        {name: example_of(shape)}, sort_keys=False, allow_unicode=True, width=10_000, default_flow_style=True
    )
    return "\n" + "".join(f"# {line}\n" for line in prose) + f"#{value.strip()[1:-1]}\n"


def _indent(text: str) -> str:
    return "    " if text.startswith(" ") else ""


def _fields(shape: Mapping[str, Any], shapes: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The fields of a setting that has some, or whose list entries have."""
    for part in (shape, shape.get("items", {}), *shape.get("anyOf", ())):
        if reference := part.get("$ref"):
            yield from shapes[reference.rpartition("/")[2]]["properties"].items()
