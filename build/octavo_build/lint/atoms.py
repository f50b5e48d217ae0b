"""Whether a file is one unit of retrieval: its size, its density, aggregates, and what schema 4 retired."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from octavo_build.bodies.body import Block, decode
from octavo_build.findings import Finding
from octavo_build.lint.subject import Page, Subject
from octavo_build.values import text

MAX_CHARACTERS = 6_000
HUB_WORDS, HUB_TOPICS, HUB_DEPTH = 100, 8, 15
_NO_HUB = frozenset({"index", "source", "proposition", "summary", "training", "glossary"})
_AGGREGATE_FOLDERS = frozenset({"summaries", "propositions", "sources"})
_AGGREGATE_TYPES = frozenset({"summary", "proposition"})
_COVERAGE = frozenset({"_coverage.md", "source-coverage.md"})


def check_size(subject: Subject) -> Iterator[Finding]:
    """Files over the limit of characters, and concepts over that of tokens; an atomic file is whole by intent, and one
    that leads to others has no limit of tokens.
    """
    for member in subject.members:
        limit, code = (1_000, "W-V41-01") if member.schema >= (4, 1) else (1_500, "W-V40-04")
        for page in member.content:
            if page.document.strategy == "atomic":
                continue
            characters = len(decode(page.document.raw))
            if characters > MAX_CHARACTERS:
                yield page.finding("file-too-large", f"{characters} characters, at most {MAX_CHARACTERS} are expected")
            concept = page.text("type") == "concept" and page.document.strategy != "navigation"
            if member.schema >= (4, 0) and concept and characters // 4 > limit:
                yield page.finding(code, f"about {characters // 4} tokens, at most {limit} are expected")


def check_hubs(subject: Subject) -> Iterator[Finding]:
    """Files that touch many topics in few words: they rank modestly for everything."""
    for page in subject.content:
        document = page.document
        if (
            page.text("type") in _NO_HUB
            or document.strategy in ("atomic", "navigation")
            or document.scope in ("reference", "multi", "navigation")
        ):
            continue
        words = len(page.body.visible(document.body_offset, len(document.raw)).split())
        topics = sum(heading.level in (2, 3) for heading in page.headings) + _rows(page, page.body.blocks)
        if words >= HUB_WORDS and topics >= HUB_TOPICS and words / topics < HUB_DEPTH:
            yield page.finding("W-HUB-01", f"{topics} headings and rows in {words} words")


def _rows(page: Page, blocks: Sequence[Block]) -> int:
    """Rows of all tables, the delimiter rows not counted."""
    lines = (page.document.raw[b.start : b.end].strip().splitlines() for b in blocks if b.kind == "table")
    return sum(len(each) - 1 for each in lines) + sum(_rows(page, block.children) for block in blocks)


def check_aggregates(subject: Subject) -> Iterator[Finding]:
    """Folders and types that score broadly on every query; one finding a folder."""
    for member in subject.members:
        if text(member.manifest.get("retrieval_model")) == "full-context":
            continue
        told: set[str] = set()
        for page in member.content:
            folders = set(page.folder.split("/")) & _AGGREGATE_FOLDERS - told
            if page.name in _COVERAGE:
                folders -= {"sources"}
            told |= folders
            for folder in sorted(folders):
                yield page.finding("W-RETR-01", f"{folder}/ holds aggregates")
            if page.text("type") in _AGGREGATE_TYPES:
                yield page.finding("W-RETR-01", f"type: {page.text('type')!r} is an aggregate", "type")


def check_retired(subject: Subject) -> Iterator[Finding]:
    """What schema 4.0 had and 4.1 has not."""
    for member in subject.members:
        for page in member.content:
            if member.schema >= (4, 1):
                yield from _retired(page)
            elif member.schema >= (4, 0):
                yield from _parent(subject, page)


def _retired(page: Page) -> Iterator[Finding]:
    if page.document.scope == "composite":
        yield page.finding("W-V41-02", "concept_scope: composite", "concept_scope")
    if parent := page.text("parent_concept"):
        yield page.finding("W-V41-02", f"parent_concept: {parent!r}", "parent_concept")
    for heading in page.headings:
        if heading.level == 2 and heading.text == "Key Propositions":
            yield Finding(page.path, page.body.line_at(heading.start), "W-V41-03", f"## {heading.text}")


def _parent(subject: Subject, page: Page) -> Iterator[Finding]:
    parent = page.text("parent_concept")
    if not parent:
        return
    targets = subject.resolver.resolve(parent, page.document)
    if not targets:
        yield page.finding("W-V40-02", f"parent_concept: {parent!r}", "parent_concept")
    elif all(target.scope != "composite" for target in targets):
        yield page.finding("W-V40-03", f"parent_concept: {parent!r} is {targets[0].scope}", "parent_concept")
