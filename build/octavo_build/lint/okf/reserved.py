"""Listings and histories: `index.md` and `log.md`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from octavo_build import okf
from octavo_build.findings import Finding
from octavo_build.lint.okf.bundle import Bundle
from octavo_build.lint.subject import Page

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def check_indexes(bundle: Bundle) -> Iterator[Finding]:
    """Frontmatter and shape of the listings."""
    if "index.md" not in bundle.pages:
        yield Finding("index.md", 0, "okf-index-missing", "the root has no index.md")
    for page in bundle.indexes:
        keys = sorted(page.metadata.keys() - {"okf_version"})
        if page.folder and page.metadata:
            yield page.finding("okf-index-frontmatter", f"frontmatter with {', '.join(sorted(page.metadata))}")
        elif keys:
            yield page.finding("okf-index-keys", f"{', '.join(keys)} beside okf_version", keys[0])
        if not page.folder and "okf_version" in page.metadata and page.text("okf_version") not in okf.VERSIONS:
            found = page.text("okf_version")[:40] or "no text"
            message = f"okf_version: found {found!r}, known are {', '.join(okf.VERSIONS)}"
            yield page.finding("okf-version", message, "okf_version")
        if not page.headings or not any(link.kind == "link" for link in page.links):
            lacks = "link" if page.headings else "heading"
            yield page.finding("okf-index-empty", f"the listing has no {lacks}")


def check_logs(bundle: Bundle) -> Iterator[Finding]:
    """Frontmatter, groups and order of the histories."""
    for page in bundle.logs:
        if page.metadata:
            yield page.finding("okf-log-frontmatter", f"frontmatter with {', '.join(sorted(page.metadata))}")
        if not any(heading.level == 1 for heading in page.headings):
            yield page.finding("okf-log-title", "the log has no title")
        yield from _check_groups(page)


def _check_groups(page: Page) -> Iterator[Finding]:
    group, entries, before = 0, 0, date.max
    for block in page.body.blocks:
        line = page.body.line_at(block.start)
        if block.kind == "heading" and block.level == 2:
            if group and not entries:
                yield Finding(page.path, group, "okf-log-shape", "no entry under the day")
            group, entries = line, 0
            day = _day(block.text)
            if day is None:
                yield Finding(page.path, line, "okf-log-date", f"found {block.text[:60]!r}, expected YYYY-MM-DD")
            elif day > before:
                yield Finding(page.path, line, "okf-log-order", f"{day} stands below {before}")
            before = min(before, day or before)
        elif block.kind == "list" and group:
            entries += 1
        elif not (block.kind == "heading" and block.level == 1) and block.kind not in ("html", "definition"):
            where = "under a day" if group else "before the first day"
            yield Finding(page.path, line, "okf-log-shape", f"a {block.kind} {where}, expected a list under a day")
    if group and not entries:
        yield Finding(page.path, group, "okf-log-shape", "no entry under the day")


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text.strip()) if _DAY.fullmatch(text.strip()) else None
    except ValueError:
        return None
