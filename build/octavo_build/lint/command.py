"""`octavo lint`: arguments in, one rendering out."""

from __future__ import annotations

import gc
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from octavo_artifact.errors import ConfigError
from octavo_build import source_options

if TYPE_CHECKING:
    from octavo_build.lint.checks import Options
    from octavo_build.lint.render.linted import Linted

MAX_TOP = 50
"""As many as a search returns."""
STATE = ".octavo"
"""Where a build keeps, by default, what it fetched."""


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `octavo lint`."""
    parser.add_argument("packs", nargs="*", type=Path, metavar="PACK", help="folder of a pack")
    source_options.add_format(parser)
    source_options.add_repository(parser)
    formats = ("text", "json", "sarif", "github", "junit")
    parser.add_argument("--format", choices=formats, default="text", help="how findings are printed (text)")
    fail = parser.add_mutually_exclusive_group()
    fail.add_argument("--strict", action="store_true", help="fail on warnings too")
    fail.add_argument("--fail-on", choices=("error", "warning", "note"), help="mildest severity that fails (error)")
    parser.add_argument("--only", action="append", default=[], metavar="CODE", help="tell this code only; repeatable")
    parser.add_argument(
        "--except",
        dest="without",
        action="append",
        default=[],
        metavar="CODE",
        help="leave this code out; repeatable",
    )
    parser.add_argument("--provenance", action="store_true", help="check W-PROV-01 to 06: ids, dates, hashes, ages")
    parser.add_argument("--aks", action="store_true", help="check W-AKS-01 to 04 too: export as agent knowledge")
    parser.add_argument("--today", metavar="YYYY-MM-DD", help="check ages against this day; without it they are not")
    parser.add_argument(
        "--deep",
        nargs="+",
        action="extend",
        default=[],
        type=Path,
        metavar="ARTIFACT",
        help="check what was built too: dist/SLUG or dist/SLUG/DIGEST",
    )
    parser.add_argument("--top", type=int, default=5, metavar="K", help="passages that --deep looks at for a query (5)")
    parser.add_argument("--schema", choices=("manifest", "frontmatter"), help="print that JSON Schema and end")


def run(arguments: Namespace) -> int:
    """Check and print; the exit code. Raises ConfigError for what cannot be meant."""
    from octavo_artifact.dates import parse_date
    from octavo_build.lint.checks import Options
    from octavo_build.lint.fields import schema_text
    from octavo_build.lint.render import RENDERERS

    if arguments.schema:
        sys.stdout.write(schema_text(arguments.schema))
        return 0
    today = parse_date(arguments.today) if arguments.today is not None else None
    if arguments.today is not None and today is None:
        raise ConfigError(f"--today: expected YYYY-MM-DD, found {arguments.today!r}")
    if not arguments.packs and not arguments.deep:
        raise ConfigError("lint: expected PACK, the folder of a pack, or --deep ARTIFACT")
    if not 1 <= arguments.top <= MAX_TOP:
        raise ConfigError(f"--top: expected 1 to {MAX_TOP}, found {arguments.top}")
    only, without = frozenset(arguments.only), frozenset(arguments.without)
    options = Options(today, arguments.provenance, only, without, arguments.aks)
    fail_on = arguments.fail_on or ("warning" if arguments.strict else "error")
    sources = source_options.options_of(arguments)
    gc.disable()  # what is read is kept to the end: collecting only walks it again and again, 15% of the time
    try:
        packs = [_lint(path, sources, options, fail_on) for path in arguments.packs if not _is_left_out(path)]
    finally:
        gc.enable()
    packs = _with_deep(packs, arguments.deep, arguments.top, options, fail_on)
    sys.stdout.write(RENDERERS[arguments.format](packs))
    return 1 if any(pack.failed for pack in packs) else 0


def _is_left_out(path: Path) -> bool:
    """Whether a file came along with a shell's `packs/*`; it is told."""
    if path.is_file():
        print(f"octavo: {path}: a file, not a pack; left out", file=sys.stderr)
    return path.is_file()


def _lint(path: Path, sources: Mapping[str, str], options: Options, fail_on: str) -> Linted:
    from octavo_build.lint.checks import lint
    from octavo_build.lint.render.linted import Linted
    from octavo_build.lint.subject import read_subject
    from octavo_build.sources import adapter_of
    from octavo_build.sources.git import located

    if not path.is_dir():
        raise ConfigError(f"{path}: not a folder; expected a pack (a folder of Markdown)")
    source = located(path, Path(STATE))
    subject = read_subject(source, sources)
    path = adapter_of(source, sources).home(path)
    found = tuple(lint(subject, options))
    return Linted(subject.pack.slug, _shown_folder(path), len(subject.pack.documents), found, fail_on)


def _with_deep(packs: list[Linted], artifacts: list[Path], top: int, options: Options, fail_on: str) -> list[Linted]:
    """The packs with what was found in artifacts of theirs, then the artifacts of other packs, under their slugs."""
    from octavo_build.lint.deep import check_artifact
    from octavo_build.lint.render.linted import Linted

    told = {pack.slug: pack for pack in packs}
    for artifact in artifacts:
        deep = check_artifact(artifact, top, options)
        pack = told.get(deep.slug, Linted(deep.slug, deep.slug, deep.documents, (), fail_on))
        told[deep.slug] = replace(pack, findings=tuple(sorted({*pack.findings, *deep.findings})))
    return list(told.values())


def _shown_folder(path: Path) -> str:
    """The pack's folder as output names it: from here when it lies below, else its own name; never a host's path."""
    relative = Path(os.path.relpath(path.resolve()))
    return (Path(path.resolve().name) if ".." in relative.parts else relative).as_posix()
