from __future__ import annotations

import json
from dataclasses import fields, replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from octavo_artifact.errors import ConfigError
from octavo_artifact.schema import AUDIENCES
from octavo_serve.answering.settings import AnswerSettings, ModelSettings
from octavo_serve.callers.keys import Key, new_key
from octavo_serve.callers.oauth import OAuthSettings
from octavo_serve.callers.rates import RateLimit
from octavo_serve.cli import main
from octavo_serve.configuration import configure, json_schema, read_file, shown
from octavo_serve.example import example_file, example_of
from octavo_serve.settings import RerankerSettings, ServerSettings
from running import ROOT

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
  - {{name: b, sha256: "{HASH[::-1]}", packs: "*", expires: "2027-07-01"}}
rate_limit: {{requests: 10, per_seconds: 60}}
reranker: {{path: models/small, pairs: 10, milliseconds: 300}}
poll_seconds: 2
keep_releases: 0
mount: [tiny@0123456789ab]
grace_seconds: 30
drain_seconds: 10
oauth: {{issuer: "https://login.example.org", resource: "https://kb.example.org", algorithms: [ES384], leeway: 5}}
workers: 2
metrics: false
log_format: json
log_level: info
access_log: true
query_log: unix:/run/queries
query_log_text: false
answers: {{model: {{url: "http://127.0.0.1:8080/v1", context_tokens: 8192}}, passages: 4}}
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
        keys=(Key("a", HASH, ("tiny",)), Key("b", HASH[::-1], ("*",), date(2027, 7, 1))),
        rate_limit=RateLimit(10, 60),
        retrieval={"diversity": 0.3},
        reranker=RerankerSettings(path=file.parent / "models/small", pairs=10, milliseconds=300),
        poll_seconds=2,
        keep_releases=0,
        mount=("tiny@0123456789ab",),
        grace_seconds=30,
        drain_seconds=10,
        oauth=OAuthSettings("https://login.example.org", "https://kb.example.org", algorithms=("ES384",), leeway=5),
        workers=2,
        metrics=False,
        log_format="json",
        log_level="info",
        access_log=True,
        query_log="unix:/run/queries",
        query_log_text=False,
        answers=AnswerSettings(ModelSettings("http://127.0.0.1:8080/v1", context_tokens=8192), passages=4),
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
        "OCTAVO_ANSWERS": '{"model": {"url": "http://127.0.0.1:8080/v1"}}',
        "OCTAVO_RERANKER": '{"url": "http://127.0.0.1:8080/v1", "model": "m", "key_env": "RERANK_KEY"}',
        "OCTAVO_POLL_SECONDS": "0",
        "OCTAVO_KEEP_RELEASES": "3",
        "OCTAVO_MOUNT": f"tiny@{HASH}, notes@0123456789ab",
        "OCTAVO_GRACE_SECONDS": "30",
        "OCTAVO_DRAIN_SECONDS": "10",
        "OCTAVO_OAUTH": '{"issuer": "https://login.example.org", "resource": "https://kb.example.org"}',
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
    assert settings.mount == (f"tiny@{HASH}", "notes@0123456789ab")
    assert (settings.poll_seconds, settings.keep_releases) == (0, 3)
    assert (settings.grace_seconds, settings.drain_seconds) == (30, 10)
    assert settings.oauth == OAuthSettings("https://login.example.org", "https://kb.example.org")


def as_variable(value: Any) -> str:
    """As the handbook says that variables are written."""
    match value:
        case str():
            return value
        case list() if all(isinstance(each, str) for each in value):
            return ", ".join(value)
        case _:
            return json.dumps(value)


@pytest.mark.parametrize("name", [field.name for field in fields(ServerSettings)])
def test_a_setting_is_the_same_from_a_file_and_from_a_variable(file: Path, name: str):
    example = example_of(json_schema()["properties"][name])
    file.write_text(json.dumps({name: example}))
    by_variable = configure(None, {f"OCTAVO_{name.upper()}": as_variable(example)}, {})
    by_file = configure(file, {}, {})
    if name == "dist":
        by_file = replace(by_file, dist=by_file.dist and by_file.dist.relative_to(file.parent))
    if name == "reranker" and by_file.reranker and by_file.reranker.path:
        path = by_file.reranker.path.relative_to(file.parent)
        by_file = replace(by_file, reranker=replace(by_file.reranker, path=path))
    assert by_variable == by_file
    assert example is not None, f"{name} has neither a default nor an example: give its Field `examples=[…]`"


def test_the_example_names_every_setting_and_says_what_it_means():
    text = example_file()
    for name, shape in json_schema()["properties"].items():
        assert f"\n#{name}:" in text
        assert " ".join(shape["description"].split()) in " ".join(text.replace("\n# ", " ").split())
    assert all(line.startswith("#") for line in text.splitlines() if line)


def test_the_example_changes_nothing_and_is_right_without_its_number_signs(file: Path):
    text = example_file()
    file.write_text(text)
    assert configure(file, {}, {}) == ServerSettings()
    file.write_text("".join(line[1:] for line in text.splitlines(True) if line.startswith("#") and line[1] != " "))
    assert read_file(file).keys() == {field.name for field in fields(ServerSettings)}
    configure(file, {}, {})


@pytest.mark.parametrize(("file", "option"), [("octavo.yaml", "--example"), ("octavo.schema.json", "--schema")])
def test_the_files_of_the_examples_are_those_that_the_command_prints(
    file: str, option: str, capsys: pytest.CaptureFixture[str]
):
    assert main(["config", option]) == 0
    assert capsys.readouterr().out == (ROOT / "examples" / file).read_text(), "write them anew with `doit examples`"


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
            "keys[0].sha: unknown, expected perhaps sha256; one of name, sha256, packs, expires",
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
        pytest.param(
            "mount: [tiny@0123]", "mount: 'tiny@0123', expected slug@digest with 12 to 64 h", id="short digest"
        ),
        pytest.param("body_timeout: 0", "body_timeout: found 0, expected to be greater than 0", id="no time"),
        pytest.param("audience: all", "audience: found 'all', expected to be 'public', 'friends', ", id="audience"),
        pytest.param("allowed_hosts: x", "allowed_hosts: found 'x', expected to be a valid array", id="no list"),
        pytest.param("allowed_hosts: ['http://x']", "allowed_hosts: 'http://x', expected a host name", id="host"),
        pytest.param("allowed_origins: [x]", "allowed_origins: 'x', expected scheme://host", id="origin"),
        pytest.param("rate_limit: {requests: 1}", "rate_limit.per_seconds: missing, expected a value", id="missing"),
        pytest.param("rate_limit: 10", "rate_limit: found 10, expected to be an object", id="rate"),
        pytest.param(
            f"keys: [{{name: a, sha256: '{HASH}', packs: '*', expires: soon}}]",
            "keys[0].expires: found 4 characters, ",
            id="expires some day",
        ),
        pytest.param("oauth: {issuer: 'https://h'}", "oauth.resource: missing, expected a value", id="no resource"),
        pytest.param(
            "oauth: {issuer: 'https://h', resource: 'https://k', audience: a}",
            "oauth.audience: unknown, expected one of issuer, resource, jwks_uri, algorithms, ",
            id="unknown of oauth",
        ),
        pytest.param(
            "oauth: {issuer: 'https://h', resource: 'https://k', algorithms: [HS256]}",
            "oauth.algorithms[0]: found 'HS256', expected to be 'RS256', ",
            id="a shared secret",
        ),
        pytest.param(
            "oauth: {issuer: 'https://h', resource: 'https://k', leeway: 301}", "oauth.leeway: found 301, ", id="leeway"
        ),
        pytest.param(
            "oauth: {issuer: 'https://u:p@h', resource: 'https://k'}",
            "oauth: issuer, expected https://host/path, or http:// on this machine, without user",
            id="an issuer with a password",
        ),
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
        pytest.param(
            {"OCTAVO_RERANKER": '{"path": "a", "pair": 9}'},
            "OCTAVO_RERANKER.pair: unknown, expected perhaps pairs; one of path, url, ",
            id="unknown within",
        ),
        pytest.param(
            {"OCTAVO_RERANKER": '{"path": "a", "pairs": "9"}'},
            "OCTAVO_RERANKER.pairs: found '9', expected to be a valid integer",
            id="wrong within",
        ),
        pytest.param(
            {"OCTAVO_KEYS": '[{"name": "a", "sha": "b"}]'}, "OCTAVO_KEYS[0].sha: unknown, expected perhaps", id="a key"
        ),
        pytest.param({"OCTAVO_LEXICAL_ONLY": "yes"}, "OCTAVO_LEXICAL_ONLY: found 'yes', expected to be", id="truth"),
        pytest.param({"OCTAVO_MAX_BODY": "1e3"}, "OCTAVO_MAX_BODY: found 1000.0, expected to be a valid", id="float"),
        pytest.param({"OCTAVO_RETRIEVAL": "{"}, "OCTAVO_RETRIEVAL: found '{', expected to be an object", id="no JSON"),
        pytest.param({"OCTAVO_AUDIENCE": "all"}, "OCTAVO_AUDIENCE: found 'all', expected to be 'public'", id="choice"),
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
