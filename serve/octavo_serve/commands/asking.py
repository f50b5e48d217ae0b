"""`octavo search` and `read`: what a server answers, in a shell."""

from __future__ import annotations

import json
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import Any, get_args

from octavo_artifact.command import Command
from octavo_artifact.parameters import GateMode
from octavo_serve.commands.arguments import (
    audience_argument,
    dist_argument,
    json_argument,
    opened_pack,
    pack_argument,
    styles,
    today_argument,
)


def _search_arguments(parser: ArgumentParser) -> None:
    dist_argument(parser)
    parser.add_argument("query", metavar="QUERY", help="a question or keywords")
    pack_argument(parser)
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
    today_argument(parser)
    audience_argument(parser)
    json_argument(parser)


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
    result = opened_pack(arguments).search(request)
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


def _show_hits(result: Any) -> None:
    bold, dim, plain = styles()
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


def _read_arguments(parser: ArgumentParser) -> None:
    dist_argument(parser)
    parser.add_argument("name", metavar="NAME", help="id, path, uri or fragment_id of a document")
    pack_argument(parser)
    parser.add_argument("--section", metavar="HEADING", help="only this section, by heading or anchor")
    parser.add_argument("--neighbors", action="store_true", help="with --section: also the sections around it")
    parser.add_argument("--start-line", type=int, default=1, metavar="N", help="first line to print (1)")
    today_argument(parser)
    audience_argument(parser)
    json_argument(parser)


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
    result = opened_pack(arguments).read(request)
    if arguments.json:
        print(json.dumps(result, ensure_ascii=False))
        return 0
    sys.stdout.write(result["content"])
    if result["truncated"]:
        following = result["line_range"][1] + 1
        print(f"… {result['total_lines']} lines in all; go on with --start-line {following}", file=sys.stderr)
    return 0


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
