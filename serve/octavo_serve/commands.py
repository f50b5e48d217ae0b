"""The sub-commands of the base install. Everything heavy is imported when a command runs."""

from __future__ import annotations

import json
import os
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, get_args

from octavo_artifact.command import Command
from octavo_artifact.errors import ArtifactError, ConfigError
from octavo_artifact.ids import DIGEST, SLUG
from octavo_artifact.layout import ENCODERS, MANIFEST, POINTER
from octavo_artifact.parameters import GateMode
from octavo_artifact.schema import AUDIENCES


def _dist(parser: ArgumentParser, nargs: str | None = None) -> None:
    parser.add_argument(
        "dist", nargs=nargs, type=Path, metavar="DIST", help="folder of releases that `octavo build --out` filled"
    )


def _today(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--today",
        type=_day,
        metavar="YYYY-MM-DD",
        help="day by which ages and expiries are told (the system's date in UTC, at each request)",
    )


def _audience(parser: ArgumentParser, default: str | None = AUDIENCES[0]) -> None:
    parser.add_argument(
        "--audience",
        choices=AUDIENCES,
        default=default,
        help="the narrowest circle that is served; releases for a narrower one are withheld (public)",
    )


def _day(text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day.isoformat() != text:  # Python takes other spellings too
        raise ArgumentTypeError(f"{text!r}, expected a day as YYYY-MM-DD")
    return day


def _serve_arguments(parser: ArgumentParser) -> None:
    # No defaults here: what is not given may be in the environment or in the file.
    _dist(parser, "?")
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="octavo.yaml; options and OCTAVO_* variables go before it"
    )
    _today(parser)
    _audience(parser, None)
    parser.add_argument("--host", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on, 0 for any free one (8000)")
    parser.add_argument(
        "--allowed-host",
        action="append",
        dest="allowed_hosts",
        metavar="NAME",
        help="Host header to accept besides localhost",
    )
    parser.add_argument(
        "--allowed-origin",
        action="append",
        dest="allowed_origins",
        metavar="URL",
        help="web origin to accept besides localhost",
    )


def _serve(arguments: Namespace) -> int:
    from octavo_serve.configuration import configure
    from octavo_serve.run import address, bind, serve

    names = ("dist", "audience", "host", "port", "allowed_hosts", "allowed_origins")
    given = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    settings = configure(arguments.config, os.environ, given)
    if settings.dist is None:
        raise ConfigError("dist: missing, expected a folder of releases: `octavo serve DIST`, or `dist` in octavo.yaml")
    catalog = _servable(settings.dist, arguments.today, settings.audience)
    for key in settings.keys:
        for slug in sorted((key.slugs or frozenset()) - catalog.packs.keys()):
            print(f"octavo: key {key.name} is for {slug}, which is not served", file=sys.stderr)
    listener = bind(settings)
    _announce(address(listener), list(catalog.packs.values()), keyed=bool(settings.keys))
    serve(catalog, settings, listener)
    return 0


def _announce(address: str, packs: list[Any], *, keyed: bool) -> None:
    """Where the server is, what it serves, and a client configuration ready to paste."""
    lines = [f"Octavo serves {len(packs)} pack{'s' * (len(packs) != 1)} on {address}", ""]
    for pack in packs:
        counts = pack.manifest.counts
        lines.append(
            f"  {pack.slug:<20} {pack.digest[:12]}  {counts['documents']} documents, {counts['passages']} passages"
        )
    first = packs[0].slug
    headers = {"headers": {"Authorization": "Bearer KEY"}} if keyed else {}
    configuration = {"mcpServers": {"octavo": {"type": "http", "url": f"{address}/mcp", **headers}}}
    curl = "curl -H 'Authorization: Bearer KEY'" if keyed else "curl"
    lines += [
        "",
        f"Search:  {curl} '{address}/search?pack={first}&q=how+do+I+start'",
        f"Health:  curl {address}/healthz",
        "MCP client configuration (.mcp.json):",
        "",
        json.dumps(configuration, indent=2),
        "",
        "Ctrl-C stops the server.",
    ]
    print("\n".join(lines), flush=True)


def _stdio_arguments(parser: ArgumentParser) -> None:
    _dist(parser)
    _today(parser)
    _audience(parser)


def _stdio(arguments: Namespace) -> int:
    from octavo_serve.stdio import run_stdio

    catalog = _servable(arguments.dist, arguments.today, arguments.audience)
    run_stdio(catalog)
    return 0


def _search_arguments(parser: ArgumentParser) -> None:
    _dist(parser)
    parser.add_argument("query", metavar="QUERY", help="a question or keywords")
    _pack(parser)
    parser.add_argument("-n", "--n", type=int, default=5, help="passages to show, 1 to 50 (5)")
    parser.add_argument("--type", help="only documents of this type")
    parser.add_argument("--reconstruct", action="store_true", help="with --json: each passage's exact source too")
    parser.add_argument("--tag", action="append", default=[], help="only documents with this tag; may be repeated")
    parser.add_argument("--graph", action="store_true", help="give two places to documents linked with the best ones")
    parser.add_argument(
        "--gate",
        choices=get_args(GateMode),
        help="what becomes of an answer that probably is none (the pack's own choice, else refuse)",
    )
    _today(parser)
    _audience(parser)
    _json(parser)


def _pack(parser: ArgumentParser) -> None:
    parser.add_argument("--pack", metavar="SLUG", help="which pack; needed when DIST has several")


def _json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, as the server answers")


def _search(arguments: Namespace) -> int:
    from octavo_serve.requests import SearchRequest, parse_request

    values = {
        "query": arguments.query,
        "pack": arguments.pack,
        "max_results": arguments.n,
        "type": arguments.type,
        "tags": arguments.tag,
        "graph": arguments.graph,
        "gate": arguments.gate,
        "reconstruct": arguments.reconstruct,
    }
    request = parse_request(SearchRequest, values, strict=True)
    result = _open(arguments).search(request)
    if arguments.json:
        print(json.dumps(result, ensure_ascii=False))
    elif result["refused"]:
        nearest = "; ".join(hit["title"] for hit in result["nearest"])
        tail = f"; nearest: {nearest}" if nearest else ""
        print(f"nothing found ({result['reason']}){tail}", file=sys.stderr)
    else:
        if result["doubtful"]:
            print(f"doubtful (answer_probability {result['answer_probability']:.2f})", file=sys.stderr)
        _show_hits(result)
    return 1 if result["refused"] else 0


def _open(arguments: Namespace) -> Any:
    """The pack a command means; one that is not open says why."""
    catalog = _catalog(arguments)
    slug = arguments.pack
    if slug is not None and slug in catalog.refused:
        raise ArtifactError(catalog.refused[slug])
    if slug in catalog.withheld or not catalog.packs:
        raise ArtifactError(_reasons(catalog))
    return catalog.choose(slug)


def _servable(dist: Path, today: date | None, audience: str) -> Any:
    """The catalog of a server, which tells what it does not serve. Raises ArtifactError when that is everything."""
    from octavo_serve.catalog import open_catalog

    catalog = open_catalog(dist, today, audience)
    if not catalog.packs:
        raise ArtifactError(f"no pack can be served: {_reasons(catalog)}")
    for slug, reason in catalog.refused.items():
        print(f"octavo: refused {slug}: {reason}", file=sys.stderr)
    for slug, narrower in catalog.withheld.items():
        print(f"octavo: {_withheld(slug, narrower)}", file=sys.stderr)
    return catalog


def _catalog(arguments: Namespace) -> Any:
    from octavo_serve.catalog import open_catalog

    return open_catalog(arguments.dist, arguments.today, arguments.audience)


def _withheld(slug: str, audience: str) -> str:
    return f"withheld {slug}: the release is for {audience}; --audience {audience} serves it"


def _reasons(catalog: Any) -> str:
    withheld = (_withheld(slug, audience) for slug, audience in catalog.withheld.items())
    return "; ".join(
        dict.fromkeys([*catalog.refused.values(), *withheld])
    )  # packs of one damaged encoder give one reason


def _show_hits(result: Any) -> None:
    bold, dim, plain = _styles()
    for number, hit in enumerate(result["results"], 1):
        first, last = hit["line_range"]
        path = " > ".join(hit["heading_path"]) or hit["title"]
        print(f"{bold}{number}. {path}{plain}  {hit['score']:.3f}")
        print(f"   {dim}{hit['source_file']}:{first}-{last}  {hit['fragment_id']}{_past(hit)}{plain}")
        for line in _excerpt(hit["text"]):
            print(f"   {line}")
        print()
    print(f"{dim}{result['pack']} {result['digest'][:12]}{plain}")


def _past(hit: Any) -> str:
    """What a reader should know of a passage's age."""
    if hit["expired"]:
        return f"  expired {hit['expires_at']}"
    return f"  stale: verified {hit['verified_age_days']} days ago" if hit["age_stale"] else ""


def _excerpt(text: str, lines: int = 4, width: int = 110) -> Iterator[str]:
    visible = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    shown = [line.rstrip() for line in visible.splitlines() if line.strip()]
    for line in shown[:lines]:
        yield line if len(line) <= width else line[: width - 1] + "…"
    if len(shown) > lines:
        yield "…"


def _styles() -> tuple[str, str, str]:
    colourful = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return ("\x1b[1m", "\x1b[2m", "\x1b[0m") if colourful else ("", "", "")


def _read_arguments(parser: ArgumentParser) -> None:
    _dist(parser)
    parser.add_argument("name", metavar="NAME", help="id, path, uri or fragment_id of a document")
    _pack(parser)
    parser.add_argument("--section", metavar="HEADING", help="only this section, by heading or anchor")
    parser.add_argument("--neighbors", action="store_true", help="with --section: also the sections around it")
    parser.add_argument("--start-line", type=int, default=1, metavar="N", help="first line to print (1)")
    _today(parser)
    _audience(parser)
    _json(parser)


def _read(arguments: Namespace) -> int:
    from octavo_serve.requests import ReadRequest, parse_request

    values = {
        "id": arguments.name,
        "pack": arguments.pack,
        "section": arguments.section,
        "neighbors": arguments.neighbors,
        "start_line": arguments.start_line,
    }
    request = parse_request(ReadRequest, values, strict=True)
    result = _open(arguments).read(request)
    if arguments.json:
        print(json.dumps(result, ensure_ascii=False))
        return 0
    sys.stdout.write(result["content"])
    if result["truncated"]:
        following = result["line_range"][1] + 1
        print(f"… {result['total_lines']} lines in all; go on with --start-line {following}", file=sys.stderr)
    return 0


def _artifact(parser: ArgumentParser) -> None:
    parser.add_argument(
        "artifact", type=Path, metavar="ARTIFACT", help="dist/SLUG/DIGEST, dist/SLUG for the current one, dist for all"
    )
    _json(parser)


def _named(path: Path) -> list[Path]:
    """What a path means: an artifact, a pack's folder, or each pack's folder of a dist. Raises ConfigError."""
    from octavo_artifact.manifest import pack_directories

    if (path / MANIFEST).exists() or (path / POINTER).exists() or (path.parent / POINTER).exists():
        return [path.resolve()]
    found = pack_directories(path) if path.is_dir() else []
    if not found:
        raise ConfigError(f"{path}: no artifact; expected dist/SLUG/DIGEST, dist/SLUG or dist")
    return found


def _current(path: Path) -> Path:
    """The artifact itself, or the current one of a pack's folder. Raises ArtifactError."""
    from octavo_artifact.manifest import read_pointer

    return path if _is_artifact(path) else path / read_pointer(path)


def _is_artifact(path: Path) -> bool:
    """Whether a path means an artifact, be it missing, and not the folder of a pack, be its pointer missing."""
    return DIGEST.fullmatch(path.name) is not None or (path / MANIFEST).exists()


def _verify(arguments: Namespace) -> int:
    outcomes = [_check(path) for path in _named(arguments.artifact)]
    if arguments.json:
        print(json.dumps({"artifacts": outcomes}, ensure_ascii=False))
    else:
        for outcome in outcomes:
            if outcome["error"]:
                print(f"octavo: {outcome['error']}", file=sys.stderr)
            else:
                print(f"{outcome['slug']} {outcome['digest'][:12]}  {outcome['files']} files and the encoder verified")
    return 1 if any(outcome["error"] for outcome in outcomes) else 0


def _check(path: Path) -> dict[str, Any]:
    from octavo_artifact.manifest import check_files, fingerprint, read_encoder, read_manifest

    slug = path.parent.name if _is_artifact(path) else path.name
    outcome: dict[str, Any] = {"slug": slug, "digest": None, "files": 0, "error": None}
    try:
        artifact = _current(path)
        outcome["digest"] = artifact.name
        manifest = read_manifest(artifact)
        check_files(artifact, manifest)
        name = fingerprint(manifest.encoder)
        read_encoder(artifact.parent.parent / ENCODERS / name, name)
        outcome["files"] = len(manifest.files) + 1
    except ArtifactError as error:
        outcome["error"] = str(error)
    return outcome


def _verify_hit_arguments(parser: ArgumentParser) -> None:
    _dist(parser)
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="a hit or an answer as JSON (stdin)")
    _json(parser)


def _verify_hit(arguments: Namespace) -> int:
    from octavo_artifact.errors import OctavoError
    from octavo_serve.reconstruct import prove

    outcomes: list[dict[str, Any]] = []
    for hit in _hits(arguments.file):
        outcome: dict[str, Any] = {"fragment_id": hit.get("fragment_id"), "release": None, "error": None}
        try:
            outcome["release"] = prove(arguments.dist, hit)
        except OctavoError as error:
            outcome["error"] = str(error)
        outcomes.append(outcome)
    if arguments.json:
        print(json.dumps({"hits": outcomes}, ensure_ascii=False))
    else:
        for outcome in outcomes:
            if outcome["error"]:
                print(f"octavo: {outcome['error']}", file=sys.stderr)
            else:
                print(f"{outcome['fragment_id']} is what {outcome['release']} says")
    return 1 if any(outcome["error"] for outcome in outcomes) else 0


def _hits(file: Path | None) -> list[dict[str, Any]]:
    """The hits in a file or on stdin: one, a list of them, or an answer. Raises ConfigError."""
    name = file.name if file else "stdin"
    try:
        given = json.loads(file.read_bytes() if file else sys.stdin.buffer.read())
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name}: not JSON; expected a hit, or the answer of a search") from error
    hits = given.get("results", [given]) if isinstance(given, dict) else given
    if not isinstance(hits, list) or not hits or not all(isinstance(hit, dict) for hit in hits):
        raise ConfigError(f"{name}: no hit in it; expected a hit, or the answer of a search")
    return hits


def _inspect(arguments: Namespace) -> int:
    from octavo_artifact.manifest import fingerprint, read_manifest

    described: list[dict[str, Any]] = []
    for path in _named(arguments.artifact):
        manifest = read_manifest(_current(path))
        described.append(
            {
                "digest": manifest.digest,
                "pack": manifest.pack,
                "counts": manifest.counts,
                "encoder": {"name": manifest.encoder.name, "fingerprint": fingerprint(manifest.encoder)},
                "parameters": manifest.parameters,
                "libraries": manifest.libraries,
                "files": {path: entry.size for path, entry in manifest.files.items()},
                "size": sum(entry.size for entry in manifest.files.values()),
            }
        )
    if arguments.json:
        print(json.dumps({"artifacts": described}, ensure_ascii=False))
        return 0
    bold, dim, plain = _styles()
    for one in described:
        pack = one["pack"]
        print(f"{bold}{pack['name']}{plain} ({pack['slug']} {pack['version']}, {pack['source_format']} {pack['type']})")
        print(f"  digest     {one['digest']}")
        print(f"  contents   {', '.join(f'{count} {name}' for name, count in one['counts'].items())}")
        print(f"  encoder    {one['encoder']['name']} {dim}{one['encoder']['fingerprint'][:12]}{plain}")
        print(f"  built with {', '.join(f'{name} {found}' for name, found in one['libraries'].items())}")
        print(f"  size       {one['size']:,} bytes")
        for path, size in sorted(one["files"].items()):
            print(f"    {size:>12,}  {path}")
    return 0


def _config_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="octavo.yaml (what OCTAVO_CONFIG names)")
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of octavo.yaml instead")


def _config(arguments: Namespace) -> int:
    from octavo_serve.configuration import configure, json_schema, shown

    result = json_schema() if arguments.schema else shown(configure(arguments.file, os.environ, {}))
    print(json.dumps(result, indent=2, ensure_ascii=False))
    return 0


def _key_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("action", choices=("new",), help="make a key")
    parser.add_argument(
        "--pack",
        action="append",
        required=True,
        type=_opened,
        metavar="SLUG",
        help="pack it opens, '*' for all; may be repeated",
    )
    parser.add_argument("--name", help="what you call it in octavo.yaml (the packs, joined by hyphens)")
    _json(parser)


def _opened(text: str) -> str:
    if text != "*" and not SLUG.fullmatch(text):
        raise ArgumentTypeError(f"{text!r}, expected a slug, or '*' for all packs")
    return text


def _key(arguments: Namespace) -> int:
    from octavo_serve.configuration import check_key
    from octavo_serve.keys import ALL, entry, new_key

    key = new_key()
    packs = list(dict.fromkeys(arguments.pack))
    name = arguments.name or "-".join("all" if slug == ALL else slug for slug in packs)[:64]
    made = entry(key, name, packs)
    check_key(made)
    if arguments.json:
        print(json.dumps({"key": key, "entry": made}))
        return 0
    # JSON is YAML too, and quotes what must be quoted.
    line = ", ".join(f"{field}: {json.dumps(value)}" for field, value in made.items())
    print(f"{key}\n\nThe key is shown this once. Clients send it as the header `Authorization: Bearer KEY`.")
    print(f"In octavo.yaml, under `keys:`\n\n  - {{{line}}}")
    return 0


SERVE = Command(
    name="serve",
    summary="serve releases over MCP and HTTP",
    description="Serve the current release of every pack in DIST: MCP at /mcp and /packs/SLUG/mcp, GET /search and\n"
    "GET /healthz.\n"
    "Each release is verified first; a damaged one is refused by name and the others are served.\n"
    "Settings come from options, then OCTAVO_* variables, then the file --config or OCTAVO_CONFIG names.\n"
    "Exit codes: 1 nothing can be served, 2 wrong arguments or settings.",
    examples=(
        "octavo serve dist",
        "octavo serve dist --host 0.0.0.0 --port 80 --allowed-host kb.example.org",
        "octavo serve --config octavo.yaml",
    ),
    add_arguments=_serve_arguments,
    run=_serve,
)

STDIO = Command(
    name="stdio",
    summary="serve releases over MCP on standard input and output",
    description="Serve DIST to one MCP client that starts this command. Only the protocol is written to stdout.",
    examples=(
        "octavo stdio dist",
        '.mcp.json: {"mcpServers": {"octavo": {"command": "octavo", "args": ["stdio", "dist"]}}}',
    ),
    add_arguments=_stdio_arguments,
    run=_stdio,
)

SEARCH = Command(
    name="search",
    summary="search a pack from the shell",
    description="Print the passages that answer QUERY, best first, with file, lines and fragment id.\n"
    "Exit codes: 0 found, 1 nothing found or the pack is damaged, 2 wrong arguments.",
    examples=(
        "octavo search dist 'how do I roll back?' --pack octavo",
        "octavo search dist 'rapid shutdown' --pack solar-diy -n 3 --json | jq -r '.results[].fragment_id'",
    ),
    add_arguments=_search_arguments,
    run=_search,
)

READ = Command(
    name="read",
    summary="print a document of a pack",
    description="Print a document by its id, path, uri, or by the fragment_id of a search result.",
    examples=("octavo read dist overview.md --pack octavo", "octavo read dist octavo/concepts/digest --json"),
    add_arguments=_read_arguments,
    run=_read,
)

VERIFY = Command(
    name="verify",
    summary="check releases against their digests",
    description="Check every file of an artifact, and its encoder, against the hashes that its digest vouches for.\n"
    "Exit codes: 0 all intact, 1 one is not (the file is named), 2 nothing there to verify.",
    examples=("octavo verify dist", "octavo verify dist/octavo --json"),
    add_arguments=_artifact,
    run=_verify,
)

VERIFY_HIT = Command(
    name="verify-hit",
    summary="prove that a hit is what a release says",
    description="Check, offline, that a search result's bytes, hash and text belong to the release that it names.\n"
    "Exit codes: 0 all proven, 1 one is not (and why), 2 no hit was given.",
    examples=(
        "octavo search dist 'how do I roll back?' --pack octavo --json | octavo verify-hit dist",
        "octavo verify-hit dist answer.json --json",
    ),
    add_arguments=_verify_hit_arguments,
    run=_verify_hit,
)

INSPECT = Command(
    name="inspect",
    summary="show what an artifact holds",
    description="Show identity, counts, encoder, parameters, library versions and files of an artifact.",
    examples=("octavo inspect dist/octavo", "octavo inspect dist --json | jq '.artifacts[].counts'"),
    add_arguments=_artifact,
    run=_inspect,
)

CONFIG = Command(
    name="config",
    summary="check a server's configuration, or print its JSON Schema",
    description="Check octavo.yaml together with the OCTAVO_* variables, as `octavo serve` does, and print the\n"
    "settings that they make as JSON, without the hashes of keys.\n"
    "Exit codes: 0 right, 2 wrong (the key is named).",
    examples=("octavo config octavo.yaml", "octavo config --schema > octavo.schema.json"),
    add_arguments=_config_arguments,
    run=_config,
)

KEY = Command(
    name="key",
    summary="make an API key",
    description="Make a key for the server and print it, this once, with the entry for octavo.yaml, which holds its\n"
    "hash only.",
    examples=(
        "octavo key new --pack octavo --name alice",
        "octavo key new --pack octavo --pack solar-diy",
        "octavo key new --pack '*' --json | jq -r .key",
    ),
    add_arguments=_key_arguments,
    run=_key,
)
