"""The frontmatter of each file: presence, fields, values, and whether the type fits the folder."""

from __future__ import annotations

from collections.abc import Iterator

from octavo_build.findings import Finding
from octavo_build.lint.fields import check_fields, schema
from octavo_build.lint.subject import Page, Subject

ROOT_FILES = frozenset(
    {"README.md", "SCHEMA.md", "STATUS.md", "LEGACY.md", "glossary.md", "overview.md", "freshness.md"}
)
"""Exempt from required fields wherever they stand, as is every file at a member's root."""

FOLDER_TYPES = {
    "concepts": "concept", "workflows": "workflow", "troubleshooting": "troubleshooting", "faq": "faq",
    "propositions": "proposition", "summaries": "summary", "sources": "source", "decisions": "decision",
    "facts": "fact", "mind": "mind", "relationships": "relationship", "presentation": "presentation",
    "training": "training", "meta": "meta", "commercial": "commercial",
    "customers": "customer", "volatile": "volatile", "patterns": "pattern", "phases": "phase", "gotchas": "gotcha",
    "specifications": "specification", "interfaces": "interface", "errors": "troubleshooting",
    "diagnostics": "troubleshooting", "common-mistakes": "gotcha", "stories": "story", "reflections": "reflection",
    "opinions": "opinion", "conversations": "conversation", "lessons": "lesson",
}  # fmt: skip

_STORIES = frozenset({"story", "reflection", "opinion"})
_ACTIVE = frozenset({"workflow", "decision", "gotcha", "phase"})
_TOLD_BY_THE_BUILD = {"value-kind": frozenset({"title", "id", "description", "type", "tags", "requires", "related"})}


def is_exempt(page: Page) -> bool:
    """Whether a page need not have the fields of a content file."""
    return not page.folder or page.name in ROOT_FILES


def check_required(subject: Subject) -> Iterator[Finding]:
    """Fields that a content file must have; one without any frontmatter is the build's to tell."""
    for page in subject.content:
        if page.metadata and not is_exempt(page):
            for field in sorted(schema("frontmatter")["required"]):
                if field not in page.metadata:
                    yield page.finding("missing-fm-field", f"{field}: missing")


def check_values(subject: Subject) -> Iterator[Finding]:
    """Values of known fields: kinds, vocabularies, forms, dates and durations."""
    for page in subject.pages:
        for where, code, message in check_fields("frontmatter", page.metadata):
            key = where.partition(".")[0].removesuffix("[]")
            if where not in _TOLD_BY_THE_BUILD.get(code, ()):
                yield page.finding("id-format" if (key, code) == ("id", "value-format") else code, message, key)
        kind = page.text("type")
        if "activation" in page.metadata and kind not in _ACTIVE:
            yield page.finding("activation-type", f"activation: the type is {kind!r}", "activation")


def check_navigation(subject: Subject) -> Iterator[Finding]:
    """Files that lead to others, and declare themselves to be found."""
    for page in subject.pages:
        declared = page.text("retrieval_strategy")
        if declared in ("standard", "atomic") and page.document.strategy == "navigation":
            message = f"retrieval_strategy: {declared!r} of a navigation file"
            yield page.finding("W-TIER-02", message, "retrieval_strategy")


def check_folder_types(subject: Subject) -> Iterator[Finding]:
    """The type of a file against that of its own folder, else of its top folder."""
    for page in subject.content:
        top, kind = page.folder.partition("/")[0], page.text("type")
        expected = FOLDER_TYPES.get(page.folder.rpartition("/")[2]) or FOLDER_TYPES.get(top)
        if not expected or not kind or kind in (expected, "index"):
            continue
        if not (kind in _STORIES and top in ("summaries", "verbatim")):
            yield page.finding("type-dir-mismatch", f"type: {kind!r} in {page.folder}/, expected {expected!r}", "type")
