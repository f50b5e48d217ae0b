"""What a check of an OKF bundle sees: its pages by role, and where each link leads."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from octavo_build import okf
from octavo_build.graph import inside
from octavo_build.links import Reference
from octavo_build.lint.subject import Page, Subject
from octavo_build.sources.files import MARKDOWN


@dataclass(frozen=True, slots=True)
class Target:
    """Where a path leads."""

    kind: str
    """`page`, `file` (no Markdown, or left out), `folder` (without an index), `case`, `missing` or `outside`."""
    path: str
    """Of what was found, or of what would be if letters had another case; else as it would be in the bundle."""


@dataclass(frozen=True)  # without slots, for what is found out once is kept
class Bundle:
    """An OKF bundle to be checked."""

    subject: Subject

    @cached_property
    def pages(self) -> Mapping[str, Page]:
        """Every page that could be read, by path."""
        return {page.path: page for page in self.subject.pages}

    @cached_property
    def concepts(self) -> tuple[Page, ...]:
        """Pages that have a type and no reserved name."""
        return tuple(page for page in self.pages.values() if page.document.type is not None)

    @cached_property
    def indexes(self) -> tuple[Page, ...]:
        """The listings."""
        return tuple(page for page in self.pages.values() if page.name == "index.md")

    @cached_property
    def logs(self) -> tuple[Page, ...]:
        """The histories."""
        return tuple(page for page in self.pages.values() if page.name == "log.md")

    @cached_property
    def links(self) -> Mapping[str, tuple[tuple[Reference, Target], ...]]:
        """The links of each page's text to other files, and where they lead; by the page's path."""
        return {
            page.path: tuple(
                (link, self.target(page.path, link.target))
                for link in page.links
                if link.kind == "link" and link.target
            )
            for page in self.pages.values()
        }

    @cached_property
    def inbound(self) -> Mapping[str, frozenset[str]]:
        """Paths of the pages that lead to a page, by its path; a page does not lead to itself, a log to none."""
        found: dict[str, set[str]] = {}
        for path, links in self.links.items():
            if PurePosixPath(path).name != "log.md":
                for target in [*(target for _, target in links), *self._fields(path)]:
                    if target.kind == "page" and target.path != path:
                        found.setdefault(target.path, set()).add(path)
        return {path: frozenset(sources) for path, sources in found.items()}

    def target(self, source: str, path: str) -> Target:
        """Where a path in the file `source` leads: from the file's folder, or from the root when it begins with `/`."""
        path = unicodedata.normalize("NFC", path)
        parts = inside(PurePosixPath(source).parent / path)
        if parts is None:
            return Target("outside", path)
        wanted = "/".join(parts)
        for candidate in (wanted, *(wanted + ending for ending in MARKDOWN), f"{wanted}/index.md".lstrip("/")):
            if candidate in self.pages:
                return Target("page", candidate)
        if wanted in self._files:
            return Target("file", wanted)
        if not wanted or wanted in self._folders:
            return Target("folder", wanted)
        other = self._folded.get(wanted.casefold()) or self._folded.get(f"{wanted}.md".casefold())
        return Target("case", other) if other else Target("missing", wanted)

    def field(self, source: str, path: str) -> tuple[Target, bool]:
        """As `target`, for a path in the frontmatter, and whether it is found only from the root, without its slash."""
        found = self.target(source, path)
        if found.kind in ("missing", "outside", "case") and not path.startswith("/"):
            root = self.target("", path)
            if root.kind in ("page", "file"):
                return root, True
        return found, False

    def _fields(self, path: str) -> Iterator[Target]:
        page = self.pages[path]
        if page.document.type is not None:
            yield from (self.field(path, value)[0] for _, _, value in okf.paths(page.metadata))

    @cached_property
    def _files(self) -> frozenset[str]:
        return self.subject.paths | {document.path for document in self.subject.pack.documents}

    @cached_property
    def _folders(self) -> frozenset[str]:
        return frozenset(str(folder) for path in self._files for folder in PurePosixPath(path).parents)

    @cached_property
    def _folded(self) -> Mapping[str, str]:
        return {path.casefold(): path for path in sorted(self._files, reverse=True)}
