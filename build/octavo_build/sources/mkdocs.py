"""What the `mkdocs.yml` of a docs folder says of its pages: the titles of `nav`, the name of the site."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from octavo_build.findings import Finding
from octavo_build.frontmatter import read_yaml
from octavo_build.sources.files import MAX_FILE_BYTES
from octavo_build.values import items, mapping, text

MKDOCS = ("mkdocs.yml", "mkdocs.yaml")


@dataclass(frozen=True, slots=True)
class Site:
    """A site's own words; empty where it has none."""

    name: str = ""
    description: str = ""
    titles: dict[str, str] = field(default_factory=dict[str, str])
    """By path of the page, relative to the folder."""


def read_site(root: Path, findings: list[Finding]) -> Site:
    """The site whose `mkdocs.yml` lies at the top of `root`."""
    name = next((name for name in MKDOCS if (root / name).is_file() and not (root / name).is_symlink()), None)
    if name is None or (root / name).stat().st_size > MAX_FILE_BYTES:
        return Site()
    try:
        front = read_yaml(name, (root / name).read_bytes())
    except OSError as error:
        findings.append(Finding(name, 0, "file-unreadable", error.strerror or "cannot be read"))
        return Site()
    findings += front.findings
    folder = text(front.metadata.get("docs_dir")) or "docs"
    pages = _pages(front.metadata.get("nav"))
    titles = {posixpath.normpath(posixpath.join(folder, page)): title for title, page in reversed(list(pages))}
    return Site(text(front.metadata.get("site_name")), text(front.metadata.get("site_description")), titles)


def _pages(nav: object) -> Iterator[tuple[str, str]]:
    """Title and path of the pages of a `nav`, in order; a page alone has no title."""
    for item in items(nav):
        for title, page in mapping(item).items():
            if isinstance(page, str):
                yield title, page
            else:
                yield from _pages(page)
