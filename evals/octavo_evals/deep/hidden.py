"""Text that a reader does not see and a model does: invisible characters, hidden elements, orders in comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from octavo_evals.deep.code_spans import without_code
from octavo_evals.deep.injections import addresses_a_model
from octavo_evals.deep.subject import Found, Page, Subject

_INVISIBLE: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("zero-width", re.compile("[\u200b\u2060-\u2064\u180e]|(?<!\\A)\ufeff")),
    # joiners shape Arabic, Indic scripts and emoji; between or beside ASCII they only hide
    ("joining", re.compile("(?<=[\\x21-\\x7e])[\u200c\u200d]|[\u200c\u200d](?=[\\x21-\\x7e])")),
    ("direction-changing", re.compile("[\u202a-\u202e\u2066-\u2069]")),
    # a flag's region is spelled with at most six tags and U+E007F after U+1F3F4
    (
        "tag",
        re.compile(
            "(?<![\U0001f3f4\U000e0000-\U000e007f])[\U000e0000-\U000e007f]+|(?<=\U0001f3f4)[\U000e0000-\U000e007f]{8,}"
        ),
    ),
    ("variation-selecting", re.compile("[\U000e0100-\U000e01ef]{2,}|[\ufe00-\ufe0f]{3,}")),
)
_STYLE = re.compile(
    r"<(?P<name>[a-z][\w-]{0,40})\b[^<>]{0,500}?(?:"
    r"\bstyle\s*=\s*(?:\"(?P<double>[^\"<>]{0,500})\"|'(?P<single>[^'<>]{0,500})')|\s(?P<hidden>hidden)(?=[\s>=/])"
    r")[^<>]{0,500}>",
    re.IGNORECASE,
)
_UNSEEN = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|(?<![\w-])opacity\s*:\s*0*(?:\.0+)?\s*(?:;|$)|"
    r"font-size\s*:\s*0(?:px|em|pt|%)?\s*(?:;|$)|(?:left|top|text-indent)\s*:\s*-\d{4,}px",
    re.IGNORECASE,
)
_COLOR = re.compile(
    r"(?P<what>background(?:-color)?|(?<![\w-])color)\s*:\s*(?P<value>[^;]{1,60}?)\s*(?:;|$)", re.IGNORECASE
)
_WHITE = frozenset({"white", "#fff", "#ffffff", "rgb(255,255,255)"})
_TAG = re.compile(r"<[^<>]{0,500}>")
MAX_INSIDE = 2_000
"""Characters of a hidden element that are looked at."""
MAX_TOLD = 20
"""Findings of one kind in one document."""


def check_hidden(subject: Subject) -> Iterator[Found]:
    """Hidden text in all documents."""
    for page in subject.pages:
        yield from hidden_in(page)


def hidden_in(page: Page) -> Iterator[Found]:
    """One finding for each kind of invisible character in a document, one for each hidden element or comment."""
    shown = without_code(page.text)
    yield from _characters(page)
    yield from islice(_elements(page, shown), MAX_TOLD)
    yield from islice(_comments(page, shown), MAX_TOLD)


def _characters(page: Page) -> Iterator[Found]:
    if page.text.isascii():
        return
    for kind, pattern in _INVISIBLE:
        if found := list(pattern.finditer(page.text)):
            count = sum(len(each.group()) for each in found)
            secret = "".join(chr(ord(c) - 0xE0000) for each in found for c in each.group()) if kind == "tag" else ""
            message = f"{count} {kind} characters, the first is U+{ord(found[0].group()[0]):04X}"
            yield _found(page, found[0].start(), message + (f"; they spell {_excerpt(secret)}" if secret else ""))


def _elements(page: Page, shown: str) -> Iterator[Found]:
    for found in _STYLE.finditer(shown):
        if how := _hidden_by(found):
            inside = shown[found.end() : found.end() + MAX_INSIDE].partition(f"</{found['name']}")[0]
            if text := _TAG.sub(" ", inside).strip():
                yield _found(page, found.start(), f"an element is hidden ({how}): {_excerpt(text)}")


def _comments(page: Page, shown: str) -> Iterator[Found]:
    end = 0
    while (start := shown.find("<!--", end)) >= 0:
        end = shown.find("-->", start)
        end = len(shown) if end < 0 else end
        if addresses_a_model(shown[start:end]):
            yield _found(page, start, f"a comment addresses a model: {_excerpt(shown[start + 4 : end])}")


def _hidden_by(found: re.Match[str]) -> str | None:
    if found["hidden"]:
        return "hidden"
    style = found["double"] or found["single"] or ""
    if unseen := _UNSEEN.search(style):
        return " ".join(unseen.group().strip(" ;").split())
    colors = {
        found["what"].casefold().removesuffix("-color"): "".join(found["value"].casefold().split())
        for found in _COLOR.finditer(style)
    }
    text, back = colors.get("color"), colors.get("background")
    if text is not None and (text == back or (text in _WHITE and (back is None or back in _WHITE))):
        return "white on white" if text in _WHITE else "the color of its background"
    return "transparent" if text == "transparent" else None


def _found(page: Page, place: int, message: str) -> Found:
    return Found(page.path, page.text.count("\n", 0, place) + 1, "deep-hidden-text", message)


def _excerpt(text: str) -> str:
    return repr(" ".join(text.split())[:80])
