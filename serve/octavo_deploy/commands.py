"""`octavo bundle`, `unbundle` and `rollback`."""

from __future__ import annotations

import json
import os
import re
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any, BinaryIO

from octavo_artifact.command import Command
from octavo_artifact.errors import ConfigError
from octavo_artifact.ids import DIGEST
from octavo_artifact.layout import POINTER

_PIPE = Path("-")


def _json_argument(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _bundle_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("artifact", type=Path, metavar="ARTIFACT", help="dist/SLUG/DIGEST, or dist/SLUG; or dist")
    parser.add_argument("slug", nargs="?", metavar="SLUG", help="which pack, when ARTIFACT is a dist")
    parser.add_argument("--release", metavar="DIGEST", help="which release, by 12 or more digits (the current one)")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="file to write, - for stdout")
    parser.add_argument("--without-encoder", action="store_true", help="leave out the encoder, which is there already")
    _json_argument(parser)


def _bundle(arguments: Namespace) -> int:
    from octavo_deploy.bundle import write_bundle

    artifact = _artifact(arguments.artifact, arguments.slug, arguments.release)
    out: Path = arguments.out
    with_encoder = not arguments.without_encoder
    if out == _PIPE:
        contents, written = write_bundle(artifact, sys.stdout.buffer, with_encoder=with_encoder)
    else:
        partial = out.with_name(f"{out.name}.partial")
        try:
            with partial.open("wb") as file:
                contents, written = write_bundle(artifact, file, with_encoder=with_encoder)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, out)
        except OSError as error:
            raise ConfigError(f"{out}: cannot be written ({error.strerror})") from error
        finally:
            partial.unlink(missing_ok=True)
    told = {
        "slug": contents.slug,
        "digest": contents.digest,
        "encoder": contents.encoder,
        "with_encoder": with_encoder,
        "size": written.size,
        "sha256": written.sha256,
    }
    text = f"{contents.slug} {contents.digest[:12]}  {written.size} bytes, sha256 {written.sha256}"
    print(json.dumps(told) if arguments.json else text, file=sys.stderr if out == _PIPE else sys.stdout)
    return 0


def _artifact(path: Path, slug: str | None, release: str | None) -> Path:
    """The release that the arguments mean. Raises ConfigError."""
    from octavo_artifact.manifest import read_pointer
    from octavo_deploy.releases import find_release, pack_directory

    if slug is None and DIGEST.fullmatch(path.name):
        if release is not None:
            raise ConfigError(f"--release: {path} is a release already, expected dist/SLUG before it")
        return path.absolute()
    directory = path if slug is None else pack_directory(path, slug)
    if not directory.is_dir() or (slug is None and not _is_pack(directory)):
        raise ConfigError(f"{directory}: no pack, expected dist/SLUG, dist/SLUG/DIGEST, or dist and a SLUG")
    directory = directory.absolute()
    return find_release(directory, release) if release else directory / read_pointer(directory)


def _is_pack(directory: Path) -> bool:
    return (directory / POINTER).exists() or any(DIGEST.fullmatch(path.name) for path in directory.iterdir())


def _unbundle_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="a bundle, - for stdin")
    parser.add_argument("dist", type=Path, metavar="DIST", help="folder of releases, made when missing")
    pointing = parser.add_mutually_exclusive_group()
    pointing.add_argument("--point", action="store_true", default=True, help="make the release current (so it is)")
    pointing.add_argument("--no-point", action="store_false", dest="point", help="leave the current release as it is")
    parser.add_argument("--expect", metavar="DIGEST", help="refuse another release; 12 or more digits of its digest")
    _json_argument(parser)


def _unbundle(arguments: Namespace) -> int:
    expect: str | None = arguments.expect
    if expect is not None and not re.fullmatch("[0-9a-f]{12,64}", expect):
        raise ConfigError(f"--expect: {expect!r}, expected the first 12 or more of a digest's 64 hex digits")
    if arguments.file == _PIPE:
        return _unbundled(sys.stdin.buffer, arguments)
    try:
        file = arguments.file.open("rb")
    except OSError as error:
        raise ConfigError(f"{arguments.file}: cannot be read ({error.strerror})") from error
    with file:
        return _unbundled(file, arguments)


def _unbundled(source: BinaryIO, arguments: Namespace) -> int:
    from octavo_deploy.unbundle import unbundle

    done = unbundle(source, arguments.dist, expect=arguments.expect, make_current=arguments.point)
    if arguments.json:
        told: dict[str, Any] = {
            "slug": done.slug,
            "digest": done.digest,
            "encoder": done.encoder,
            "wrote": {"release": done.wrote_release, "encoder": done.wrote_encoder},
            "current": arguments.point,
        }
        print(json.dumps(told))
        return 0
    parts = (("release", done.wrote_release), ("encoder", done.wrote_encoder))
    said = ", ".join(f"{name} {'written' if wrote else 'already there'}" for name, wrote in parts)
    print(f"{done.slug} {done.digest[:12]} {'is current' if arguments.point else 'is there'}  {said}")
    return 0


def _rollback_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("slug", metavar="SLUG", help="which pack")
    parser.add_argument("--dist", type=Path, default=Path("dist"), metavar="DIST", help="folder of releases (dist)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--to", metavar="DIGEST", help="the release to go to, by 12 or more digits (the one before)")
    what.add_argument("--list", action="store_true", help="show the pack's releases and change nothing")
    _json_argument(parser)


def _rollback(arguments: Namespace) -> int:
    from octavo_deploy.releases import pack_directory
    from octavo_deploy.rollback import roll_back

    directory = pack_directory(arguments.dist, arguments.slug)
    if arguments.list:
        return _list(directory, as_json=arguments.json)
    try:
        done = roll_back(directory, arguments.to)
    except OSError as error:
        raise ConfigError(f"{arguments.dist}: cannot be written ({error.strerror})") from error
    if arguments.json:
        told = {"slug": done.slug, "digest": done.digest, "left": done.left, "skipped": done.skipped}
        print(json.dumps(told, ensure_ascii=False))
        return 0
    for reason in done.skipped:
        print(f"octavo: passed over: {reason}", file=sys.stderr)
    left = f"{done.left[:12]} was" if done.left else "none was"
    print(f"{done.slug} {done.digest[:12]} is current, {left}")
    return 0


def _list(directory: Path, *, as_json: bool) -> int:
    from dataclasses import asdict

    from octavo_deploy.releases import list_releases

    releases = list_releases(directory)
    if as_json:
        told = {"slug": directory.name, "releases": [asdict(release) for release in releases]}
        print(json.dumps(told, ensure_ascii=False))
        return 0
    for one in releases:
        place = "current" if one.current else f"previous {one.previous}" if one.previous else ""
        print(f"{one.digest[:12]}  {place:<11} {one.version or '?':<10} {one.error or 'whole'}")
    return 0


BUNDLE = Command(
    name="bundle",
    summary="make one file of a release and its encoder",
    description="Write a release, verified, with its encoder into one file (tar in zstd) that `octavo unbundle` puts\n"
    "into another dist. The same release gives the same file wherever it is made.\n"
    "Exit codes: 0 written, 1 the release is damaged (the file is named), 2 wrong arguments.",
    examples=(
        "octavo bundle dist/octavo --out octavo.tar.zst",
        "octavo bundle dist octavo --release 6eadea138d84 --out octavo.tar.zst",
        "octavo bundle dist/octavo --without-encoder --out - | ssh host octavo unbundle - /srv/dist",
    ),
    add_arguments=_bundle_arguments,
    run=_bundle,
)

UNBUNDLE = Command(
    name="unbundle",
    summary="put a bundled release into a dist and make it current",
    description="Verify the release in FILE and its encoder, put them into DIST at once or not at all, and move the\n"
    "pointer. What is there already and whole is not written again.\n"
    "Exit codes: 0 done, 1 the bundle is damaged (the file is named), 2 wrong arguments, or DIST cannot be written.",
    examples=(
        "octavo unbundle octavo.tar.zst /srv/dist --expect 6eadea138d84",
        "octavo unbundle octavo.tar.zst /srv/dist --no-point --json",
        "ssh build octavo bundle dist/octavo --out - | octavo unbundle - /srv/dist",
    ),
    add_arguments=_unbundle_arguments,
    run=_unbundle,
)

ROLLBACK = Command(
    name="rollback",
    summary="make an earlier release current again",
    description="Verify the release that was current before the current one, and make it current again. Twice goes\n"
    "further back; --to goes to any release that is there, forward too.\n"
    "Exit codes: 0 done, 1 no earlier release is whole, 2 wrong arguments.",
    examples=(
        "octavo rollback octavo",
        "octavo rollback octavo --list",
        "octavo rollback octavo --dist /srv/dist --to 6eadea138d84 --json",
    ),
    add_arguments=_rollback_arguments,
    run=_rollback,
)
