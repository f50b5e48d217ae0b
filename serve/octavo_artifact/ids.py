"""Names that build and server must spell alike: canonical JSON, digests, slugs, URIs and fragment ids."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
DIGEST = re.compile(r"[0-9a-f]{64}")

KNOWLEDGE = "knowledge://"
"""Begins the URIs of what knowledge repositories export; those of packs begin with `ep://`."""

# RFC 3986 pchar and "/", without "%": what may stand in the path of a URI as it is.
_URI_PATH_SAFE = "/-._~!$&'()*+,;=:@"


def canonical_json(value: Any) -> bytes:
    """JSON with sorted keys, no spaces, UTF-8 and a final newline: equal values give equal bytes."""
    return (json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


def sha256_hex(data: bytes) -> str:
    """Hex sha256 of `data`."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """Hex sha256 of a file, read in blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def slugify(text: str) -> str:
    """A slug of letters and digits of any script joined by single hyphens; may be empty."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return re.sub(r"[\W_]+", "-", folded).strip("-")


def document_uri(slug: str, path: str) -> str:
    """The MCP resource URI of a pack's file; reversible for every path, however odd its characters."""
    return f"ep://{slug}/file/{uri_path(path)}"


def uri_path(path: str) -> str:
    """A pack's path as it stands in a URI."""
    return quote(path, safe=_URI_PATH_SAFE)


def knowledge_uri(owner: str, type_slug: str, name: str) -> str:
    """The MCP resource URI of a document that a knowledge repository exports, named by its id."""
    return f"{KNOWLEDGE}{quote(owner, safe='')}/{quote(type_slug, safe='')}/{quote(name, safe=_URI_PATH_SAFE)}"


def normal_uri(uri: str) -> str:
    """The spelling that this module gives a URI, whatever is percent-encoded in it."""
    return quote(unquote(uri), safe=_URI_PATH_SAFE)


def folders_of(path: str) -> list[str]:
    """The folders that a path is in, outermost first, without a slash at the end."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[: depth + 1]) for depth in range(len(parts))]


def fragment_id(document_id: str, section: str, span_sha256: str) -> str:
    """`{id}#{section or "opening"}:{first 12 hex digits of the span's sha256}` (ExpertPack RFC-003)."""
    return f"{document_id}#{section or 'opening'}:{span_sha256[:12]}"
