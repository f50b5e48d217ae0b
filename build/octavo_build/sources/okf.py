"""Open Knowledge Format bundles, versions 0.1 and 0.2: every Markdown file but listings and histories is a concept.

A concept's id is its path without the ending. `index.md` and `log.md` can be read and never found; so can a file that
is no concept because its frontmatter has no `type`. All fields stay in `frontmatter` as written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, cast

from octavo_artifact.schema import Document
from octavo_build import okf
from octavo_build.findings import Finding
from octavo_build.frontmatter import Frontmatter, read_frontmatter
from octavo_build.pack import Pack
from octavo_build.sources.adapter import Adapter, Options
from octavo_build.sources.documents import read_document, with_unique_ids
from octavo_build.sources.files import SourceFile, list_files, read_files
from octavo_build.sources.identity import PACK_FILE, Identity, pack_slug, read_identity
from octavo_build.values import text

IGNORE_FILE = ".okfignore"
MAX_PATTERNS = 200
INDEX = "index.md"

_SIDE_FILES = frozenset(
    "README AGENTS INSTRUCTIONS CLAUDE GEMINI CONTRIBUTING CHANGELOG LICENSE NOTICE SECURITY CODE_OF_CONDUCT".split()
)
"""Names of files that are about a repository, not knowledge of the bundle."""
_HEAD_BYTES, _HEADS = 2**14, 200
"""How much of a file, and about how many files of all folders, are looked at where no version says that it is OKF."""
_NO_METADATA = frozenset({"frontmatter-unclosed", "frontmatter-not-mapping"})


def read(root: Path, options: Options) -> Pack:  # every adapter's signature
    """Read the bundle in `root`; a file that is no concept is a finding, and the others are read."""
    identity = read_identity(root)
    findings = identity.findings
    slug = pack_slug(identity, root)
    is_ignored = _ignored(root, identity)
    files, walked = read_files(root, suffixes=(".md",))
    findings += (finding for finding in walked if not is_ignored(finding.path))
    fronts: dict[str, Frontmatter] = {}
    documents: list[Document] = []
    for file in files:
        if not is_ignored(file.path):
            document, fronts[file.path], found = _read_file(file, slug)
            documents.append(document)
            findings += found
    unique, duplicates = with_unique_ids(slug, documents)
    version = text(fronts[INDEX].metadata.get("okf_version")) if INDEX in fronts else ""
    return Pack(
        slug=slug,
        name=identity.text("name") or root.resolve().name,
        type=identity.text("type") or "okf",
        version=identity.text("version") or "0",
        description=identity.text("description") or "",
        entry_point=INDEX if INDEX in fronts else None,
        source_format="okf",
        retrieval=identity.retrieval(),
        metadata=({"okf_version": version} if version else {}) | identity.metadata,
        documents=unique,
        findings=tuple(sorted(findings + duplicates)),
        fronts=fronts,
    )


def _read_file(file: SourceFile, slug: str) -> tuple[Document, Frontmatter, list[Finding]]:
    document, front, found = read_document(file, slug, second_block=False, needs_frontmatter=False)
    # keys that other formats define mean what they like here
    own = {front.lines[key] for key in ("title", "description") if key in front.lines}
    findings = [each for each in found if each.code != "frontmatter-value" or each.line in own]
    document = replace(
        document, id=file.path.removesuffix(".md"), type=None, tags=(), verified_at=None, verified_by=None,
        confidence=None, requires=(), related=(),
    )  # fmt: skip
    if okf.is_reserved(file.path):
        findings = [each for each in findings if each.code not in _NO_METADATA]
        return replace(document, strategy="navigation", searchable=False), front, findings
    faults = list(_faults(file, front, findings))
    findings = [each for each in findings if each.code not in _NO_METADATA]
    if faults or not text(front.metadata.get("type")):
        return replace(document, tier="on_demand", searchable=False), front, findings + faults
    return _concept(document, front, findings), front, findings


def _concept(document: Document, front: Frontmatter, findings: list[Finding]) -> Document:
    metadata = front.metadata
    verified, stale_after = okf.newest(metadata.get("verified")), metadata.get("stale_after")
    expires = okf.last_day(stale_after)
    if stale_after is not None and expires is None:
        message = "stale_after: expected an ISO 8601 time with its offset, such as 2026-12-31T00:00:00Z"
        findings.append(Finding(document.path, front.lines.get("stale_after", 1), "date-invalid", message))
    return replace(
        document,
        type=text(metadata.get("type")),
        tags=okf.tags(metadata.get("tags")),
        verified_at=text(verified.get("at")) if okf.instant(verified.get("at")) else None,
        verified_by=text(verified.get("by")) or None,
        confidence=okf.trust_tier(metadata.get("verified")),
        expires_at=expires and expires.isoformat(),
    )


def _faults(file: SourceFile, front: Frontmatter, findings: list[Finding]) -> Iterator[Finding]:
    """Why a file is no concept, unless the YAML's or the encoding's own error says so."""
    if any(finding.code in ("yaml-invalid", "encoding-utf16") for finding in findings):
        return
    unread = next((finding for finding in findings if finding.code in _NO_METADATA), None)
    if unread or not front.metadata:
        is_side = PurePosixPath(file.path).stem.upper() in _SIDE_FILES
        code = "okf-side-file" if is_side else "okf-frontmatter-missing"
        yield Finding(file.path, unread.line if unread else 1, code, unread.message if unread else "no frontmatter")
    elif not text(front.metadata.get("type")):
        value = front.metadata.get("type")
        found = "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else "nothing"
        message = f"type: expected text, found {found}"
        yield Finding(file.path, front.lines.get("type", 1), "okf-type-missing", message)


def _ignored(root: Path, identity: Identity) -> Callable[[str], bool]:
    """Whether a path is left out by `.okfignore`, or by `ignore` in `pack.yaml`; the last pattern that fits decides."""
    written = identity.metadata.get("ignore")
    items = cast(list[Any], written) if isinstance(written, list) else [] if written is None else [written]
    patterns = [item.strip() for item in items if isinstance(item, str)]
    if len(patterns) < len(items):
        identity.refuse("ignore", "expected a list of patterns")
    lines = _head(root / IGNORE_FILE).decode("utf-8-sig", "replace").splitlines()
    patterns = [*(line.strip() for line in lines if not line.startswith("#")), *patterns]
    patterns = list(filter(None, patterns))
    if len(patterns) > MAX_PATTERNS:
        message = f"{len(patterns)} patterns, only the first {MAX_PATTERNS} are used"
        identity.findings.append(Finding(IGNORE_FILE, 0, "okf-ignore-limit", message))
    rules = [(not pattern.startswith("!"), pattern.removeprefix("!")) for pattern in patterns[:MAX_PATTERNS]]

    def is_ignored(path: str) -> bool:
        return next((ignores for ignores, pattern in reversed(rules) if _fits(pattern, path)), False)

    return is_ignored


def _fits(pattern: str, path: str) -> bool:
    """Whether a pattern names a path or a folder above it: any part of it, or with a `/` inside the whole from the
    root. As Python's fnmatch has it, `*` stands for `/` too.
    """
    parts = PurePosixPath(path).parts
    bare = pattern.strip("/")
    if "/" in bare or pattern.startswith("/"):
        return any(fnmatchcase("/".join(parts[: end + 1]), bare) for end in range(len(parts)))
    return any(fnmatchcase(part, bare) for part in (parts[:-1] if pattern.endswith("/") else parts))


def _recognises(root: Path) -> bool:
    """A root `index.md` with `okf_version`; else, without a `pack.yaml`, files that have a `type`: three of four beside
    a root `index.md`, or all of them. As a bundle, a folder that is none would lose what has no type from the search.
    """
    if b"okf_version" in _head(root / INDEX):
        return "okf_version" in read_frontmatter(INDEX, _head(root / INDEX)).metadata
    if (root / PACK_FILE).is_file():
        return False
    names = [name for name in list_files(root) if name.endswith(".md") and not okf.is_reserved(name)]
    names = [name for name in names if PurePosixPath(name).stem.upper() not in _SIDE_FILES]
    names = names[:: 1 + len(names) // _HEADS]
    metadata = (read_frontmatter(name, _head(root / name)).metadata for name in names)
    # a pack: an ExpertPack's that has lost its manifest
    typed = sum(bool(each.get("type")) and "pack" not in each for each in metadata)
    enough = len(names) * 3 / 4 if (root / INDEX).is_file() else len(names)
    return bool(names) and typed >= enough


def _head(file: Path) -> bytes:
    """The beginning of a file of the bundle; nothing of what may lie outside or cannot be read."""
    try:
        if file.is_symlink() or not file.is_file():
            return b""
        with file.open("rb") as opened:
            return opened.read(_HEAD_BYTES)
    except OSError:
        return b""


def _slug(root: Path, options: Options) -> str:  # every adapter's signature
    return pack_slug(read_identity(root), root)


ADAPTER = Adapter("okf", _recognises, _slug, read)
