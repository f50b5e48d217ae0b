"""How a server introduces its packs to a model: in the pack's own words, within bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from octavo_serve.labels import MAX_TITLE, label
from octavo_serve.metadata import mapping
from octavo_serve.results import Authority

MAX_LISTED = 4
"""Entries of an authority boundary's list that are told."""


def introduce(packs: Sequence[Mapping[str, Any]], room: int) -> str:
    """A paragraph a pack, each with an equal share of `room` characters.

    `packs` are the `pack` objects of manifests. A manifest's `mcp.instructions` stand for its description, and its
    `authority_boundary` follows: what is in scope, what is not, when to refuse.
    """
    share = (room + 1) // max(1, len(packs)) - 1
    return "\n".join(
        _cut(f"{label(pack['name'], MAX_TITLE)} ({pack['slug']}): {' '.join(_said(pack))}", share) for pack in packs
    )


def authority_of(metadata: Mapping[str, Any]) -> Authority | None:
    """What a manifest's `authority_boundary` says; None when neither what is in scope nor what is out of it."""
    boundary = mapping(metadata.get("authority_boundary"))
    authority: Authority = {
        "in_scope": _words(boundary.get("in_scope")),
        "out_of_scope": _list(boundary.get("out_of_scope")),
        "refuse_when": _list(boundary.get("refuse_when")),
        # scalars of a manifest are kept as written
        "no_source_no_claim": _words(boundary.get("no_source_no_claim")).lower() in ("true", "yes"),
    }
    return authority if authority["in_scope"] or authority["out_of_scope"] else None


def point_to_skills(skills: Mapping[str, int]) -> str:
    """Where the skills are, for clients that cannot list them: `skills` is how many each pack has, by slug."""
    told = [f"skill://{slug}/{'SKILL.md' if n == 1 else '...'}" for slug, n in skills.items() if n]
    if not told:
        return ""
    more = ", ..." if len(told) > MAX_LISTED else ""
    return f"Skills are resources: {', '.join(told[:MAX_LISTED])}{more}"


def _said(pack: Mapping[str, Any]) -> Iterator[str]:
    metadata = mapping(pack.get("metadata"))
    if about := _words(mapping(metadata.get("mcp")).get("instructions")) or _words(pack.get("description")):
        yield f"{about}."
    authority = authority_of(metadata)
    if authority is None:
        return
    if authority["in_scope"]:
        yield f"In scope: {authority['in_scope']}."
    if authority["out_of_scope"]:
        yield f"Out of scope: {'; '.join(authority['out_of_scope'][:MAX_LISTED])}."
    if authority["refuse_when"]:
        yield f"Refuse when: {'; '.join(authority['refuse_when'][:MAX_LISTED])}."
    if authority["no_source_no_claim"]:
        yield "Claim nothing without a source from here."


def _list(value: object) -> list[str]:
    items = cast(list[Any], value) if isinstance(value, list) else [value]
    return [word for word in map(_words, items) if word]


def _words(value: object) -> str:
    return " ".join(label(value).split()).rstrip(".") if isinstance(value, str) else ""


def _cut(text: str, room: int) -> str:
    text = text.rstrip(": ")
    return text if len(text) <= room else text[: max(0, room - 1)] + "…"
