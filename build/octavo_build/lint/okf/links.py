"""Where links and paths of a bundle lead, and what nothing leads to. The format bears broken links: no errors here."""

from __future__ import annotations

import re
from collections.abc import Iterator

from octavo_artifact.ids import slugify
from octavo_build import okf
from octavo_build.findings import Finding
from octavo_build.links import Reference
from octavo_build.lint.okf.bundle import Bundle, Target
from octavo_build.lint.subject import Page

_CODES = {kind: f"okf-link-{kind}" for kind in ("missing", "outside", "case", "folder")}


def check_links(bundle: Bundle) -> Iterator[Finding]:
    """Targets and anchors of links in the text."""
    anchors: dict[str, frozenset[str]] = {}
    for page in bundle.pages.values():
        here = [(link, Target("page", page.path)) for link in page.links if link.kind == "link" and not link.target]
        for link, target in [*bundle.links[page.path], *here]:
            if code := _CODES.get(target.kind):
                if code == "okf-link-missing" and page.name == "index.md":
                    code = "okf-index-stale"
                yield Finding(page.path, link.line, code, _message(bundle, page, link, target))
            elif target.path == page.path and link.target and not link.anchor:
                yield Finding(page.path, link.line, "okf-link-self", f"{link.target!r}")
            if target.kind == "page" and link.anchor:
                if target.path not in anchors:
                    anchors[target.path] = frozenset(slugify(h.text) for h in bundle.pages[target.path].headings)
                wanted = slugify(link.anchor)
                if wanted and not {wanted, re.sub(r"-\d+\Z", "", wanted)} & anchors[target.path]:
                    message = f"{target.path} has no heading {link.anchor!r}"
                    yield Finding(page.path, link.line, "okf-link-anchor", message)


def _message(bundle: Bundle, page: Page, link: Reference, target: Target) -> str:
    if target.kind == "case":
        return f"{link.target!r}, the file is {target.path!r}"
    _, _, rest = link.target.lstrip("/").partition("/")
    if target.kind == "missing" and link.target.startswith("/") and rest:
        # written from a repository's root, of which the bundle is a folder
        found = bundle.target(page.path, f"/{rest}")
        if found.kind in ("page", "file"):
            return f"{link.target!r}; from the bundle's root it is '/{found.path}'"
    return f"{link.target!r}"


def check_fields(bundle: Bundle) -> Iterator[Finding]:
    """Files that fields of the frontmatter name."""
    for page in bundle.concepts:
        for key, _, path in okf.paths(page.metadata):
            target, from_root = bundle.field(page.path, path)
            if target.kind == "outside":
                yield page.finding("okf-link-outside", f"{key}: {path!r}", key)
            elif target.kind in ("missing", "case"):
                yield page.finding("okf-field-missing", f"{key}: {path!r}", key)
            elif from_root:
                yield page.finding("okf-field-root", f"{key}: {path!r}, expected '/{target.path}'", key)


def check_deprecated(bundle: Bundle) -> Iterator[Finding]:
    """Links of concepts that hold to concepts that do not."""
    for page in bundle.concepts:
        if page.text("status") != "deprecated":
            for link, target in bundle.links[page.path]:
                if target.kind == "page" and bundle.pages[target.path].text("status") == "deprecated":
                    yield Finding(page.path, link.line, "okf-link-deprecated", f"{target.path} is deprecated")


def check_wikilinks(bundle: Bundle) -> Iterator[Finding]:
    """Wikilinks, counted a file."""
    for page in bundle.pages.values():
        if found := [link for link in page.links if link.kind == "wikilink"]:
            shown = ", ".join(f"[[{link.target}]]" for link in found[:3])
            yield Finding(page.path, found[0].line, "okf-wikilinks", f"{len(found)} wikilinks: {shown}")


def check_reach(bundle: Bundle) -> Iterator[Finding]:
    """Concepts that no page leads to, or that the listing of their folder leaves out."""
    for page in bundle.concepts:
        sources = bundle.inbound.get(page.path, frozenset())
        index = f"{page.folder}/index.md".lstrip("/")
        if not sources:
            yield page.finding("okf-orphan", "no page of the bundle leads to it")
        elif index in bundle.pages and index not in sources:
            yield page.finding("okf-not-indexed", f"{index} does not list it")
