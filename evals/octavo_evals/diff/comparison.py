"""All that two releases of one pack differ in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from octavo_artifact.errors import ConfigError
from octavo_artifact.ids import canonical_json
from octavo_evals.diff.contents import Contents, FieldChange, compare_contents
from octavo_evals.diff.manifests import Amount, counts, findings, settings, sizes
from octavo_evals.diff.questions import Movements, Question, ask, sample
from octavo_evals.diff.releases import Release, read_release
from octavo_serve.catalog import open_release
from octavo_serve.encoder import Encoder

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two releases."""

    digest: str
    version: str | None
    """As the pack's author gave it."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """From OLD to NEW."""

    slug: str
    name: str
    old: Side
    new: Side
    contents: Contents
    movements: Movements | None
    """None when no question was asked: there was none, or both are one release."""
    settings: tuple[FieldChange, ...]
    """Of pack, encoder, relevance gate, parameters and libraries."""
    counts: tuple[Amount, ...]
    sizes: tuple[Amount, ...]
    findings: tuple[Amount, ...]
    tables: tuple[str, ...]
    """Tables whose rows are others, whatever stands in them."""

    @property
    def same(self) -> bool:
        """Whether both are one release: every byte is vouched for by the digest."""
        return self.old.digest == self.new.digest


def compare(
    old: Path, new: Path, *, cases: Sequence[Question] = (), sampled: int = 0, k: int = 10, today: date | None = None
) -> Comparison:
    """Compare two artifacts; ask `cases` and `sampled` questions from headings of both.

    Without `today` no passage is stale, so that the same releases compare alike on any day. Raises ConfigError for
    releases of two packs, ArtifactError for a damaged one.
    """
    before, after = read_release(old), read_release(new)
    if before.manifest.slug != after.manifest.slug:
        raise ConfigError(f"releases of two packs, {before.manifest.slug} and {after.manifest.slug}; expected one pack")
    return Comparison(
        slug=after.manifest.slug,
        name=after.manifest.pack["name"],
        old=Side(before.manifest.digest, before.manifest.pack["version"]),
        new=Side(after.manifest.digest, after.manifest.pack["version"]),
        contents=compare_contents(before, after),
        movements=_movements(before, after, [*cases, *sample((before, after), sampled)], k, today or date.min),
        settings=settings(before.manifest, after.manifest),
        counts=counts(before.manifest, after.manifest),
        sizes=sizes(before.manifest, after.manifest),
        findings=findings(before, after),
        tables=tuple(
            sorted(
                name
                for name in before.manifest.tables.keys() | after.manifest.tables.keys()
                if before.manifest.tables.get(name) != after.manifest.tables.get(name)
            )
        ),
    )


def _movements(old: Release, new: Release, questions: Sequence[Question], k: int, today: date) -> Movements | None:
    if not questions or old.manifest.digest == new.manifest.digest:
        return None
    encoders: dict[str, Encoder] = {}
    before, after = (
        open_release(release.artifact, release.artifact.parent.parent, encoders, today) for release in (old, new)
    )
    return ask(old, new, (before, after), questions, k)


def comparison_json(comparison: Comparison) -> bytes:
    """The comparison as canonical JSON; the changed lines of documents are left out."""
    fields: dict[str, Any] = asdict(comparison)
    for document in fields["contents"]["documents"]:
        del document["lines"]
    return canonical_json({"format": FORMAT, "same": comparison.same, **fields})
