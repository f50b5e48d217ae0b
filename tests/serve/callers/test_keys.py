from __future__ import annotations

import hmac
import json
import re
from argparse import ArgumentParser
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest

from octavo_artifact.ids import sha256_hex
from octavo_serve.callers.keys import KEY, Key, entry, find_key, new_key
from octavo_serve.commands.serving import KEY as KEY_COMMAND
from octavo_serve.configuration import check_key


def run(*arguments: str) -> int:
    parser = ArgumentParser()
    KEY_COMMAND.add_arguments(parser)
    return KEY_COMMAND.run(parser.parse_args(arguments))


def keys_of(*secrets: str) -> list[Key]:
    return [Key(secret, sha256_hex(secret.encode()), ("tiny",)) for secret in secrets]


def test_a_new_key_is_32_random_bytes_behind_a_prefix():
    made = {new_key() for _ in range(100)}
    assert len(made) == 100
    assert all(KEY.fullmatch(key) for key in made)


def test_a_key_is_found_by_its_hash_and_nothing_near_it_is():
    keys = keys_of("a", "b", "c")
    assert find_key(keys, b"b") is keys[1]
    for wrong in (b"", b"B", b"bb", b"\xff", keys[1].sha256.encode()):
        assert find_key(keys, wrong) is None


@pytest.mark.parametrize("presented", [b"a", b"b", b"c", b"none"])
def test_every_key_is_compared_in_constant_time_whichever_matches(
    presented: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[str, str]] = []

    def counting(a: str, b: str) -> bool:
        compared.append((a, b))
        return a == b

    monkeypatch.setattr(hmac, "compare_digest", counting)
    keys = keys_of("a", "b", "c")
    find_key(keys, presented)
    assert compared == [(sha256_hex(presented), key.sha256) for key in keys]


def test_the_hash_is_not_in_the_representation():
    (key,) = keys_of("a")
    assert key.sha256 not in repr(key)


@pytest.mark.parametrize(
    ("packs", "slugs"),
    [(["tiny"], {"tiny"}), (["b", "a"], {"a", "b"}), (["*"], None), (["a", "*"], None)],
    ids=["one", "several", "all", "all and one"],
)
def test_the_entry_that_is_printed_is_the_key_that_is_read(packs: list[str], slugs: set[str] | None):
    made = entry("secret", "alice", packs)
    check_key(made)
    assert "secret" not in json.dumps(made)
    assert Key(made["name"], made["sha256"], tuple(made["packs"])).slugs == slugs


def test_a_key_that_expires_is_good_until_that_day_begins_in_utc():
    midnight = datetime(2027, 7, 1, tzinfo=UTC).timestamp()
    key = Key("a", sha256_hex(b"a"), ("tiny",), date(2027, 7, 1))
    assert [key.is_good_at(midnight + seconds) for seconds in (-86_400, -0.001)] == [True, True]
    assert [key.is_good_at(midnight + seconds) for seconds in (0, 86_400)] == [False, False]
    assert replace(key, expires=None).is_good_at(1e11)


def test_the_command_prints_a_key_and_the_line_that_holds_its_hash_only(capsys: pytest.CaptureFixture[str]):
    yaml = pytest.importorskip("yaml")
    assert run("new", "--pack", "tiny", "--pack", "notes", "--name", "alice") == 0
    shown = capsys.readouterr().out
    key = shown.splitlines()[0]
    line = re.search(r"^  - .*$", shown, re.MULTILINE)
    assert line
    assert shown.count(key) == 1
    made: list[dict[str, Any]] = yaml.safe_load(line.group())
    assert made == [{"name": "alice", "sha256": sha256_hex(key.encode()), "packs": ["tiny", "notes"]}]


def test_the_command_names_a_key_after_its_packs(capsys: pytest.CaptureFixture[str]):
    assert run("new", "--pack", "*", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["entry"]["name"], shown["entry"]["packs"]) == ("all", "*")
    assert shown["entry"]["sha256"] == sha256_hex(shown["key"].encode())


def test_the_command_writes_the_day_on_which_a_key_expires(capsys: pytest.CaptureFixture[str]):
    assert run("new", "--pack", "tiny", "--expires", "2027-07-01", "--json") == 0
    assert json.loads(capsys.readouterr().out)["entry"]["expires"] == "2027-07-01"


@pytest.mark.parametrize(
    "arguments",
    [["new"], ["new", "--pack", "a", "--expires", "soon"], ["new", "--pack", "Not A Slug"], ["old", "--pack", "a"]],
)
def test_the_command_refuses_what_it_does_not_know(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as exit_:
        run(*arguments)
    assert exit_.value.code == 2
    assert "octavo_" not in capsys.readouterr().out
