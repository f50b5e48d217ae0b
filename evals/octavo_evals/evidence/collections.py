"""What is asked for the evidence: packs with their questions, and labelled collections as the field keeps them.

A labelled collection becomes a folder of documents, one a file, and is compiled as any other.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

import yaml

from octavo_artifact.errors import ConfigError, PackError
from octavo_artifact.parameters import GateMode
from octavo_evals.measures import NAMES
from octavo_evals.queries import QuerySet, read_query_set

CORPUS = "corpus.jsonl"
DOCUMENT = "{}.md"
"""File of a document of a labelled collection."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A pack and the questions about it."""

    pack: Path
    """Folder of a pack, or of a labelled collection (BEIR)."""
    cases: tuple[Path, ...] = ()
    """Query sets; none for a labelled collection, which has its own."""
    fields: Mapping[str, Any] | None = None
    """What the `pack.yaml` of a labelled collection says besides its slug; None for a pack."""

    def query_sets(self, root: Path) -> list[QuerySet]:
        """The questions."""
        if self.fields is not None:
            return [read_query_set(root / self.pack, document=DOCUMENT)]
        return [read_query_set(root / path) for path in self.cases]


@dataclass(frozen=True, slots=True)
class Collection:
    """Questions that stand in one table."""

    name: str
    title: str
    about: str
    """One or two sentences: what it is, and whose labels."""
    asked: tuple[Asked, ...]
    measures: tuple[str, ...]
    """Columns of the table."""
    gate: GateMode | None = None
    """None for the pack's own."""
    known: Mapping[str, Mapping[str, float]] | None = None
    """Measured by others: system to measure to value."""
    target: Mapping[str, float] | None = None
    """Measure to the value that is to be reached."""

    def missing(self, root: Path) -> list[Path]:
        """What of it is not on this machine."""
        paths = [path for asked in self.asked for path in (asked.pack, *asked.cases)]
        return [path for path in paths if not (root / path).exists()]


def read_collections(path: Path) -> tuple[str, tuple[Collection, ...]]:
    """The day of the questions and the collections of a YAML file. Raises ConfigError."""
    try:
        # scalars as they are written: `gate: off` is not false
        data: Any = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
        return str(data["today"]), tuple(map(_collection, data["collections"]))
    except OSError as error:
        raise ConfigError(f"{path.name}: cannot be read ({error.strerror})") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path.name}: not YAML") from error
    except KeyError as error:
        raise ConfigError(f"{path.name}: {error.args[0]!r} is missing") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{path.name}: {error}") from error


def _collection(fields: Mapping[str, Any]) -> Collection:
    gate = fields.get("gate")
    if gate not in (None, *get_args(GateMode)):
        raise ValueError(f"{fields['name']}: gate: {gate!r}, expected one of {', '.join(get_args(GateMode))}")
    return Collection(
        name=fields["name"],
        title=fields["title"],
        about=fields["about"],
        asked=tuple(map(_asked, fields["asked"])),
        measures=_measures(fields["name"], fields["measures"]),
        gate=gate,
        known={
            system: _figures(fields["name"], figures)
            for system, figures in cast(Mapping[str, Any], fields.get("known", {})).items()
        },
        target=_figures(fields["name"], fields.get("target", {})),
    )


def _asked(fields: Mapping[str, Any]) -> Asked:
    return Asked(Path(fields["pack"]), tuple(map(Path, fields.get("cases", ()))), fields.get("fields"))


def _figures(name: str, written: Mapping[str, str]) -> dict[str, float]:
    return {measure: float(written[measure]) for measure in _measures(name, list(written))}


def _measures(name: str, written: Sequence[str]) -> tuple[str, ...]:
    if unknown := [measure for measure in written if measure not in NAMES]:
        raise ValueError(f"{name}: {unknown[0]!r} is no measure")
    return tuple(written)


def write_pack(collection: Path, pack: Path, fields: Mapping[str, Any]) -> None:
    """Write a labelled collection as a folder of documents: a Markdown file each, its title as the first heading.

    What was in the folder before is gone. Raises PackError for a line that is no document.
    """
    shutil.rmtree(pack, ignore_errors=True)
    pack.mkdir(parents=True)
    manifest = {"slug": pack.name, "name": pack.name, **fields}
    (pack / "pack.yaml").write_text(yaml.safe_dump(manifest, allow_unicode=True, sort_keys=False), encoding="utf-8")
    with (collection / CORPUS).open(encoding="utf-8") as corpus:
        for number, line in enumerate(corpus, 1):
            try:
                document = json.loads(line)
                name, title, text = str(document["_id"]), str(document.get("title") or ""), str(document["text"])
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                message = f"{collection.name}/{CORPUS}:{number}: expected a JSON object with _id and text"
                raise PackError(message) from error
            heading = f"# {' '.join(title.split())}\n\n" if title.strip() else ""
            (pack / DOCUMENT.replace("{}", name)).write_text(f"{heading}{text}\n", encoding="utf-8")
