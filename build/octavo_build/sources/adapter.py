"""What a source format is to the rest of the compiler: an adapter, with one signature for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from octavo_build.pack import Pack
from octavo_build.sources.files import list_files

Options = Mapping[str, str]
"""What a command line says over what stands in the folder, by the name of its flag; mostly empty."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """One source format. Its functions read the folder and nothing else, and want no clock."""

    name: str
    """As `format` in `pack.yaml`, on the command line and in the artifact's manifest."""
    recognises: Callable[[Path], bool]
    """Whether a folder that does not say its format is of this one."""
    slug: Callable[[Path, Options], str]
    """The slug that `read` will give, without reading the documents."""
    read: Callable[[Path, Options], Pack]
    """The pack in a folder. What is wrong with a file or a field is a finding, not an error."""
    files: Callable[[Path, Options], list[Path]] = lambda root, options: [root / path for path in list_files(root)]
    """Every path that `read` may look at, sorted; for the build's own bookkeeping."""
    home: Callable[[Path], Path] = lambda root: root
    """The folder to which the paths of the documents and findings are relative."""
