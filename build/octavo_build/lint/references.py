"""Links in a document's text, with their lines; what stands in code or in a comment is none."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from octavo_build.bodies.body import Block, Body, decode

# Bounded repeats keep the search linear in what is not a link after all.
_TOKEN = re.compile(
    rb"\\[!-/:-@\[-`{-~]|(?P<ticks>`+)"
    rb"|\[\[(?P<wiki>[^\[\]\r\n]{1,400})\]\]"
    rb"|\]\(<?(?P<path>[^()<>\s#]{1,400}\.md)(?P<anchor>#[^()<>\s]{0,400})?>?(?:\s+[\"'(][^\r\n]{0,400}?)?\)"
)
_TICKS = re.compile(rb"`+")


@dataclass(frozen=True, slots=True)
class Reference:
    """A link as written."""

    kind: str
    """`wikilink` or `link` (Markdown, to a .md file)."""
    target: str
    """Without alias and anchor, percent-decoded for a Markdown link; empty for a place in the same document."""
    anchor: str
    line: int
    """In the raw file, counted from 1."""


def find_references(body: Body) -> Iterator[Reference]:
    """Wikilinks and Markdown links of a body, in order."""
    yield from _of_blocks(body, body.blocks)


def _of_blocks(body: Body, blocks: Sequence[Block]) -> Iterator[Reference]:
    for block in blocks:
        if block.children:
            yield from _of_blocks(body, block.children)
        elif block.kind not in ("fence", "code", "definition"):
            yield from _of_text(body, block.start, block.end)


def _of_text(body: Body, start: int, end: int) -> Iterator[Reference]:
    raw = body.raw
    runs: dict[int, list[int]] = defaultdict(list)
    for run in _TICKS.finditer(raw, start, end):
        runs[run.end() - run.start()].append(run.start())
    while token := _TOKEN.search(raw, start, end):
        start = token.end()
        if ticks := token["ticks"]:
            closing = bisect_left(runs[len(ticks)], start)
            if closing < len(runs[len(ticks)]):
                start = runs[len(ticks)][closing] + len(ticks)
        elif not _is_hidden(body, token.start()) and (reference := _reference(body, token)):
            yield reference


def _reference(body: Body, token: re.Match[bytes]) -> Reference | None:
    line = body.line_at(token.start())
    if token["wiki"] is not None:
        written = decode(token["wiki"]).replace("\\|", "|").partition("|")[0]
        target, _, anchor = written.partition("#")
        return Reference("wikilink", target.strip(), anchor.strip(), line)
    if token["path"] is None:
        return None
    path = unquote(decode(token["path"]))
    anchor = unquote(decode((token["anchor"] or b"")[1:]))
    return None if re.match(r"[a-z][a-z0-9+.-]*:|//", path, re.IGNORECASE) else Reference("link", path, anchor, line)


def _is_hidden(body: Body, position: int) -> bool:
    index = bisect_right(body.hidden, position, key=lambda hidden: hidden.start) - 1
    return index >= 0 and position < body.hidden[index].end
