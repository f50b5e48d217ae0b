"""The lexical index: one Tantivy segment that is the same, byte for byte, in every build.

Tantivy names segments at random and lists files in random order; the content of a segment written by one thread in
one commit is reproducible. So the index is built that way and then renamed after its content.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import tantivy
from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from octavo_artifact.errors import ArtifactError
from octavo_artifact.ids import canonical_json, folders_of, sha256_file
from octavo_artifact.literals import literals_of
from octavo_artifact.text import ANALYZER, DEFAULT_LANGUAGE, FIELD, LITERALS, terms_of

# Only a threshold at which Tantivy would flush a first segment; memory is taken as it is needed. Tantivy allows 4 GiB.
_HEAP_BYTES = 4_000_000_000
_META = "meta.json"
_MANAGED = ".managed.json"


@dataclass(frozen=True, slots=True)
class LexicalRow:
    """One passage as the index has it; the n-th row becomes Tantivy's document n."""

    text: str
    """Made by `octavo_artifact.text.lexical_text`."""
    type: str | None
    tags: tuple[str, ...]
    path: str
    document: int
    """Row of the document."""
    hit: str
    """Canonical JSON of all that the server returns for the passage."""
    language: str = DEFAULT_LANGUAGE
    tier: str = "searchable"
    verified_on: date | None = None
    tokens: int = 0
    """Estimate, of what is visible."""


def write_lexical(directory: Path, rows: Iterable[LexicalRow]) -> None:
    """Write the index of `rows` to `directory`, which must not exist; no rows give an index without a segment.

    Raises ArtifactError when the rows did not fit one segment.
    """
    directory.mkdir(parents=True)
    index = tantivy.Index(_schema(), str(directory))
    writer = index.writer(_HEAP_BYTES, num_threads=1)
    for row in rows:
        writer.add_document(_document(row))
    writer.commit()
    writer.wait_merging_threads()
    _canonicalise(directory)


def stem(text: str, stemmer: str) -> list[str]:
    """See `octavo_artifact.text.Stem`; the server has the same lines, and a test compares the two."""
    return _analyzer(stemmer).analyze(text)


@cache
def _analyzer(stemmer: str) -> TextAnalyzer:
    builder = TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.remove_long(40)).filter(Filter.lowercase())
    return (builder.filter(Filter.stemmer(stemmer)) if stemmer else builder).build()


def _schema() -> tantivy.Schema:
    schema = tantivy.SchemaBuilder().add_text_field(FIELD, tokenizer_name=ANALYZER, index_option="position")
    for name in (LITERALS, "type", "tags", "path", "folders", "tier"):
        schema.add_text_field(name, tokenizer_name="raw", index_option="basic")
    schema.add_unsigned_field("document", fast=True).add_unsigned_field("tokens", fast=True)
    schema.add_integer_field("verified_day", fast=True)
    # Bytes, because Tantivy's Python schema has no text field that is stored and not indexed.
    return schema.add_bytes_field("hit", stored=True).build()


def _document(row: LexicalRow) -> tantivy.Document:
    document = tantivy.Document()
    document.add_text(FIELD, " ".join(terms_of(row.text, row.language, stem)))
    for literal in literals_of(row.text):
        document.add_text(LITERALS, literal)
    if row.type is not None:
        document.add_text("type", row.type)
    for tag in row.tags:
        document.add_text("tags", tag)
    document.add_text("path", row.path)
    for folder in folders_of(row.path):
        document.add_text("folders", folder)
    document.add_text("tier", row.tier)
    if row.verified_on is not None:
        document.add_integer("verified_day", row.verified_on.toordinal())
    document.add_unsigned("document", row.document)
    document.add_unsigned("tokens", row.tokens)
    document.add_bytes("hit", row.hit.encode())
    return document


def _canonicalise(directory: Path) -> None:
    meta: dict[str, Any] = json.loads((directory / _META).read_bytes())
    if len(meta["segments"]) > 1:
        raise ArtifactError(f"{directory.name}: {len(meta['segments'])} segments, expected one; the pack is too large")
    files: list[str] = []
    for segment in meta["segments"]:
        parts = sorted(directory.glob(f"{uuid.UUID(segment['segment_id']).hex}.*"))
        name = _content_id(parts)
        segment["segment_id"] = str(name)
        files += [part.rename(part.with_stem(name.hex)).name for part in parts]
    (directory / _META).write_bytes(canonical_json(meta))
    (directory / _MANAGED).write_bytes(canonical_json(sorted([*files, _META])))
    for lock in directory.glob("*.lock"):
        lock.unlink()
    for file in directory.iterdir():
        file.chmod(0o644)
    directory.chmod(0o755)


def _content_id(parts: Iterable[Path]) -> uuid.UUID:
    """The segment's name: Tantivy accepts any 128 bits."""
    content = {part.suffix: sha256_file(part) for part in parts}
    return uuid.UUID(bytes=hashlib.sha256(canonical_json(content)).digest()[:16])
