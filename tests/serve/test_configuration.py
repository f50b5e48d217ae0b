from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from octavo_artifact.errors import ConfigError
from octavo_artifact.schema import AUDIENCES
from octavo_serve.callers.keys import Key, new_key
from octavo_serve.callers.rates import RateLimit
from octavo_serve.configuration import configure, json_schema, read_file, shown
from octavo_serve.settings import RerankerSettings, ServerSettings

HASH = "0123456789abcdef" * 4
SECRET = "octavo_" + "s3cret-" * 6 + "x"
A_KEY = f"{{name: a, sha256: '{HASH}', packs: [tiny]}}"
FULL = f"""\
dist: releases
audience: friends
host: 0.0.0.0
port: 9000
allowed_hosts: [kb.example.org, "10.0.0.7:80"]
allowed_origins: ["https://app.example.org"]
answer_timeout: 2
body_timeout: 0.5
max_body: 1000
lexical_only: true
retrieval: {{diversity: 0.3}}
keys:
  - {A_KEY}
  - {{name: b, sha256: "{HASH[::-1]}", packs: "*"}}
rate_limit: {{requests: 10, per_seconds: 60}}
reranker: {{path: models/small, pairs: 10, milliseconds: 300}}
workers: 2
metrics: false
log_format: json
log_level: info
access_log: true
query_log: unix:/run/queries
query_log_text: false
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "octavo.yaml"


def test_every_key_of_the_file_is_a_setting(file: Path):
    file.write_text(FULL)
    assert configure(file, {}, {}) == ServerSettings(
        dist=file.parent / "releases",
        audience="friends",
        host="0.0.0.0",
        port=9000,
        allowed_hosts=("kb.example.org", "10.0.0.7:80"),
        allowed_origins=("https://app.example.org",),
        answer_timeout=2,
        body_timeout=0.5,
        max_body=1000,
        lexical_only=True,
        keys=(Key("a", HASH, ("tiny",)), Key("b", HASH[::-1], ("*",))),
        rate_limit=RateLimit(10, 60),
        retrieval={"diversity": 0.3},
        reranker=RerankerSettings(path=file.parent / "models/small", pairs=10, milliseconds=300),
        workers=2,
        metrics=False,
        log_format="json",
        log_level="info",
        access_log=True,
        query_log="unix:/run/queries",
        query_log_text=False,
    )
    assert read_file(file).keys() == {field.name for field in fields(ServerSettings)}


def test_without_any_source_the_defaults_hold():
    assert configure(None, {"PATH": "/bin", "octavo_port": "1"}, {}) == ServerSettings()


def test_an_empty_file_changes_nothing(file: Path):
    file.write_text("# nothing\n")
    assert configure(file, {}, {}) == ServerSettings()


def test_the_command_line_wins_over_variables_over_the_file_over_defaults(file: Path):
    file.write_text("{host: file, port: 1, max_body: 1}")
    settings = configure(file, {"OCTAVO_HOST": "variable", "OCTAVO_PORT": "2"}, {"port": 3})
    assert (settings.host, settings.port, settings.max_body) == ("variable", 3, 1)
    assert settings.body_timeout == ServerSettings().body_timeout


def test_the_variable_names_the_file_unless_the_command_line_does(file: Path, tmp_path: Path):
    file.write_text("port: 1")
    other = tmp_path / "other.yaml"
    other.write_text("port: 2")
    assert configure(None, {"OCTAVO_CONFIG": str(file)}, {}).port == 1
    assert configure(other, {"OCTAVO_CONFIG": str(file)}, {}).port == 2


def test_every_setting_has_a_variable(tmp_path: Path):
    variables = {
        "OCTAVO_DIST": "releases",
        "OCTAVO_AUDIENCE": "friends",
        "OCTAVO_HOST": "::1",
        "OCTAVO_PORT": "9000",
        "OCTAVO_ALLOWED_HOSTS": "kb.example.org, 10.0.0.7:80",
        "OCTAVO_ALLOWED_ORIGINS": "https://app.example.org",
        "OCTAVO_ANSWER_TIMEOUT": "2",
        "OCTAVO_BODY_TIMEOUT": "0.5",
        "OCTAVO_MAX_BODY": "1000",
        "OCTAVO_LEXICAL_ONLY": "true",
        "OCTAVO_RETRIEVAL": '{"diversity": 0.3}',
        "OCTAVO_KEYS": json.dumps([{"name": "a", "sha256": HASH, "packs": "*"}]),
        "OCTAVO_RATE_LIMIT": '{"requests": 10, "per_seconds": 60}',
        "OCTAVO_WORKERS": "2",
        "OCTAVO_METRICS": "false",
        "OCTAVO_LOG_FORMAT": "json",
        "OCTAVO_LOG_LEVEL": "info",
        "OCTAVO_ACCESS_LOG": "true",
        "OCTAVO_QUERY_LOG": "udp:127.0.0.1:9000",
        "OCTAVO_QUERY_LOG_TEXT": "false",
        "OCTAVO_RERANKER": '{"url": "http://127.0.0.1:8080/v1", "model": "m", "key_env": "RERANK_KEY"}',
    }
    assert variables.keys() == {f"OCTAVO_{field.name.upper()}" for field in fields(ServerSettings)}
    settings = configure(None, variables, {})
    assert (settings.dist, settings.host, settings.port) == (Path("releases"), "::1", 9000)
    assert settings.allowed_hosts == ("kb.example.org", "10.0.0.7:80")
    assert settings.keys == (Key("a", HASH, ("*",)),)
    assert settings.rate_limit == RateLimit(10, 60)
    assert (settings.workers, settings.metrics, settings.log_format, settings.log_level) == (2, False, "json", "info")
    assert (settings.access_log, settings.query_log, settings.query_log_text) == (True, "udp:127.0.0.1:9000", False)
    assert settings.reranker == RerankerSettings(url="http://127.0.0.1:8080/v1", model="m", key_env="RERANK_KEY")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("prot: 1", "prot: unknown, expected perhaps port; one of dist, audience, host, ", id="unknown"),
        pytest.param("xyzzy: 1", "xyzzy: unknown, expected one of dist, ", id="unknown and far"),
        pytest.param(
            "rate_limit: {requests: 1, per_second: 1}",
            "rate_limit.per_second: unknown, expected perhaps per_seconds; one of requests, per_seconds",
            id="unknown within",
        ),
        pytest.param(
            f"keys: [{{name: a, sha: '{HASH}', packs: '*'}}]",
            "keys[0].sha: unknown, expected perhaps sha256; one of name, sha256, packs",
            id="unknown of a key",
        ),
        pytest.param("port: '80'", "port: found '80', expected to be a valid integer", id="text for a number"),
        pytest.param("port: true", "port: found true, expected to be a valid integer", id="yes for a number"),
        pytest.param("port: 65536", "port: found 65536, expected to be less than or equal to 65535", id="too large"),
        pytest.param("host:", "host: found null, expected to be a valid string", id="nothing"),
        pytest.param("host: [a]", "host: found a list, expected to be a valid string", id="list"),
        pytest.param(f"host: {{{'x' * 99}: 1}}", "host: found keys and values, expected", id="keys"),
        pytest.param(f"port: {'x' * 99}", "port: found 99 characters, expected", id="long"),
        pytest.param("answer_timeout: .nan", "answer_timeout: found NaN, expected to be a finite number", id="nan"),
        pytest.param("body_timeout: 0", "body_timeout: found 0, expected to be greater than 0", id="no time"),
        pytest.param("audience: all", "audience: found 'all', expected to be 'public', 'friends', ", id="audience"),
        pytest.param("allowed_hosts: x", "allowed_hosts: found 'x', expected to be a valid array", id="no list"),
        pytest.param("allowed_hosts: ['http://x']", "allowed_hosts: 'http://x', expected a host name", id="host"),
        pytest.param("allowed_origins: [x]", "allowed_origins: 'x', expected scheme://host", id="origin"),
        pytest.param("rate_limit: {requests: 1}", "rate_limit.per_seconds: missing, expected a value", id="missing"),
        pytest.param("rate_limit: 10", "rate_limit: found 10, expected to be an object", id="rate"),
        pytest.param("reranker: {}", "reranker: expected either path or url", id="no reranker"),
        pytest.param(
            "reranker: {path: a, url: 'http://b'}", "reranker: expected either path or url", id="two rerankers"
        ),
        pytest.param(
            "reranker: {path: a, pair: 1}",
            "reranker.pair: unknown, expected perhaps pairs; one of path, url, model, key_env, pairs, milliseconds",
            id="unknown of a reranker",
        ),
        pytest.param("reranker: {path: a, model: m}", "reranker: model and key_env are for an endpoint", id="model"),
        pytest.param("reranker: {path: a, pairs: 1}", "reranker.pairs: found 1, expected to be greater", id="pairs"),
        pytest.param("reranker: {path: a, milliseconds: 0}", "reranker.milliseconds: found 0, expected", id="no ms"),
        pytest.param(
            "{answer_timeout: 1, reranker: {path: a, milliseconds: 1000}}",
            "reranker: milliseconds 1000, expected less than answer_timeout",
            id="reranker slower than the answer",
        ),
        *(
            pytest.param(
                f"reranker: {{url: '{url}'}}",
                "reranker: url, expected http(s)://host/path, without user, query and fragment",
                id=url,
            )
            for url in ("h/v1", "ftp://h", "http://u:p@h", "http://h/?key=k", "http://h/#f", "http://", "http://h h")
        ),
        *(
            pytest.param(
                f"reranker: {{url: 'http://h', key_env: '{name}'}}", "reranker: key_env, expected the name", id=name
            )
            for name in ("OCTAVO_KEY", "a b", "1", "")
        ),
        *(
            pytest.param(f"query_log: '{where}'", "query_log: expected stdout, unix:/path or udp:host:port", id=where)
            for where in (
                "",
                "stderr",
                "queries.log",
                "unix:queries",
                "udp:127.0.0.1",
                "tcp:127.0.0.1:9",
                "udp:h:123456",
            )
        ),
        pytest.param("workers: 0", "workers: found 0, expected to be greater than or equal to 1", id="no worker"),
        pytest.param("log_level: loud", "log_level: found 'loud', expected to be 'debug', 'info'", id="log level"),
        pytest.param("keys: []", "keys: found a list, expected to have at least 1 item", id="no keys"),
        pytest.param("keys:", "keys: found nothing, expected to be a valid array", id="keys of nothing"),
        pytest.param(f"keys: [{A_KEY}, {A_KEY}]", "keys: two have the same name, expected different ones", id="twice"),
        pytest.param(
            f"keys: [{A_KEY}, {A_KEY.replace('name: a', 'name: b')}]",
            "keys: two have the same sha256, expected different ones",
            id="one key, two names",
        ),
        pytest.param(
            f"keys: [{{name: a, sha256: '{HASH.upper()}', packs: '*'}}]",
            "keys[0].sha256: found 64 characters, expected to match pattern",
            id="hash in capitals",
        ),
        *(
            pytest.param(
                f"keys: [{{name: a, sha256: '{HASH}', packs: {packs}}}]",
                f'keys[0].packs: found {found}, expected a list of slugs, or "*" for all packs',
                id=f"packs {packs}",
            )
            for packs, found in (
                ("[]", "a list"),
                ("tiny", "4 characters"),
                ("[A b]", "a list"),
                ("['*']", "a list"),
                ("{a: b}", "keys and values"),
                ("1", "a int"),
            )
        ),
        pytest.param(r'host: "\ud800"', "host: found what is not UTF-8, expected text", id="half a character"),
        pytest.param("- port", "found a list, expected keys and values", id="no mapping"),
    ],
)
def test_a_wrong_value_is_told_by_file_key_found_and_expected(file: Path, text: str, message: str):
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        configure(file, {}, {})
    assert str(error.value).startswith(f"{file}: {message}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"port: 1\nhost: a\nport: 2\n", ":3: not YAML as expected here (names must be", id="twice"),
        pytest.param(b"a: 1\n2: b", ":2: not YAML as expected here (names must be", id="name is a number"),
        pytest.param(b"a: &x {port: 1}\nb: {<<: *x}", ":2: not YAML as expected here (", id="merge"),
        pytest.param(b"port: 1\nhost: [", ":2: not YAML as expected here (", id="broken"),
        pytest.param(b"port: !!python/object:os.system 1", ":1: not YAML as expected here (", id="tag"),
        pytest.param(b"host: \xff", ": not YAML, expected keys and values in UTF-8", id="bytes"),
        pytest.param(b"[" * 5000, ": not YAML, expected keys and values in UTF-8", id="deep"),
    ],
)
def test_what_is_no_yaml_is_told_by_file_and_line(file: Path, content: bytes, message: str):
    file.write_bytes(content)
    with pytest.raises(ConfigError) as error:
        configure(file, {}, {})
    assert str(error.value).startswith(f"{file}{message}")


def test_a_file_that_is_not_there_is_named(file: Path):
    with pytest.raises(ConfigError, match=r"octavo\.yaml: cannot be read \(No such file"):
        configure(file, {}, {})


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        pytest.param({"OCTAVO_HOTS": "x"}, "OCTAVO_HOTS: unknown, expected perhaps host; ", id="unknown"),
        pytest.param({"OCTAVO_PORT": "tcp://1"}, "OCTAVO_PORT: found 'tcp://1', expected to be a valid int", id="port"),
        pytest.param({"OCTAVO_PORT": ""}, "OCTAVO_PORT: found '', expected to be a valid int", id="empty"),
        pytest.param({"OCTAVO_ALLOWED_HOSTS": "a b"}, "OCTAVO_ALLOWED_HOSTS: 'a b', expected a host", id="host"),
        pytest.param({"OCTAVO_KEYS": ""}, "OCTAVO_KEYS: found 0 characters, expected to be a valid array", id="keys"),
        pytest.param({"OCTAVO_CONFIG": ""}, "OCTAVO_CONFIG: empty, expected the name of a file", id="no file"),
        pytest.param({"OCTAVO_HOST": "\udcff"}, "OCTAVO_HOST: found what is not UTF-8, expected text", id="bytes"),
        pytest.param({"OCTAVO_RATE_LIMIT": "9"}, "OCTAVO_RATE_LIMIT: found 9, expected to be an object", id="rate"),
    ],
)
def test_a_wrong_variable_is_told_by_its_name(variables: dict[str, str], message: str):
    with pytest.raises(ConfigError) as error:
        configure(None, variables, {})
    assert str(error.value).startswith(message)


def test_a_wrong_option_is_told_even_when_the_file_is_right(file: Path):
    file.write_text("port: 1")
    with pytest.raises(ConfigError, match=r"^port: found 70000, expected"):
        configure(file, {}, {"port": 70000})


@pytest.mark.parametrize(
    "text",
    [
        f"keys: [{SECRET}]",
        f"keys: {SECRET}",
        f"keys: {{{SECRET}: tiny}}",
        f"keys: [{{{SECRET}: tiny}}]",
        f"keys: [{{name: a, sha256: {SECRET}, packs: '*'}}]",
        f"keys: [{{name: '{SECRET} ', sha256: '{HASH}', packs: '*'}}]",
        f"keys: [{{name: a, sha256: '{HASH}', packs: [{SECRET}]}}]",
        f"{SECRET}: 1",
        f"keys: [{SECRET}",
        f"keys: *{SECRET}",
        f"keys: !{SECRET} a",
        f"port: {SECRET}",
    ],
)
def test_a_key_written_in_the_wrong_place_is_not_repeated(file: Path, text: str):
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        configure(file, {}, {})
    assert "s3cret" not in str(error.value)
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__


def test_settings_are_shown_without_hashes(file: Path):
    file.write_text(FULL)
    settings = configure(file, {}, {})
    for text in (repr(settings), json.dumps(shown(settings))):
        assert HASH not in text
        assert HASH[::-1] not in text
        assert "kb.example.org" in text


def test_the_schema_takes_what_is_taken_and_refuses_what_is_refused(file: Path):
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    check = Draft202012Validator(schema)
    file.write_text(FULL)
    full: dict[str, Any] = read_file(file)
    assert check.is_valid(full)
    for wrong in (
        {"prot": 1},
        {"port": "80"},
        {"port": 65536},
        {"keys": []},
        {"keys": [{"name": "a", "sha256": new_key(), "packs": "*"}]},
        {"keys": [{"name": "a", "sha256": HASH, "packs": "tiny"}]},
        {"rate_limit": {"requests": 0, "per_seconds": 1}},
        {"reranker": {"path": "a", "pair": 1}},
    ):
        assert not check.is_valid(full | wrong), wrong


def test_every_setting_is_described_in_the_schema():
    schema = json_schema()
    for properties in (schema["properties"], *(shape["properties"] for shape in schema["$defs"].values())):
        assert [name for name, shape in properties.items() if not shape.get("description")] == []
    assert schema["properties"]["audience"]["enum"] == list(AUDIENCES)
