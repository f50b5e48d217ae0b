"""The files in examples/compose: what they say of each other, of octavo and of llama.cpp's server is so."""

from __future__ import annotations

import json
import re
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from octavo_serve.answering.settings import AnswerSettings
from octavo_serve.configuration import configure
from octavo_serve.settings import ServerSettings
from running import ROOT, octavo

COMPOSE = ROOT / "examples" / "compose"
OVERRIDES = ("compose.cuda.yaml", "compose.rocm.yaml")
VARIABLE = re.compile(r"\$\{(?P<name>[A-Z_]+)(?::(?P<kind>[-?])(?P<rest>[^}]*))?\}")

FLAGS = {"--host", "--port", "--parallel", "--ctx-size", "--no-webui"}
VARIABLES = {"LLAMA_ARG_MODEL", "LLAMA_ARG_HF_REPO", "LLAMA_ARG_N_GPU_LAYERS", "LLAMA_CACHE", "HF_TOKEN"}
"""Of llama.cpp's server: the README of tools/server."""


def read(name: str) -> Any:
    return yaml.safe_load((COMPOSE / name).read_text())


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    return read("compose.yaml")["services"]


@pytest.fixture(scope="module")
def settings() -> ServerSettings:
    return configure(COMPOSE / "octavo.yaml", {}, {})


@pytest.fixture(scope="module")
def answers(settings: ServerSettings) -> AnswerSettings:
    assert settings.answers is not None
    return settings.answers


def options(services: dict[str, Any]) -> dict[str, str]:
    words = services["model"]["command"]
    found = dict(zip(words, [*words[1:], ""], strict=True))
    return {word: "" if value.startswith("--") else value for word, value in found.items() if word.startswith("--")}


def environment(service: dict[str, Any]) -> dict[str, str]:
    return {name: value for name, _, value in (each.partition("=") for each in service.get("environment", ()))}


def test_octavo_takes_its_settings() -> None:
    done = octavo("config", COMPOSE / "octavo.yaml")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["answers"]["model"]["url"] == "http://model:8080/v1"


def test_slots_and_context_of_the_model_are_what_octavo_counts_on(
    services: dict[str, Any], answers: AnswerSettings
) -> None:
    found = options(services)
    assert int(found["--parallel"]) == answers.max_concurrent
    # llama.cpp divides its context among its slots
    assert int(found["--ctx-size"]) == answers.max_concurrent * answers.model.context_tokens


def test_octavo_asks_the_model_where_it_listens(services: dict[str, Any], answers: AnswerSettings) -> None:
    found = options(services)
    assert answers.model.url == f"http://model:{found['--port']}/v1"
    assert found["--host"] == "0.0.0.0"
    assert f":{found['--port']}/health" in services["model"]["healthcheck"]["test"][-1]
    assert "ports" not in services["model"]


def test_octavo_is_published_where_it_listens_and_starts_when_the_model_is_ready(
    services: dict[str, Any], settings: ServerSettings
) -> None:
    octavo = services["octavo"]
    (published,) = octavo["ports"]
    assert published == f"${{PUBLISH:-127.0.0.1:8000}}:{settings.port}"
    assert f":{settings.port}/readyz" in octavo["healthcheck"]["test"][-1]
    assert octavo["depends_on"] == {"model": {"condition": "service_healthy"}}
    assert int(octavo["stop_grace_period"].removesuffix("s")) > settings.grace_seconds
    assert f"{settings.dist}:ro" in [each.partition("}:")[2] for each in octavo["volumes"]]


def test_octavo_has_no_rights_that_it_does_not_need(services: dict[str, Any]) -> None:
    for service in services.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
    user = services["octavo"]["user"]
    assert f"USER {user}\n" in (COMPOSE / "Dockerfile").read_text()
    assert user.partition(":")[0] != "0"


def test_flags_and_variables_are_those_of_llama_cpps_server(services: dict[str, Any]) -> None:
    assert options(services).keys() == FLAGS
    named = environment(services["model"]).keys()
    for name in OVERRIDES:
        named |= environment(read(name)["services"]["model"]).keys()
    assert named == VARIABLES


def test_llama_cpp_itself_knows_them() -> None:
    if find_spec("xllamacpp") is None:
        pytest.skip("llama.cpp is not installed: pip install 'octavo[local]'")
    spec = find_spec("xllamacpp")
    assert spec is not None
    (library,) = (path for folder in spec.submodule_search_locations or () for path in Path(folder).glob("*.so"))
    content = library.read_bytes()
    assert [name for name in FLAGS | VARIABLES if b"\0" + name.encode() + b"\0" not in content] == []


@pytest.mark.parametrize("name", OVERRIDES)
def test_an_override_changes_the_model_only_and_takes_nothing_away(name: str, services: dict[str, Any]) -> None:
    changed = read(name)
    assert changed.keys() == {"services"}
    assert changed["services"].keys() == {"model"}
    # lists of these are added to, and so is nothing that the base has under another name
    assert not changed["services"]["model"].keys() & {"command", "image", "ports", "volumes"}
    assert "environment" in services["model"]


def test_every_variable_is_in_the_example_of_the_environment() -> None:
    example = (COMPOSE / ".env.example").read_text()
    known = set(re.findall(r"^#?([A-Z_]+)=", example, re.MULTILINE))
    used = {found["name"] for name in ("compose.yaml", *OVERRIDES) for found in VARIABLE.finditer(raw(name))}
    passed = {"LLAMA_ARG_MODEL", "LLAMA_ARG_HF_REPO"}
    assert known == used | passed


def raw(name: str) -> str:
    return (COMPOSE / name).read_text()


def test_what_must_be_set_says_so_and_no_image_is_chosen_for_anybody() -> None:
    found = {
        each["name"]: each["kind"] for name in ("compose.yaml", *OVERRIDES) for each in VARIABLE.finditer(raw(name))
    }
    assert {name for name, kind in found.items() if kind == "?"} == {
        "LLAMA_IMAGE", "PYTHON_IMAGE", "VIDEO_GROUP", "RENDER_GROUP",
    }  # fmt: skip
    assert re.findall(r"^FROM (\S+)", raw("Dockerfile"), re.MULTILINE) == ["${PYTHON_IMAGE}"] * 2
    assert re.findall(r"^(?:LLAMA|PYTHON)_IMAGE=(.*)$", raw(".env.example"), re.MULTILINE) == ["", ""]


def test_the_dockerfile_copies_what_the_package_is_made_of_and_serves_by_the_file_that_is_mounted(
    services: dict[str, Any],
) -> None:
    text = raw("Dockerfile")
    sources = [word for line in re.findall(r"^COPY (?!--)(.+) \S+$", text, re.MULTILINE) for word in shlex.split(line)]
    assert sources
    assert [source for source in sources if not (ROOT / source).exists()] == []
    packages = re.findall(r'^    "((?:build|serve|evals)/\w+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert len(packages) == 5
    assert [each for each in packages if not any(f"{each}/".startswith(source) for source in sources)] == []
    (command,) = re.findall(r"^CMD (.+)$", text, re.MULTILINE)
    assert json.loads(command)[-1] in [each.split(":")[1] for each in services["octavo"]["volumes"] if "$" not in each]
