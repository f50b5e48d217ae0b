from __future__ import annotations

from dataclasses import asdict

import pytest

from octavo_artifact.errors import ConfigError
from octavo_artifact.parameters import DEFAULTS, Retrieval, read_retrieval


def test_what_is_not_written_is_the_default() -> None:
    assert read_retrieval({}) == DEFAULTS


def test_scalars_may_be_written_as_in_yaml_or_as_in_json() -> None:
    expected = Retrieval(graph=True, freshness_penalty=0.2, passages_per_document=3)
    assert read_retrieval({"graph": "true", "freshness_penalty": "0.2", "passages_per_document": "3"}) == expected
    assert read_retrieval(asdict(expected)) == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("freshness_penalty", "1.5"),
        ("freshness_penalty", "much"),
        ("freshness_penalty", "nan"),
        ("freshness_penalty", True),
        ("passages_per_document", "0"),
        ("passages_per_document", "2.5"),
        ("passages_per_document", None),
        ("graph", "maybe"),
        ("graph", 1),
        ("boost", "1"),
        ("__class__", "1"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        read_retrieval({name: value})


def test_weights_that_are_all_nothing_are_refused() -> None:
    with pytest.raises(ConfigError, match="all 0"):
        Retrieval(words_weight=0, passage_weight=0, document_weight=0)
