"""Diagnostics of a build: coded, with file and line, kept in `report.json`.

A finding never stops a build; `--strict` does when one is an error or a warning.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from octavo_build.lint.codes import LINT_CODES, SOURCES

SEVERITIES: tuple[str, ...] = ("error", "warning", "note")

CODES: dict[str, tuple[str, str]] = {
    # code: (severity, what the author can do)
    "yaml-invalid": ("error", "mend the YAML; the file is built without its metadata"),
    "yaml-duplicate-key": (
        "warning",
        "keep one of the keys; of one block the last is used, of two blocks the first block's",
    ),
    "metadata-invalid": ("error", "mend the TOML; the file is built without its metadata"),
    "frontmatter-unclosed": (
        "warning",
        "close the frontmatter with a second line --- or +++; the file is read as all body",
    ),
    "frontmatter-not-mapping": (
        "warning",
        "write the frontmatter as key: value (TOML: key = value); the block is read as body",
    ),
    "frontmatter-missing": ("warning", "begin the file with frontmatter (title, type, tags)"),
    "frontmatter-value": ("warning", "give the field a value of the expected kind; it is left out"),
    "bom": ("warning", "save the file without a byte order mark; it is skipped"),
    "crlf": ("warning", "save the file with LF line endings; the bytes are kept as they are"),
    "encoding-invalid": ("error", "save the file as UTF-8; the bad bytes are shown as U+FFFD"),
    "encoding-utf16": ("error", "save the file as UTF-8; it can be read but not searched"),
    "format-invalid": ("error", "mend the file or give it the ending of its format; it can be read but not searched"),
    "control-character": ("warning", "remove the NUL characters; they are shown as U+FFFD"),
    "no-content": ("warning", "write the file or remove it; nothing of it can be found"),
    "id-duplicate": ("error", "give each file its own id; the later file gets one made from its path"),
    "uri-duplicate": ("error", "give the file another id or type; the earlier one is built, this one is not"),
    "export-untyped": ("error", "give the file a type, or take export out; it is not built"),
    "export-value": ("warning", "write export: true, or export: false; the file is not built"),
    "type-collision": ("warning", "spell the type in one way; both have the same place in URIs"),
    "root-skipped": ("warning", "mend roots; nothing is read there"),
    "id-missing": ("note", "give the file an id that survives renames; one is made from its path"),
    "path-collision": ("warning", "rename one of the files; the names are equal on some file systems"),
    "symlink-escapes": ("error", "copy the file into the pack; links that leave it are not followed"),
    "symlink-dangling": ("warning", "remove the link or restore its target"),
    "symlink-directory": ("warning", "link files, not directories; linked directories are not walked"),
    "file-unreadable": ("error", "make the file readable to the build"),
    "file-not-regular": ("warning", "remove the socket, pipe or device from the pack"),
    "file-over-limit": ("error", "split the file; it can be neither searched nor read"),
    "manifest-field": ("error", "mend the field in the manifest; a default is used"),
    "manifest-entry": ("error", "mend entry_point; no file of the pack has that path"),
    "manifest-slug": ("warning", "write the slug as a-b-c (a-z, 0-9 and hyphens); one is made from it"),
    "manifest-path": ("warning", "mend the path or pattern; nothing in the pack has it"),
    "pattern-invalid": ("warning", "mend the pattern, or write it with fewer wildcards; it selects nothing"),
    "draft-omitted": ("note", "nothing, if it is meant so: drafts: true in pack.yaml releases them too"),
    "unlisted": ("note", "nothing, if it is meant so: unlisted pages can be read and are never found"),
    "access-invalid": ("error", "mend _access.json or the file's sensitivity; until then it is not released"),
    "audience-withheld": ("note", "nothing, if it is meant so; --audience builds for a narrower circle"),
    "structure-ignored": ("warning", "split the file; its headings and blocks are not told apart"),
    "passage-oversized": ("note", "split the block; one fence, row or word of it is longer than a passage should be"),
    "date-invalid": (
        "warning",
        "write the date as YYYY-MM-DD, YYYY-MM, YYYY or YYYY-Qn; no age or expiry is known by it",
    ),
    "duration-invalid": ("warning", "write an ISO 8601 duration such as P90D; the next one that applies is used"),
    "refresh-invalid": (
        "warning",
        "write decay and as_of as YAML in the comment; the text above it does not expire by it",
    ),
    "requires-ambiguous": ("error", "write the path or the id; several documents have that name, and none is required"),
    "links-ignored": ("warning", "split the paragraph; its links are not read"),
    "link-unresolved": ("warning", "mend the reference; no document of the pack has that name"),
    "link-ambiguous": ("warning", "write the path or the id; several documents have that name"),
    "hint-unresolved": ("note", "name one document in the context comment, or leave the hint out; it is not used"),
    "sidecar-missing": ("warning", "mend the name; sidecar and document do not find each other"),
    "sidecar-invalid": ("warning", "write the sidecar anew; its chunks do not fit the document, and none is used"),
    "sidecar-stale": ("warning", "write the sidecar anew; the document has changed since, and no chunk is used"),
    "sidecar-unchecked": ("note", "let the sidecar say the document's content_hash; its chunks fit, and are used"),
    "sidecar-unused": ("note", "remove the sidecar, or declare the document standard; an atomic one is never cut"),
    "sequence-broken": ("warning", "number the parts 1 of N to N of N, each once; readers are led from part to part"),
    "graph-stale": ("warning", "export _graph.yaml anew or remove it; the graph is made from the documents"),
    "okf-frontmatter-missing": (
        "error",
        "begin the file with frontmatter that has a type, or name it in .okfignore; it can be read, not searched",
    ),
    "okf-type-missing": ("error", "give the file a type, one word or phrase; it can be read, not searched"),
    "okf-side-file": (
        "warning",
        "name the file in .okfignore, or give it frontmatter with a type; it can be read, not searched",
    ),
    "okf-ignore-limit": ("warning", "use fewer patterns; those beyond the limit have no effect"),
    "skill-invalid": ("error", "mend the SKILL.md or the slug; a host would refuse the skill, so one is made, or none"),
    "skill-file-over-limit": ("error", "split the file or make it on_demand; it is in no skill"),
    "skill-split": ("note", "nothing, or make files on_demand; a skill holds 512 files and 16 MiB"),
    "ontology-invalid": ("warning", "mend the entry of ontology.yaml; it is left out"),
}
"""What a build finds; what only lint finds is `LINT_CODES`."""

_KNOWN = {**CODES, **LINT_CODES}


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One diagnostic."""

    path: str
    """Of the file, relative to the pack's root; empty when it concerns the whole pack."""
    line: int
    """Counted from 1; 0 when no line can be named."""
    code: str
    message: str
    """What was found and what was expected."""

    def __post_init__(self) -> None:
        if self.code not in _KNOWN:
            raise ValueError(f"unknown finding code {self.code!r}")

    @property
    def severity(self) -> str:
        """`error`, `warning` or `note`."""
        return _KNOWN[self.code][0]

    @property
    def advice(self) -> str:
        """What the pack's author can do, and what the build did meanwhile."""
        return _KNOWN[self.code][1]

    @property
    def source(self) -> str | None:
        """`spec` or `convention` for a finding of an OKF bundle: who asks for it."""
        return SOURCES.get(self.code)

    def as_json(self) -> dict[str, Any]:
        """The finding as `report.json` has it."""
        source = {"source": self.source} if self.source else {}
        return {**asdict(self), "severity": self.severity, "advice": self.advice, **source}


def count_by_severity(findings: Iterable[Finding]) -> dict[str, int]:
    """Number of findings of each severity, all severities named."""
    counts = dict.fromkeys(SEVERITIES, 0)
    for finding in findings:
        counts[finding.severity] += 1
    return counts
