"""The text of concepts and the names of files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from octavo_build.bodies.body import decode
from octavo_build.findings import Finding
from octavo_build.lint.okf.bundle import Bundle

STUB_CHARACTERS = 50
LARGE_BYTES = 1 << 20
"""Larger than this no reader, and hardly a model, takes a page whole; the largest real listing had 1.5 MB."""

# zero width, direction overrides, and tags; joiners are left out, for scripts and emoji need them
_HIDDEN = re.compile("[\u180e\u200b\u2060-\u2064\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
_NOT_PORTABLE = re.compile(r'[<>:"|?*\\\x00-\x1f]|[ .](?:/|\Z)')


def check_bodies(bundle: Bundle) -> Iterator[Finding]:
    """Bodies that say nothing, or little, or without a heading."""
    for page in bundle.concepts:
        visible = page.body.visible(page.document.body_offset, len(page.document.raw)).strip()
        if not visible:
            yield page.finding("okf-body-empty", "the body is empty")
        elif len(visible) < STUB_CHARACTERS:
            yield page.finding("okf-body-stub", f"{len(visible)} characters, at least {STUB_CHARACTERS} are expected")
        elif not page.headings:
            yield page.finding("okf-heading-missing", "the body has no heading")


def check_titles(bundle: Bundle) -> Iterator[Finding]:
    """Titles that several concepts have."""
    first: dict[str, str] = {}
    for page in bundle.concepts:
        if title := page.text("title").casefold():
            other = first.setdefault(title, page.path)
            if other != page.path:
                yield page.finding("okf-title-duplicate", f"title: also that of {other}", "title")


def check_files(bundle: Bundle) -> Iterator[Finding]:
    """Invisible characters, size, and names that other systems cannot have."""
    for page in bundle.pages.values():
        raw = page.document.raw
        if not raw.isascii():
            yield from _check_hidden(page.path, decode(raw).removeprefix("\ufeff"))
        if len(raw) > LARGE_BYTES:
            yield page.finding("okf-file-large", f"{len(raw)} bytes, at most {LARGE_BYTES} are expected")
        if bad := _NOT_PORTABLE.search(page.path):
            yield Finding(page.path, 0, "okf-path-portable", f"{bad.group()!r} in the name")


def _check_hidden(path: str, text: str) -> Iterator[Finding]:
    if found := _HIDDEN.search(text):
        line = 1 + len(re.findall(r"\r\n?|\n", text[: found.start()]))
        many = len(_HIDDEN.findall(text))
        message = f"{many} invisible characters, the first is U+{ord(found.group()):04X}"
        yield Finding(path, line, "okf-hidden-text", message)
