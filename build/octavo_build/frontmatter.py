"""Metadata before a body: a file's bytes in, its metadata, its body's offset and what is wrong out.

YAML between lines `---`; TOML between lines `+++` and a JSON object at the first byte, as Hugo has them.

Scalars stay as the author wrote them (`1.10`, `no`, `12:30`, `0123`): only what a field means decides what a
value becomes, and that is the adapters' business. An empty or `null` scalar is None. TOML's whole numbers and dates
are the exception: they are spelled anew (`0x1F` is `31`), dates as in ISO 8601.
"""

from __future__ import annotations

import codecs
import datetime
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

import yaml

from octavo_build.findings import Finding

BOM = codecs.BOM_UTF8
MAX_NODES = 20_000
MAX_DEPTH = 40
"""Bounds on one block: aliases of aliases would otherwise grow without end (the "billion laughs")."""
MAX_OTHER_BYTES = 2**16
"""Of a block of TOML or JSON; tomllib may need time that grows with the square of a key's parts."""

_LINE_END = rb"(?:\r\n|\r|\n|\Z)"
_OPENING = re.compile(rb"---[ \t]*" + rb"(?:\r\n|\r|\n)")
_CLOSING = re.compile(rb"(?:^|(?<=[\r\n]))(?:---|\.\.\.)[ \t]*" + _LINE_END)
_TOML_OPENING = re.compile(rb"\+\+\+[ \t]*" + rb"(?:\r\n|\r|\n)")
_TOML_CLOSING = re.compile(rb"(?<=[\r\n])\+\+\+[ \t]*" + _LINE_END)
_TOML_KEY = re.compile(r"""^[ \t]*(?:\[\[?[ \t]*)?["']?([\w-]+)["']?[ \t]*[.=\]]""", re.MULTILINE)
_TOML_LINE = re.compile(r"\(at line (\d+), column \d+\)")
_JSON_OPENING = re.compile(rb'\{\s*"')
_JSON_MARK = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?|[\[\]{}]')
_BETWEEN = re.compile(rb"(?:\s+|<!--.*?-->)*", re.DOTALL)
_KEY = re.compile(rb"^[^\s#\-*>|`\[{\"'][^:\n\r]*:(?:[ \t\r\n]|\Z)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """What stands before a file's body."""

    metadata: dict[str, Any]
    """Strings, None, lists and dicts of them."""
    body_offset: int
    """Byte at which the body begins."""
    findings: tuple[Finding, ...]
    lines: dict[str, int] = field(default_factory=dict[str, int])
    """Line of each top-level key, counted from 1."""
    between: tuple[int, int] = (0, 0)
    """Bytes between the first block and the second, which hold comments and blanks only; empty without a second."""
    flags: frozenset[str] = frozenset()
    """Top-level keys of the first block whose value is YAML 1.2's boolean true; `"true"` and `yes` are text."""


class MetadataError(Exception):
    """A text that cannot be used as metadata, and the line (from 0) where that shows."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


def read_frontmatter(path: str, raw: bytes, *, second_block: bool = False) -> Frontmatter:
    """Read the frontmatter of a file.

    With `second_block`, a YAML mapping between `---` lines that follows the first block (comments and blank lines
    aside) belongs to the metadata too, as ExpertPack files have it for their sources; the first block wins.
    """
    start = text_start(raw)
    if raw.startswith(b"+++", start):
        return _read_toml(path, raw, start)
    if _JSON_OPENING.match(raw, start):
        return _read_json(path, raw, start)
    block = _block(raw, start)
    if block is None:
        unclosed = _OPENING.match(raw, start) is not None and _KEY.search(raw[start:].split(b"\n\n", 1)[0]) is not None
        message = "a line --- opens the file and no second one closes it"
        return Frontmatter({}, start, (Finding(path, 1, "frontmatter-unclosed", message),) if unclosed else ())
    first = _read_block(path, raw, *block)
    if not second_block or first.body_offset == start:
        return first
    gap = _BETWEEN.match(raw, first.body_offset)
    block = _block(raw, gap.end() if gap else first.body_offset)
    if block is None or not _KEY.match(raw, block[0]):
        return first
    second = _read_block(path, raw, *block)
    if second.findings or second.body_offset != block[2]:
        return replace(first, findings=first.findings + second.findings)
    both = sorted(first.metadata.keys() & second.metadata.keys())
    repeated = tuple(
        Finding(path, second.lines[key], "yaml-duplicate-key", f"{key!r} stands in both frontmatter blocks")
        for key in both
    )
    return Frontmatter(
        second.metadata | first.metadata,
        second.body_offset,
        first.findings + repeated,
        second.lines | first.lines,
        (first.body_offset, gap.end() if gap else first.body_offset),
        first.flags,
    )


def text_start(raw: bytes) -> int:
    """Where the text of a file begins: after its byte order mark, or several where tools each added one."""
    start = 0
    while raw.startswith(BOM, start):
        start += len(BOM)
    return start


def read_yaml(path: str, raw: bytes) -> Frontmatter:
    """Read a whole file of YAML (a manifest), which must be a mapping; problems become findings."""
    start = text_start(raw)
    return _read_block(path, raw, start, len(raw), len(raw))


def parse_yaml(text: str) -> tuple[Any, dict[str, int], list[tuple[int, int, str]], frozenset[str]]:
    """Parse one YAML document with scalars as written.

    Returns the value, the line (from 0) of each top-level key, repeated keys as (line, first line, key), and the
    top-level keys that are true.
    Raises MetadataError for what is not YAML or exceeds MAX_NODES or MAX_DEPTH.
    """
    try:
        node = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise MetadataError(mark.line if mark else 0, " ".join(filter(None, (error.context, error.problem)))) from error
    except yaml.YAMLError as error:
        raise MetadataError(0, "a character that YAML does not allow") from error
    except RecursionError as error:
        raise MetadataError(0, f"nested deeper than {MAX_DEPTH} levels") from error
    reader = _Reader()
    value = None if node is None else reader.value(node, 0)
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    lines = {str(key.value): key.start_mark.line for key, _ in pairs}
    is_true = {str(key.value): _is_true(item) for key, item in pairs}
    return value, lines, reader.repeated, frozenset(key for key, found in is_true.items() if found)


def _is_true(node: yaml.Node) -> bool:
    return node.tag == "tag:yaml.org,2002:bool" and node.value in ("true", "True", "TRUE")


class _Reader:
    """Turns composed nodes into plain values, counting them."""

    def __init__(self) -> None:
        self.count = 0
        self.repeated: list[tuple[int, int, str]] = []

    def value(self, node: yaml.Node, depth: int) -> Any:
        self.count += 1
        line = node.start_mark.line if node.start_mark else 0
        if depth > MAX_DEPTH:
            raise MetadataError(line, f"nested deeper than {MAX_DEPTH} levels")
        if self.count > MAX_NODES:
            raise MetadataError(line, f"more than {MAX_NODES} values")
        if isinstance(node, yaml.ScalarNode):
            return None if node.tag == "tag:yaml.org,2002:null" else str(node.value)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, depth + 1) for item in node.value]
        return dict(self._items(node, depth))

    def _items(self, node: yaml.Node, depth: int) -> Iterator[tuple[str, Any]]:
        seen: dict[str, int] = {}
        for key, item in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise MetadataError(key.start_mark.line if key.start_mark else 0, "a key that is a list or a mapping")
            name = str(key.value)
            line = key.start_mark.line if key.start_mark else 0
            if name in seen:
                self.repeated.append((line, seen[name], name))
            seen.setdefault(name, line)
            yield name, self.value(item, depth + 1)


def _block(raw: bytes, start: int) -> tuple[int, int, int] | None:
    """Start and end of the YAML between the fences at `start`, and the offset after the closing fence."""
    opening = _OPENING.match(raw, start)
    if opening is None:
        return None
    closing = _CLOSING.search(raw, opening.end())
    return (opening.end(), closing.start(), closing.end()) if closing else None


def _read_block(path: str, raw: bytes, start: int, end: int, after: int) -> Frontmatter:
    block = raw[start:end]
    first_line = 1 + len(re.findall(rb"\r\n|\r|\n", raw[:start]))
    opening = text_start(raw)
    # YAML knows more line ends than we count (NEL, LS, PS): none of them may move a line number.
    text = _lf(block)
    try:
        value, lines, repeated, flags = parse_yaml(text)
    except MetadataError as problem:
        if _KEY.search(block) is None:
            return _not_metadata(path, first_line, opening)
        finding = Finding(path, first_line + problem.line, "yaml-invalid", str(problem))
        return Frontmatter({}, after, (finding,))
    if value is None:
        return Frontmatter({}, after, ())
    if not isinstance(value, dict):
        return _not_metadata(path, first_line, opening)
    findings = tuple(
        Finding(path, first_line + line, "yaml-duplicate-key", f"{key!r} stands in line {first_line + first} too")
        for line, first, key in repeated
    )
    return Frontmatter(value, after, findings, {key: first_line + line for key, line in lines.items()}, flags=flags)


def _read_toml(path: str, raw: bytes, start: int) -> Frontmatter:
    """Frontmatter between lines `+++`."""
    opening = _TOML_OPENING.match(raw, start)
    closing = _TOML_CLOSING.search(raw, opening.end()) if opening else None
    if opening is None or closing is None:
        unclosed = opening is not None and _TOML_KEY.match(_lf(raw[opening.end() : opening.end() + 200])) is not None
        message = "a line +++ opens the file and no second one closes it"
        return Frontmatter({}, start, (Finding(path, 1, "frontmatter-unclosed", message),) if unclosed else ())
    text = _lf(raw[opening.end() : closing.start()])
    if text.strip() and not _TOML_KEY.search(text):
        message = "the text between the lines +++ is not metadata (key = value)"
        return Frontmatter({}, start, (Finding(path, 2, "frontmatter-not-mapping", message),))
    try:
        if len(text) > MAX_OTHER_BYTES:
            raise MetadataError(0, f"longer than {MAX_OTHER_BYTES} characters")
        value = _as_written(tomllib.loads(text, parse_float=str))
    except tomllib.TOMLDecodeError as error:
        line = int(found[1]) - 1 if (found := _TOML_LINE.search(str(error))) else text.count("\n") - 1
        reason = _TOML_LINE.sub("", str(error)).strip()
        return Frontmatter({}, closing.end(), (Finding(path, 2 + line, "metadata-invalid", f"TOML: {reason}"),))
    except (MetadataError, RecursionError) as error:
        reason = str(error) if isinstance(error, MetadataError) else f"nested deeper than {MAX_DEPTH} levels"
        return Frontmatter({}, closing.end(), (Finding(path, 2, "metadata-invalid", f"TOML: {reason}"),))
    lines: dict[str, int] = {}
    for key in _TOML_KEY.finditer(text):
        if key[1] in value:
            lines.setdefault(key[1], 2 + text.count("\n", 0, key.start()))
    return Frontmatter(value, closing.end(), (), lines)


def _read_json(path: str, raw: bytes, start: int) -> Frontmatter:
    """Frontmatter that is a JSON object, alone on its lines. Anything else that begins with a brace is body."""
    text = raw[start : start + MAX_OTHER_BYTES].decode("utf-8", "surrogateescape")
    repeated: list[str] = []

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = Counter(name for name, _ in pairs)
        repeated.extend(name for name in sorted(names) if names[name] > 1)
        return dict(pairs)

    decoder = json.JSONDecoder(
        object_pairs_hook=mapping, parse_int=str, parse_float=str, parse_constant=str, strict=False
    )
    try:
        found, end = decoder.raw_decode(text)
        value = _as_written(found)
    except (ValueError, MetadataError, RecursionError):
        return Frontmatter({}, start, ())
    after = re.match(r"[ \t]*(?:\r\n|\r|\n|\Z)", text[end:])
    if after is None:
        return Frontmatter({}, start, ())
    lines: dict[str, int] = {}
    depth = 0
    for mark in _JSON_MARK.finditer(text, 0, end):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(mark.group(), 0)
        if depth == 1 and mark[2] is not None:
            lines[mark[1]] = 1 + max(text.count(end_of_line, 0, mark.start()) for end_of_line in "\r\n")
    names = map(_text, repeated)
    findings = tuple(
        Finding(path, lines.get(name, 1), "yaml-duplicate-key", f"{name!r} stands twice") for name in names
    )
    length = len(text[: end + after.end()].encode("utf-8", "surrogateescape"))
    return Frontmatter(value, start + length, findings, lines)


def _as_written(value: dict[str, Any]) -> dict[str, Any]:
    """The values of TOML or JSON as YAML's are: strings, None, lists and dicts. Raises MetadataError."""
    count = 0

    def plain(item: Any, depth: int) -> Any:
        nonlocal count
        count += 1
        if depth > MAX_DEPTH or count > MAX_NODES:
            raise MetadataError(0, f"more than {MAX_NODES} values, or nested deeper than {MAX_DEPTH} levels")
        if isinstance(item, dict):
            return {_text(key): plain(each, depth + 1) for key, each in cast(dict[str, Any], item).items()}
        if isinstance(item, list):
            return [plain(each, depth + 1) for each in cast(list[Any], item)]
        if isinstance(item, bool):
            return str(item).lower()
        if isinstance(item, datetime.date | datetime.time):  # a datetime is a date
            return item.isoformat()
        return None if item is None else _text(str(item))

    return plain(value, 0)


def _text(text: str) -> str:
    """Without lone surrogates, which JSON can spell and UTF-8 cannot."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _lf(block: bytes) -> str:
    return re.sub(r"\r\n?", "\n", block.decode("utf-8", "replace"))


def _not_metadata(path: str, line: int, body_offset: int) -> Frontmatter:
    message = "the text between the lines --- is not metadata (key: value)"
    return Frontmatter({}, body_offset, (Finding(path, line, "frontmatter-not-mapping", message),))
