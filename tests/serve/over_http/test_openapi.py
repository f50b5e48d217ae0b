"""The description of the HTTP face is valid, complete, always the same, and true."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from octavo_artifact.ids import sha256_hex
from octavo_artifact.parameters import DEFAULTS, Retrieval, read_retrieval
from octavo_serve.over_http.asking import ask_routes
from octavo_serve.over_http.health import Health
from octavo_serve.over_http.openapi import ASKED, OPERATIONS, STATS, STREAM_EVENTS, describe
from octavo_serve.over_http.routes import Routes
from octavo_serve.requests import AskRequest, ReadRequest, SearchRequest, TopicsRequest, TraverseRequest
from octavo_serve.settings import ServerSettings
from octavo_serve.watching.middleware import stats_routes
from running import serving
from scripted import answer, scripted

HERE = Path(__file__).parent
KEY = "octavo_" + "k" * 43


def resolved(document: Mapping[str, Any], part: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a reference refers to."""
    found: Any = document
    for name in part["$ref"].removeprefix("#/").split("/") if "$ref" in part else []:
        found = found[name]
    return part if found is document else found


@pytest.mark.parametrize("answers", [False, True])
@pytest.mark.parametrize("keyed", [False, True])
def test_it_is_valid_by_the_official_schema(keyed: bool, answers: bool) -> None:
    document = describe(keyed=keyed, answers=answers)
    assert [error.message for error in OpenAPIV31SpecValidator(cast(Any, document)).iter_errors()] == []
    assert document["openapi"].startswith("3.1.")


def test_every_route_is_described_with_its_methods() -> None:
    routes = [
        *Routes(cast(Any, None), cast(Any, None), ServerSettings()).listed,
        *ask_routes(None),
        *stats_routes(cast(Any, None)),
        *Health(lambda: False).listed,
    ]
    served = {route.path.replace(":path", ""): (route.methods or set()) - {"HEAD"} for route in routes}
    paths = describe(keyed=False, answers=True)["paths"]
    assert {path: {name.upper() for name in item if name in ("get", "post")} for path, item in paths.items()} == served
    assert [*(each.path for each in OPERATIONS), *ASKED, STATS.path] == list(paths)


def test_questions_are_described_only_where_they_are_answered() -> None:
    plain = describe(keyed=False)
    assert not [path for path in plain["paths"] if path.endswith("/ask")]
    assert not [name for name in plain["components"]["schemas"] if name.startswith(("Ask", "Answer"))]


@pytest.mark.parametrize("path", ASKED)
def test_an_answer_is_described_with_its_events_and_its_envelopes(path: str) -> None:
    document = describe(keyed=False, answers=True)
    asked = document["paths"][path]["post"]
    body = resolved(document, asked["requestBody"]["content"]["application/json"]["schema"])
    assert set(body["properties"]) == set(AskRequest.model_fields) - ({"pack"} if "slug" in path else set())
    content = asked["responses"]["200"]["content"]
    events = {
        each["properties"]["event"]["const"]: resolved(document, each["properties"]["data"]["contentSchema"])
        for each in content["text/event-stream"]["schema"]["oneOf"]
    }
    assert {name: set(each["properties"]) for name, each in events.items()} == {
        name: set(shape.__annotations__) for name, shape in STREAM_EVENTS.items()
    }
    assert {"success", "data", "error"} == set(resolved(document, content["application/json"]["schema"])["properties"])
    for status, response in asked["responses"].items():
        assert status == "200" or {"application/json", "application/problem+json"} == set(
            resolved(document, response)["content"]
        )


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/search", SearchRequest),
        ("/read", ReadRequest),
        ("/graph", TraverseRequest),
        ("/packs/{slug}", TopicsRequest),
        ("/packs/{slug}/search", SearchRequest),
    ],
)
def test_every_field_of_a_request_is_a_parameter(path: str, model: Any) -> None:
    document = describe(keyed=False)
    parameters = [resolved(document, each) for each in document["paths"][path]["get"]["parameters"]]
    named = {each["name"] for each in parameters if each["in"] == "query"}
    spelled = {"query": "q", "max_results": "n"} if model is SearchRequest else {}
    fields = {spelled.get(name, name) for name in model.model_fields}
    assert named == (fields - {"pack"} if path.startswith("/packs") else fields)


def test_every_parameter_of_the_search_has_a_schema_that_takes_its_default() -> None:
    schema = describe(keyed=False)["components"]["schemas"]["Retrieval"]
    import jsonschema

    values = {name: getattr(DEFAULTS, name) for name in Retrieval.__slots__}
    assert schema["properties"].keys() == values.keys()
    jsonschema.validate(values, schema)
    assert read_retrieval(values) == DEFAULTS


def test_no_schema_is_written_twice() -> None:
    schemas = describe(keyed=False, answers=True)["components"]["schemas"]
    written = [json.dumps({**schema, "title": None}, sort_keys=True) for schema in schemas.values()]
    assert len(set(written)) == len(written)
    assert not [name for name in schemas if "__" in name]


def test_keys_are_told_of_only_where_they_are_needed() -> None:
    plain, keyed = describe(keyed=False), describe(keyed=True)
    assert "security" not in plain
    assert "securitySchemes" not in plain["components"]
    assert "401" not in plain["paths"]["/search"]["get"]["responses"]
    assert keyed["security"] == [{"key": []}]
    assert "401" in keyed["paths"]["/search"]["post"]["responses"]


def test_it_is_the_same_bytes_in_every_process() -> None:
    code = "import sys; from octavo_serve.over_http.openapi import described; "
    code += "sys.stdout.buffer.write(described(True, True))"
    made = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(made) == 1


@pytest.mark.parametrize(
    ("examples", "keyed"),
    [
        pytest.param(4, False, id="a few requests"),
        pytest.param(40, False, marks=pytest.mark.slow, id="many requests"),
        pytest.param(15, True, marks=pytest.mark.slow, id="with a key"),
    ],
)
def test_the_server_does_what_it_says(built: Path, tmp_path: Path, examples: int, keyed: bool) -> None:
    """schemathesis asks a running server whatever the description allows, and what it does not."""
    settings = tmp_path / "octavo.yaml"
    keys = f'keys: [{{name: k, sha256: {sha256_hex(KEY.encode())}, packs: "*"}}]\n' if keyed else ""
    phases = "coverage,fuzzing,stateful" if examples > 10 else "fuzzing"
    with ExitStack() as stack:
        model = stack.enter_context(scripted(answer("Water is hard [1]. ", "It may rain.", usage=(900, 9))))
        settings.write_text(f"{keys}answers: {{model: {{url: '{model.url}'}}}}\n")
        server = stack.enter_context(serving(built, "--config", str(settings)))
        header = ["-H", f"Authorization: Bearer {KEY}"] if keyed else []
        tool = Path(sys.executable).parent / "schemathesis"
        command = [tool, "--config-file", HERE / "schemathesis.toml", "run", f"{server.address}/openapi.json", *header]
        options = f"--checks all --phases {phases} -n {examples} --seed 1 --generation-deterministic --no-color"
        done = subprocess.run(
            [*command, *options.split()],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        assert server.process.poll() is None
