"""The sub-commands that the extra [build] adds. Everything heavy is imported when a command runs."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from octavo_artifact.command import Command
from octavo_artifact.errors import ArtifactError, ConfigError, OctavoError, PackError
from octavo_artifact.layout import POINTER, REPORT, TABLES, VECTORS
from octavo_artifact.schema import AUDIENCES
from octavo_build import knowledge, source_options
from octavo_build.lint import command as lint_command


def _build_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("packs", nargs="+", type=Path, metavar="PACK", help="folder of a pack")
    parser.add_argument("--out", type=Path, default=Path("dist"), metavar="DIST", help="where releases go (dist)")
    parser.add_argument("-j", "--jobs", type=int, metavar="N", help="processes that encode (one for each CPU)")
    source_options.add_format(parser)
    source_options.add_repository(parser)
    source_options.add_encoder(parser)
    parser.add_argument("--audience", choices=AUDIENCES, help="the narrowest circle that the releases are for (public)")
    parser.add_argument("--strict", action="store_true", help="release nothing that has an error or a warning")
    parser.add_argument("--no-point", action="store_true", help="make nothing current; `octavo release` does it later")
    parser.add_argument(
        "--state",
        type=Path,
        default=Path(".octavo"),
        metavar="DIR",
        help="the build's own memory (.octavo)",
    )
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, no findings")


def _build(arguments: Namespace) -> int:
    from octavo_build.progress import make_progress
    from octavo_build.tasks import Build, run
    from octavo_build.workers import Workers

    packs = _folders(arguments.packs)
    with Workers(arguments.jobs) as workers, make_progress(quiet=arguments.quiet) as progress:
        build = Build(
            packs,
            arguments.out,
            arguments.state,
            workers,
            progress,
            arguments.strict,
            point=not arguments.no_point,
            options=_options(arguments),
            encoder=source_options.encoder_of(arguments),
        )
        slugs = build.slugs()
        build.encoders()  # what is wrong with one is told before doit, which would wrap it, asks for them
        code = run(build)
    if "encoder" in build.failures:
        raise _as_error(build.failures["encoder"])
    if code and not build.failures:
        raise OctavoError("doit could not run the build's tasks; its memory may be damaged: delete the state folder")
    outcomes = [_outcome(slug, build.dist, build.state, build.failures.get(slug)) for slug in slugs]
    if arguments.json:
        print(json.dumps({"packs": outcomes}, ensure_ascii=False))
    else:
        for outcome in outcomes:
            _say(outcome)
    return 1 if code or build.failures else 0


def _options(arguments: Namespace) -> dict[str, str]:
    """What the command line says of the sources and of what is released of them."""
    audience = {} if arguments.audience is None else {"audience": arguments.audience}
    return {**source_options.options_of(arguments), **audience}


def _folders(paths: list[Path]) -> list[Path]:
    """The packs among the arguments. A file that a shell's `packs/*` brought along is told and left out."""
    files = [path for path in paths if path.is_file()]
    if len(files) < len(paths):
        for path in files:
            print(f"octavo: {path}: a file, not a pack; left out", file=sys.stderr)
        return [path for path in paths if path not in files]
    return paths


def _as_error(failure: OctavoError | str) -> OctavoError:
    return failure if isinstance(failure, OctavoError) else OctavoError(f"the build failed:\n{failure}")


def _outcome(slug: str, dist: Path, state: Path, failure: OctavoError | str | None) -> dict[str, Any]:
    from octavo_build.stages import Work

    work = Work(state / "work" / slug)
    if failure is not None:
        # a pack that was refused for its findings got as far as its report; others have none of this build
        findings = _findings(work.parts) if isinstance(failure, PackError) else []
        return {"slug": slug, "error": str(_as_error(failure)), "findings": findings}
    released = json.loads(work.released.read_bytes())
    artifact = dist / slug / released["digest"]
    return {"slug": slug, **released, "artifact": str(artifact), "findings": _findings(work.parts)}


def _findings(parts: Path) -> list[dict[str, Any]]:
    return json.loads((parts / REPORT).read_bytes())["findings"]


def _say(outcome: dict[str, Any]) -> None:
    """One pack's outcome for a person."""
    if "error" in outcome:
        print(f"octavo: {outcome['error']}", file=sys.stderr)
        return
    counts = outcome["counts"]
    print(
        f"{outcome['slug']} {outcome['digest'][:12]}  {counts['documents']} documents, {counts['passages']} passages, "
        f"{counts['windows']} windows; {counts['error']} errors, {counts['warning']} warnings  {outcome['artifact']}"
    )


def _aks_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("pack", type=Path, metavar="PACK", help="folder of a pack")


def _aks(arguments: Namespace) -> int:
    from octavo_artifact.ids import canonical_json
    from octavo_build.agent_knowledge import records, without_id
    from octavo_build.sources import read

    pack = read(arguments.pack)
    sys.stdout.write(b"".join(map(canonical_json, records(pack))).decode())
    if left_out := without_id(pack):
        print(f"octavo: {pack.slug}: {left_out} documents have no id of their own; left out", file=sys.stderr)
    return 0


def _release_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("artifact", type=Path, metavar="ARTIFACT", help="dist/SLUG/DIGEST")
    gate = parser.add_mutually_exclusive_group()
    gate.add_argument("--evals", type=Path, metavar="DIR", help="folder of the pack's questions (evals/SLUG)")
    gate.add_argument("--ungated", action="store_true", help="make it current without asking any question")
    parser.add_argument("--today", metavar="YYYY-MM-DD", help="day of the answers (that of the questions)")


def _release(arguments: Namespace) -> int:
    from octavo_artifact import placing
    from octavo_artifact.ids import DIGEST

    artifact: Path = arguments.artifact.absolute()
    if not (DIGEST.fullmatch(artifact.name) and artifact.is_dir()):
        raise ConfigError(f"{arguments.artifact}: not a release, expected dist/SLUG/DIGEST")
    slug = placing.verify(artifact).slug
    if slug != artifact.parent.name:
        raise ArtifactError(f"{artifact.parent.name}/{artifact.name[:12]}: is of the pack {slug}")
    if not arguments.ungated and (code := _gate(artifact, arguments.evals or Path("evals", slug), arguments.today)):
        print(f"octavo: {slug}: the gate does not pass; the current release stays", file=sys.stderr)
        return code
    with placing.exclusive(artifact.parent), placing.clear_disk_errors(slug):
        placing.point(artifact)
    print(f"{slug} {artifact.name[:12]} is current")
    return 0


def _gate(artifact: Path, evals: Path, today: str | None) -> int:
    """The exit code of the gate: a command of its own, for the compiler does not know how answers are evaluated."""
    import subprocess

    if not evals.is_dir():
        raise ConfigError(f"{evals}: no folder with questions; name one with --evals, or say --ungated")
    command = [sys.executable, "-P", "-m", "octavo_serve", "eval", "gate", "release", str(artifact)]
    sys.stdout.flush()
    return subprocess.run(
        [*command, "--evals", str(evals), *(["--today", today] if today else [])], check=False
    ).returncode


def _sql_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("artifact", type=Path, metavar="ARTIFACT", help="dist/SLUG/DIGEST, or dist/SLUG")
    parser.add_argument("query", metavar="QUERY", help="SQL over documents, passages, edges, nodes, resources, vectors")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")


def _sql(arguments: Namespace) -> int:
    import duckdb
    from pyarrow import parquet

    from octavo_artifact.manifest import read_pointer

    artifact: Path = arguments.artifact
    if (artifact / POINTER).exists():
        artifact /= read_pointer(artifact)
    if not (artifact / TABLES[0].file).exists():
        raise ArtifactError(f"{artifact}: not an artifact; expected dist/SLUG or dist/SLUG/DIGEST")
    connection = duckdb.connect()
    for table in TABLES:
        connection.register(table.file.removesuffix(".parquet"), parquet.read_table(artifact / table.file))
    if "vectors" in arguments.query.casefold():
        import lance

        connection.register("vectors", lance.dataset(artifact / VECTORS).to_table())
    # from here on the query sees the tables and nothing else: no file (nor one to spill to), no network, no setting
    connection.execute("SET temp_directory = ''; SET enable_external_access = false; SET lock_configuration = true")
    try:
        # lazy: the query runs when its rows are asked for; without a statement there is nothing to ask
        result: Any = connection.sql(arguments.query)
        if result is not None and arguments.json:
            rows = [dict(zip(result.columns, row, strict=True)) for row in result.fetchall()]
            print(json.dumps(rows, ensure_ascii=False, default=_plain))
        elif result is not None:
            result.show(max_width=200)
    except duckdb.Error as error:
        raise OctavoError(f"sql: {error}") from error
    return 0


def _plain(value: object) -> object:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


BUILD = Command(
    name="build",
    summary="compile packs into releases",
    description="Compile each PACK (an ExpertPack, or any folder of Markdown) into an immutable release under DIST\n"
    "and make it current. Only what changed is done again. Findings go to stderr, the releases to stdout.\n"
    "Exit codes: 0 all released, 1 a pack was not, 2 wrong arguments or settings.",
    examples=(
        "octavo build packs/octavo",
        "octavo build packs/* --out dist --strict",
        "octavo build docs --json | jq -r '.packs[].digest'",
        "octavo build packs/octavo --encoder path:models/bge-small",
        "octavo build ../billing ../search --source-format repository --roots design,docs",
    ),
    add_arguments=_build_arguments,
    run=_build,
    extra="build",
)

RELEASE = Command(
    name="release",
    summary="make a release current if the gate passes",
    description="Ask the questions of the pack's evaluation of ARTIFACT and of the current release. If it clears the\n"
    "floors and is not worse than the current one by more than chance and noise, it becomes the current one.\n"
    "Exit codes: 0 it is current, 1 the gate does not pass or the release is damaged, 2 it could not be judged.",
    examples=(
        "octavo release $(octavo build packs/octavo --no-point --json | jq -r '.packs[].artifact')",
        "octavo release dist/octavo/DIGEST --evals evals/octavo",
        "octavo release dist/octavo/DIGEST --ungated",
    ),
    add_arguments=_release_arguments,
    run=_release,
    extra="build",
)

LINT = Command(
    name="lint",
    summary="check packs without building them",
    description="Check the source of each PACK: the checks of the official ExpertPack validator under their own\n"
    "codes, what a build would find, and more. Findings go to stdout.\n"
    "Exit codes: 0 nothing that fails, 1 a finding that does, 2 wrong arguments.",
    examples=(
        "octavo lint packs/octavo",
        "octavo lint packs/* --strict --provenance --today 2026-11-30",
        "octavo lint packs/* --format sarif > lint.sarif",
        "octavo lint packs/octavo --except markdown-links --fail-on warning",
        "octavo lint . --source-format repository",
        "octavo lint packs/octavo --deep dist/octavo",
        "octavo lint --schema frontmatter > frontmatter.schema.json",
    ),
    add_arguments=lint_command.add_arguments,
    run=lint_command.run,
    extra="build",
)

KNOWLEDGE = Command(
    name="knowledge",
    summary="serve a repository's own knowledge over MCP on standard input and output",
    description="Compile what each REPO exports (Markdown with `export: true` and a `type` under its roots) into a\n"
    "cache folder outside of it, only what changed, and serve that to the MCP client that started this command.\n"
    "Exit codes: 1 nothing can be served, 2 wrong arguments.",
    examples=(
        "octavo knowledge",
        "octavo knowledge ../billing ../search --roots design,docs",
        "octavo knowledge --build-only",
        '.mcp.json: {"mcpServers": {"knowledge": {"command": "octavo", "args": ["knowledge"]}}}',
    ),
    add_arguments=knowledge.add_arguments,
    run=knowledge.run,
    extra="build",
)

AKS = Command(
    name="aks",
    summary="export a pack as agent knowledge, a record a document",
    description="Print the public documents of PACK as JSON Lines (expertpack.agent_knowledge.v1), sorted by id: what\n"
    "each says and where, its hash and relations. One without an id is left out; octavo lint --aks names it.",
    examples=(
        "octavo aks packs/octavo > octavo.aks.jsonl",
        "octavo aks packs/octavo | jq -r '[.id, .canonical_statement] | @tsv'",
    ),
    add_arguments=_aks_arguments,
    run=_aks,
    extra="build",
)

SQL = Command(
    name="sql",
    summary="ask an artifact's tables in SQL, read-only",
    description="Run a DuckDB query over the tables of an artifact: documents, passages, edges, nodes, resources, and\n"
    "vectors. The query can read nothing else and write nothing.",
    examples=(
        "octavo sql dist/octavo 'select type, count(*) from documents group by type order by 2 desc'",
        "octavo sql dist/octavo 'select d.path, max(p.tokens) from passages p join documents d\n"
        "      on d.path = (select path from documents limit 1 offset p.document) group by 1' --json",
    ),
    add_arguments=_sql_arguments,
    run=_sql,
    extra="build",
)
