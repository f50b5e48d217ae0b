"""Documents that are parts of one text: `<!-- sequence: manuals/*.md | part: 2 of 5 -->` in each of them."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from octavo_artifact.schema import Document, Edge
from octavo_build.findings import Finding

SEQUENCE = "sequence"

_PART = re.compile(r"([0-9]{1,4})\s*(?:of|/)\s*([0-9]{1,4})")


@dataclass(frozen=True, slots=True)
class _Part:
    """A document's place in its sequence."""

    number: int
    of: int
    document: Document
    line: int


def sequence_edges(documents: Sequence[Document], findings: list[Finding]) -> Iterator[Edge]:
    """An edge from each part to the next one there is.

    Parts belong together when their packs and patterns are the same. A part that does not say which, or stands twice,
    or whose next one is missing is a finding.
    """
    parts: defaultdict[tuple[str, str], list[_Part]] = defaultdict(list)
    for document in documents:
        for mark in _marks(document):
            found = _PART.fullmatch(mark["data"].get("part", ""))
            if found is None or not 1 <= int(found[1]) <= int(found[2]):
                message = f"part: found {mark['data'].get('part', '')[:40]!r}, expected such as '2 of 5'"
                findings.append(Finding(document.path, mark["line"], "sequence-broken", message))
            else:
                part = _Part(int(found[1]), int(found[2]), document, mark["line"])
                parts[document.pack, mark["data"]["sequence"]].append(part)
    for (_, pattern), members in sorted(parts.items()):
        members.sort(key=lambda part: (part.number, part.document.path))
        for part, following in pairwise(members):
            if part.number == following.number:
                findings.append(_broken(following, f"{part.document.path} is part {part.number} too"))
            else:
                yield Edge(part.document.id, following.document.id, SEQUENCE)
        missing = sorted({*range(1, max(part.of for part in members) + 1)} - {part.number for part in members})
        if missing:
            shown = ", ".join(map(str, missing[:5]))
            findings.append(_broken(members[0], f"of {pattern[:100]!r} no document is part {shown}"))


def _broken(part: _Part, message: str) -> Finding:
    return Finding(part.document.path, part.line, "sequence-broken", message)


def _marks(document: Document) -> list[dict[str, Any]]:
    """The marks of a sequence in a document; of two of one pattern the first."""
    if f'"kind":"{SEQUENCE}"' not in document.marks:
        return []
    marks = [mark for mark in json.loads(document.marks) if mark["kind"] == SEQUENCE]
    return list({mark["data"]["sequence"]: mark for mark in reversed(marks)}.values())[::-1]
