"""How files are named and laid out in a member's folders."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from octavo_build.findings import Finding
from octavo_build.lint.subject import INDEX, Member, Page, Subject
from octavo_build.values import mapping, text

PERSON_PREFIXES = {
    "facts": "facts-", "meta": "meta-", "mind": "mind-", "relationships": "rel-",
    "presentation": "pres-", "presentation/appearance": "pres-appearance-", "presentation/voice": "pres-voice-",
    "stories": "story-", "reflections": "refl-", "opinions": "opn-", "conversations": "conv-",
}  # fmt: skip
COVERAGE = "meta/source-coverage.md"
"""Has this name in every pack, whatever prefix its folder has."""


def check_names(subject: Subject) -> Iterator[Finding]:
    """Each file name once in a member, with the prefix of its folder."""
    for member in subject.members:
        first: defaultdict[str, list[Page]] = defaultdict(list)
        for page in member.content:
            first[page.name].append(page)
        for name, pages in first.items():
            if len(pages) > 1:
                others = ", ".join(page.path for page in pages[:5])
                yield pages[1].finding("duplicate-basename", f"{name} is the name of {others}")
        prefixes = _prefixes(member)
        for page in member.content:
            prefix = prefixes.get(page.folder) or prefixes.get(page.folder.partition("/")[0])
            if page.folder and prefix and not page.name.startswith(prefix) and page.inner != COVERAGE:
                yield page.finding("missing-prefix", f"expected the prefix {prefix!r} in {page.folder}/")


def _prefixes(member: Member) -> Mapping[str, str]:
    written = mapping(member.manifest.get("file_prefixes")).items()
    declared = {key.strip("/"): value for key, value in written if isinstance(value, str)}
    return declared or (PERSON_PREFIXES if text(member.manifest.get("type")) == "person" else {})


def check_indexes(subject: Subject) -> Iterator[Finding]:
    """An _index.md in every folder that holds content."""
    for member in subject.members:
        folders = {page.folder for page in member.content if page.folder}
        indexed = {page.folder for page in member.pages if page.name == INDEX}
        for folder in sorted(folders - indexed):
            yield Finding(f"{member.prefix}{folder}/{INDEX}", 0, "missing-index", f"{folder}/ has no {INDEX}")


def check_relations(subject: Subject) -> Iterator[Finding]:
    """A relations.yaml beside a manifest: ontology.yaml has taken its place."""
    for member in subject.members:
        if (path := f"{member.prefix}relations.yaml") in subject.files:
            yield Finding(path, 0, "W-GRAPH-01", "relations.yaml is retired")


def check_verbatim(subject: Subject) -> Iterator[Finding]:
    """Verbatim files and their summaries, by name without prefix or by `related`, until schema 4.1 retired them."""
    for member in (member for member in subject.members if member.schema < (4, 1)):
        verbatim = _by_stem(member, "verbatim/", "vbt-")
        summaries = _by_stem(member, "summaries/", "sum-")
        for stem, page in verbatim.items():
            twin = summaries.get(stem) or _related_twin(page, summaries)
            if twin is None:
                yield page.finding("verbatim-no-summary", f"no summary is called {stem}")
            elif twin.name not in _related_names(page):
                yield page.finding("missing-vbt-to-sum", f"related does not name {twin.name}", "related")
        for stem, page in summaries.items():
            twin = verbatim.get(stem) or _related_twin(page, verbatim)
            if twin and twin.name not in _related_names(page):
                yield page.finding("missing-sum-to-vbt", f"related does not name {twin.name}", "related")


def _by_stem(member: Member, folder: str, prefix: str) -> dict[str, Page]:
    return {page.name.removeprefix(prefix): page for page in member.content if page.inner.startswith(folder)}


def _related_twin(page: Page, twins: Mapping[str, Page]) -> Page | None:
    names = _related_names(page)
    return next((twin for twin in twins.values() if twin.name in names), None)


def _related_names(page: Page) -> set[str]:
    return {PurePosixPath(reference).name for reference in page.document.related}
