"""Any folder of documentation as a pack, written for whichever site generator.

An optional `pack.yaml` names it (slug, name, version, description, language) and says what of it is read (include,
exclude, drafts); otherwise the folder does.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from octavo_artifact.schema import Document
from octavo_build.bodies import MIME_TYPES
from octavo_build.findings import Finding
from octavo_build.pack import Pack
from octavo_build.sources.adapter import Adapter, Options
from octavo_build.sources.documents import (
    INDEXES,
    Fields,
    is_index,
    read_document,
    title_from,
    with_unique_ids,
)
from octavo_build.sources.files import read_files
from octavo_build.sources.identity import Identity, pack_slug, read_identity
from octavo_build.sources.language import language_tag, languages_by_path
from octavo_build.sources.mkdocs import Site, read_site
from octavo_build.sources.selection import read_selection
from octavo_build.values import truth

DESCRIPTIONS = ("description", "summary", "excerpt")
TAGS = ("tags", "keywords", "categories")
LABELS = ("sidebar_label", "linkTitle", "nav_title")
"""Short names for a menu; a page without title or heading goes by them."""

DRAFTS = "_drafts"
"""A folder of Jekyll's, all of whose pages are drafts."""

EVERYWHERE = 20
"""Files with the same habit of an editor (CRLF, a byte order mark) that are told one by one; more are one finding."""
_HABITS = frozenset({"bom", "crlf"})


@dataclass(frozen=True, slots=True)
class _Folder:
    """What holds for all pages of a folder."""

    name: str
    site: Site
    languages: Mapping[str, str]
    """By path."""
    language: str | None
    """Of the pages that nothing else is known of."""


def read(root: Path, options: Options) -> Pack:  # every adapter's signature
    """Read the folder `root`; every text under it that is meant to be read becomes a document."""
    identity = read_identity(root)
    findings = identity.findings
    slug = pack_slug(identity, root)
    site = read_site(root, findings)
    name = identity.text("name") or site.name or root.resolve().name
    files, walked = read_files(root, suffixes=("",), selection=read_selection(root, identity))
    findings += walked
    if not files and identity.metadata.get("include"):
        identity.refuse("include", "no file of the folder matches", "manifest-path")
    folder = _Folder(name, site, languages_by_path(file.path for file in files), _pack_language(identity))
    with_drafts = identity.flag("drafts")
    documents: list[Document] = []
    drafts = 0
    for file in files:
        document, front, found = read_document(file, slug, second_block=False, needs_frontmatter=False, relations=False)
        # in other people's frontmatter a field of another kind is no mistake
        fields = Fields(file.path, front, [])
        if _is_draft(file.path, fields) and not with_drafts:
            drafts += 1
            continue
        documents.append(_page(document, fields, folder))
        findings += found
        if _is_unlisted(fields):
            findings.append(Finding(file.path, front.lines.get("unlisted", 1), "unlisted", "it can be read only"))
    if drafts:
        findings.append(Finding("", 0, "draft-omitted", f"{drafts} drafts"))
    unique, _ = with_unique_ids(slug, _with_own_ids(documents))
    return Pack(
        slug=slug,
        name=name,
        type=identity.text("type") or "docs",
        version=identity.text("version") or "0",
        description=identity.text("description") or site.description,
        entry_point=_entry(unique),
        source_format="docs",
        retrieval=identity.retrieval(),
        metadata=identity.metadata,
        documents=unique,
        findings=tuple(sorted(_told_once(findings))),
    )


def _page(document: Document, fields: Fields, folder: _Folder) -> Document:
    """The document with what site generators would make of its fields."""
    said = (language_tag(fields.text(key)) for key in ("lang", "language"))
    languages = (*said, document.language, folder.languages.get(document.path), folder.language)
    return replace(
        document,
        title=_label(document, fields, folder) or document.title,
        description=next(filter(None, map(fields.text, DESCRIPTIONS)), document.description),
        tags=tuple(dict.fromkeys(tag for key in TAGS for tag in fields.texts(key))),
        searchable=document.searchable and not _is_unlisted(fields),
        language=next(filter(None, languages), None),
    )


def _is_draft(path: str, fields: Fields) -> bool:
    """As Hugo, Docusaurus and Jekyll say it."""
    return (
        truth(fields.text("draft")) is True
        or truth(fields.text("published")) is False
        or DRAFTS in PurePosixPath(path).parts[:-1]
    )


def _is_unlisted(fields: Fields) -> bool:
    """As Docusaurus says it of a page that only those see who know where it is."""
    return truth(fields.text("unlisted")) is True


def _label(document: Document, fields: Fields, folder: _Folder) -> str | None:
    """What menus call a page that has neither title nor heading; the first page goes by the pack's name."""
    if document.title != title_from(document.path):
        return None
    labels = (*map(fields.text, LABELS), folder.site.titles.get(document.path))
    return next(filter(None, labels), None) or (folder.name if _is_entry(document.path) else None)


def _pack_language(identity: Identity) -> str | None:
    written = identity.text("language")
    tag = language_tag(written, known=False)
    if written and not tag:
        identity.refuse("language", f"{written!r} is no BCP-47 tag such as en or pt-BR")
    return tag


def _with_own_ids(documents: Sequence[Document]) -> Iterator[Document]:
    """Ids that several pages have are none: site generators want them unique in a folder, if at all."""
    count = Counter(document.id for document in documents)
    return (replace(each, id="") if count[each.id] > 1 else each for each in documents)


def _is_entry(path: str) -> bool:
    return "/" not in path and is_index(path)


def _entry(documents: Iterable[Document]) -> str | None:
    """The page to read first: at the top, by its name, then by its kind."""
    kinds = list(MIME_TYPES)

    def rank(path: str) -> tuple[int, int, str]:
        stem, suffix = PurePosixPath(path.casefold()).stem, PurePosixPath(path.casefold()).suffix
        return INDEXES.index(stem), kinds.index(suffix) if suffix in kinds else len(kinds), path

    return min((each.path for each in documents if _is_entry(each.path)), key=rank, default=None)


def _told_once(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings, but one for a habit that many files have."""
    of_habit: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.code in _HABITS:
            of_habit[finding.code].append(finding)
        else:
            yield finding
    for code, found in of_habit.items():
        if len(found) <= EVERYWHERE:
            yield from found
        else:
            yield Finding("", 0, code, f"{len(found)} files, the first of them {min(found).path}")


def _slug(root: Path, options: Options) -> str:  # every adapter's signature
    return pack_slug(read_identity(root), root)


ADAPTER = Adapter("docs", lambda root: True, _slug, read)  # whatever nobody else recognises
