"""`octavo serve`, `stdio`, and what configures them: `config`, `key`."""

from __future__ import annotations

import json
import os
import signal
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from octavo_artifact.command import Command
from octavo_artifact.errors import ConfigError
from octavo_artifact.ids import SLUG
from octavo_serve.commands.arguments import (
    audience_argument,
    day,
    dist_argument,
    json_argument,
    lexical_argument,
    servable,
    today_argument,
)

if TYPE_CHECKING:
    from octavo_serve.settings import ServerSettings


def _serve_arguments(parser: ArgumentParser) -> None:
    # No defaults here: what is not given may be in the environment or in the file.
    dist_argument(parser, "?")
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="octavo.yaml; options and OCTAVO_* variables go before it"
    )
    today_argument(parser)
    audience_argument(parser, None)
    lexical_argument(parser)
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
    parser.add_argument("--workers", type=int, metavar="N", help="processes that answer (1)")
    parser.add_argument("--access-log", action="store_true", default=None, help="log a line for each request")
    _query_log_argument(parser, "stdout, unix:/path or udp:host:port")


def _query_log_argument(parser: ArgumentParser, expected: str) -> None:
    parser.add_argument(
        "--query-log", metavar="WHERE", help=f"write a JSON line for each question to packs: to {expected}"
    )


def _serve(arguments: Namespace) -> int:
    from octavo_serve.configuration import configure
    from octavo_serve.over_http.run import address, bind, serve
    from octavo_serve.watching.logs import configure_logs
    from octavo_serve.watching.traces import start_traces

    names = "dist audience lexical_only host port allowed_hosts allowed_origins workers access_log query_log".split()
    given = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    settings = configure(arguments.config, os.environ, given)
    _check_passages(settings, "serve")
    configure_logs(settings)
    releases = _open_library(settings, arguments.today, tell=True)
    for key in settings.keys:
        for slug in sorted((key.slugs or frozenset()) - releases.packs.keys()):
            print(f"octavo: key {key.name} is for {slug}, which is not served", file=sys.stderr)
    listener = bind(settings)
    # Until the server listens for it, which it does once it runs: before, it would be the end.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # whoever reads the query log from stdout gets nothing else there
    stream = sys.stderr if settings.query_log == "stdout" else sys.stdout
    _announce(address(listener), list(releases.packs.values()), stream, keyed=bool(settings.keys or settings.oauth))
    if settings.workers > 1:
        from octavo_serve.over_http.processes import serve_by_processes

        del releases  # they were opened to see whether they can be
        serve_by_processes(partial(_open_library, settings, arguments.today), settings, listener)
        return 0
    start_traces()
    serve(releases, settings, listener)
    return 0


def _check_passages(settings: ServerSettings, command: str) -> None:
    if settings.dist is None and not (settings.answers and settings.answers.retriever):
        raise ConfigError(
            f"dist: missing, expected a folder of releases: `octavo {command} DIST`, or `dist` in octavo.yaml"
        )


def _open_library(settings: ServerSettings, today: date | None, *, tell: bool = False) -> Any:
    """The packs that a server serves; `tell` the operator what is not served, and why. Raises ArtifactError.

    There are none where only answers are served, from passages that another server finds.
    """
    from octavo_serve.catalog import Catalog

    if settings.dist is None:
        return Catalog({}, {})
    return servable(
        settings.dist,
        today,
        settings.audience,
        operator_of(settings),
        tell=tell,
        keep=settings.keep_releases,
        mount=settings.mount,
    )


def operator_of(settings: ServerSettings) -> Any:
    """What the settings add to every search. Raises ConfigError for a reranker that does not work."""
    from octavo_serve.rerank import open_reranker
    from octavo_serve.search import Operator

    reranker = open_reranker(settings.reranker, os.environ) if settings.reranker else None
    return Operator(settings.retrieval, reranker, settings.lexical_only)


def _announce(address: str, packs: list[Any], stream: TextIO, *, keyed: bool) -> None:
    """Where the server is, what it serves, and a client configuration ready to paste."""
    lines = [f"Octavo serves {len(packs)} pack{'s' * (len(packs) != 1)} on {address}", ""]
    for pack in packs:
        counts = pack.manifest.counts
        lines.append(
            f"  {pack.slug:<20} {pack.digest[:12]}  {counts['documents']} documents, {counts['passages']} passages"
        )
    first = packs[0].slug if packs else ""
    headers = {"headers": {"Authorization": "Bearer KEY"}} if keyed else {}
    configuration = {"mcpServers": {"octavo": {"type": "http", "url": f"{address}/mcp", **headers}}}
    curl = "curl -H 'Authorization: Bearer KEY'" if keyed else "curl"
    search = [f"Search:  {curl} '{address}/search?pack={first}&q=how+do+I+start'"]
    lines += [
        "",
        *(search if packs else ["Passages of answers are found by another server."]),
        f"Health:  curl {address}/healthz",
        "MCP client configuration (.mcp.json):",
        "",
        json.dumps(configuration, indent=2),
        "",
        "Ctrl-C stops the server.",
    ]
    print("\n".join(lines), file=stream, flush=True)


def _stdio_arguments(parser: ArgumentParser) -> None:
    dist_argument(parser, "?")
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="octavo.yaml; options and OCTAVO_* variables go before it"
    )
    today_argument(parser)
    audience_argument(parser, None)
    lexical_argument(parser)
    _query_log_argument(parser, "unix:/path or udp:host:port")


def _stdio(arguments: Namespace) -> int:
    from octavo_serve.configuration import configure
    from octavo_serve.over_mcp.stdio import run_stdio
    from octavo_serve.watching.logs import configure_logs
    from octavo_serve.watching.traces import start_traces

    names = "dist audience lexical_only query_log".split()
    given = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    # Without a file the variables do not count: a client starts this in whatever environment it has.
    settings = configure(arguments.config, os.environ if arguments.config else {}, given)
    _check_passages(settings, "stdio")
    if settings.query_log == "stdout":
        raise ConfigError("--query-log: stdout is the protocol's here, expected unix:/path or udp:host:port")
    configure_logs(settings)
    library = _open_library(settings, arguments.today, tell=True)
    start_traces()
    run_stdio(library, settings)
    return 0


def _config_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="octavo.yaml (what OCTAVO_CONFIG names)")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--schema", action="store_true", help="print the JSON Schema of octavo.yaml instead")
    instead.add_argument("--example", action="store_true", help="print an octavo.yaml with every setting instead")


def _config(arguments: Namespace) -> int:
    from octavo_serve.configuration import configure, json_schema, shown

    if arguments.example:
        from octavo_serve.example import example_file

        sys.stdout.write(example_file())
        return 0
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
    parser.add_argument(
        "--expires", type=day, metavar="YYYY-MM-DD", help="day (UTC) from which it opens nothing any more (never)"
    )
    json_argument(parser)


def _opened(text: str) -> str:
    if text != "*" and not SLUG.fullmatch(text):
        raise ArgumentTypeError(f"{text!r}, expected a slug, or '*' for all packs")
    return text


def _key(arguments: Namespace) -> int:
    from octavo_serve.callers.keys import ALL, entry, new_key
    from octavo_serve.configuration import check_key

    key = new_key()
    packs = list(dict.fromkeys(arguments.pack))
    name = arguments.name or "-".join("all" if slug == ALL else slug for slug in packs)[:64]
    made = entry(key, name, packs, arguments.expires)
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
    "Keys, rate limits and a reranker have no options: the file or variables set them.\n"
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
    description="Serve DIST to one MCP client that starts this command. Only the protocol is written to stdout.\n"
    "Of the file --config names count the settings of packs, searches, answers and logs; there are no keys here.",
    examples=(
        "octavo stdio dist",
        "octavo stdio --config octavo.yaml",
        '.mcp.json: {"mcpServers": {"octavo": {"command": "octavo", "args": ["stdio", "dist"]}}}',
    ),
    add_arguments=_stdio_arguments,
    run=_stdio,
)


CONFIG = Command(
    name="config",
    summary="check a server's configuration, or print its JSON Schema or an example",
    description="Check octavo.yaml together with the OCTAVO_* variables, as `octavo serve` does, and print the\n"
    "settings that they make as JSON, without the hashes of keys.\n"
    "Exit codes: 0 right, 2 wrong (the key is named).",
    examples=(
        "octavo config octavo.yaml",
        "octavo config --example > octavo.yaml",
        "octavo config --schema > octavo.schema.json",
    ),
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
        "octavo key new --pack octavo --pack solar-diy --expires 2027-07-01",
        "octavo key new --pack '*' --json | jq -r .key",
    ),
    add_arguments=_key_arguments,
    run=_key,
)
