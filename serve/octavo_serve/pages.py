"""How much of an answer fits, and where the next page begins.

A cursor is a position and a seal over it, the release and the question. Nothing is remembered, so every worker takes
it, after a restart too; one of another release or question is refused, and a position that was made up is, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from octavo_artifact.errors import RequestError
from octavo_artifact.ids import canonical_json, sha256_hex
from octavo_serve.requests import Paged, SearchRequest
from octavo_serve.results import Citation, Hit

BYTES_PER_TOKEN = 4
"""An estimate: of English as usual, and of scripts with three bytes a character about one token each."""

_LEAST = 200
"""Bytes of a passage that are shown in any case."""

_CURSOR = re.compile(r"(?P<position>0|[1-9][0-9]{0,11})-(?P<seal>[0-9a-f]{24})")


def room(request: Paged) -> int | None:
    """Bytes that an answer may have; None without bound."""
    return None if request.max_tokens is None else BYTES_PER_TOKEN * request.max_tokens


def size(value: Any) -> int:
    """Bytes of a part of an answer, as JSON."""
    return len(to_json(value, inf_nan_mode="null"))


def fitting(sizes: Iterable[int], room: int | None) -> int:
    """How many of the items with these sizes fit, from the first on; one if there is any."""
    count = taken = 0
    for each in sizes:
        taken += each
        if count and room is not None and taken > room:
            break
        count += 1
    return count


def page_of_bytes(data: bytes, begin: int, room: int | None) -> bytes:
    """As much of a text as fits, from `begin` on: whole lines, or else part of one that ends with a whole character."""
    if room is None or len(data) - begin <= room:
        return data[begin:]
    page = data[begin : begin + room]
    if data[begin + room - 1 : begin + room + 1] == b"\r\n":
        page = page[:-1]
    if end := max(page.rfind(b"\n"), page.rfind(b"\r")) + 1:
        return page[:end]
    # a character has three more bytes at most
    whole = next((back for back in range(4) if data[begin + room - back] & 0xC0 != 0x80), 0)
    return page[: room - whole]


def position_of(request: Paged, digest: str) -> int:
    """Where the page of a request begins; 0 without a cursor. Raises RequestError for a cursor of anything else."""
    if request.cursor is None:
        return 0
    found = _CURSOR.fullmatch(request.cursor)
    if not found or found["seal"] != _seal(request, digest, found["position"]):
        wrong = "of another release, or of another question"
        raise RequestError("cursor", f"{wrong}; repeat the request as it was, or ask again without it")
    return int(found["position"])


def cursor_at(request: Paged, digest: str, position: int) -> str:
    """The cursor with which the same request goes on at `position`."""
    return f"{position}-{_seal(request, digest, str(position))}"


@dataclass(frozen=True, slots=True)
class HitPage:
    """The hits of an answer."""

    hits: Sequence[Hit | Citation]
    truncated: bool
    next_cursor: str | None


def page_of_hits(hits: Sequence[Hit | Citation], request: SearchRequest, digest: str) -> HitPage:
    """The hits that a request asks for and that fit; if the first alone does not, its text is cut.

    Raises RequestError for a cursor of anything else.
    """
    first, bytes_ = position_of(request, digest), room(request)
    if bytes_ is None:
        return HitPage(hits[first:], False, None)
    sizes = [size(hit) for hit in hits[first:]]
    count = fitting(sizes, bytes_)
    page = list(hits[first : first + count])
    too_large = count == 1 and sizes[0] > bytes_
    if too_large:
        page[0] = _cut(page[0], max(_LEAST, len(page[0].get("text", "").encode()) - (sizes[0] - bytes_)))
    last = first + count
    following = cursor_at(request, digest, last) if last < len(hits) else None
    return HitPage(page, too_large or following is not None, following)


def _cut(hit: Hit | Citation, bytes_: int) -> Hit | Citation:
    """The hit with as many whole lines of its text as fit so many bytes, or else the beginning of its first line."""
    whole = hit.get("text", "")
    text = whole.encode()[:bytes_].decode("utf-8", "ignore")
    text = text[: text.rfind("\n") + 1] or text
    cut: Any = {**hit, "text": text, "shown_range": _lines_of(hit, whole, text)}
    cut.pop("reconstruction", None)
    return cut


def _lines_of(hit: Hit | Citation, whole: str, text: str) -> list[int]:
    """The lines of the file that `text`, which begins `whole`, is of."""
    first, last = hit["line_range"]
    added = str(hit.get("added_text") or "").count("\n")
    if whole.rstrip("\n").count("\n") - added != last - first:
        return [first, first]  # of a format whose text has other lines than its file
    return [first, first + max(0, text.rstrip("\n").count("\n") - added)]


def _seal(request: Paged, digest: str, position: str) -> str:
    # how much of it is wanted at once may change from page to page
    question = request.model_dump(mode="json", exclude={"cursor", "max_tokens"})
    return sha256_hex(canonical_json([type(request).__name__, question, digest, position]))[:24]
