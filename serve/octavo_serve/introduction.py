"""How a server introduces its packs to a model: in the pack's own words, within bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

MAX_LISTED = 4
"""Entries of an authority boundary's list that are told."""


def introduce(packs: Sequence[Mapping[str, Any]], room: int) -> str:
    """A paragraph a pack, each with an equal share of `room` characters.

    `packs` are the `pack` objects of manifests. A manifest's `mcp.instructions` stand for its description, and its
    `authority_boundary` follows: what is in scope, what is not, when to refuse.
    """
    share = (room + 1) // max(1, len(packs)) - 1
    return "\n".join(_cut(f"{pack['name']} ({pack['slug']}): {' '.join(_said(pack))}", share) for pack in packs)


def point_to_skills(skills: Mapping[str, int]) -> str:
    """Where the skills are, for clients that cannot list them: `skills` is how many each pack has, by slug."""
    told = [f"skill://{slug}/{'SKILL.md' if n == 1 else '...'}" for slug, n in skills.items() if n]
    if not told:
        return ""
    more = ", ..." if len(told) > MAX_LISTED else ""
    return f"Skills are resources: {', '.join(told[:MAX_LISTED])}{more}"


def _said(pack: Mapping[str, Any]) -> Iterator[str]:
    metadata = _mapping(pack.get("metadata"))
    if about := _words(_mapping(metadata.get("mcp")).get("instructions")) or _words(pack.get("description")):
        yield f"{about}."
    boundary = _mapping(metadata.get("authority_boundary"))
    if scope := _words(boundary.get("in_scope")):
        yield f"In scope: {scope}."
    if outside := _listed(boundary.get("out_of_scope")):
        yield f"Out of scope: {outside}."
    if refuse := _listed(boundary.get("refuse_when")):
        yield f"Refuse when: {refuse}."
    # scalars of a manifest are kept as written
    if _words(boundary.get("no_source_no_claim")).lower() in ("true", "yes"):
        yield "Claim nothing without a source from here."


def _listed(value: object) -> str:
    items = cast(list[Any], value) if isinstance(value, list) else [value]
    return "; ".join(word for word in map(_words, items[:MAX_LISTED]) if word)


def _words(value: object) -> str:
    return " ".join(value.split()).rstrip(".") if isinstance(value, str) else ""


def _mapping(value: object) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, Mapping) else {}


def _cut(text: str, room: int) -> str:
    text = text.rstrip(": ")
    return text if len(text) <= room else text[: max(0, room - 1)] + "…"
