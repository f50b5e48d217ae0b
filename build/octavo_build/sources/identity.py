"""What a pack's manifest says of the pack, checked field by field; a bad field costs only itself."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from octavo_artifact.errors import ConfigError
from octavo_artifact.ids import SLUG
from octavo_artifact.parameters import DEFAULTS, read_retrieval
from octavo_build.findings import Finding
from octavo_build.frontmatter import read_yaml
from octavo_build.values import truth

PACK_FILE = "pack.yaml"
"""Says what a folder's own format leaves open: its format, slug, name, version, description."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Typed access to a manifest; findings are appended to the list it was given."""

    file: str
    metadata: dict[str, Any]
    findings: list[Finding]

    def text(self, key: str, *, required: bool = False) -> str | None:
        """The field as text, or None with a finding when it is missing though required, or of another kind."""
        value = self.metadata.get(key)
        if isinstance(value, str) and value.strip():
            return value.strip()
        if value is not None and not isinstance(value, str):
            self.refuse(key, "expected one value")
        elif required:
            self.refuse(key, "missing")
        return None

    def retrieval(self) -> dict[str, Any]:
        """The parameters of the search that `retrieval` gives, all named; one that cannot be used is a finding."""
        written = self.metadata.get("retrieval", {})
        if not isinstance(written, dict):
            self.refuse("retrieval", "expected a mapping")
            return asdict(DEFAULTS)
        usable: dict[str, Any] = {}
        for name, value in cast(dict[str, Any], written).items():
            try:
                read_retrieval({**usable, name: value})
            except ConfigError as error:
                self.refuse("retrieval", str(error))
            else:
                usable[name] = value
        return asdict(read_retrieval(usable))

    def texts(self, key: str) -> tuple[str, ...]:
        """The field as a list of texts (one alone is a list too); empty, with a finding, when it is of another kind."""
        value = self.metadata.get(key)
        items = cast(list[Any], value) if isinstance(value, list) else [] if value is None else [value]
        if all(isinstance(item, str) for item in items):
            return tuple(items)
        self.refuse(key, "expected a list of values")
        return ()

    def flag(self, key: str) -> bool:
        """Whether the field says yes; no, with a finding, when it is of another kind."""
        value = self.metadata.get(key)
        if value is not None and truth(value) is None:
            self.refuse(key, "expected true or false")
        return truth(value) is True

    def refuse(self, key: str, message: str, code: str = "manifest-field") -> None:
        """Record that a field cannot be used."""
        self.findings.append(Finding(self.file, 0, code, f"{key}: {message}"))


def read_identity(root: Path, name: str = PACK_FILE) -> Identity:
    """What the file `name` says of the pack in `root`; nothing when there is none."""
    file = root / name
    if not file.is_file():
        return Identity(name, {}, [])
    try:
        front = read_yaml(name, file.read_bytes())
    except OSError as error:
        return Identity(name, {}, [Finding(name, 0, "file-unreadable", error.strerror or "cannot be read")])
    return Identity(name, front.metadata, list(front.findings))


def pack_slug(identity: Identity, root: Path, *, required: bool = False) -> str:
    """The pack's slug: from its manifest, else made from the folder's name.

    Slugs are ASCII (`[a-z0-9]+(-[a-z0-9]+)*`): they name folders, URIs and endpoints.
    """
    written = identity.text("slug", required=required)
    if written and SLUG.fullmatch(written):
        return written
    made = ascii_slug(written or root.resolve().name) or "pack"
    if written:
        message = f"{written!r} is not of the form a-b-c (a-z, 0-9 and hyphens); {made!r} is used"
        identity.refuse("slug", message, "manifest-slug")
    return made


def ascii_slug(text: str) -> str:
    """A slug of what of `text` is ASCII or has an ASCII letter at its base; may be empty."""
    folded = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", folded).strip("-")
