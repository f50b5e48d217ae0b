"""Any folder of Markdown as a pack.

An optional `pack.yaml` names it (slug, name, version, description); otherwise the folder does.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from octavo_build.pack import Pack
from octavo_build.sources.adapter import Adapter, Options
from octavo_build.sources.documents import read_document, with_unique_ids
from octavo_build.sources.files import read_files
from octavo_build.sources.identity import pack_slug, read_identity


def read(root: Path, options: Options) -> Pack:  # every adapter's signature
    """Read the folder `root`; every Markdown file under it becomes a document."""
    identity = read_identity(root)
    metadata, findings = identity.metadata, identity.findings
    slug = pack_slug(identity, root)
    files, walked = read_files(root)
    findings += walked
    documents = []
    for file in files:
        document, _, found = read_document(file, slug, second_block=False, needs_frontmatter=False)
        # in other people's frontmatter `requires` and `related` mean what they like
        documents.append(replace(document, requires=(), related=()))
        findings += found
    unique, duplicates = with_unique_ids(slug, documents)
    entry = next((d.path for name in ("index.md", "README.md") for d in unique if d.path == name), None)
    return Pack(
        slug=slug,
        name=identity.text("name") or root.resolve().name,
        type=identity.text("type") or "docs",
        version=identity.text("version") or "0",
        description=identity.text("description") or "",
        entry_point=entry,
        source_format="docs",
        retrieval=identity.retrieval(),
        metadata=metadata,
        documents=unique,
        findings=tuple(sorted(findings + duplicates)),
    )


def _slug(root: Path, options: Options) -> str:  # every adapter's signature
    return pack_slug(read_identity(root), root)


ADAPTER = Adapter("docs", lambda root: True, _slug, read)  # whatever nobody else recognises
