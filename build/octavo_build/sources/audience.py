"""Who may read a file: `sensitivity` in its frontmatter, and a pack's `_access.json` (ExpertPack person packs).

A release holds what its audience may read and nothing else (`released`): what is not in it cannot leak, be it by a
score, a count or a link. Where the two disagree, or cannot be understood, the narrower audience counts: a private story
that stays out can be built later, one that got out cannot be taken back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from octavo_artifact.schema import AUDIENCES, Document
from octavo_build.findings import Finding
from octavo_build.pack import Pack

ACCESS_FILE = "_access.json"

_GONE = object()
"""Stands for a value that may not be told."""


@dataclass(frozen=True, slots=True)
class Access:
    """What a pack's `_access.json` says."""

    default: str
    overrides: Mapping[str, str]
    """Audience by path inside the pack."""

    def of(self, path: str) -> str:
        """The audience of the file with that path inside the pack."""
        return self.overrides.get(path, self.default)


def read_access(root: Path, shown: str, findings: list[Finding]) -> Access:
    """Read `_access.json` of the pack in `root`; one that cannot be used makes every file private."""
    file = root / ACCESS_FILE
    if not file.exists():
        return Access("public", {})
    try:
        data: Any = json.loads(file.read_bytes())
        given = cast(dict[str, Any], data)
        overrides = cast(dict[str, Any], given.get("overrides") or {})
        return Access(
            default=_known(given.get("default_access", "public")),
            overrides={path.strip("/"): _known(audience) for path, audience in overrides.items()},
        )
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        reason = str(error) if isinstance(error, _UnknownError) else "cannot be read as JSON"
        findings.append(Finding(shown, 0, "access-invalid", f"{reason}; every file counts as {AUDIENCES[-1]}"))
        return Access(AUDIENCES[-1], {})


@dataclass(frozen=True, slots=True)
class Said:
    """What a file's frontmatter says, and where."""

    sensitivity: object
    path: str
    line: int


def audience_of(said: Said, access: str, findings: list[Finding]) -> str:
    """The audience of a file: the narrower of what it says itself and what `access` grants it."""
    if said.sensitivity is None:
        return access
    try:
        return max(_known(said.sensitivity), access, key=AUDIENCES.index)
    except _UnknownError as error:
        message = f"sensitivity: {error}; it counts as {AUDIENCES[-1]}"
        findings.append(Finding(said.path, said.line, "access-invalid", message))
        return AUDIENCES[-1]


class _UnknownError(ValueError):
    pass


def _known(value: object) -> str:
    if isinstance(value, str) and value in AUDIENCES:
        return value
    raise _UnknownError(f"expected one of {', '.join(AUDIENCES)}")


def released(pack: Pack, audience: str = AUDIENCES[0]) -> Pack:
    """The pack as it may be released to `audience`: without the files for a narrower one, their names, what is wrong
    with them, and what was derived from them.

    Their number is a finding; so is, by name, what could not be understood of their audience. The pack's own audience
    is the narrowest of what remains.
    """
    admitted = AUDIENCES[: AUDIENCES.index(audience) + 1]
    kept = tuple(document for document in pack.documents if document.audience in admitted)
    narrowest = max((document.audience for document in kept), key=AUDIENCES.index, default=AUDIENCES[0])
    withheld = {document.path for document in pack.documents if document.audience not in admitted}
    if not withheld:
        return replace(pack, audience=narrowest)
    withheld |= {sidecar for sidecar, document in pack.sidecars.items() if document in withheld}
    told = Finding("", 0, "audience-withheld", _told(pack, kept, audience))
    metadata = _without(pack.metadata, withheld)
    return replace(
        pack,
        audience=narrowest,
        documents=kept,
        metadata=cast(dict[str, Any], metadata) if isinstance(metadata, dict) else {},
        entry_point=None if pack.entry_point in withheld else pack.entry_point,
        findings=tuple(sorted([*(each for each in pack.findings if _may_be_told(each, withheld)), told])),
        # made of all files, or about any of them
        extras={},
    )


def _told(pack: Pack, kept: tuple[Document, ...], audience: str) -> str:
    number = len(pack.documents) - len(kept)
    count = "1 file is" if number == 1 else f"{number} files are"
    extras = f"; {', '.join(sorted(pack.extras))} left out with them" if pack.extras else ""
    return f"{count} for a narrower audience than {audience}{extras}"


def _without(value: object, names: set[str]) -> object:
    """A manifest's value without what names one of the files; of a list, without the whole item that does."""
    if isinstance(value, dict):
        kept = {key: _without(item, names) for key, item in cast(dict[str, Any], value).items()}
        return {key: item for key, item in kept.items() if item is not _GONE}
    if isinstance(value, list):
        return [item for item in cast(list[Any], value) if not _names(item, names)]
    return _GONE if _names(value, names) else value


def _names(value: object, names: set[str]) -> bool:
    if isinstance(value, dict):
        return any(_names(item, names) for pair in cast(dict[str, Any], value).items() for item in pair)
    if isinstance(value, list):
        return any(_names(item, names) for item in cast(list[Any], value))
    # a child's manifest names its files from its own root
    return isinstance(value, str) and any(value and (name in value or name.endswith(f"/{value}")) for name in names)


def _may_be_told(finding: Finding, withheld: set[str]) -> bool:
    if finding.code == "access-invalid":
        return True
    return finding.path not in withheld and not any(path in finding.message for path in withheld)
