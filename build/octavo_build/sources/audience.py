"""Who may read a file: `sensitivity` in its frontmatter, and a pack's `_access.json` (ExpertPack person packs).

Only what is public goes into a release (`released`). Where the two disagree, or cannot be understood, the narrower
audience counts: a private story that stays out can be built later, one that got out cannot be taken back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from octavo_build.findings import Finding
from octavo_build.pack import Pack

AUDIENCES = ("public", "friends", "family", "self")
"""From the widest to the narrowest."""
ACCESS_FILE = "_access.json"


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


def released(pack: Pack) -> Pack:
    """The pack as it may be released: without the files that are not public, their names, and what is wrong with them.

    Their number is a finding; so is, by name, what could not be understood of their audience.
    """
    withheld = {document.path for document in pack.documents if document.audience != AUDIENCES[0]}
    if not withheld:
        return pack
    kept = [each for each in pack.findings if each.path not in withheld or each.code == "access-invalid"]
    told = Finding("", 0, "audience-withheld", f"{len(withheld)} files are for {', '.join(AUDIENCES[1:])} only")
    return replace(
        pack,
        documents=tuple(document for document in pack.documents if document.path not in withheld),
        entry_point=None if pack.entry_point in withheld else pack.entry_point,
        findings=tuple(sorted([*kept, told])),
    )
