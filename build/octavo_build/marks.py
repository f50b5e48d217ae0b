"""Marks: data that the authors of ExpertPacks put in HTML comments, for the text around them.

    <!-- context: section=process, topic=permits, related=wiring,inspection -->
    <!-- refresh, a line end and YAML: decay, as_of, source ... -->
    <!-- sequence: manuals/*.md | part: 2 of 5 -->

Comments are those of the Markdown: what looks like one in code is none. They stay in the text that is shown and out of
what is embedded and indexed; `bodies.markdown` sees to both.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from octavo_artifact.ids import canonical_json
from octavo_build.bodies.body import decode
from octavo_build.bodies.markdown import parse_body
from octavo_build.findings import Finding
from octavo_build.frontmatter import Frontmatter, MetadataError, parse_yaml

_MARK = re.compile(rb"<!--\s*+(?:(context|sequence)\s*+:|(refresh)(?![\w-])[ \t]*+:?)")
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_BLANK_LINE = re.compile(rb"(?:\r\n?|\n)[ \t]*(?:\r\n?|\n)")
_LINE_END = re.compile(rb"\r\n?|\n")


def read_marks(path: str, raw: bytes, front: Frontmatter, findings: list[Finding]) -> str:
    """The marks of a file as the documents table has them (JSON); a `refresh` that is not YAML becomes a finding."""
    if _MARK.search(raw) is None:
        return "[]"
    starts = array("q", [0, *(match.end() for match in _LINE_END.finditer(raw))])
    marks: list[dict[str, Any]] = []
    for start, end in _comments(raw, front):
        found = _MARK.match(raw, start, end)
        if found is None:
            continue
        kind = (found[1] or found[2]).decode()
        text = _LINE_END.sub(b"\n", raw[found.end() : end].removesuffix(b"-->"))
        try:
            data = _DATA[kind](decode(text))
        except MetadataError as error:
            line = bisect_right(starts, found.end()) + error.line
            findings.append(Finding(path, line, "refresh-invalid", f"refresh: {error}, expected YAML"))
            continue
        line = bisect_right(starts, start)
        marks.append({"kind": kind, "line": line, "start_byte": start, "end_byte": end, "data": data})
    return canonical_json(marks).decode().rstrip("\n")


def _comments(raw: bytes, front: Frontmatter) -> Iterator[tuple[int, int]]:
    """Byte ranges of the comments between the frontmatter blocks and in the body, in order."""
    yield from (match.span() for match in _COMMENT.finditer(raw, *front.between))
    body = parse_body(raw[: _reach(raw)], front.body_offset)
    yield from ((hidden.start, hidden.end) for hidden in body.hidden)


def _reach(raw: bytes) -> int:
    """How much of the file decides which comments are marks: up to the end of the paragraph around the last.

    Most stand at the top, and telling the blocks of whole files apart would make reading a pack six times as long.
    """
    last = max((match.end() for match in _MARK.finditer(raw)), default=0)
    closing = raw.find(b"-->", last)
    blank = _BLANK_LINE.search(raw, closing) if closing >= 0 else None
    return blank.end() if blank else len(raw)


def _context(text: str) -> dict[str, str | list[str]]:
    """`key=value` pairs between commas; a part without `=` goes on with the value before it, else under `context`."""
    current: list[str] = []
    values = {"context": current}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if equals:
            current = values.setdefault(key.strip(), [])
        if word := (value if equals else part).strip():
            current.append(word)
    return {key: words if key == "related" else ", ".join(words) for key, words in values.items() if words}


def _refresh(text: str) -> Any:
    return parse_yaml(text)[0]


def _sequence(text: str) -> dict[str, str]:
    """The pattern under `sequence`, the `key: value` pairs behind it under their keys."""
    pattern, *rest = text.split("|")
    pairs = (part.partition(":") for part in rest)
    return {"sequence": pattern.strip(), **{key.strip(): value.strip() for key, _, value in pairs}}


_DATA = {"context": _context, "refresh": _refresh, "sequence": _sequence}
