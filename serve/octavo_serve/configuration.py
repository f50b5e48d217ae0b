"""Where the settings come from: the command line over `OCTAVO_*` variables over one file over the defaults.

Each source is checked by itself, so that an error names the place where the operator wrote the wrong value.
No value under `keys` is repeated in an error: somebody may have put the key itself there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from octavo_artifact.errors import ConfigError
from octavo_serve.callers.keys import KEY, Key
from octavo_serve.callers.rates import RateLimit
from octavo_serve.settings import RerankerSettings, ServerSettings

PREFIX = "OCTAVO_"
FILE_VARIABLE = "OCTAVO_CONFIG"
"""Names the file when the command line does not."""

_COMPILERS = frozenset({"OCTAVO_ENCODER"})
"""Variables that are not the server's."""
_SHAPES: Mapping[str, type[Any]] = {"keys": Key, "rate_limit": RateLimit, "reranker": RerankerSettings}
_JSON = frozenset(
    "port max_body answer_timeout body_timeout lexical_only retrieval workers metrics access_log query_log_text".split()
)
"""Settings that are no text; variables give them as JSON, as they do those of `_SHAPES`."""
_UNKNOWN = "unexpected_keyword_argument"
_MAX_FOUND = 80


def configure(file: Path | None, environment: Mapping[str, str], flags: Mapping[str, Any]) -> ServerSettings:
    """The settings of a server. `flags` holds those that were given, by field.

    Raises ConfigError naming the place, the key, what was found and what was expected.
    """
    if file is None and FILE_VARIABLE in environment:
        if not environment[FILE_VARIABLE]:
            raise ConfigError(f"{FILE_VARIABLE}: empty, expected the name of a file")
        file = Path(environment[FILE_VARIABLE])
    merged: dict[str, Any] = {}
    if file is not None:
        values = read_file(file)
        _check(values, lambda key: f"{file}: {key}")
        if values.get("dist"):
            values["dist"] = str(file.parent / values["dist"])
        if (values.get("reranker") or {}).get("path"):
            values["reranker"]["path"] = str(file.parent / values["reranker"]["path"])
        merged |= values
    variables = _variables(environment)
    _check(variables, lambda key: PREFIX + key.upper())
    return _check(merged | variables | dict(flags), lambda key: key)


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of `octavo.yaml`."""
    schema = _adapter().json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "octavo.yaml"}


def shown(settings: ServerSettings) -> dict[str, Any]:
    """The settings as JSON values, without the hashes of keys."""
    return _adapter().dump_python(settings, mode="json", exclude={"keys": {"__all__": {"sha256"}}})


def check_key(entry: Mapping[str, Any]) -> None:
    """Whether `entry` may stand under `keys`. Raises ConfigError."""
    _check({"keys": [entry]}, lambda key: key)


def read_file(file: Path) -> dict[str, Any]:
    """The keys and values of a YAML file, not yet checked. Raises ConfigError."""
    import yaml

    class Loader(yaml.SafeLoader):
        """YAML whose mappings are those of JSON: names that are text, each once."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            seen: set[str] = set()
            for name, _ in node.value:
                text = self.construct_object(name)
                if not isinstance(text, str) or text in seen:
                    raise yaml.MarkedYAMLError(problem="names must be text and unique", problem_mark=name.start_mark)
                seen.add(text)
            return super().construct_mapping(node, deep)

    try:
        values = yaml.load(file.read_bytes(), Loader)
        json.dumps(values, default=str)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror})") from None
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        problem = _masked(error.problem or "")
        raise ConfigError(f"{file}{line}: not YAML as expected here ({problem})") from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError):
        raise ConfigError(f"{file}: not YAML, expected keys and values in UTF-8") from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigError(f"{file}: found {_kind(values)}, expected keys and values")
    return cast(dict[str, Any], values)


def _variables(environment: Mapping[str, str]) -> dict[str, Any]:
    """The settings among the variables, with the types that JSON would give them."""
    return {
        name.removeprefix(PREFIX).lower(): _typed(name.removeprefix(PREFIX).lower(), text)
        for name, text in sorted(environment.items())
        if name.startswith(PREFIX) and name != FILE_VARIABLE and name not in _COMPILERS
    }


def _typed(key: str, text: str) -> Any:
    if key in ("allowed_hosts", "allowed_origins"):
        return [item.strip() for item in text.split(",") if item.strip()]
    if key in _JSON or key in _SHAPES:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text  # which is refused as what it is
    return text


@cache
def _adapter() -> TypeAdapter[ServerSettings]:
    return TypeAdapter(ServerSettings)


def _check(values: Mapping[str, Any], spell: Callable[[str], str]) -> ServerSettings:
    for key, value in values.items():
        try:
            json.dumps({key: value}, default=str, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ConfigError(f"{spell(key)}: found what is not UTF-8, expected text") from None
    try:
        # As JSON: strict about scalars, while arrays may become tuples and a string a path.
        return _adapter().validate_json(json.dumps(values, default=str))
    except ValidationError as error:
        # Not chained: the cause holds the values.
        # A name that is unknown explains another that is missing.
        first = min(error.errors(include_url=False), key=lambda found: found["type"] != _UNKNOWN)
        raise ConfigError(_masked(_complaint(first, spell))) from None
    except ConfigError as error:
        key, _, wrong = str(error).partition(": ")
        raise ConfigError(f"{spell(key)}: {wrong}") from None


def _masked(text: str) -> str:
    return KEY.sub("octavo_…", text)


def _complaint(error: ErrorDetails, spell: Callable[[str], str]) -> str:
    first, *inner = error["loc"]
    place = spell(str(first)) + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in inner)
    if error["type"] == _UNKNOWN:
        known = [field.name for field in fields(_SHAPES[str(first)] if inner else ServerSettings)]
        near = get_close_matches(str(error["loc"][-1]), known, 1)
        return f"{place}: unknown, expected {f'perhaps {near[0]}; ' if near else ''}one of {', '.join(known)}"
    if error["type"] == "missing":
        return f"{place}: missing, expected a value"
    subject, _, expected = error["msg"].removeprefix("Value error, ").partition(" should ")
    expected = f"expected to {expected}" if expected else subject
    return f"{place}: found {_found(error['input'], secret=first == 'keys')}, {expected}"


def _found(value: object, *, secret: bool) -> str:
    if isinstance(value, str):
        return f"{len(value)} characters" if secret or len(value) > _MAX_FOUND else repr(value)
    return _kind(value) if secret or isinstance(value, list | dict) else json.dumps(value)


def _kind(value: object) -> str:
    match value:
        case list():
            return "a list"
        case dict():
            return "keys and values"
        case None:
            return "nothing"
        case _:
            return f"a {type(value).__name__}"
