"""What of a release's manifest and build report is another in the next: encoder, parameters, sizes, findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from octavo_artifact.manifest import Manifest, fingerprint
from octavo_evals.diff.contents import FieldChange
from octavo_evals.diff.releases import Release


@dataclass(frozen=True, slots=True)
class Amount:
    """A number in both releases."""

    name: str
    old: int
    new: int

    @property
    def change(self) -> int:
        """NEW less OLD."""
        return self.new - self.old


def settings(old: Manifest, new: Manifest) -> tuple[FieldChange, ...]:
    """What differs of pack, encoder, gate, index, parameters and libraries, by dotted name, sorted."""
    before, after = dict(_flat("", _described(old))), dict(_flat("", _described(new)))
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    told = {f"pack.metadata.{name.removeprefix('pack.')}" for name in names}  # what its author wrote, a second time
    return tuple(FieldChange(name, before.get(name), after.get(name)) for name in names if name not in told)


def sizes(old: Manifest, new: Manifest) -> tuple[Amount, ...]:
    """Bytes of each part, and their `total`, last."""
    return _amounts(_parts(old), _parts(new), total=True)


def counts(old: Manifest, new: Manifest) -> tuple[Amount, ...]:
    """Rows of each kind."""
    return _amounts(old.counts, new.counts)


def findings(old: Release, new: Release) -> tuple[Amount, ...]:
    """Findings of the build by code, those that are equally many too."""
    return _amounts(*(Counter(finding["code"] for finding in release.findings) for release in (old, new)))


def _described(manifest: Manifest) -> dict[str, Any]:
    return {
        "pack": manifest.pack,
        "encoder": asdict(manifest.encoder) | {"fingerprint": fingerprint(manifest.encoder)},
        "gate": asdict(manifest.gate) if manifest.gate else {},
        "index": asdict(manifest.index) if manifest.index else {},
        "parameters": manifest.parameters,
        "libraries": manifest.libraries,
    }


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _flat(f"{prefix}.{name}" if prefix else str(name), inner)
    else:
        yield prefix, value


def _parts(manifest: Manifest) -> Counter[str]:
    found: Counter[str] = Counter()
    for path, entry in manifest.files.items():
        found[path.partition("/")[0]] += entry.size
    return found


def _amounts(old: Mapping[str, int], new: Mapping[str, int], *, total: bool = False) -> tuple[Amount, ...]:
    rows = [Amount(name, old.get(name, 0), new.get(name, 0)) for name in sorted(old.keys() | new.keys())]
    if total:
        rows.append(Amount("total", sum(row.old for row in rows), sum(row.new for row in rows)))
    return tuple(rows)
