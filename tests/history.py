"""A pack with several releases, and how a dist changes under a server."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from octavo_artifact.layout import POINTER


@dataclass(frozen=True, slots=True)
class History:
    """A dist whose pack `tiny` has three releases, by their digests."""

    dist: Path
    first: str
    second: str
    third: str

    def copied(self, target: Path) -> History:
        """The same elsewhere, to be changed."""
        return replace(self, dist=shutil.copytree(self.dist, target))

    def point(self, digest: str) -> None:
        """Make a release of `tiny` current."""
        rename_over(self.dist / "tiny" / POINTER, json.dumps({"digest": digest}).encode())

    def report(self, digest: str) -> Path:
        """The file of a release that is verified, and not needed to answer."""
        return self.dist / "tiny" / digest / "report.json"


def rename_over(path: Path, content: bytes) -> None:
    """Replace a file as a whole."""
    aside = path.with_name(f".{path.name}.new")
    aside.write_bytes(content)
    os.replace(aside, path)
