"""What the sub-commands share: arguments, and how they open the packs of a dist."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from datetime import date
from pathlib import Path
from typing import Any, TextIO

from octavo_artifact.errors import ArtifactError
from octavo_artifact.schema import AUDIENCES


def dist_argument(parser: ArgumentParser, nargs: str | None = None) -> None:
    """DIST."""
    parser.add_argument(
        "dist", nargs=nargs, type=Path, metavar="DIST", help="folder of releases that `octavo build --out` filled"
    )


def today_argument(parser: ArgumentParser) -> None:
    """`--today`, a date; None without it."""
    parser.add_argument(
        "--today",
        type=day,
        metavar="YYYY-MM-DD",
        help="day by which ages and expiries are told (the system's date in UTC, at each request)",
    )


def audience_argument(parser: ArgumentParser, default: str | None = AUDIENCES[0]) -> None:
    """`--audience`."""
    parser.add_argument(
        "--audience",
        choices=AUDIENCES,
        default=default,
        help="the narrowest circle that is served; releases for a narrower one are withheld (public)",
    )


def lexical_argument(parser: ArgumentParser) -> None:
    """`--lexical-only`; None without it."""
    parser.add_argument(
        "--lexical-only",
        action="store_true",
        default=None,
        help="serve packs whose encoder is missing or fails too, searched by words",
    )


def day(text: str) -> date:
    """An argument that is a day. Raises ArgumentTypeError."""
    try:
        found = date.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.isoformat() != text:  # Python takes other spellings too
        raise ArgumentTypeError(f"{text!r}, expected a day as YYYY-MM-DD")
    return found


def pack_argument(parser: ArgumentParser) -> None:
    """`--pack`."""
    parser.add_argument("--pack", metavar="SLUG", help="which pack; needed when DIST has several")


def json_argument(parser: ArgumentParser) -> None:
    """`--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON, as the server answers")


def opened_pack(arguments: Namespace) -> Any:
    """The pack a command means; one that is not open says why."""
    return opened_packs(arguments).choose(arguments.pack)


def opened_packs(arguments: Namespace, **options: Any) -> Any:
    """The packs of DIST; one that a command means and that is not open says why. `options` are as of `open_catalog`."""
    catalog = _catalog(arguments, **options)
    slug = arguments.pack
    if slug is not None and slug in catalog.refused:
        raise ArtifactError(catalog.refused[slug])
    if slug in catalog.withheld or not catalog.packs:
        raise ArtifactError(_reasons(catalog))
    return catalog


def servable(dist: Path, today: date | None, audience: str, operator: Any, *, tell: bool = True, **options: Any) -> Any:
    """The releases of a server; `tell` says on stderr what is not served. `options` are as of `Releases`.

    Raises ArtifactError when that is everything.
    """
    from octavo_serve.releases import Releases

    releases = Releases(dist, today, audience, operator, **options)
    catalog = releases.current
    if not catalog.packs:
        raise ArtifactError(f"no pack can be served: {_reasons(catalog)}")
    if not tell:
        return releases
    for slug, reason in catalog.refused.items():
        print(f"octavo: refused {slug}: {reason}", file=sys.stderr)
    for slug, pack in catalog.packs.items():
        if pack.degraded:
            print(f"octavo: {slug} is searched by words only: {pack.degraded}", file=sys.stderr)
    for slug, narrower in catalog.withheld.items():
        print(f"octavo: {_withheld(slug, narrower)}", file=sys.stderr)
    return releases


def _catalog(arguments: Namespace, **options: Any) -> Any:
    from octavo_serve.catalog import open_catalog

    return open_catalog(arguments.dist, arguments.today, arguments.audience, **options)


def _withheld(slug: str, audience: str) -> str:
    return f"withheld {slug}: the release is for {audience}; --audience {audience} serves it"


def _reasons(catalog: Any) -> str:
    withheld = (_withheld(slug, audience) for slug, audience in catalog.withheld.items())
    return "; ".join(
        dict.fromkeys([*catalog.refused.values(), *withheld])
    )  # packs of one damaged encoder give one reason


def is_colourful(stream: TextIO) -> bool:
    """Whether colours may be written: somebody looks at a terminal, and did not ask for none (`NO_COLOR`)."""
    return stream.isatty() and "NO_COLOR" not in os.environ


def styles() -> tuple[str, str, str]:
    """What begins bold and dim text on stdout, and what ends them; empty where it may have no colours."""
    return ("\x1b[1m", "\x1b[2m", "\x1b[0m") if is_colourful(sys.stdout) else ("", "", "")
