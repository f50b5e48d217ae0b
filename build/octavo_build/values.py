"""What a value of a manifest or of frontmatter is: text as written, a list, a mapping, nothing.

A value of another kind than the asked one counts as missing; whoever must tell its author looks for himself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def text(value: object) -> str:
    """A value that is text, without the space around it; else empty."""
    return value.strip() if isinstance(value, str) else ""


def mapping(value: object) -> Mapping[str, Any]:
    """A value that is a mapping; else empty."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """A value that is a list; else empty."""
    return cast(list[Any], value) if isinstance(value, list) else []


def one_or_more(value: object) -> list[Any]:
    """A value that is a list; another one alone, be it nothing."""
    return cast(list[Any], value) if isinstance(value, list) else [value]


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The mappings of a list; a mapping alone is a list of one."""
    return [mapping(item) for item in one_or_more(value) if isinstance(item, dict)]


def truth(value: object) -> bool | None:
    """What a scalar as written means as YAML 1.1 has it; None when it is neither."""
    return _TRUTHS.get(text(value).casefold())
