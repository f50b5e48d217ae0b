"""The build as doit tasks: one a stage and pack, what each is made from, and how they run.

`dodo.py` lists them for the packs of the project; `octavo build` runs them for any packs.

doit decides by content what is out of date. Two things it does not see are checked here: that a target still holds what
its task wrote (a killed build may have left a newer one), and that the compiler itself is the same.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from doit.exceptions import TaskFailed
from doit.tools import config_changed

import octavo_artifact
import octavo_build
from octavo_artifact import placing
from octavo_artifact.errors import ConfigError, OctavoError
from octavo_artifact.ids import canonical_json, sha256_file, sha256_hex
from octavo_artifact.layout import (
    DOCUMENTS,
    EDGES,
    ENCODER_ENDPOINT,
    ENCODER_MODEL,
    ENCODER_SPEC,
    ENCODER_TOKENIZER,
    ENCODERS,
    LEXICAL,
    NODES,
    PASSAGES,
    RESOURCES,
    SECTIONS,
    VECTORS,
)
from octavo_artifact.manifest import fingerprint
from octavo_artifact.schema import EncoderSpec
from octavo_build import stages
from octavo_build.content_cache import ContentCache
from octavo_build.encoders import DEFAULT, Prepared, install_encoder, prepare
from octavo_build.encoders.adapter import Places
from octavo_build.progress import Progress
from octavo_build.sources import NO_OPTIONS, Options, adapter_of, slug_of
from octavo_build.sources.expertpack import MANIFEST
from octavo_build.sources.git import located
from octavo_build.sources.identity import PACK_FILE, read_identity
from octavo_build.stages import Work
from octavo_build.vectors import INDEXED_FROM
from octavo_build.workers import Workers

Task = dict[str, Any]
Action = Callable[[], object]


@dataclass(slots=True)
class Build:
    """One run of the compiler: what to build, where, and what came of it."""

    packs: Sequence[Path]
    dist: Path
    state: Path
    """Folder of the build's own memory: work files, vector cache, doit's database."""
    workers: Workers
    progress: Progress
    strict: bool = False
    point: bool = True
    """Whether a release becomes current when it is built; otherwise `octavo release` makes it so."""
    indexed_from: int = INDEXED_FROM
    """Windows from which a pack's vectors get an index."""
    options: Options = field(default_factory=lambda: NO_OPTIONS)
    """What the command line says of the sources."""
    encoder: str | None = None
    """What the command line or the environment chose for all packs; otherwise each pack says, or has the default."""
    failures: dict[str, OctavoError | str] = field(default_factory=dict[str, "OctavoError | str"])
    """Slug to what stopped its build."""
    _encoders: dict[str, Prepared] = field(default_factory=dict[str, Prepared])

    def slugs(self) -> dict[str, Path]:
        """The folders to read by slug, fetched where a pack names another source.

        Raises ConfigError when two packs have the same slug, or one is no folder or cannot be fetched.
        """
        folders: dict[str, Path] = {}
        given: dict[str, Path] = {}
        for root in self.packs:
            folder = located(root, self.state)
            slug = slug_of(folder, self.options)
            if slug in given:
                raise ConfigError(f"{root} and {given[slug]} are both packs with the slug {slug!r}; rename one")
            folders[slug], given[slug] = folder, root
        return folders

    def encoders(self) -> dict[str, Prepared]:
        """The encoder of each pack by slug, looked at (or asked, or fetched) once.

        Raises ConfigError naming what is wrong with one.
        """
        places = Places(self.dist, self.state)
        chosen: dict[tuple[str, Path], Prepared] = {}
        for slug, folder in self.slugs().items():
            if slug in self._encoders:
                continue
            own = None if self.encoder else _chosen_by(folder)
            choice = (own, folder) if own else (self.encoder or DEFAULT, Path())
            if choice not in chosen:
                chosen[choice] = prepare(*choice, places)
            self._encoders[slug] = chosen[choice]
        return self._encoders


def _chosen_by(root: Path) -> str | None:
    """What the pack in `root` says of its encoder. Raises ConfigError for an endpoint.

    An endpoint is sent the pack's text and somebody's key: whoever builds says where, not whoever wrote the pack.
    """
    written = next(filter(None, (read_identity(root, name).text("encoder") for name in (MANIFEST, PACK_FILE))), None)
    if written is not None and written.startswith("openai:"):
        raise ConfigError(
            f"{root.name}: encoder: a pack cannot choose an endpoint; give it with --encoder or OCTAVO_ENCODER"
        )
    return written


def build_tasks(build: Build) -> Iterator[Task]:
    """All tasks of a build, for doit."""
    cache = ContentCache(build.state / "cache.sqlite")
    encoders = build.encoders()
    for name, encoder in {fingerprint(each.spec): each for each in encoders.values()}.items():
        yield _encoder_task(build, name, encoder)
    for slug, root in build.slugs().items():
        yield from _pack_tasks(build, slug, root, encoders[slug].spec, cache)


def _encoder_task(build: Build, name: str, encoder: Prepared) -> Task:
    files = (ENCODER_SPEC, ENCODER_TOKENIZER, ENCODER_ENDPOINT if encoder.spec.model else ENCODER_MODEL)
    installed = [build.dist / ENCODERS / name / file for file in files]
    return {
        "name": _task_of(encoder.spec),
        "actions": [_guarded(build, "encoder", "", partial(install_encoder, build.dist, encoder), installed)],
        "targets": [str(path) for path in installed],
        # where an endpoint is may be another than was written down
        "uptodate": [_unchanged, not encoder.spec.model],
        **_SILENT,
    }


def _task_of(encoder: EncoderSpec) -> str:
    return f"encoder:{fingerprint(encoder)[:12]}"


def _pack_tasks(build: Build, slug: str, root: Path, spec: EncoderSpec, cache: ContentCache) -> Iterator[Task]:
    encoder = build.dist / ENCODERS / fingerprint(spec)
    work = Work(build.state / "work" / slug)
    parts = work.parts
    documents, passages = parts / DOCUMENTS.file, parts / PASSAGES.file
    adapter = adapter_of(root, build.options)
    files = adapter.files(root, build.options)

    def task(stage: str, action: Action, sources: Sequence[Path], targets: Sequence[Path], **settings: object) -> Task:
        return {
            "name": f"{slug}:{stage}",
            "actions": [_guarded(build, slug, stage, action, targets)],
            "file_dep": [str(path) for path in sources],
            "targets": [str(path) for path in targets],
            "uptodate": [_unchanged, _config({"compiler": compiler_digest(), **settings})],
            **_SILENT,
        }

    def folder_task(
        stage: str, action: Action, sources: Sequence[Path], folder: Path, target: Path, **settings: object
    ) -> Task:
        made = task(stage, action, sources, [target], **settings)
        return {**made, "uptodate": [*made["uptodate"], partial(stages.is_intact, folder, target)]}

    yield task(
        "source",
        partial(stages.source, root, work, build.options),
        [path for path in files if path.is_file() and os.access(path, os.R_OK)],
        [documents, work.pack, work.extras],
        root=str(root.resolve()),
        options={"format": adapter.name, **build.options},
        files=[ascii(str(path)) for path in files],  # a name need not be UTF-8
    )
    yield {
        **task(
            "passages",
            partial(stages.passages, work, encoder, cache, compiler_digest(), spec),
            [documents],
            [passages, parts / SECTIONS.file, work.texts, work.windows, work.passage_findings],
            encoder=encoder.name,
        ),
        "task_dep": [f"build:{_task_of(spec)}"],
    }
    yield folder_task(
        "vectors",
        partial(stages.vectors, work, build.dist, encoder, cache, build.workers, build.progress, build.indexed_from),
        [work.windows],
        parts / VECTORS,
        work.columns,
        encoder=encoder.name,
        indexed_from=build.indexed_from,
    )
    yield folder_task(
        "lexical", partial(stages.lexical, work), [documents, passages, work.texts], parts / LEXICAL, work.lexical
    )
    yield task(
        "graph",
        partial(stages.graph, work),
        [documents, work.extras],
        [parts / NODES.file, parts / EDGES.file, work.graph_findings],
    )
    yield task(
        "calibrate",
        partial(stages.calibrate, work, encoder, cache, build.workers),
        [documents, passages, work.texts, work.windows, work.columns],
        [work.gate],
        encoder=encoder.name,
    )
    yield task(
        "resources",
        partial(stages.resources, work),
        [documents, work.pack],
        [parts / RESOURCES.file, work.resource_findings],
    )
    inputs = [
        documents, passages, work.pack, work.windows, work.columns, work.lexical, parts / SECTIONS.file,
        parts / NODES.file, parts / EDGES.file, parts / RESOURCES.file, work.passage_findings, work.graph_findings,
        work.resource_findings, work.gate,
    ]  # fmt: skip
    yield {
        **task(
            "release",
            partial(stages.publish, work, build.dist, encoder, build.progress, strict=build.strict, point=build.point),
            inputs,
            [work.released],
        ),
        # dist belongs to the operator, who may have removed or damaged a release: looked at in every build
        "uptodate": [False],
    }


_SILENT: Mapping[str, Any] = {"io": {"capture": False}}


def _guarded(
    build: Build, slug: str, stage: str, action: Action, targets: Sequence[Path] = ()
) -> Callable[[], dict[str, Any] | TaskFailed]:
    """An action for doit that keeps what stopped it, and remembers the content of its targets.

    `stage` is told when it is done, unless it is empty.
    """

    def run() -> dict[str, Any] | TaskFailed:
        try:
            with placing.clear_disk_errors(slug):
                action()
        except OctavoError as error:
            build.failures.setdefault(slug, error)
            return TaskFailed(str(error))
        except BaseException:  # a Rust library's panic is no Exception, and would leave doit waiting for this thread
            build.failures.setdefault(slug, traceback.format_exc())
            return TaskFailed(f"{slug}: failed {stage}")
        if stage:
            build.progress.stage(slug, stage)
        return {"targets": {path.name: sha256_file(path) for path in targets}}

    return run


def _unchanged(task: Any, values: Mapping[str, Any]) -> bool:
    """Whether every target holds what its task wrote last; doit itself only asks whether it exists."""
    written: Mapping[str, str] = values.get("targets", {})
    paths = [Path(target) for target in task.targets]
    return all(path.is_file() and written.get(path.name) == sha256_file(path) for path in paths)


def _config(settings: Mapping[str, object]) -> Any:
    return config_changed(sha256_hex(canonical_json(settings)))


@lru_cache(maxsize=1)
def compiler_digest() -> str:
    """sha256 over the sources of the compiler and the format, and the versions of the libraries that matter."""
    digest = hashlib.sha256()
    for package in (octavo_build, octavo_artifact):
        root = Path(package.__path__[0])
        for path in sorted(root.rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    digest.update(canonical_json(stages.library_versions()))
    return digest.hexdigest()


def run(build: Build) -> int:
    """Run the build through doit; returns doit's exit code, 0 when every task succeeded.

    What stopped a pack is in `build.failures`; the other packs are built all the same.
    """
    from doit.cmd_base import ModuleTaskLoader
    from doit.cmd_run import Run
    from doit.dependency import DatabaseException

    with placing.clear_disk_errors("build"), placing.exclusive(build.state):
        database = build.state / "doit.sqlite"
        namespace = {
            "DOIT_CONFIG": {
                "dep_file": str(database),
                "backend": "sqlite3",
                "reporter": "zero",
                "verbosity": 0,
            },
            "task_build": lambda: build_tasks(build),
        }
        threads = str(max(1, min(len(build.packs), os.cpu_count() or 1)))
        # doit's own main would print a traceback for what goes wrong between tasks; this lets it travel
        command = Run(task_loader=ModuleTaskLoader(namespace), config={}, bin_name="octavo", cmds={})
        try:
            return command.parse_execute(["--continue", "-n", threads, "-P", "thread"])
        except (DatabaseException, sqlite3.DatabaseError) as error:
            # doit's exception quotes the host's path over several lines; the disk's message must stay readable
            reason = str(error).splitlines()[-1].removeprefix("Original error: ")
            raise ConfigError(f"{database.name}: the build's memory cannot be used ({reason}); delete it") from error
