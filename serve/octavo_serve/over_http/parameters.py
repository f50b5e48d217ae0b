"""How a query string becomes a request: which parameters there are, and which JSON value a spelling means.

Both follow from the model, so a field of a request is a parameter as soon as it is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic_core import from_json

from octavo_artifact.errors import RequestError
from octavo_serve.requests import RequestT, SearchRequest, parse_request

SHORT = {"query": "q", "max_results": "n"}
"""What a search's fields are called for short."""

_NUMBER = re.compile(r"(?=.{1,100}\Z)-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
"""As JSON has them (RFC 8259, section 6)."""

_BOOLEANS = {"1": True, "true": True, "0": False, "false": False}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a query string."""

    name: str
    """As it is spelled there."""
    field: str
    """Of the model."""
    kind: type
    """`str`, `int`, `float`, `bool`; `tuple` for one that may be repeated, `dict` for a JSON object, `object` for a day
    or a word of a list.
    """
    required: bool


@cache
def parameters_of(model: type[RequestT], *, of_pack: bool = False) -> Mapping[str, Parameter]:
    """The parameters by name, in the order of the model; below a pack's path there is no `pack`."""
    short = SHORT if model is SearchRequest else {}
    listed = (
        Parameter(short.get(name, name), name, _kind(field.annotation), field.is_required())
        for name, field in model.model_fields.items()
        if not (of_pack and name == "pack")
    )
    return {parameter.name: parameter for parameter in listed}


def request_of_query(model: type[RequestT], pairs: Iterable[tuple[str, str]], *, pack: str | None = None) -> RequestT:
    """The request that the names and values of a query string ask for; `pack` is the one that the path names.

    Lists may be repeated and may hold several, separated by commas. An empty text or list is an absent one, but for a
    required one. Raises RequestError, which names the parameter as it is spelled there.
    """
    known = parameters_of(model, of_pack=pack is not None)
    values: dict[str, Any] = {} if pack is None else {"pack": pack}
    for name, text in pairs:
        parameter = known.get(name)
        if parameter is None:
            raise RequestError(name[:100], f"unknown; known are {', '.join(known)}")
        if parameter.kind is tuple:
            values.setdefault(parameter.field, []).extend(item.strip() for item in text.split(","))
        elif parameter.field in values:
            raise RequestError(name, "given more than once")
        elif text or parameter.required or parameter.kind is not str:
            values[parameter.field] = _value(parameter, text)
    values = {field: [] if value == [""] else value for field, value in values.items()}
    try:
        return parse_request(model, values, strict=True)
    except RequestError as error:
        field, _, wrong = str(error).partition(": ")
        spelling = next((name for name, each in known.items() if each.field == field), field)
        raise RequestError(spelling, wrong) from error


def _kind(annotation: Any) -> type:
    if get_origin(annotation) in (Union, UnionType):
        (annotation,) = (each for each in get_args(annotation) if each is not NoneType)
    kind = get_origin(annotation) or annotation
    return object if kind in (Literal, date) else kind


def _value(parameter: Parameter, text: str) -> Any:
    """What the text means; where it means nothing of the kind it stays as it is, for the model to refuse."""
    if parameter.kind is bool:
        return _BOOLEANS.get(text, text)
    if parameter.kind in (int, float) and _NUMBER.fullmatch(text):
        return from_json(text)
    if parameter.kind is dict:
        return _mapping(parameter.name, text)
    return text


def _mapping(name: str, text: str) -> object:
    try:
        value = from_json(text, allow_inf_nan=False)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise RequestError(name, 'expected a JSON object such as {"diversity": 0.3}')
    return value
