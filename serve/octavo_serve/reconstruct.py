"""A hit brought back to its source: the exact bytes it stands for, and a proof that they belong to a release."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from octavo_artifact.errors import ArtifactError, RequestError
from octavo_artifact.ids import DIGEST, SLUG, sha256_file, sha256_hex
from octavo_artifact.layout import DOCUMENTS, LEXICAL
from octavo_artifact.manifest import Manifest, read_manifest
from octavo_artifact.text import unix_lines
from octavo_serve.results import Reconstruction

if TYPE_CHECKING:
    from octavo_serve.lexical import LexicalIndex

EXCERPT = 280
"""Characters of an excerpt at most."""

_AS_WRITTEN = frozenset({"text/markdown", "text/mdx", "text/x-rst", "text/plain"})
"""Types of documents whose text is shown as it stands in the file."""

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_NO_PROSE = re.compile(r"^\s*(?:#|\||```|~~~|[-=]{3,}|$)")


def reconstruct(
    raw: bytes, byte_range: tuple[int, int], span_sha256: str, file_sha256: str, shown: str | None = None
) -> Reconstruction:
    """The span of a document as it is written, and whether it is still the one that was indexed.

    The excerpt is of `shown`, the text that users see; without it, of the span.
    """
    span = raw[slice(*byte_range)]
    written = span.decode("utf-8", "replace")
    return {
        "original_markdown": written,
        "excerpt": _excerpt(written if shown is None else shown),
        "file_sha256": file_sha256,
        "stale": sha256_hex(span) != span_sha256,
    }


def prove(dist: Path, hit: Mapping[str, Any]) -> str:
    """Check that a hit says what the release it names says; returns the release's directory name under `dist`.

    The chain is: the digest vouches for the manifest, the manifest for the documents table, the table for the bytes of
    the file, the file for the span and the text. Raises RequestError for what is no hit, ArtifactError for the first
    link that does not hold.
    """
    digest, source, (start, end), span_sha256 = _claims(hit)
    found = sorted(path for path in dist.glob(f"*/{digest}") if SLUG.fullmatch(path.parent.name))
    if not found:
        raise ArtifactError(f"release {digest[:12]}: not in this dist; the hit cannot be proven here")
    manifest = read_manifest(found[0])
    raw, mime_type = document_of(found[0], manifest, source)
    if not 0 <= start <= end <= len(raw):
        raise ArtifactError(f"{source}: bytes {start} to {end}, the file has {len(raw)}")
    if sha256_hex(raw[start:end]) != span_sha256:
        raise ArtifactError(f"{source}: bytes {start} to {end} have another sha256 than the hit's span_sha256")
    if mime_type not in _AS_WRITTEN:
        _check_indexed(found[0], manifest, hit, (start, end))
        return f"{manifest.slug}/{digest}"
    added = str(hit.get("added_text") or "")
    if not _stands_in(added, raw[:start]):
        raise ArtifactError(f"{source}: the hit's added_text stands nowhere before byte {start}")
    part = "shown_range" in hit
    if "text" in hit and not _says(str(hit["text"]).removeprefix(added), raw[start:end], part=part):
        raise ArtifactError(f"{source}: the hit's text is not what bytes {start} to {end} say")
    return f"{manifest.slug}/{digest}"


def _claims(hit: Mapping[str, Any]) -> tuple[str, str, tuple[int, int], str]:
    try:
        start, end = (int(offset) for offset in hit["byte_range"])
        digest, source, span_sha256 = (str(hit[name]) for name in ("digest", "source_file", "span_sha256"))
    except (KeyError, TypeError, ValueError) as error:
        expected = "expected digest, source_file, byte_range and span_sha256"
        raise RequestError("hit", f"not a search result: {expected}") from error
    if not DIGEST.fullmatch(digest):
        raise RequestError("digest", "expected 64 hex digits")
    return digest, source, (start, end), span_sha256


def document_of(artifact: Path, manifest: Manifest, path: str) -> tuple[bytes, str]:
    """The bytes of a document and their mime type, as the release's digest vouches for them. Raises ArtifactError."""
    from pyarrow import parquet

    label, table = f"{manifest.slug}/{manifest.digest[:12]}", artifact / DOCUMENTS.file
    if sha256_file(table) != manifest.files[DOCUMENTS.file].sha256:
        raise ArtifactError(f"{label}/{DOCUMENTS.file}: sha256 is not what the manifest says")
    rows = parquet.read_table(table, columns=["path", "raw", "mime_type"], filters=[("path", "=", path)]).to_pylist()
    if not rows:
        raise ArtifactError(f"{path}: no document of {label}")
    return rows[0]["raw"], rows[0]["mime_type"]


def index_of(artifact: Path, manifest: Manifest) -> LexicalIndex:
    """The lexical index of a release, which its digest vouches for: it has what hits show. Raises ArtifactError."""
    from octavo_serve.lexical import LexicalIndex

    label = f"{manifest.slug}/{manifest.digest[:12]}"
    for path, entry in manifest.files.items():
        if path.startswith(f"{LEXICAL}/") and sha256_file(artifact / path) != entry.sha256:
            raise ArtifactError(f"{label}/{path}: sha256 is not what the manifest says")
    return LexicalIndex([artifact / LEXICAL], label, ())


def stored_passages(index: LexicalIndex, source: str, start: int, end: int) -> list[dict[str, Any]]:
    """The passages that make up these bytes of a file, in order. Raises ArtifactError where none do."""
    stored = [each for each in index.hits_of(source) if start <= each["byte_range"][0] < end]
    if not stored or [stored[0]["byte_range"][0], stored[-1]["byte_range"][1]] != [start, end]:
        raise ArtifactError(f"{source}: bytes {start} to {end} are no passages of the release")
    return stored


def _check_indexed(artifact: Path, manifest: Manifest, hit: Mapping[str, Any], byte_range: tuple[int, int]) -> None:
    """Check the text of a hit that is not shown as written: the index, vouched for too, has it for the span."""
    source, (start, end) = str(hit["source_file"]), byte_range
    stored = stored_passages(index_of(artifact, manifest), source, start, end)
    # what a hit requires comes whole, its passages joined
    added = stored[0]["added_text"] if len(stored) == 1 else ""
    text = added + "".join(each["text"].removeprefix(each["added_text"]) for each in stored)
    shown = str(hit.get("text", ""))
    if "shown_range" in hit and text.startswith(shown):
        text = shown
    for name, expected in (("text", text), ("added_text", added)):
        if hit.get(name, expected) != expected:
            raise ArtifactError(f"{source}: the hit's {name} is not what bytes {start} to {end} say")


def _says(text: str, span: bytes, *, part: bool) -> bool:
    """Whether `text` is the span as it is shown, or a part of it, its beginning: payloads of `data:` URIs elided, NUL
    and line ends replaced.
    """
    written = _shown(span)
    if text == written or (part and written.startswith(text)):
        return True
    pattern = r"data:\S*?".join(re.escape(part) for part in text.split("data:…"))
    matches = re.match if part else re.fullmatch
    return "data:…" in text and matches(pattern, written, re.IGNORECASE) is not None


def _stands_in(added: str, before: bytes) -> bool:
    """Whether the header rows of a split table stand, row for row, in what comes before its part."""
    return added.splitlines() == [] or all(row in _shown(before) for row in added.splitlines())


def _shown(data: bytes) -> str:
    return unix_lines(data.decode("utf-8", "replace").replace("\0", "\ufffd"))


def _excerpt(markdown: str) -> str:
    visible = _COMMENT.sub("", markdown)
    prose = [line.strip() for line in visible.splitlines() if not _NO_PROSE.match(line)]
    text = " ".join(prose or markdown.split())
    if len(text) <= EXCERPT:
        return text
    return text[: EXCERPT - 1].rsplit(" ", 1)[0] + "…"
