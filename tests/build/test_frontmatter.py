from __future__ import annotations

import pytest

from octavo_build.frontmatter import MAX_DEPTH, read_frontmatter

PLAIN = b"---\ntitle: A\ntags: [x, y]\n---\nBody\n"


def body(raw: bytes, **options: bool) -> bytes:
    return raw[read_frontmatter("a.md", raw, **options).body_offset :]


def codes(raw: bytes, **options: bool) -> list[tuple[str, int]]:
    return [(finding.code, finding.line) for finding in read_frontmatter("a.md", raw, **options).findings]


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(PLAIN, id="lf"),
        pytest.param(PLAIN.replace(b"\n", b"\r\n"), id="crlf"),
        pytest.param(PLAIN.replace(b"\n", b"\r"), id="cr"),
        pytest.param(b"\xef\xbb\xbf" + PLAIN, id="bom"),
        pytest.param(b"\xef\xbb\xbf" * 2 + PLAIN, id="two byte order marks"),
        pytest.param(PLAIN.replace(b"---\n", b"---  \t\n"), id="trailing spaces"),
        pytest.param(PLAIN.replace(b"---\nBody\n", b"---"), id="fence ends the file"),
        pytest.param(PLAIN.replace(b"---\nBody", b"...\nBody"), id="closed by dots"),
    ],
)
def test_metadata_is_the_same_however_the_fences_are_written(raw: bytes) -> None:
    front = read_frontmatter("a.md", raw)
    assert front.metadata == {"title": "A", "tags": ["x", "y"]}
    assert front.findings == ()
    assert raw[front.body_offset :].strip() in (b"Body", b"")


def test_scalars_stay_as_written() -> None:
    raw = b"---\na: 1.10\nb: no\nc: 0123\nd: 12:30\ne: 2026-11-30\nf: null\ng:\nh: 'null'\ni: ~\n---\n"
    assert read_frontmatter("a.md", raw).metadata == {
        "a": "1.10", "b": "no", "c": "0123", "d": "12:30", "e": "2026-11-30",
        "f": None, "g": None, "h": "null", "i": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"path: C: at D: too", id="second colon"),
        pytest.param(b"value: *alias", id="asterisk"),
        pytest.param(b"items:\n  - [[link]]tail", id="wikilink with a tail"),
        pytest.param(b"note: (a: b) c: d", id="colon in parentheses"),
        pytest.param(b"a: [1, 2", id="open bracket"),
        pytest.param(b"\tb: 1", id="tab"),
    ],
)
def test_broken_yaml_costs_the_metadata_and_keeps_the_body(line: bytes) -> None:
    raw = b"---\ntitle: A\n" + line + b"\n---\nBody\n"
    assert [code for code, _ in codes(raw)] == ["yaml-invalid"]
    assert body(raw) == b"Body\n"


def test_a_yaml_error_names_its_line_in_the_file() -> None:
    assert codes(b"---\ntitle: A\nb: c: d\n---\n") == [("yaml-invalid", 3)]


def test_text_between_rules_is_body() -> None:
    raw = b"---\n**Acme Works**\n**Main Street**\n---\nDear reader\n"
    assert codes(raw) == [("frontmatter-not-mapping", 2)]
    assert body(raw) == raw


def test_an_unclosed_block_is_body_and_is_told() -> None:
    raw = b"---\ntitle: A\n\nBody\n"
    assert codes(raw) == [("frontmatter-unclosed", 1)]
    assert body(raw) == raw


def test_a_rule_at_the_top_is_no_frontmatter() -> None:
    assert codes(b"---\n\nBody\n") == []


def test_an_empty_block_is_no_metadata() -> None:
    assert body(b"---\n---\nBody\n") == b"Body\n"


def test_a_repeated_key_is_told_with_both_lines() -> None:
    assert codes(b"---\na: 1\na: 2\n---\n") == [("yaml-duplicate-key", 3)]
    assert read_frontmatter("x.md", b"---\nb:\na: 1\na: 2\n---\n").findings[0].message == "'a' stands in line 3 too"
    assert codes(b"---\na: {b: 1, b: 2}\n---\n") == [("yaml-duplicate-key", 2)]


@pytest.mark.parametrize("between", [b"", b"\n", b"<!-- context: topic=x -->\n", b"<!-- a\nb -->\n\n"])
def test_a_second_block_is_metadata_too(between: bytes) -> None:
    raw = b"---\ntitle: A\n---\n" + between + b"---\nsources:\n  - url: u\n---\n# Body\n"
    front = read_frontmatter("a.md", raw, second_block=True)
    assert front.metadata == {"title": "A", "sources": [{"url": "u"}]}
    assert raw[front.body_offset :] == b"# Body\n"
    assert body(raw) != b"# Body\n"


def test_the_first_block_wins_over_the_second() -> None:
    raw = b"---\ntitle: A\n---\n---\ntitle: B\n---\n"
    assert read_frontmatter("a.md", raw, second_block=True).metadata == {"title": "A"}
    assert codes(raw, second_block=True) == [("yaml-duplicate-key", 5)]


def test_a_rule_in_the_body_is_no_second_block() -> None:
    raw = b"---\ntitle: A\n---\n\n---\nSome prose\n---\n"
    assert body(raw, second_block=True) == b"\n---\nSome prose\n---\n"


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
            b"%c: &%c [" % (n, n) + b",".join([b"*%c" % (n - 1)] * 9) + b"]\n" for n in range(98, 108)
        ), id="aliases of aliases"),
        pytest.param(b"a: " + b"[" * (MAX_DEPTH + 5) + b"]" * (MAX_DEPTH + 5), id="deep"),
        pytest.param(b"a: " + b"[" * 5000 + b"]" * 5000, id="deeper than the parser's stack"),
        pytest.param(b"a: &a [*a]", id="a list inside itself"),
        pytest.param(b"? [a, b]\n: c\nd: e", id="a list as key"),
        pytest.param(b"a: \x01", id="control character"),
    ],
)  # fmt: skip
def test_hostile_yaml_is_one_finding(block: bytes) -> None:
    assert [code for code, _ in codes(b"---\n" + block + b"\n---\n")] == ["yaml-invalid"]


TOML = b'+++\ntitle = "A"\ntags = ["x", "y"]\n+++\nBody\n'
JSON = b'{\n  "title": "A",\n  "tags": ["x", "y"]\n}\nBody\n'


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(TOML, id="toml"),
        pytest.param(TOML.replace(b"\n", b"\r\n"), id="toml, crlf"),
        pytest.param(TOML.replace(b"+++\n", b"+++ \t\n"), id="toml, trailing spaces"),
        pytest.param(b"\xef\xbb\xbf" + TOML, id="toml, bom"),
        pytest.param(TOML.replace(b"+++\nBody\n", b"+++"), id="toml, fence ends the file"),
        pytest.param(JSON, id="json"),
        pytest.param(JSON.replace(b"\n", b"\r\n"), id="json, crlf"),
        pytest.param(b"\xef\xbb\xbf" + JSON, id="json, bom"),
        pytest.param(b'{"title": "A", "tags": ["x", "y"]}', id="json on one line"),
    ],
)
def test_toml_and_json_are_frontmatter_too(raw: bytes) -> None:
    front = read_frontmatter("a.md", raw)
    assert (front.metadata, front.findings) == ({"title": "A", "tags": ["x", "y"]}, ())
    assert body(raw).strip() in (b"", b"Body")


def test_values_of_toml_are_text_and_keys_have_lines() -> None:
    raw = b"""+++
version = 1.10
date = 2024-05-06
time = 2024-05-06T07:08:09Z
draft = true
weight = 0x1F
text = '''
title = "not a key"
'''
[extra]
a.b = 1e3
+++
"""
    front = read_frontmatter("a.md", raw)
    assert front.metadata == {
        "version": "1.10",
        "date": "2024-05-06",
        "time": "2024-05-06T07:08:09+00:00",
        "draft": "true",
        "weight": "31",
        "text": 'title = "not a key"\n',
        "extra": {"a": {"b": "1e3"}},
    }
    assert front.lines == {"version": 2, "date": 3, "time": 4, "draft": 5, "weight": 6, "text": 7, "extra": 10}


def test_values_of_json_are_text_and_keys_have_lines() -> None:
    text = '{\n"version": 1.10, "no": false,\n"at": {"title": 1}, "none": null,\n"é\\ud800": "\\ud83d\\ude00"\n}\nB'
    raw = text.encode()
    front = read_frontmatter("a.md", raw)
    assert front.metadata["version"] == "1.10"
    assert (front.metadata["no"], front.metadata["none"], front.metadata["at"]) == ("false", None, {"title": "1"})
    assert {key: front.lines[key] for key in ("version", "no", "at", "none")} == {
        "version": 2, "no": 2, "at": 3, "none": 3,
    }  # fmt: skip
    assert "😀" in front.metadata.values()
    assert body(raw) == b"B"
    "".join(front.metadata).encode()


@pytest.mark.parametrize(
    ("raw", "expected", "rest"),
    [
        pytest.param(b"+++\ntitle = A\n+++\nB", [("metadata-invalid", 2)], b"B", id="no toml"),
        pytest.param(b"+++\na = 1\na = 2\n+++\nB", [("metadata-invalid", 3)], b"B", id="a key twice in toml"),
        pytest.param(b"+++\na = [\n+++\nB", [("metadata-invalid", 2)], b"B", id="cut short"),
        pytest.param(b"+++\na = " + b"[" * 5000 + b"\n+++\nB", [("metadata-invalid", 2)], b"B", id="too deep"),
        pytest.param(b"+++\na = 1\nB", [("frontmatter-unclosed", 1)], b"+++\na = 1\nB", id="unclosed"),
        pytest.param(b"+++\nB\n", [], b"+++\nB\n", id="a line of plus signs"),
        pytest.param(b"+++\nB\n+++\n", [("frontmatter-not-mapping", 2)], b"+++\nB\n+++\n", id="text between"),
        pytest.param(b'{"a": 1, "a": 2}\nB', [("yaml-duplicate-key", 1)], b"B", id="a key twice in json"),
        pytest.param(b'{"a": 1} is JSON\n', [], b'{"a": 1} is JSON\n', id="text after the object"),
        pytest.param(b'{"a": 1\n', [], b'{"a": 1\n', id="no json"),
        pytest.param(b"{{< toc >}}\n", [], b"{{< toc >}}\n", id="shortcode"),
        pytest.param(b'{ "a": ' + b"[" * 30_000, [], b'{ "a": ' + b"[" * 30_000, id="deep json"),
        pytest.param(b'{"a\xff": 1}\nB', [], b"B", id="bad bytes"),
    ],
)
def test_what_is_not_toml_or_json_is_told_or_is_body(raw: bytes, expected: list[tuple[str, int]], rest: bytes) -> None:
    assert (codes(raw), body(raw)) == (expected, rest)
