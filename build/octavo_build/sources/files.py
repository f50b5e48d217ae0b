"""Walking a pack's folder: which files are read, in which order, and why the others are not.

Links are followed to files inside the pack only; a linked directory is never walked, so that no walk can loop.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from octavo_build.findings import Finding

SKIPPED_DIRECTORIES = frozenset({"__pycache__", "node_modules"})
MAX_FILE_BYTES = 16 * 2**20
MARKDOWN = (".md", ".markdown")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that was read."""

    path: str
    """Relative to the root, NFC."""
    raw: bytes


def read_files(
    root: Path, *, suffixes: tuple[str, ...] = MARKDOWN, skip: frozenset[str] = frozenset(), under: str = ""
) -> tuple[list[SourceFile], list[Finding]]:
    """Read every file under `root` with one of `suffixes`, sorted by path; with `under` (a path and a final `/`), only
    those there.

    Hidden directories and SKIPPED_DIRECTORIES are passed by, and the top-level ones named in `skip`. What cannot be
    read, or may not be, is a finding.
    """
    files: dict[str, SourceFile] = {}
    findings: list[Finding] = []
    inside = root.resolve()
    for relative in sorted(_walk(root, under, skip, findings)):
        if not relative.casefold().endswith(suffixes):
            continue
        # the file's own bytes: the locale decides how Python spells them
        path = unicodedata.normalize("NFC", os.fsencode(relative).decode("utf-8", "surrogateescape"))
        try:
            path.encode()
        except UnicodeEncodeError:
            shown = relative.encode("utf-8", "backslashreplace").decode()
            findings.append(Finding(shown, 0, "file-unreadable", "its name is not UTF-8"))
            continue
        if path in files:
            findings.append(Finding(path, 0, "file-unreadable", "another file has this name in another Unicode form"))
            continue
        read = _read(root / relative, inside, path)
        if isinstance(read, Finding):
            findings.append(read)
        else:
            files[path] = SourceFile(path, read)
    findings.extend(_collisions(files))
    return [files[path] for path in sorted(files)], findings


def list_files(root: Path, under: str = "") -> list[str]:
    """Every path under `root` that a build may depend on, sorted; for the build's own bookkeeping."""
    return sorted(_walk(root, under, frozenset(), []))


def _walk(root: Path, prefix: str, skip: frozenset[str], findings: list[Finding]) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(root / prefix), key=lambda entry: entry.name)
    except OSError as error:
        findings.append(Finding(prefix.rstrip("/"), 0, "file-unreadable", f"folder: {error.strerror}"))
        return
    for entry in entries:
        relative = prefix + entry.name
        if entry.is_dir(follow_symlinks=False):
            skipped = SKIPPED_DIRECTORIES if prefix else SKIPPED_DIRECTORIES | skip
            if not (entry.name.startswith(".") or entry.name in skipped):
                yield from _walk(root, relative + "/", skip, findings)
        elif entry.is_symlink() and os.path.isdir(entry.path):
            findings.append(Finding(relative, 0, "symlink-directory", "a link to a directory"))
        else:
            yield relative


def _read(file: Path, inside: Path, path: str) -> bytes | Finding:
    """The bytes of one file, or why not. The host's own paths never enter a message."""
    try:
        if file.is_symlink():
            try:
                target = file.resolve(strict=True)
            except (OSError, RuntimeError):
                return Finding(path, 0, "symlink-dangling", "the link leads nowhere")
            if not target.is_relative_to(inside):
                return Finding(path, 0, "symlink-escapes", "the link leads out of the pack")
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            return Finding(path, 0, "file-not-regular", "expected a regular file")
        if status.st_size > MAX_FILE_BYTES:
            return Finding(path, 0, "file-over-limit", f"{status.st_size} bytes, at most {MAX_FILE_BYTES} are read")
        return file.read_bytes()
    except OSError as error:
        return Finding(path, 0, "file-unreadable", error.strerror or "cannot be read")


def _collisions(files: dict[str, SourceFile]) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for path in sorted(files):
        other = first.setdefault(path.casefold(), path)
        if other != path:
            yield Finding(path, 0, "path-collision", f"differs from {other!r} only in upper and lower case")
