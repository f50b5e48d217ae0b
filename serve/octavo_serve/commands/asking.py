"""`octavo search` and `read`: what a server answers, in a shell."""

from __future__ import annotations

import json
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Container, Iterator
from typing import Any, get_args

from octavo_artifact.command import Command
from octavo_artifact.errors import RequestError
from octavo_artifact.parameters import GateMode, Tier
from octavo_serve.commands.arguments import (
    audience_argument,
    dist_argument,
    json_argument,
    opened_pack,
    opened_packs,
    pack_argument,
    styles,
    today_argument,
)


def _search_arguments(parser: ArgumentParser) -> None:
    dist_argument(parser)
    parser.add_argument("query", metavar="QUERY", help="a question or keywords")
    parser.add_argument("--pack", metavar="SLUG", help="only this pack (all packs of DIST, ranked together)")
    parser.add_argument("-n", "--n", type=int, default=5, help="passages to show, 1 to 50 (5)")
    parser.add_argument("--type", help="only documents of this type")
    parser.add_argument("--reconstruct", action="store_true", help="with --json: each passage's exact source too")
    parser.add_argument("--tag", action="append", default=[], help="only documents with this tag; may be repeated")
    parser.add_argument("--path", metavar="FOLDER", help="only documents in this folder, or this one file")
    parser.add_argument("--tier", choices=get_args(Tier), help="only documents of this context tier")
    parser.add_argument("--verified-within", type=int, metavar="DAYS", help="only documents verified in so many days")
    parser.add_argument("--graph", action="store_true", help="give two places to documents linked with the best ones")
    parser.add_argument(
        "--gate",
        choices=get_args(GateMode),
        help="what becomes of an answer that probably is none (the pack's own choice, else refuse)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the search that is to differ from the pack's, such as diversity=0.3; may be repeated",
    )
    parser.add_argument("--explain", action="store_true", help="also show what each stage made of each passage")
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
        "path": arguments.path,
        "tier": arguments.tier,
        "verified_within": arguments.verified_within,
        "graph": arguments.graph or None,
        "gate": arguments.gate,
        "reconstruct": arguments.reconstruct,
        "retrieval": dict(map(_setting, arguments.set)),
        "explain": arguments.explain,
    }
    request = parse_request(SearchRequest, values, strict=True, bounded=False)
    result = opened_packs(arguments).search(request)
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
    if arguments.explain and not arguments.json:
        _show_explanation(result)
    return 1 if result["refused"] else 0


def _show_hits(result: Any) -> None:
    bold, dim, plain = styles()
    for number, hit in enumerate(result["results"], 1):
        first, last = hit["line_range"]
        path = " > ".join(hit["heading_path"]) or hit["title"]
        pack = "" if result["pack"] else f"{hit['pack']}: "
        print(f"{bold}{number}. {pack}{path}{plain}  {hit['score']:.3f}{_added(hit)}")
        print(f"   {dim}{hit['source_file']}:{first}-{last}  {hit['fragment_id']}{past(hit)}{plain}")
        for line in _excerpt(hit["text"], {hit["title"], *hit["heading_path"]}):
            print(f"   {line}")
        if hit["duplicates"]:
            print(f"   {dim}says the same: {', '.join(hit['duplicates'])}{plain}")
        print()
    if result["missing"]:
        print(f"degraded: without {', '.join(result['missing'])}", file=sys.stderr)
    packs = result["pack"] or "several packs"
    found = (
        f", answer_probability {result['answer_probability']:.2f}" if result["answer_probability"] is not None else ""
    )
    print(f"{dim}{packs} {result['digest'][:12]}{found}{plain}")


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise RequestError("--set", f"{text!r}, expected NAME=VALUE")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def _show_explanation(result: Any) -> None:
    """How the query was read, what each stage took, and where each result stood after it."""
    explanation = result["explanation"]
    bold, dim, plain = styles()
    read = {name: explanation[name] for name in ("terms", "literals", "phrases", "languages")}
    overrides = [f"{name}={json.dumps(value)}" for name, value in result["overrides"].items()]
    print(f"\n{bold}query{plain}")
    for name, values in {"intent": [explanation["intent"]], **read, "overrides": overrides}.items():
        if values:
            print(f"   {name:<18} {', '.join('|'.join(each) if isinstance(each, list) else each for each in values)}")
    print(f"\n{bold}{'stage':<21} {'ms':>10} {'passages':>9}{plain}")
    for step in explanation["stages"]:
        passages = "-" if step["passages"] is None else step["passages"]
        print(f"   {step['stage']:<18} {step['milliseconds']:>10.3f} {passages:>9}")
    for number, (fragment, steps) in enumerate(explanation["hits"].items(), 1):
        print(f"\n{bold}{number}. {fragment}{plain}")
        print(f"   {dim}{'stage':<18} {'rank':>10} {'score':>9}{plain}")
        for step in steps:
            rank, score = ("-", "-") if step["rank"] is None else (step["rank"], f"{step['score']:.4f}")
            print(f"   {step['stage']:<18} {rank:>10} {score:>9}")


def _added(hit: Any) -> str:
    """Why a passage is there that was not found itself."""
    if hit["requires_expanded"]:
        return "  required by a result"
    return "  linked with a result" if hit["graph_expanded"] else ""


def past(hit: Any) -> str:
    """What a reader should know of a passage's age."""
    if hit["expired"]:
        return f"  expired {hit['expires_at']}"
    return f"  stale: verified {hit['verified_age_days']} days ago" if hit["age_stale"] else ""


def _excerpt(text: str, told: Container[str], lines: int = 4, width: int = 110) -> Iterator[str]:
    """The first lines of a passage, without headings that were `told` above it."""
    visible = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    shown = [line.rstrip() for line in visible.splitlines() if line.strip()]
    if shown and shown[0].lstrip("# ") in told:
        shown = shown[1:] or shown
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
    request = parse_request(ReadRequest, values, strict=True, bounded=False)
    result = opened_pack(arguments).read(request)
    if arguments.json:
        print(json.dumps(result, ensure_ascii=False))
    else:
        sys.stdout.write(result["content"])
    return 0


SEARCH = Command(
    name="search",
    summary="search a pack from the shell",
    description="Print the passages that answer QUERY, best first, with file, lines and fragment id:\n"
    "of one pack, or of all packs of DIST, ranked together.\n"
    "Exit codes: 0 found, 1 nothing found or the pack is damaged, 2 wrong arguments.",
    examples=(
        "octavo search dist 'how do I roll back?' --pack octavo",
        "octavo search dist 'error E0308' --path reference --explain",
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
