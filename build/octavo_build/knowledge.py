"""`octavo knowledge`: a repository's own knowledge, compiled and served to the MCP client that started this.

The compiler's process becomes the server's: they share nothing but the folder of releases, and the client sees one
process whose standard output holds the protocol only.
"""

from __future__ import annotations

import os
import shutil
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from octavo_artifact.errors import ConfigError, OctavoError
from octavo_artifact.ids import DIGEST, canonical_json, sha256_hex
from octavo_artifact.layout import POINTER
from octavo_artifact.manifest import read_pointer
from octavo_build import source_options

KEPT = 4
"""Releases of a repository that stay in the cache; servers of earlier sessions may still read the older ones."""


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `octavo knowledge`."""
    parser.add_argument(
        "repositories", nargs="*", type=Path, default=[Path()], metavar="REPO", help="folder in a repository (.)"
    )
    source_options.add_repository(parser)
    parser.add_argument("--build-only", action="store_true", help="compile and end, so that the first start is quick")
    parser.set_defaults(source_format="repository")


def run(arguments: Namespace) -> int:
    """Compile, then become the server. Raises OctavoError when there is no release to serve."""
    from octavo_build.sources import slug_of
    from octavo_build.sources.repository import top_level

    options = source_options.options_of(arguments)
    missing = [folder for folder in arguments.repositories if not folder.is_dir()]
    if missing:
        raise ConfigError(f"{missing[0]}: not a folder; expected one in a repository")
    tops = sorted({top_level(folder) for folder in arguments.repositories})
    cache = cache_folder([(slug_of(top, options), top) for top in tops], options, os.environ)
    with _stdout_kept_clean():
        _compile(tops, options, cache)
    if not arguments.build_only:
        sys.stderr.flush()
        # -P: a folder of the repository may have the name of a module
        os.execv(sys.executable, [sys.executable, "-P", "-m", "octavo_serve", "stdio", str(cache / "dist")])
    return 0


def cache_folder(
    repositories: Sequence[tuple[str, Path]], options: Mapping[str, str], environment: Mapping[str, str]
) -> Path:
    """Where releases of these repositories (slug, top level), read in this way, are kept: in the user's cache.

    Another owner or other roots have a folder of their own, so that no server finds a release it was not asked for.
    """
    given = environment.get("XDG_CACHE_HOME", "")
    base = Path(given) if os.path.isabs(given) else Path.home() / ".cache"  # a relative one is to be ignored
    key = canonical_json([[[slug, ascii(str(top))] for slug, top in repositories], sorted(options.items())])
    return base / "octavo" / sha256_hex(key)[:32]


def _compile(tops: Sequence[Path], options: Mapping[str, str], cache: Path) -> None:
    """Bring the releases up to date. One that cannot be built is told, and its last release stays."""
    from octavo_build.progress import make_progress
    from octavo_build.tasks import Build, run
    from octavo_build.workers import Workers

    dist = cache / "dist"
    with Workers() as workers, make_progress(bars=False) as progress:
        encoder = source_options.encoder_of(Namespace())
        build = Build(tops, dist, cache / "state", workers, progress, options=options, encoder=encoder)
        slugs = build.slugs()
        build.encoders()
        code = run(build)
    for slug, failure in build.failures.items():
        print(f"octavo: {slug}: {failure}", file=sys.stderr)
    for slug in slugs:
        _forget(dist / slug)
    without = [slug for slug in slugs if not (dist / slug / POINTER).exists()]
    if without or (code and not build.failures):
        raise OctavoError(f"knowledge: {', '.join(without) or 'the build'} failed; nothing is served")


def _forget(pack: Path) -> None:
    """Remove all but the last releases: this folder is a cache, and nobody rolls it back."""
    from octavo_artifact.placing import exclusive

    if not (pack / POINTER).exists():
        return
    with exclusive(pack):
        current = read_pointer(pack)
        releases = sorted((path.stat().st_mtime_ns, path) for path in pack.iterdir() if DIGEST.fullmatch(path.name))
        for _, release in releases[:-KEPT]:
            if release.name != current:
                shutil.rmtree(release)


@contextmanager
def _stdout_kept_clean() -> Generator[None]:
    """Send to standard error what any library or process of the build prints: standard output is the client's."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
