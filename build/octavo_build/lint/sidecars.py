"""Sidecars (`*.chunks.yaml`): found, fresh, and chunks that cover the document without overlap."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, cast

from octavo_build.findings import Finding
from octavo_build.frontmatter import read_yaml
from octavo_build.lint.provenance import body_hashes
from octavo_build.lint.subject import Page, Subject, entries, text

SUFFIX = ".chunks.yaml"


def check_sidecars(subject: Subject) -> Iterator[Finding]:
    """Every sidecar with its document, and every document with the sidecar it names."""
    used: set[str] = set()
    for member in subject.members:
        for page in member.pages:
            named = page.text("chunks_sidecar")
            path = f"{member.prefix}{named}" if named else page.path.removesuffix(".md") + SUFFIX
            if path in subject.files:
                used.add(path)
                yield from _check(path, subject.files[path], page)
            elif named:
                yield page.finding(
                    "sidecar-missing", f"chunks_sidecar: {named!r} is no file of the pack", "chunks_sidecar"
                )
    for path in sorted(subject.files):
        if path.endswith(SUFFIX) and path not in used:
            yield Finding(path, 0, "sidecar-missing", "no document has this sidecar")


def _check(path: str, raw: bytes, page: Page) -> Iterator[Finding]:
    front = read_yaml(path, raw)
    yield from front.findings
    if not front.metadata:
        return
    claimed = text(front.metadata, "content_hash").removeprefix("sha256:")
    if claimed and claimed not in body_hashes(page) | {page.document.file_sha256}:
        yield Finding(path, front.lines["content_hash"], "sidecar-stale", f"content_hash is not that of {page.path}")
    ranges: list[tuple[int, int]] = []
    ids: set[str] = set()
    last_line = page.body.first_line + len(page.body.line_starts) - 1
    for number, item in enumerate(entries(front.metadata, "chunks"), 1):
        chunk = cast(dict[str, Any], item) if isinstance(item, dict) else {}
        name = text(chunk, "chunk_id") or f"chunk {number}"
        if name in ids:
            yield _invalid(path, front.lines, f"{name}: the chunk_id stands twice")
        ids.add(name)
        found = _range(chunk.get("line_range"))
        if found is None or not page.body.first_line <= found[0] <= found[1] <= last_line:
            expected = f"[start, end] in lines {page.body.first_line} to {last_line}, the body of {page.path}"
            yield _invalid(path, front.lines, f"{name}: line_range {found or 'missing'}, expected {expected}")
        else:
            ranges.append(found)
    if not ranges:
        yield _invalid(path, front.lines, "no chunk has a line_range")
        return
    yield from (_invalid(path, front.lines, message) for message in _gaps(sorted(ranges), page, last_line))


def _gaps(ranges: list[tuple[int, int]], page: Page, last_line: int) -> Iterator[str]:
    for before, after in pairwise(ranges):
        if after[0] <= before[1]:
            yield f"lines {after[0]} to {min(before[1], after[1])} are in two chunks"
    lines = re.split(rb"\r\n?|\n", page.document.raw[page.document.body_offset :])
    expected = page.body.first_line
    for start, end in [*ranges, (last_line + 1, last_line + 1)]:
        if b"".join(lines[expected - page.body.first_line : max(0, start - page.body.first_line)]).strip():
            yield f"lines {expected} to {start - 1} are in no chunk"
        expected = max(expected, end + 1)


def _range(value: object) -> tuple[int, int] | None:
    numbers = cast(list[Any], value) if isinstance(value, list) else []
    if len(numbers) != 2 or not all(isinstance(n, str) and re.fullmatch(r"\d{1,9}", n, re.ASCII) for n in numbers):
        return None
    return int(numbers[0]), int(numbers[1])


def _invalid(path: str, lines: dict[str, int], message: str) -> Finding:
    return Finding(path, lines.get("chunks", 0), "sidecar-invalid", message)
