"""Same input, same bytes: a release depends on what the pack says and on nothing around it."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import socket
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from octavo_build import encode
from octavo_serve.cli import main
from running import ROOT, TINY, octavo

NOTES = 40
"""Files of the docs folder; more windows than a build encodes by itself, so that `-j 2` starts processes."""

Tree = dict[str, tuple[str, bytes]]


def tree(root: Path) -> Tree:
    """Mode and bytes of `root` and all under it, by path; an artifact has nothing else that could differ."""
    found: Tree = {}
    for path in [root, *sorted(root.rglob("*"))]:
        mode = path.lstat().st_mode
        found[path.relative_to(root).as_posix()] = (
            stat.filemode(mode),
            path.read_bytes() if stat.S_ISREG(mode) else b"",
        )
    return found


def differing(one: Tree, other: Tree) -> list[str]:
    return [path for path in sorted(one.keys() | other.keys()) if one.get(path) != other.get(path)]


def copied(sources: Mapping[str, bytes], root: Path, *, backwards: bool = False) -> Path:
    """The files of a pack, written first to last or last to first."""
    for path, data in sorted(sources.items(), reverse=backwards):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    return root


def tiny() -> dict[str, bytes]:
    return {path.relative_to(TINY).as_posix(): path.read_bytes() for path in TINY.rglob("*") if path.is_file()}


def notes() -> dict[str, bytes]:
    pages = {
        f"page-{number:02}.md": f"# Note {number}\n\nThe valve number {number} opens at {number * 3} bar.\n".encode()
        for number in range(NOTES)
    }
    return {
        "pack.yaml": "slug: notes\nname: Nötes\n".encode(),
        "käse.md": "# Käse\n\nGruyère reift.\n".encode(),
    } | pages


@dataclass(frozen=True, slots=True)
class Released:
    """What a build in some surroundings left in `dist`."""

    dist: Path
    outcomes: list[dict[str, Any]]


def build_in(place: Path, surroundings: Mapping[str, str], *, backwards: bool, umask: int, jobs: int) -> Released:
    place.mkdir()
    packs = [
        copied(sources, place / name, backwards=backwards) for name, sources in (("tiny", tiny()), ("notes", notes()))
    ]
    if backwards:
        for pack in packs:
            for path in pack.rglob("*"):
                os.utime(path, (915_148_800, 915_148_800))
    folders = ("dist", "state", "home")
    dist, state, home = (place / name for name in folders) if backwards else map(Path, folders)
    done = octavo(
        "build", *(packs if backwards else ["tiny", "notes"]), "--out", dist, "--state", state, "-j", jobs, "--json",
        cwd="/" if backwards else place,
        umask=umask,
        env={**os.environ, "HOME": str(home), **surroundings},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return Released(place / "dist", json.loads(done.stdout)["packs"])


@pytest.fixture(scope="module")
def here_and_there(tmp_path_factory: pytest.TempPathFactory) -> tuple[Released, Released]:
    """One pair of packs, built twice with all around them changed."""
    root = tmp_path_factory.mktemp("surroundings")
    here = build_in(
        root / "here",
        {"TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0", "USER": "annabel", "LOGNAME": "annabel"},
        backwards=False,
        umask=0o022,
        jobs=1,
    )
    there = build_in(
        root / "somewhere else",
        # Python would turn the locale C into UTF-8 by itself
        {
            "TZ": "Asia/Kolkata", "LC_ALL": "C", "LANG": "tr_TR.UTF-8", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0",
            "PYTHONHASHSEED": "4242", "USER": "bartleby", "LOGNAME": "bartleby",
        },
        backwards=True,
        umask=0o077,
        jobs=8,
    )  # fmt: skip
    return here, there


def test_surroundings_do_not_change_a_digest(here_and_there: tuple[Released, Released]) -> None:
    here, there = here_and_there
    assert [outcome["counts"] for outcome in there.outcomes] == [outcome["counts"] for outcome in here.outcomes]
    assert there.outcomes[1]["counts"]["windows"] > NOTES
    assert [outcome["digest"] for outcome in there.outcomes] == [outcome["digest"] for outcome in here.outcomes]


def test_surroundings_do_not_change_a_byte_or_a_mode_of_dist(here_and_there: tuple[Released, Released]) -> None:
    here, there = (tree(released.dist) for released in here_and_there)
    assert differing(here, there) == []
    assert {mode for mode, _ in here.values()} == {"-rw-r--r--", "drwxr-xr-x"}


def test_no_file_of_an_artifact_tells_when_where_or_by_whom_it_was_built(
    here_and_there: tuple[Released, Released],
) -> None:
    from pyarrow import parquet

    today = datetime.datetime.now(datetime.UTC).date()
    for released in here_and_there:
        # the hosts' folders have names that no source has: `surroundings0`, `somewhere else`
        told = [str(ROOT), "surroundings", "somewhere else", socket.gethostname() + ".", "annabel", "bartleby"]
        told += [(today + datetime.timedelta(days)).isoformat() for days in (-1, 0, 1)]
        for outcome in released.outcomes:
            for path in (released.dist / outcome["slug"] / outcome["digest"]).rglob("*"):
                if path.is_file():
                    data = path.read_bytes()
                    if path.suffix == ".parquet":
                        data += repr(parquet.read_table(path).to_pylist()).encode()
                    assert [word for word in told if word.encode() in data] == [], path.name


@dataclass(frozen=True, slots=True)
class Workshop:
    """A pack that is built again and again, with one state and one dist."""

    root: Path

    def build(self, sources: Mapping[str, bytes]) -> int:
        shutil.rmtree(self.root / "source", ignore_errors=True)
        copied(sources, self.root / "source")
        return main(["build", str(self.root / "source"), *self._places(), "-q"])

    def _places(self) -> list[str]:
        return ["--out", str(self.root / "dist"), "--state", str(self.root / "state")]

    def current(self) -> Tree:
        pack = self.root / "dist" / "tiny"
        digest = json.loads((pack / "latest.json").read_bytes())["digest"]
        return {"digest": (digest, b""), **tree(pack / digest)}


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    made = Workshop(tmp_path_factory.mktemp("workshop"))
    assert made.build(tiny()) == 0
    return made


@pytest.fixture
def clean(tmp_path: Path) -> Callable[[Mapping[str, bytes]], Tree]:
    """Builds a pack where nothing was ever built; gives its release."""

    def build(sources: Mapping[str, bytes]) -> Tree:
        fresh = Workshop(tmp_path / "clean")
        assert fresh.build(sources) == 0
        return fresh.current()

    return build


def edited(path: str, old: bytes, new: bytes) -> dict[str, bytes]:
    sources = tiny()
    assert old in sources[path]
    return sources | {path: sources[path].replace(old, new)}


def without(path: str) -> dict[str, bytes]:
    sources = tiny()
    del sources[path]
    return sources


def shortened(path: str) -> dict[str, bytes]:
    sources = tiny()
    return sources | {path: sources[path][: len(sources[path]) // 2]}


def shortened_alone() -> dict[str, bytes]:
    return {"concepts/water.md": shortened("concepts/water.md")["concepts/water.md"]}


def moved(path: str, to: str) -> dict[str, bytes]:
    return without(path) | {to: tiny()[path]}


def with_sidecar(path: str) -> dict[str, bytes]:
    """The whole body as one chunk with a prefix."""
    lines = tiny()[path].splitlines()
    first = len(lines) - lines[::-1].index(b"---") + 1
    chunk = f"chunks: [{{line_range: [{first}, {len(lines)}], context_prefix: Of the hills.}}]\n"
    return tiny() | {path.replace(".md", ".chunks.yaml"): chunk.encode()}


SLOW = pytest.mark.slow  # for what the change of all three at once holds too
CHANGES = [
    pytest.param(with_sidecar("concepts/water.md"), id="sidecar"),
    pytest.param(edited("concepts/grinder.md", b"eleven", b"twelve"), id="edit", marks=SLOW),
    pytest.param(without("concepts/grinder.md"), id="deletion", marks=SLOW),
    pytest.param(shortened("concepts/water.md"), id="shortening", marks=SLOW),
    pytest.param(moved("workflows/descale.md", "workflows/care/descale.md"), id="move to a subfolder", marks=SLOW),
    pytest.param(
        {
            path: data
            for path, data in (moved("workflows/descale.md", "workflows/care/descale.md") | shortened_alone()).items()
            if path != "concepts/grinder.md"
        },
        id="deletion, shortening and move at once",
    ),
    pytest.param(edited("concepts/water.md", b"tags: [water,", b"tags: [hardness,"), id="frontmatter"),
    pytest.param(edited("manifest.yaml", b"Brewer 3", b"Brewer 4"), id="manifest"),
    pytest.param(tiny() | {"concepts/new.md": b"# New\n\nThe lid is dishwasher safe.\n"}, id="addition"),
]


@pytest.mark.parametrize("sources", CHANGES)
def test_an_incremental_build_is_a_clean_build(
    workshop: Workshop, clean: Callable[[Mapping[str, bytes]], Tree], sources: Mapping[str, bytes]
) -> None:
    assert workshop.build(tiny()) == 0
    before = workshop.current()
    assert workshop.build(sources) == 0
    assert workshop.current()["digest"] != before["digest"]
    assert differing(workshop.current(), clean(sources)) == []


def test_a_deleted_and_a_shortened_file_leave_no_text_behind(workshop: Workshop) -> None:
    from pyarrow import parquet

    sources = without("concepts/grinder.md") | {
        "concepts/water.md": shortened("concepts/water.md")["concepts/water.md"]
    }
    assert workshop.build(tiny()) == 0
    assert workshop.build(sources) == 0
    pack = workshop.root / "dist" / "tiny"
    artifact = pack / json.loads((pack / "latest.json").read_bytes())["digest"]
    for path in artifact.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            if path.suffix == ".parquet":
                data += repr(parquet.read_table(path).to_pylist()).encode()
            # from the end of one file and the middle of the other; `.store` holds the index's text uncompressed
            assert b"Red fields" not in data, path.name
            assert b"burrs jam" not in data, path.name


def refuse(*arguments: object) -> None:
    raise AssertionError("a window was encoded")


def test_a_moved_file_keeps_its_vectors(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    assert workshop.build(tiny()) == 0
    monkeypatch.setattr(encode, "_encode", refuse)
    assert workshop.build(moved("concepts/water.md", "concepts/care/water-2.md")) == 0
    assert workshop.build(edited("concepts/grinder.md", b"eleven", b"thirteen")) == 1, "the control"


def test_a_killed_build_that_was_taken_back_does_not_poison_the_next(
    workshop: Workshop, clean: Callable[[Mapping[str, bytes]], Tree]
) -> None:
    """doit keeps its database at the end of a run: a killed one leaves newer files under an older database."""
    database = workshop.root / "state" / "doit.sqlite"
    assert workshop.build(tiny()) == 0
    remembered = database.read_bytes()
    assert workshop.build(edited("concepts/grinder.md", b"eleven", b"twelve")) == 0
    database.write_bytes(remembered)
    assert workshop.build(tiny()) == 0
    assert differing(workshop.current(), clean(tiny())) == []


def memory(state: Path) -> list[Path]:
    """All that a build remembers but doit's database, whose damage SQLite tells."""
    return sorted(path for path in state.rglob("*") if path.is_file() and path.name != "doit.sqlite")


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["changed", "missing"])
def test_no_file_of_the_build_s_own_memory_can_poison_a_release(
    workshop: Workshop, clean: Callable[[Mapping[str, bytes]], Tree], damage: str
) -> None:
    assert workshop.build(tiny()) == 0
    expected = clean(tiny())
    poisoned: list[str] = []
    for path in memory(workshop.root / "state"):
        if damage == "missing":
            path.unlink()
        else:
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1
            path.write_bytes(data)
        code = workshop.build(tiny())
        if code or differing(workshop.current(), expected):
            poisoned.append(f"{path.relative_to(workshop.root / 'state')} (exit code {code})")
            shutil.rmtree(workshop.root / "state" / "work")
            assert workshop.build(tiny()) == 0
    assert poisoned == []


@pytest.mark.slow
@pytest.mark.shared
def test_the_large_packs_are_the_same_when_built_twice(shared: Path, tmp_path: Path) -> None:
    packs = [path for path in sorted((shared / "packs").iterdir()) if path.is_dir()]
    packs += [path for path in [ROOT / "packs" / "octavo"] if path.is_dir()]
    for place, jobs in (("one", 2), ("two", 3)):
        done = octavo(
            "build", *packs, "--out", tmp_path / place, "--state", tmp_path / f"{place}-state", "-j", jobs, "-q",
            timeout=1800,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert differing(tree(tmp_path / "one"), tree(tmp_path / "two")) == []
