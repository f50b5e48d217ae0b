"""Measure the collections and write the page.

A collection that is not on this machine is left out with its reason, and stands in the page with the figures that were
committed last.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from octavo_artifact.errors import ConfigError, OctavoError
from octavo_evals.ablation import STAGES, Ablation, ablate, ablation_bytes, read_ablation
from octavo_evals.evidence.collections import Asked, Collection, read_collections, write_pack
from octavo_evals.evidence.page import page
from octavo_evals.queries import QuerySet
from octavo_evals.targets import Release, open_target

FOLDER = Path("evals/retrieval")
COLLECTIONS = "collections.yaml"
PAGE = Path("evals/RETRIEVAL.md")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what was named, else all; the page has everything that was ever measured."""
    parser = argparse.ArgumentParser(prog="python -m octavo_evals.evidence", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"collections of {FOLDER}/{COLLECTIONS} (all)")
    parser.add_argument("--root", type=Path, default=Path(), help="the repository (.)")
    parser.add_argument("--state", type=Path, default=Path(".octavo/collections"), help="packs, releases, vectors")
    parser.add_argument("--page", action="store_true", help="measure nothing, only write the page")
    arguments = parser.parse_args(argv)
    folder = arguments.root / FOLDER
    today, collections = read_collections(folder / COLLECTIONS)
    known = [collection.name for collection in collections]
    if unknown := sorted(set(arguments.names) - set(known)):
        raise ConfigError(f"{unknown[0]}: no collection; expected one of {', '.join(known)}")
    for collection in collections if not arguments.page else ():
        if collection.name not in (arguments.names or known):
            continue
        if missing := collection.missing(arguments.root):
            print(f"{collection.name}: left out, {missing[0]} is not on this machine")
            continue
        found = measure(collection, today, arguments.root, arguments.root / arguments.state)
        (folder / f"{collection.name}.json").write_bytes(ablation_bytes(found))
        figures = found.variations[0].measures
        shown = [f"{name} {figures[name].mean:.3f}" for name in collection.measures if name in figures]
        print(f"{collection.name}: {', '.join(shown)}", flush=True)
    write_page(arguments.root)
    return 0


def write_page(root: Path) -> None:
    """Write the page from the figures that are kept."""
    _, collections = read_collections(root / FOLDER / COLLECTIONS)
    files = [(collection, root / FOLDER / f"{collection.name}.json") for collection in collections]
    measured = [(collection, read_ablation(file)) for collection, file in files if file.is_file()]
    (root / PAGE).write_text(page(measured), encoding="utf-8")


def measure(collection: Collection, today: str, root: Path, state: Path) -> Ablation:
    """Compile the packs of a collection and ask their questions."""
    packs = [_folder(asked, root, state) for asked in collection.asked]
    dist = state / "dist"
    # the compiler is another program, as for `octavo release`
    command = [sys.executable, "-m", "octavo_serve", "build", *packs, "--out", dist, "--state", state / "state", "-q"]
    if subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode:
        raise OctavoError(f"{collection.name}: its packs do not compile")
    asked = [(_release(dist, pack, cases, today), cases) for pack, cases in _questions(collection, packs, root)]
    return ablate(asked, STAGES, today, gate=collection.gate)


def _folder(asked: Asked, root: Path, state: Path) -> Path:
    """Where a pack lies; a labelled collection is written first."""
    if asked.fields is None:
        return root / asked.pack
    pack = state / "packs" / asked.pack.name
    write_pack(root / asked.pack, pack, asked.fields)
    return pack


def _questions(collection: Collection, packs: Sequence[Path], root: Path) -> list[tuple[Path, QuerySet]]:
    pairs = zip(collection.asked, packs, strict=True)
    return [(pack, cases) for asked, pack in pairs for cases in asked.query_sets(root)]


def _release(dist: Path, pack: Path, cases: QuerySet, today: str) -> Release:
    return open_target(dist, cases.pack or pack.name, None, date.fromisoformat(today))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OctavoError as error:
        sys.exit(f"octavo: {error}")
