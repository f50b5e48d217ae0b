"""When content was verified, whether it has changed since, and whether it has expired."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from octavo_artifact.ids import sha256_hex
from octavo_build.findings import Finding
from octavo_build.frontmatter import read_frontmatter
from octavo_build.lint.dates import parse_date, parse_duration
from octavo_build.lint.subject import Member, Page, Subject, nested, text

_SKIPPED_TYPES = frozenset({"index", "source", "proposition", "summary", "training"})


def check_provenance(subject: Subject, today: date | None) -> Iterator[Finding]:
    """Ids, dates and hashes of content files; files at a member's root are exempt, as upstream."""
    for member in subject.members:
        for page in member.content:
            if page.folder and page.text("type") not in _SKIPPED_TYPES:
                yield from _check_page(member, page, today)


def _check_page(member: Member, page: Page, today: date | None) -> Iterator[Finding]:
    if not page.text("id"):
        yield page.finding("W-PROV-04", "id: missing")
    written = page.text("verified_at")
    verified = parse_date(written)
    if verified is None:
        found = f"{written!r} is no date" if written else "missing"
        yield page.finding("W-PROV-01", f"verified_at: {found}", "verified_at")
    cycle = _cycle(member, page)
    if verified and cycle and today and today - verified > cycle:
        message = f"verified_at: {written} is {(today - verified).days} days ago, the cycle is {cycle.days} days"
        yield page.finding("W-PROV-03", message, "verified_at")
    claimed = page.text("content_hash")
    if claimed and claimed.removeprefix("sha256:") not in body_hashes(page):
        expected = f"sha256:{page.document.body_sha256}"
        yield page.finding("W-PROV-02", f"content_hash: {claimed[:24]!r}, expected {expected!r}", "content_hash")
    valid = parse_date(page.text("valid_from"))
    if valid and verified and valid > verified:
        yield page.finding("W-PROV-05", f"valid_from {valid} is after verified_at {verified}", "valid_from")


def _cycle(member: Member, page: Page) -> timedelta | None:
    own = page.text("refresh") or text(nested(member.manifest, "freshness"), "refresh_cycle")
    return parse_duration(own)


def body_hashes(page: Page) -> frozenset[str]:
    """Every sha256 that an author's tool may have made of the body.

    It may begin after the first or the last frontmatter block, with or without the newlines that follow; the official
    tool reads CRLF as LF.
    """
    raw = page.document.raw
    first = read_frontmatter(page.path, raw).body_offset
    bodies = {raw[first:], raw[page.document.body_offset :]}
    bodies |= {body.replace(b"\r\n", b"\n") for body in bodies}
    bodies |= {body.lstrip(b"\r\n") for body in bodies} | {b"\n" + body for body in bodies}
    return frozenset(sha256_hex(body) for body in bodies)


def check_expiry(subject: Subject, today: date | None) -> Iterator[Finding]:
    """Volatile files whose time has passed."""
    for page in subject.pages:
        expires = _expires(page)
        if today and expires and expires < today:
            yield page.finding("volatile-expired", f"volatile: expired on {expires}", "volatile")


def _expires(page: Page) -> date | None:
    volatile = nested(page.metadata, "volatile")
    if stated := parse_date(text(volatile, "expires_at")):
        return stated
    fetched, refresh = parse_date(text(volatile, "fetched_at")), parse_duration(text(volatile, "refresh"))
    try:
        return fetched + refresh if fetched and refresh else None
    except OverflowError:
        return None


def check_clock(subject: Subject, today: date | None) -> Iterator[Finding]:
    """Without a date no age is checked: said once, when there is one to check."""
    aging = [
        page.path
        for member in subject.members
        for page in member.content
        if _expires(page) or (_cycle(member, page) and page.text("verified_at"))
    ]
    if aging and today is None:
        yield Finding("", 0, "age-unchecked", f"{len(aging)} files have an age or an expiry; ages were not checked")
