from __future__ import annotations

import math
from dataclasses import asdict

import pytest

from octavo_artifact.errors import ConfigError
from octavo_artifact.parameters import DEFAULTS, RANGES, SWITCHED_OFF, Retrieval, differences, read_retrieval


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
        ("passages_per_document", 2.5),
        ("passages_per_document", math.inf),
        ("passages_per_document", math.nan),
        ("passages_per_document", 10**400),
        pytest.param("passages_per_document", 10**5000, id="a number of 5,000 digits"),
        pytest.param("passages_per_document", "9" * 5000, id="a text of 5,000 digits"),
        ("words_weight", 10**400),
        ("words_weight", -math.inf),
        ("words_weight", [[1]]),
        ("fusion", {"convex": {}}),
        ("gate", "REFUSE"),
        ("boosts", [[[]]]),
        ("boosts", {"type:a": math.nan}),
        ("boosts", {"type:a": 1.5}),
        ("boosts", {"type:a": {"b": {}}}),
        ("boosts", {"type:a": True}),
        ("boosts", {"type:": 0.1}),
        ("boosts", {"path:a": 0.1}),
        pytest.param("boosts", {"type:\ud800": 0.1}, id="half a character"),
        pytest.param("boosts", {"type:" + "a" * 201: 0.1}, id="a long name"),
        ("boosts", {f"tag:{n}": 0.1 for n in range(101)}),
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


@pytest.mark.parametrize("name", RANGES)
def test_a_number_may_be_its_least_and_its_most_and_nothing_beyond(name: str) -> None:
    for bound, step in zip(RANGES[name], (-1, 1), strict=True):
        assert getattr(read_retrieval({name: bound}), name) == bound
        with pytest.raises(ConfigError, match=f"^{name}: .*expected"):
            read_retrieval({name: bound + step})


def test_parameters_come_over_one_another_and_what_differs_is_told() -> None:
    pack = read_retrieval({"diversity": 0.2, "gate": "flag", "boosts": {"type:a": 0.1}})
    server = read_retrieval({"gate": "off", "candidates": 50}, pack)
    request = read_retrieval({"candidates": "100", "boosts": {}}, server)
    assert (request.diversity, request.gate, request.candidates, request.boosts) == (0.2, "off", 100, {})
    assert differences(request, pack) == {"gate": "off", "boosts": {}}
    assert differences(pack, pack) == {}


@pytest.mark.parametrize("stage", SWITCHED_OFF)
def test_what_is_switched_off_is_so_by_parameters_that_exist(stage: str) -> None:
    assert read_retrieval(SWITCHED_OFF[stage])
