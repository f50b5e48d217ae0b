"""What a value of a pack's own metadata is; authors write what they like, so one of another kind counts as missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


def mapping(value: object) -> Mapping[str, Any]:
    """A value that is a mapping; else empty."""
    return cast(Mapping[str, Any], value) if isinstance(value, Mapping) else {}
