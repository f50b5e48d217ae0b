"""The frontmatter of a concept: description, tags, trust, lifecycle, provenance, computations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import date
from typing import Any

from octavo_build import okf
from octavo_build.findings import Finding
from octavo_build.lint.okf.bundle import Bundle
from octavo_build.lint.subject import Page
from octavo_build.values import items, mapping, mappings, one_or_more, text

STATUSES = ("draft", "stable", "deprecated")
_ACTOR = re.compile(r"(?:human|process|team):\S+|[^\s:/]+/\S+")
_COUNT = re.compile(r"\d{1,18}", re.ASCII)


def check_descriptions(bundle: Bundle) -> Iterator[Finding]:
    """Title, description and tags."""
    for page in bundle.concepts:
        for key in ("title", "description"):
            if page.metadata.get(key) is None or page.metadata[key] == "":
                yield page.finding(f"okf-{key}-missing", f"{key}: missing", key)
        yield from _check_tags(page)


def _check_tags(page: Page) -> Iterator[Finding]:
    value = page.metadata.get("tags")
    if value is None:
        yield page.finding("okf-tags-missing", "tags: missing", "tags")
        return
    written = items(value)
    if not isinstance(value, list) or not all(map(text, written)):
        found = "text" if isinstance(value, str) else "a list of other things" if written else "something else"
        yield page.finding("okf-tags-shape", f"tags: found {found}, expected a list of words", "tags")
    counts = Counter(text(item).casefold() for item in written if text(item))
    if repeated := sorted(tag for tag, count in counts.items() if count > 1):
        yield page.finding("okf-tags-duplicate", f"tags: {', '.join(repeated[:5])}", "tags")
    if raised := [tag for tag in page.document.tags if tag != tag.lower()]:
        yield page.finding("okf-tags-case", f"tags: {', '.join(raised[:5])}", "tags")


def check_trust(bundle: Bundle) -> Iterator[Finding]:
    """Who made and who verified a concept."""
    for page in bundle.concepts:
        generated, verified = page.metadata.get("generated"), page.metadata.get("verified")
        if generated is None and "timestamp" not in page.metadata:
            yield page.finding("okf-generated-missing", "generated: missing")
        if generated is not None and not text(mapping(generated).get("by")):
            yield page.finding("okf-generated-shape", "generated: expected a mapping with by", "generated")
        if verified is not None:
            yield from _check_verified(page, verified)
        made = okf.instant(mapping(generated).get("at"))
        checked = okf.instant(page.document.verified_at)
        if made and checked and checked[0] < made[0]:
            message = f"verified at {page.document.verified_at}, before it was made"
            yield page.finding("okf-verified-order", message, "verified")
        for key, actor in _actors(page):
            if not _ACTOR.fullmatch(actor):
                yield page.finding("okf-actor", f"{key}: {actor[:60]!r}", key)


def _check_verified(page: Page, verified: object) -> Iterator[Finding]:
    for number, item in enumerate(one_or_more(verified), 1):
        entry = mapping(item)
        lacks = [key for key in ("by", "at") if not text(entry.get(key))]
        if not isinstance(item, dict):
            yield page.finding("okf-verified-shape", f"verified: entry {number} is no mapping", "verified")
        elif lacks:
            yield page.finding("okf-verified-shape", f"verified: entry {number} has no {lacks[0]}", "verified")


def _actors(page: Page) -> Iterator[tuple[str, str]]:
    found = [("generated", text(mapping(page.metadata.get("generated")).get("by")))]
    found += [("verified", text(entry.get("by"))) for entry in mappings(page.metadata.get("verified"))]
    found += [("sources", text(entry.get("author"))) for entry in mappings(page.metadata.get("sources"))]
    return (pair for pair in found if pair[1])


def check_lifecycle(bundle: Bundle) -> Iterator[Finding]:
    """Status, and the form of every instant."""
    for page in bundle.concepts:
        status = page.metadata.get("status")
        if status is not None and text(status) not in STATUSES:
            found = text(status)[:60] or "no text"
            yield page.finding("okf-status", f"status: {found!r} is none of {', '.join(STATUSES)}", "status")
        if text(status) == "draft":
            yield page.finding("okf-draft", "status: draft", "status")
        for key, where, value in _instants(page):
            found = okf.instant(value)
            if found and not found[1]:
                yield page.finding("okf-instant-offset", f"{where}: {value!r} has no offset", key)
            elif not found and key != "stale_after":  # that one the build tells, for it uses it
                shown = repr(value[:60]) if isinstance(value, str) else "no text"
                yield page.finding("okf-instant", f"{where}: found {shown}", key)


def _instants(page: Page) -> Iterator[tuple[str, str, Any]]:
    metadata = page.metadata
    found: list[tuple[str, str, Any]] = [(key, key, metadata.get(key)) for key in ("timestamp", "stale_after")]
    found.append(("generated", "generated.at", mapping(metadata.get("generated")).get("at")))
    found += [("verified", "verified.at", entry.get("at")) for entry in mappings(metadata.get("verified"))]
    sources = mappings(metadata.get("sources"))
    found += [("sources", "sources.last_modified", entry.get("last_modified")) for entry in sources]
    windows = [("usage_window", metadata.get("usage_window"))]
    windows += [("sources", entry.get("usage_window")) for entry in sources]
    for end in ("from", "to"):
        found += [(key, f"usage_window.{end}", mapping(window).get(end)) for key, window in windows]
    return (each for each in found if each[2] is not None)


def check_expiry(bundle: Bundle, today: date | None) -> Iterator[Finding]:
    """What is stale today; without a day, how much was not checked."""
    dated = [(page, page.document.expires_at) for page in bundle.concepts if page.document.expires_at]
    if today is None and dated:
        yield Finding("", 0, "age-unchecked", f"{len(dated)} files have a stale_after; it was not checked")
    for page, last in dated:
        if today and date.fromisoformat(last) < today:
            yield page.finding("okf-expired", f"stale_after: {page.text('stale_after')} is past", "stale_after")


def check_legacy(bundle: Bundle) -> Iterator[Finding]:
    """What version 0.1 had: one finding for the bundle."""
    stamped = sum("timestamp" in page.metadata and "generated" not in page.metadata for page in bundle.concepts)
    cited = sum(
        "sources" not in page.metadata and any(h.level == 1 and h.text == "Citations" for h in page.headings)
        for page in bundle.concepts
    )
    if stamped or cited:
        message = f"timestamp in {stamped} files, # Citations in {cited}"
        yield Finding("", 0, "okf-legacy", message)


def check_sources(bundle: Bundle) -> Iterator[Finding]:
    """Sources, and the footnotes that join them to the text."""
    for page in bundle.concepts:
        value = page.metadata.get("sources")
        if value is not None:
            yield from _check_source_list(page, value)
        yield from _check_footnotes(page)


def _check_source_list(page: Page, value: object) -> Iterator[Finding]:
    if not isinstance(value, list):
        yield page.finding("okf-sources-shape", "sources: expected a list", "sources")
    for number, item in enumerate(one_or_more(value), 1):
        if not text(mapping(item).get("resource")):
            found = "has no resource" if isinstance(item, dict) else "is no mapping"
            yield page.finding("okf-sources-shape", f"sources: entry {number} {found}", "sources")
    sources = mappings(value)
    ids = Counter(text(entry.get("id")) for entry in sources if text(entry.get("id")))
    for name in sorted(name for name, count in ids.items() if count > 1):
        yield page.finding("okf-source-duplicate", f"sources: id {name[:60]!r} stands twice", "sources")
    counted = [entry for entry in sources if entry.get("usage_count") is not None]
    for entry in counted:
        if not _COUNT.fullmatch(text(entry["usage_count"])):
            yield page.finding("okf-usage-count", "sources: usage_count is no whole number", "sources")
    if any("usage_window" not in entry for entry in counted) and "usage_window" not in page.metadata:
        yield page.finding("okf-usage-window", "sources: usage_count without usage_window", "sources")


def _check_footnotes(page: Page) -> Iterator[Finding]:
    ids = {text(entry.get("id")) for entry in mappings(page.metadata.get("sources"))} - {""}
    used = {link.target: link.line for link in reversed(page.links) if link.kind == "footnote"}
    texts = {link.target.casefold() for link in page.links if link.kind == "footnote_text"}
    # [^a]: https://... is a link definition to a CommonMark parser
    texts |= {name.removeprefix("^").casefold() for name in page.body.definitions.get("references", {})}
    for label, line in used.items():
        if label not in ids and label.casefold() not in texts:
            yield Finding(page.path, line, "okf-footnote-undefined", f"[^{label}]")
        elif ids and label not in ids:
            yield Finding(page.path, line, "okf-footnote-source", f"[^{label}] is the id of no source")
    for name in sorted(ids - used.keys()):
        yield page.finding("okf-source-unused", f"sources: no footnote [^{name}]", "sources")


def check_computations(bundle: Bundle) -> Iterator[Finding]:
    """The fields of an Attested Computation. It is data here; nothing is ever run."""
    for page in bundle.concepts:
        if page.document.type != okf.ATTESTED:
            continue
        if not page.text("runtime"):
            yield page.finding("okf-computation-runtime", "runtime: missing", "runtime")
        written, named = _has_computation(page), bool(page.text("computation"))
        if written == named:
            found = "both in the text and by path" if written else "neither in the text nor by path"
            yield page.finding("okf-computation-body", f"the computation stands {found}", "computation")
        value = page.metadata.get("parameters")
        entries = map(mapping, items(value))
        named_and_typed = (text(entry.get("name")) and text(entry.get("type")) for entry in entries)
        if value is not None and not (isinstance(value, list) and all(named_and_typed)):
            message = "parameters: expected a list whose entries have name and type"
            yield page.finding("okf-computation-parameter", message, "parameters")
        if not text(mapping(page.metadata.get("attester")).get("resource")):
            yield page.finding("okf-computation-attester", "attester: no resource", "attester")


def _has_computation(page: Page) -> bool:
    under = False
    for block in page.body.blocks:
        if block.kind == "heading" and block.level == 1:
            under = block.text == "Computation"
        elif under and block.kind in ("fence", "code"):
            return True
    return False
