from __future__ import annotations

from typing import Any

import pytest

from octavo_serve.introduction import introduce

ROOM = 1000


def pack(description: str = "All about pumps.", slug: str = "pumps", **metadata: Any) -> dict[str, Any]:
    return {"slug": slug, "name": slug.capitalize(), "description": description, "metadata": metadata}


def test_a_pack_is_introduced_by_its_description() -> None:
    assert introduce([pack()], ROOM) == "Pumps (pumps): All about pumps."


def test_the_manifests_instructions_stand_for_the_description() -> None:
    assert introduce([pack(mcp={"instructions": "Ask about\n seals."})], ROOM) == "Pumps (pumps): Ask about seals."


def test_the_authority_boundary_is_told() -> None:
    boundary = {
        "in_scope": "Pumps of series 3",
        "out_of_scope": ["valves", "motors", "law", "prices", "weather"],
        "refuse_when": ["asked for a warranty"],
        "no_source_no_claim": "true",
    }
    assert introduce([pack(authority_boundary=boundary)], ROOM) == (
        "Pumps (pumps): All about pumps. In scope: Pumps of series 3. Out of scope: valves; motors; law; prices. "
        "Refuse when: asked for a warranty. Claim nothing without a source from here."
    )


@pytest.mark.parametrize("wrong", [None, "x", 7, [], {"in_scope": ["a"], "out_of_scope": "b", "refuse_when": [{}]}])
def test_a_boundary_of_another_shape_breaks_nothing(wrong: object) -> None:
    assert introduce([pack(authority_boundary=wrong, mcp=wrong)], ROOM).startswith("Pumps (pumps): All about pumps")


def test_every_pack_has_its_share_of_the_room() -> None:
    text = introduce([pack("words " * 900, "a"), pack("words " * 900, "b"), pack("", "c")], 300)
    assert [line.partition(" ")[0] for line in text.split("\n")] == ["A", "B", "C"]
    assert len(text) <= 300


def test_a_pack_tells_of_itself_in_one_line_that_turns_no_direction() -> None:
    described = "All\u202e about\x1b[31m\x00 pumps\u2028and\u200b seals\U000e0041."
    assert introduce([{**pack(described), "name": "Pu\u2066mps\n"}], ROOM) == (
        "Pumps (pumps): All about [31m pumps and seals."
    )
