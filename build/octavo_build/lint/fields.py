"""Values of manifest and frontmatter against the JSON Schemas that editors use: one source for both.

Only the keywords that our schemas use are known here. Scalars are text as written, so a number is text that reads as
one; whether an author quoted a value makes no difference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, cast

from octavo_build.lint.dates import parse_date, parse_duration

SCHEMAS = ("manifest", "frontmatter")
Problem = tuple[str, str, str]
"""Where (`freshness.refresh_cycle`), code, message."""

_BOOLEANS = frozenset("true false yes no on off True False Yes No On Off TRUE FALSE YES NO ON OFF".split())
_FORMATS = {"date": "a date (YYYY-MM-DD)", "duration": "a duration (P90D)"}


def schema_text(name: str) -> str:
    """The JSON Schema `manifest` or `frontmatter` as it is shipped."""
    return (files("octavo_build.lint") / "schemas" / f"{name}.json").read_text(encoding="utf-8")


@cache
def schema(name: str) -> Mapping[str, Any]:
    """The same, parsed."""
    return json.loads(schema_text(name))


def check_fields(name: str, metadata: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong with the values of a manifest or of frontmatter; missing and unknown keys are nobody's fault."""
    return _properties(schema(name), metadata, "")


def _properties(rule: Mapping[str, Any], values: Mapping[str, Any], where: str) -> Iterator[Problem]:
    known = rule.get("properties", {})
    for key, value in values.items():
        inner = known.get(key, rule.get("additionalProperties"))
        if inner and value is not None:
            yield from _value(inner, value, f"{where}.{key}".lstrip("."))


def _value(rule: Mapping[str, Any], value: Any, where: str) -> Iterator[Problem]:
    if reference := rule.get("$ref"):
        name = reference.rpartition("/")[2]
        if not isinstance(value, str) or not _reads_as(name, value.strip()):
            yield where, f"{name}-invalid", f"{where}: expected {_FORMATS[name]}, found {_shown(value)}"
        return
    kinds = rule.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    if kinds and not any(_is(kind, value) for kind in kinds):
        yield where, "value-kind", f"{where}: expected {' or '.join(kinds)}, found {_shown(value)}"
    elif isinstance(value, str):
        yield from _scalar(rule, value.strip(), where)
    elif isinstance(value, list):
        for item in cast(list[Any], value):
            if item is not None:
                yield from _value(rule.get("items", {}), item, f"{where}[]")
    elif isinstance(value, dict):
        yield from _properties(rule, cast(dict[str, Any], value), where)


def _scalar(rule: Mapping[str, Any], value: str, where: str) -> Iterator[Problem]:
    if "enum" in rule and value not in rule["enum"]:
        yield where, "value-unknown", f"{where}: {_shown(value)} is none of {', '.join(rule['enum'])}"
    if "pattern" in rule and not re.search(rule["pattern"], value):
        yield where, "value-format", f"{where}: {_shown(value)} is not of the form {rule['pattern']}"
    if len(value) > rule.get("maxLength", len(value)):
        yield where, "value-format", f"{where}: {len(value)} characters, at most {rule['maxLength']}"
    if "minimum" in rule and not rule["minimum"] <= float(value) <= rule.get("maximum", float("inf")):
        yield where, "value-format", f"{where}: {_shown(value)} is out of range"


def _reads_as(name: str, value: str) -> bool:
    if name == "date":
        return parse_date(value) is not None
    try:
        parse_duration(value)
    except ValueError:
        return False
    return True


def _is(kind: str, value: Any) -> bool:
    if kind in ("object", "array"):
        return isinstance(value, dict if kind == "object" else list)
    if not isinstance(value, str):
        return False
    if kind == "boolean":
        return value in _BOOLEANS
    if kind in ("integer", "number"):
        form = r"[+-]?\d{1,15}" + (r"(\.\d{0,15})?" if kind == "number" else "")
        return re.fullmatch(form, value.strip(), re.ASCII) is not None
    return kind == "string"


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:57] + "...")
    return "a mapping" if isinstance(value, dict) else "a list"
