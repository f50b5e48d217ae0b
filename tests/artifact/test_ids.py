from __future__ import annotations

import json
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_artifact.ids import canonical_json, document_uri, fragment_id, slugify

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(json_values)
def test_canonical_json_reads_back_and_is_the_same_again(value: object) -> None:
    data = canonical_json(value)
    assert json.loads(data) == value
    assert canonical_json(json.loads(data)) == data


def test_canonical_json_does_not_depend_on_order() -> None:
    assert canonical_json({"b": 1, "a": "é"}) == canonical_json({"a": "é", "b": 1}) == '{"a":"é","b":1}\n'.encode()


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_path_comes_back_from_its_uri(path: str) -> None:
    parts = urlsplit(document_uri("p", path))
    assert (parts.scheme, parts.netloc, parts.query, parts.fragment) == ("ep", "p", "", "")
    assert unquote(parts.path.removeprefix("/file/")) == path


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("How do I?", "how-do-i"),
        ("Ünïcode — Päck", "ünïcode-päck"),
        ("電池の容量", "電池の容量"),
        ("!!!", ""),
        ("a_b", "a-b"),
    ],
)
def test_slugs_keep_letters_of_any_script(text: str, slug: str) -> None:
    assert slugify(text) == slug


def test_a_fragment_before_any_heading_is_the_opening() -> None:
    assert fragment_id("p/x", "", "0123456789abcdef") == "p/x#opening:0123456789ab"
