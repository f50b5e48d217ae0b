"""Source formats: which adapter reads a folder, and the registry of them.

An adapter is one function `read(root) -> Pack`. `detect` picks it by what stands in the folder.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from octavo_artifact.errors import ConfigError
from octavo_build.frontmatter import read_yaml
from octavo_build.pack import Pack
from octavo_build.sources import docs, expertpack
from octavo_build.sources.identity import Identity, pack_slug

ADAPTERS: dict[str, Callable[[Path], Pack]] = {
    "expertpack": expertpack.read,
    "docs": docs.read,
}


def detect(root: Path) -> str:
    """Name of the adapter for a folder: an ExpertPack has a `manifest.yaml`, any other folder is `docs`."""
    return "expertpack" if (root / expertpack.MANIFEST).is_file() else "docs"


def slug_of(root: Path) -> str:
    """The slug that the pack in `root` will have, from its manifest alone.

    Raises ConfigError when there is no such folder.
    """
    if not root.is_dir():
        raise ConfigError(f"{root}: not a folder; expected a pack (a folder of Markdown)")
    name = {"expertpack": expertpack.MANIFEST, "docs": docs.MANIFEST}[detect(root)]
    file = root / name
    metadata = read_yaml(name, file.read_bytes()).metadata if file.is_file() else {}
    return pack_slug(Identity(name, metadata, []), root)


def read(root: Path) -> Pack:
    """Read the pack in `root`."""
    return ADAPTERS[detect(root)](root)
