"""A document cut: its passages, their text and windows, and its outline. Cut once for each content."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from itertools import islice
from typing import Any

from tokenizers import Tokenizer

from octavo_artifact.ids import canonical_json
from octavo_artifact.schema import Document, Passage, Section
from octavo_artifact.text import heading_line
from octavo_build.bodies import format_of
from octavo_build.content_cache import ContentCache
from octavo_build.findings import Finding
from octavo_build.freshness import with_expiry
from octavo_build.languages import guess, language_of
from octavo_build.passages import PassageText, outline, passages_of
from octavo_build.plain import plain_text
from octavo_build.windows import LIMITS, WindowLimits, windows_of

BATCH = 64
"""Documents for which the cache is read and written at once."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What became of one document."""

    passages: tuple[PassageText, ...]
    windows: tuple[tuple[str, ...], ...]
    """Of each passage."""
    sections: tuple[Section, ...]
    findings: tuple[Finding, ...]


def cut_documents(
    documents: Iterable[Document],
    tokenizer: Tokenizer,
    cache: ContentCache,
    identity: str,
    limits: WindowLimits = LIMITS,
) -> Iterator[Cut]:
    """Cut every searchable document, in order; those that were cut before are taken from `cache`.

    `identity` names the compiler and the encoder, and so the limits: what decides a cut besides the document. Only so
    many documents and cuts are held at a time as the cache is asked for at once.
    """
    searchable = ((row, document) for row, document in enumerate(documents) if document.searchable)
    while batch := list(islice(searchable, BATCH)):
        yield from _cut_batch(batch, tokenizer, cache, identity, limits)


def _cut_batch(
    searchable: Sequence[tuple[int, Document]],
    tokenizer: Tokenizer,
    cache: ContentCache,
    identity: str,
    limits: WindowLimits,
) -> Iterator[Cut]:
    keys = {row: _key(document, identity) for row, document in searchable}
    known = cache.read(list(keys.values()))
    made: dict[bytes, bytes] = {}
    for row, document in searchable:
        key = keys[row]
        if key in known:
            yield _load(known[key], row)
        else:
            cut = _cut(document, row, tokenizer, limits)
            made[key] = canonical_json(asdict(cut))
            yield cut
    cache.write(made)


def _key(document: Document, identity: str) -> bytes:
    decides: list[object] = [identity, document.path, document.title, document.strategy]
    decides += [document.body_offset, document.file_sha256]
    decides += [document.mime_type, document.marks, document.chunks, document.language]
    return sha256(canonical_json(decides)).digest()


def _cut(document: Document, row: int, tokenizer: Tokenizer, limits: WindowLimits) -> Cut:
    passages, findings = passages_of(document, row)
    passages = _with_language(document, with_expiry(document, passages))
    lines = (heading_line(document.title, each.passage.heading_path) for each in passages)
    texts = (plain_text(each.visible) if format_of(document).marked else each.visible for each in passages)
    windows = (tuple(windows_of(tokenizer, line, text, limits)) for line, text in zip(lines, texts, strict=True))
    return Cut(tuple(passages), tuple(windows), tuple(outline(document, row)), tuple(findings))


def _with_language(document: Document, passages: Sequence[PassageText]) -> list[PassageText]:
    of_document = language_of(document.language, "\n".join(each.visible for each in passages))
    told = (None if document.language else guess(each.visible) for each in passages)
    return [
        replace(each, passage=replace(each.passage, language=language or of_document))
        for each, language in zip(passages, told, strict=True)
    ]


def _load(data: bytes, row: int) -> Cut:
    fields: dict[str, Any] = json.loads(data)
    return Cut(
        passages=tuple(
            PassageText(_passage(each["passage"], row), each["text"], each["visible"]) for each in fields["passages"]
        ),
        windows=tuple(tuple(windows) for windows in fields["windows"]),
        sections=tuple(replace(Section(**each), document=row) for each in fields["sections"]),
        findings=tuple(Finding(**finding) for finding in fields["findings"]),
    )


def _passage(fields: dict[str, Any], row: int) -> Passage:
    return replace(Passage(**fields), document=row, heading_path=tuple(fields["heading_path"]))
