"""Which files of a docs folder are meant: `include` and `exclude` of its `pack.yaml`, `.gitignore` at every level.

Patterns are those of git, and pathspec's business. A pattern that cannot be used costs only itself.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from octavo_build.bodies import mime_type_of
from octavo_build.findings import Finding
from octavo_build.sources.identity import Identity

GITIGNORE = ".gitignore"
MAX_WILDCARDS = 3
"""Runs of `*` in a pattern: the time to match it grows with the length of a path to the power of their number."""
MAX_BYTES = 2**17
"""Of a `.gitignore`; what follows is not read."""

UNWRITTEN = (
    "_build/ _includes/ _layouts/ _site/ _static/ _templates/ "
    "CMakeLists.txt constraints*.txt humans.txt requirements*.txt robots.txt"
).split()
"""What site generators make or fill, and text that is no prose. Read all the same where `include` is given."""

_WILDCARDS = re.compile(r"\*+")


@dataclass(frozen=True, slots=True)
class Selection:
    """Decides by path; folders are asked for on the way down, so that an ignored one is never walked."""

    root: Path
    include: GitIgnoreSpec | None
    exclude: GitIgnoreSpec
    findings: list[Finding]
    _ignored: dict[str, GitIgnoreSpec | None] = field(default_factory=dict[str, "GitIgnoreSpec | None"])
    """By folder, which is empty or ends with `/`."""

    def enters(self, path: str) -> bool:
        """Whether the folder `path` (it ends with `/`) is walked."""
        return not (path.rstrip("/").rpartition("/")[2].startswith(".") or self._left_out(path))

    def has(self, path: str) -> bool:
        """Whether the file `path` is meant; its folders were entered."""
        if mime_type_of(path) is None or path.rpartition("/")[2].startswith(".") or self._left_out(path):
            return False
        return self.include is None or self.include.match_file(path)

    def _left_out(self, path: str) -> bool:
        return self.exclude.match_file(path) or self._is_ignored(path)

    def _is_ignored(self, path: str) -> bool:
        """As git decides: the last pattern that matches, of the nearest `.gitignore` that has one."""
        for folder in _folders_above(path):
            if folder not in self._ignored:
                self._ignored[folder] = self._read(folder)
            spec = self._ignored[folder]
            decided = None if spec is None else spec.check_file(path.removeprefix(folder)).include
            if decided is not None:
                return decided
        return False

    def _read(self, folder: str) -> GitIgnoreSpec | None:
        file = self.root / folder / GITIGNORE
        shown = f"{folder}{GITIGNORE}"
        try:
            # as git does: one that is a link is not followed
            if not stat.S_ISREG(file.lstat().st_mode):
                return None
            with file.open("rb") as data:
                lines = data.read(MAX_BYTES).decode("utf-8", "replace").split("\n")
        except FileNotFoundError:
            return None
        except OSError as error:
            self.findings.append(Finding(shown, 0, "file-unreadable", error.strerror or "cannot be read"))
            return None
        spec, refused = _spec([line.removesuffix("\r") for line in lines])
        self.findings.extend(Finding(shown, line, "pattern-invalid", message) for line, message in refused)
        return spec


def read_selection(root: Path, identity: Identity) -> Selection:
    """What `pack.yaml` and the folder's `.gitignore` files select; findings go to those of `identity`."""
    include, exclude = _patterns(identity, "include"), _patterns(identity, "exclude")
    if include.patterns:
        return Selection(root, include, exclude, identity.findings)
    unwritten, _ = _spec(UNWRITTEN)
    return Selection(root, None, GitIgnoreSpec([*unwritten.patterns, *exclude.patterns]), identity.findings)


def _patterns(identity: Identity, key: str) -> GitIgnoreSpec:
    spec, refused = _spec(identity.texts(key))
    for _, message in refused:
        identity.refuse(key, message, "pattern-invalid")
    return spec


def _spec(lines: Sequence[str]) -> tuple[GitIgnoreSpec, list[tuple[int, str]]]:
    """The patterns that can be used, and (line from 1, what is wrong) of the others."""
    patterns: list[GitIgnoreSpecPattern] = []
    refused: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        if len(_WILDCARDS.findall(line)) > MAX_WILDCARDS and not line.startswith("#"):
            refused.append((number, f"{line[:80]!r} has more than {MAX_WILDCARDS} wildcards"))
            continue
        # pathspec lets `a/**` match the folder `a/` itself, which git does not
        exact = f"{line}/*" if line.endswith("/**") else line
        try:
            patterns += GitIgnoreSpec.from_lines([exact]).patterns
        except (ValueError, re.error):  # pathspec lets the second out of a range such as [z-a]
            refused.append((number, f"{line[:80]!r} is no pattern as git has them"))
    return GitIgnoreSpec(patterns), refused


def _folders_above(path: str) -> Iterator[str]:
    """The folders that hold `path`, the nearest first, the root (empty) last."""
    folder = path.rstrip("/")
    while folder:
        folder = folder.rpartition("/")[0]
        yield f"{folder}/" if folder else ""
