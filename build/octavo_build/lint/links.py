"""References between files: related, wikilinks, Markdown links, canonical_verbatim.

They are looked up in the whole pack, so that children of a composite may refer to each other.
"""

from __future__ import annotations

import re
from collections import defaultdict
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
    """Targets of `related`, which should name each other, and of `canonical_verbatim`."""
    resolve = subject.resolver.resolve
    index = {page.path: page.name == INDEX for page in subject.pages}
    named: dict[str, set[str]] = {
        page.path: {found[0].path for name in page.document.related if len(found := resolve(name, page.document)) == 1}
        for page in subject.pages
    }
    for page in subject.pages:
        for reference in page.document.related:
            targets = resolve(reference, page.document)
            if not targets:
                yield page.finding("broken-related", f"related: {reference!r}", "related")
            elif len(targets) > 1:
                yield page.finding("link-ambiguous", _ambiguous("related", reference, targets), "related")
            elif not (index[page.path] or index.get(targets[0].path, True) or page.path in named[targets[0].path]):
                message = f"{targets[0].path} does not name this file"
                yield page.finding("unidirectional-related", message, "related")
            if "/" in reference:
                bare = PurePosixPath(reference).name
                yield page.finding("path-in-related", f"related: {reference!r}, expected {bare!r}", "related")
        verbatim = page.text("canonical_verbatim")
        if verbatim and not resolve(verbatim, page.document):
            yield page.finding("broken-canonical-verbatim", f"canonical_verbatim: {verbatim!r}", "canonical_verbatim")


def check_links(subject: Subject) -> Iterator[Finding]:
    """Targets and anchors of links in the text."""
    targets = _Targets(subject)
    expertpack = subject.pack.source_format == "expertpack"
    for page in subject.pages:
        wikilinks = expertpack and (page.folder or page.name not in _DOCUMENTATION)
        for reference in page.references:
            if reference.kind == "link" or wikilinks:
                check = targets.link if reference.kind == "link" else targets.wikilink
                for code, message in check(page, reference):
                    yield Finding(page.path, reference.line, code, message)


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
    perhaps: set[str] = set()
    """Names that several files have: each of those may be meant."""
    for page in subject.content:
        wikilinks = {reference.target for reference in page.references if reference.kind == "wikilink"} - {""}
        for name in (*page.document.related, *page.document.requires, *wikilinks):
            targets = subject.resolver.resolve(name, page.document)
            if len(targets) == 1:
                named |= {targets[0].path} - {page.path}
            elif targets:
                perhaps.add(PurePosixPath(targets[0].path).name.casefold())
    for page in subject.content:
        if page.path in named or page.name.casefold() in perhaps or page.document.related or page.document.requires:
            continue
        if page.folder:
            yield page.finding("orphaned", "no file names it, and it relates to none")


Problem = tuple[str, str]
"""Code and message."""


class _Targets:
    """What links of a pack may lead to; each document's anchors are made once."""

    def __init__(self, subject: Subject) -> None:
        self._resolver = subject.resolver
        self._pages = {page.path: page for page in subject.pages}
        self._paths = {document.path for document in subject.pack.documents}
        self._namesakes: defaultdict[str, list[Document]] = defaultdict(list)
        for page in subject.pages:
            self._namesakes[page.name].append(page.document)
        self._anchors: dict[str, frozenset[str]] = {}

    def wikilink(self, page: Page, reference: Reference) -> Iterator[Problem]:
        """What is wrong with a wikilink."""
        if _ATTACHMENT.search(reference.target):
            return
        found = self._resolver.resolve(reference.target, page.document) if reference.target else [page.document]
        if reference.target and "/" not in reference.target and found:
            # a file hardly means itself: a bare name that others have too may be any of theirs
            namesakes = self._namesakes[page.name]
            if len(found) == 1 and len(namesakes) > 1 and PurePosixPath(found[0].path).name == page.name:
                found = namesakes
        if len(found) == 1:
            yield from self._anchor(reference, found[0].path)
        elif found:
            yield "link-ambiguous", _ambiguous("wikilink", reference.target, found)
        else:
            yield "broken-wikilink", f"[[{reference.target}]]"

    def link(self, page: Page, reference: Reference) -> Iterator[Problem]:
        """What is wrong with a Markdown link."""
        path = _relative(page.path, reference.target)
        if path in self._paths:
            yield from self._anchor(reference, path)
        else:
            yield "broken-markdown-link", f"{reference.target!r}"

    def _anchor(self, reference: Reference, path: str) -> Iterator[Problem]:
        # a wikilink may name the headings above too (#A#B), or a block (#^id), which has no heading
        wanted = slugify(reference.anchor.rpartition("#")[2])
        if not wanted or reference.anchor.startswith("^") or path not in self._pages:
            return
        if path not in self._anchors:
            self._anchors[path] = frozenset(slugify(heading.text) for heading in self._pages[path].headings)
        if not {wanted, re.sub(r"-\d+\Z", "", wanted)} & self._anchors[path]:
            yield "link-anchor", f"{path} has no heading {reference.anchor!r}"


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
