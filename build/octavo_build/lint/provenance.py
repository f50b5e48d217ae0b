"""When content was verified, whether it has changed since, and whether it has expired."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from octavo_artifact.dates import add, parse_date, parse_duration
from octavo_build.agent_knowledge import MIN_STATEMENT, canonical_statement
from octavo_build.body_hashes import body_hashes
from octavo_build.findings import Finding
from octavo_build.lint.fields import check_fields
from octavo_build.lint.subject import Member, Page, Subject
from octavo_build.values import mapping, text

_SKIPPED_TYPES = frozenset({"index", "source", "proposition", "summary", "training"})


def check_provenance(subject: Subject, today: date | None) -> Iterator[Finding]:
    """Ids, dates and hashes of content files; files at a member's root are exempt, as upstream."""
    for member in subject.members:
        for page in _with_provenance(member):
            yield from _check_page(member, page, today)


def _with_provenance(member: Member) -> Iterator[Page]:
    return (page for page in member.content if page.folder and page.text("type") not in _SKIPPED_TYPES)


def check_agent_knowledge(subject: Subject) -> Iterator[Finding]:
    """What a record of agent knowledge (AKS) takes from a content file: id, date, hash and statement."""
    for member in subject.members:
        for page in _with_provenance(member):
            for code, field in (("W-AKS-01", "id"), ("W-AKS-02", "verified_at"), ("W-AKS-03", "content_hash")):
                if not page.text(field):
                    yield page.finding(code, f"{field}: missing")
            if len(canonical_statement(page.body)) < MIN_STATEMENT:
                yield page.finding("W-AKS-04", f"no opening paragraph of {MIN_STATEMENT} characters or more")


def _check_page(member: Member, page: Page, today: date | None) -> Iterator[Finding]:
    if not page.text("id"):
        yield page.finding("W-PROV-04", "id: missing")
    written = page.text("verified_at")
    verified = parse_date(written)
    if verified is None:
        found = f"{written!r} is no date" if written else "missing"
        yield page.finding("W-PROV-01", f"verified_at: {found}", "verified_at")
    stale = _stale_after(member, page)
    if verified and stale and today and stale < today:
        message = f"verified_at: {written} is {(today - verified).days} days ago, the cycle is {_cycle(member, page)}"
        yield page.finding("W-PROV-03", message, "verified_at")
    claimed = page.text("content_hash")
    if claimed and claimed.removeprefix("sha256:") not in body_hashes(page.document.raw, page.document.body_offset):
        expected = f"sha256:{page.document.body_sha256}"
        yield page.finding("W-PROV-02", f"content_hash: {claimed[:24]!r}, expected {expected!r}", "content_hash")
    valid = parse_date(page.text("valid_from"))
    if valid and verified and valid > verified:
        yield page.finding("W-PROV-05", f"valid_from {valid} is after verified_at {verified}", "valid_from")
    for _, _, message in check_fields("frontmatter", {"confidence": page.metadata.get("confidence")}):
        yield page.finding("W-PROV-06", message, "confidence")


def _cycle(member: Member, page: Page) -> str:
    return page.text("refresh") or text(mapping(member.manifest.get("freshness")).get("refresh_cycle"))


def _stale_after(member: Member, page: Page) -> date | None:
    """The last day on which the page is fresh; None when it has no cycle, or no day to reckon from."""
    return _later(page.text("verified_at"), _cycle(member, page))


def _later(day: str, duration: str) -> date | None:
    start = parse_date(day)
    try:
        return add(start, parse_duration(duration)) if start else None
    except ValueError:  # its value is told by the check of fields
        return None


def check_expiry(subject: Subject, today: date | None) -> Iterator[Finding]:
    """Volatile files whose time has passed."""
    for page in subject.pages:
        expires = _expires(page)
        if today and expires and expires < today:
            yield page.finding("volatile-expired", f"volatile: expired on {expires}", "volatile")


def _expires(page: Page) -> date | None:
    volatile = mapping(page.metadata.get("volatile"))
    fetched_at, refresh = text(volatile.get("fetched_at")), text(volatile.get("refresh"))
    return parse_date(text(volatile.get("expires_at"))) or _later(fetched_at, refresh)


def check_clock(subject: Subject, today: date | None) -> Iterator[Finding]:
    """Without a date no age is checked: said once, when there is one to check."""
    aging = [
        page.path
        for member in subject.members
        for page in member.content
        if _expires(page) or _stale_after(member, page)
    ]
    if aging and today is None:
        yield Finding("", 0, "age-unchecked", f"{len(aging)} files have an age or an expiry; ages were not checked")
