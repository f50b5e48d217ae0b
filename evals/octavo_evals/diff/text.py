"""A comparison as text: for a terminal, and as Markdown for release notes. Both say the same in the same order."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from octavo_evals.diff.comparison import Comparison
from octavo_evals.diff.contents import DocumentChange, FieldChange
from octavo_evals.diff.manifests import Amount
from octavo_evals.diff.questions import Movement, Place

SHOWN = 20
"""Lines of a list; the rest is counted."""

DOCUMENT_KINDS = ("added", "removed", "changed", "moved")
PASSAGE_KINDS = ("added", "removed", "changed", "moved", "context")
SIGNS = {"added": "+", "removed": "-", "changed": "~", "moved": ">"}

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Item:
    """A line of a list."""

    sign: str
    """`+`, `-`, `~`, `>`, or a space."""
    code: str
    """A name: a path, a fragment id, a field."""
    note: str = ""
    word: str = ""
    """What the sign says, where it is not plain from the heading."""


@dataclass(frozen=True, slots=True)
class Block:
    """A heading, what is to be said in short, and a list."""

    title: str
    summary: str
    items: tuple[Item, ...] = ()
    quoted: bool = False
    """Whether the names are sentences."""


def blocks(comparison: Comparison) -> Iterator[Block]:
    """What differs, block by block; what does not has no block."""
    contents = comparison.contents
    if contents.documents:
        kinds = Counter(document.kind for document in contents.documents)
        yield Block("Documents", tally(kinds, DOCUMENT_KINDS), tuple(map(_document, contents.documents)))
    if contents.passages:
        kinds = Counter(passage.kind for passage in contents.passages)
        yield Block("Passages", f"{tally(kinds, PASSAGE_KINDS)}; {contents.passages_kept} as they were")
    if contents.edges_added or contents.edges_removed:
        edges = [("added", edge) for edge in contents.edges_added]
        edges += [("removed", edge) for edge in contents.edges_removed]
        yield Block(
            "Edges",
            f"{len(contents.edges_added)} added, {len(contents.edges_removed)} removed",
            tuple(Item(SIGNS[word], f"{edge.source} -> {edge.target}", edge.kind, word) for word, edge in edges),
        )
    if contents.citations:
        kinds = Counter(citation.kind for citation in contents.citations)
        yield Block(
            "Citations",
            f"{kinds['broken']} broken, {kinds['drifted']} open a document that says something else there",
            tuple(
                Item("-" if each.kind == "broken" else "~", each.name, f"now {each.now}" if each.now else each.kind)
                for each in contents.citations
            ),
        )
    if movements := comparison.movements:
        summary = f"{movements.moved} of {movements.asked} moved, the first passage of {movements.top_moved}"
        summary += f"; overlap of the top {movements.k} is {movements.overlap:.3f}"
        if movements.old_reciprocal_rank is not None and movements.new_reciprocal_rank is not None:
            rank = f"RR {movements.old_reciprocal_rank:.3f} -> {movements.new_reciprocal_rank:.3f}"
            summary += f"; {rank} over {movements.labelled} labelled"
        shown_ones = tuple(_movement(each) for each in movements.questions if each.gain or each.top_moved)
        yield Block("Questions", summary, shown_ones, quoted=True)
    if comparison.settings:
        changes = comparison.settings
        yield Block("Settings", _plural(len(changes), "field"), tuple(Item("~", c.field, arrow(c)) for c in changes))
    if any(amount.change for amount in comparison.findings):
        yield _amounts("Findings", comparison.findings)
    if any(amount.change for amount in comparison.counts):
        yield _amounts("Counts", comparison.counts)
    if any(amount.change for amount in comparison.sizes):
        total = comparison.sizes[-1]
        parts = _amounts("Size", comparison.sizes[:-1])
        yield Block("Size", f"{total.old:,} -> {total.new:,} bytes ({total.change:+,})", parts.items)


def terminal(comparison: Comparison, *, colours: bool) -> str:
    """The comparison for a terminal; what packs say cannot steer it."""
    bold, dim, plain = ("\x1b[1m", "\x1b[2m", "\x1b[0m") if colours else ("", "", "")
    tints = {"+": "\x1b[32m", "-": "\x1b[31m", "~": "\x1b[33m", ">": "\x1b[36m"} if colours else {}
    lines = [f"{bold}{printable(_title(comparison))}{plain}"]
    if comparison.same:
        lines.append("the same release")
    for block in blocks(comparison):
        lines += ["", f"{bold}{block.title}{plain}  {printable(block.summary)}"]
        for item in block.items[:SHOWN]:
            tint = tints.get(item.sign, "")
            note = f"  {dim}{printable(item.note)}{plain}" if item.note else ""
            lines.append(f"  {tint}{item.sign} {printable(item.code)}{plain if tint else ''}{note}")
        lines += _rest(block.items, lambda text: f"  {dim}{text}{plain}")
    return "\n".join(lines) + "\n"


def markdown(comparison: Comparison) -> str:
    """The comparison as Markdown, for a release's notes."""
    lines = [f"## {_prose(_title(comparison))}"]
    if comparison.same:
        lines += ["", "The same release."]
    for block in blocks(comparison):
        lines += ["", f"### {block.title}", "", f"{_prose(block.summary)}."]
        if block.items:
            lines.append("")
        for item in block.items[:SHOWN]:
            note = f": {_prose(item.note)}" if item.note else ""
            name = f"“{_prose(item.code)}”" if block.quoted else _code(item.code)
            lines.append(f"* {item.word} {name}{note}" if item.word else f"* {name}{note}")
        lines += _rest(block.items, lambda text: f"* {text}")
    return "\n".join(lines) + "\n"


def tally(kinds: Counter[str], order: Sequence[str]) -> str:
    """`2 added, 1 changed`, in the given order."""
    words = {"context": "in another context"}
    return ", ".join(f"{kinds[kind]} {words.get(kind, kind)}" for kind in order if kinds[kind])


def printable(text: str) -> str:
    """Text that cannot steer a terminal: control characters and those that turn its direction are spelled out."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def arrow(change: FieldChange) -> str:
    """`old -> new`; of a list, what it lost and gained."""
    if change.entries:
        lost, gained = change.entries
        return ", ".join([*(f"-{shown(entry)}" for entry in lost), *(f"+{shown(entry)}" for entry in gained)])
    return f"{shown(change.old)} -> {shown(change.new)}"


def shown(value: Any, width: int = 60) -> str:
    """A value in a few words; `none` when it is missing."""
    if value is None:
        return "none"
    if isinstance(value, list):
        text = ", ".join(map(str, value)) or "empty"
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= width else text[: width - 1] + "…"


def _title(comparison: Comparison) -> str:
    old, new = comparison.old, comparison.new
    versions = f" {old.version} -> {new.version}" if old.version != new.version else f" {new.version or ''}".rstrip()
    return f"{comparison.name}{versions} ({old.digest[:12]} -> {new.digest[:12]})"


def _document(change: DocumentChange) -> Item:
    notes: list[str] = []
    if change.old_path not in (None, change.path):
        notes.append(f"was {change.old_path}")
    if change.lines_added or change.lines_removed:
        notes.append(f"+{change.lines_added} -{change.lines_removed} lines")
    notes += [f"{each.field}: {arrow(each)}" for each in change.fields]
    return Item(SIGNS[change.kind], change.path, "; ".join(notes), change.kind)


def _movement(movement: Movement) -> Item:
    best = next((place for place in movement.places if place.new_rank == 1), None)
    notes = [f"overlap {movement.overlap:.2f}"]
    if movement.old_reciprocal_rank != movement.new_reciprocal_rank:
        notes.append(f"RR {movement.old_reciprocal_rank:.2f} -> {movement.new_reciprocal_rank:.2f}")
    if movement.top_moved:
        came = f", was {best.old_rank or 'not there'}" if best else ""
        notes.append(f"first is {_where(best)}{came}" if best else "nothing is found")
    sign = "-" if movement.gain < 0 else "+" if movement.gain > 0 else "~"
    return Item(sign, movement.question.text, "; ".join(notes))


def _where(place: Place) -> str:
    return f"{place.path}#{place.section}" if place.section else place.path


def _amounts(title: str, amounts: Sequence[Amount]) -> Block:
    changed = [amount for amount in amounts if amount.change]
    items = tuple(Item("~", each.name, f"{each.old:,} -> {each.new:,} ({each.change:+,})") for each in changed)
    return Block(title, f"{len(changed)} of {len(amounts)} changed", items)


def _rest(items: Sequence[Item], line: Callable[[str], str]) -> list[str]:
    more = len(items) - SHOWN
    return [line(f"and {more} more")] if more > 0 else []


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def _prose(text: str) -> str:
    """Text in which Markdown and HTML mean nothing."""
    return re.sub(r"([\\`*_\[\]<>&~])", r"\\\1", printable(text).replace(" -> ", " → "))


def _code(text: str) -> str:
    """A code span that holds `text`, however many backticks it has."""
    visible = printable(text)
    ticks = "`" * (max(map(len, re.findall("`+", visible)), default=0) + 1)
    space = " " if "`" in visible else ""
    return f"{ticks}{space}{visible}{space}{ticks}"
