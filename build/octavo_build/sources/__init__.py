"""Source formats: which adapter reads a folder, and the registry of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from octavo_artifact.errors import ConfigError
from octavo_build.frontmatter import read_yaml
from octavo_build.pack import Pack
from octavo_build.sources import docs, expertpack, okf, repository
from octavo_build.sources.adapter import Adapter, Options
from octavo_build.sources.git import git_source
from octavo_build.sources.identity import PACK_FILE, read_identity

ADAPTERS: dict[str, Adapter] = {
    adapter.name: adapter for adapter in (expertpack.ADAPTER, okf.ADAPTER, repository.ADAPTER, docs.ADAPTER)
}
"""By name, in the order in which they are asked whether they recognise a folder; the last one always does."""

NO_OPTIONS: Options = {}


def adapter_of(root: Path, options: Options = NO_OPTIONS) -> Adapter:
    """The adapter for a folder: what `--source-format` says, else `format` in its `pack.yaml`, else who recognises it.

    Raises ConfigError when there is no such folder, or no such format.
    """
    if not root.is_dir():
        raise ConfigError(f"{root}: not a folder; expected a pack (a folder of Markdown)")
    name = options.get("format") or _written_format(root)
    if name is None:
        return next(adapter for adapter in ADAPTERS.values() if adapter.recognises(root))
    if name not in ADAPTERS:
        raise ConfigError(f"{root.name}: format {name!r}, expected one of {', '.join(ADAPTERS)}")
    return ADAPTERS[name]


def slug_of(root: Path, options: Options = NO_OPTIONS) -> str:
    """The slug that the pack in `root` will have. Raises ConfigError, as `adapter_of` does."""
    return adapter_of(root, options).slug(root, options)


def read(root: Path, options: Options = NO_OPTIONS) -> Pack:
    """Read the pack in `root`, which `git.located` gave where its documents lie elsewhere.

    Raises ConfigError, as `adapter_of` does.
    """
    pack = adapter_of(root, options).read(root, options)
    source = git_source(pack.slug, read_identity(root).metadata)
    return replace(pack, metadata={**pack.metadata, "source": source.shown}) if source else pack


def _written_format(root: Path) -> str | None:
    file = root / PACK_FILE
    written = read_yaml(PACK_FILE, file.read_bytes()).metadata.get("format") if file.is_file() else None
    return written if isinstance(written, str) else None
