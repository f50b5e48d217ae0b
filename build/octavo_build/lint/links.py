"""References between files: related, wikilinks, Markdown links, canonical_verbatim.

They are looked up in the whole pack, so that children of a composite may refer to each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from octavo_artifact.ids import slugify
from octavo_artifact.schema import Document
from octavo_build.findings import Finding
from octavo_build.lint.references import Reference
from octavo_build.lint.subject import INDEX, Page, Subject

_DOCUMENTATION = frozenset({"README.md", "SCHEMA.md", "AGENTS.md"})
"""At a member's root these may show wikilinks that lead nowhere."""

_ATTACHMENT = re.compile(
    r"\.(?:png|jpe?g|gif|svg|webp|avif|pdf|mp3|mp4|webm|csv|json|ya?ml|canvas|base)\Z", re.IGNORECASE
)


def check_related(subject: Subject) -> Iterator[Finding]:
    """Targets of `related` and `canonical_verbatim`."""
    pages = {page.path: page for page in subject.pages}
    for page in subject.pages:
        for reference in page.document.related:
            targets = subject.resolver.resolve(reference, page.document)
            if not targets:
                yield page.finding("broken-related", f"related: {reference!r}", "related")
            elif len(targets) > 1:
                yield page.finding("link-ambiguous", _ambiguous("related", reference, targets), "related")
            elif target := pages.get(targets[0].path):
                yield from _way_back(subject, page, target)
            if "/" in reference:
                bare = PurePosixPath(reference).name
                yield page.finding("path-in-related", f"related: {reference!r}, expected {bare!r}", "related")
        verbatim = page.text("canonical_verbatim")
        if verbatim and not subject.resolver.resolve(verbatim, page.document):
            yield page.finding("broken-canonical-verbatim", f"canonical_verbatim: {verbatim!r}", "canonical_verbatim")


def _way_back(subject: Subject, page: Page, target: Page) -> Iterator[Finding]:
    if INDEX in (page.name, target.name) or page.path == target.path:
        return
    back = (subject.resolver.resolve(reference, target.document) for reference in target.document.related)
    if not any(page.path in {document.path for document in documents} for documents in back):
        yield page.finding("unidirectional-related", f"{target.path} does not name this file", "related")


def check_links(subject: Subject) -> Iterator[Finding]:
    """Targets and anchors of links in the text."""
    pages = {page.path: page for page in subject.pages}
    expertpack = subject.pack.source_format == "expertpack"
    for page in subject.pages:
        if page.name in _DOCUMENTATION and not page.folder:
            continue
        for reference in page.references:
            if reference.kind == "link":
                yield from _check_link(page, reference, pages)
            elif expertpack:
                yield from _check_wikilink(subject, page, reference, pages)


def check_link_style(subject: Subject) -> Iterator[Finding]:
    """Markdown links where an ExpertPack has wikilinks; one finding a file."""
    for page in subject.content:
        links = [reference for reference in page.references if reference.kind == "link"]
        if links:
            shown = ", ".join(link.target for link in links[:3])
            yield Finding(page.path, links[0].line, "markdown-links", f"{len(links)} links: {shown}")


def check_orphans(subject: Subject) -> Iterator[Finding]:
    """Files that name no other and are named by none; an index does not count."""
    named: set[str] = set()
    content = subject.content
    for page in content:
        wikilinks = (reference.target for reference in page.references if reference.kind == "wikilink")
        for name in (*page.document.related, *page.document.requires, *filter(None, wikilinks)):
            named |= {document.path for document in subject.resolver.resolve(name, page.document)} - {page.path}
    for page in content:
        if page.folder and page.path not in named and not (page.document.related or page.document.requires):
            yield page.finding("orphaned", "no file names it, and it relates to none")


def _check_wikilink(subject: Subject, page: Page, reference: Reference, pages: dict[str, Page]) -> Iterator[Finding]:
    target: Page | None = page
    if reference.target:
        if _ATTACHMENT.search(reference.target):
            return
        found = subject.resolver.resolve(reference.target, page.document)
        if len(found) != 1:
            message = _ambiguous("wikilink", reference.target, found) if found else f"[[{reference.target}]]"
            code = "link-ambiguous" if found else "broken-wikilink"
            yield Finding(page.path, reference.line, code, message)
            return
        target = pages.get(found[0].path)
        if target and target.name == page.name and "/" not in reference.target:
            # a file hardly means itself: a bare name that others have too may be any of theirs
            same = [other.document for other in pages.values() if other.name == page.name]
            if len(same) > 1:
                message = _ambiguous("wikilink", reference.target, same)
                yield Finding(page.path, reference.line, "link-ambiguous", message)
    if target:
        yield from _check_anchor(page, reference, target)


def _check_link(page: Page, reference: Reference, pages: dict[str, Page]) -> Iterator[Finding]:
    path = _relative(page.path, reference.target)
    if path not in pages:
        yield Finding(page.path, reference.line, "broken-markdown-link", f"{reference.target!r}")
    else:
        yield from _check_anchor(page, reference, pages[path])


def _check_anchor(page: Page, reference: Reference, target: Page) -> Iterator[Finding]:
    # a wikilink may name the headings above too (#A#B), or a block (#^id), which has no heading
    wanted = slugify(reference.anchor.rpartition("#")[2])
    if not wanted or reference.anchor.startswith("^"):
        return
    known = {slugify(heading.text) for heading in target.headings}
    if wanted not in known and re.sub(r"-\d+\Z", "", wanted) not in known:
        yield Finding(page.path, reference.line, "link-anchor", f"{target.path} has no heading {reference.anchor!r}")


def _relative(path: str, target: str) -> str:
    parts = [] if target.startswith("/") else list(PurePosixPath(path).parent.parts)
    for part in PurePosixPath(target.lstrip("/")).parts:
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
        else:
            return ""
    return "/".join(parts)


def _ambiguous(kind: str, reference: str, targets: list[Document]) -> str:
    return f"{kind}: {reference!r} ({', '.join(target.path for target in targets[:3])})"
