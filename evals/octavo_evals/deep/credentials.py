"""Keys, tokens and passwords that were left in a document; told by kind and place, never shown in full."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from octavo_evals.deep.subject import Found, Page, Subject

MIN_ENTROPY = 3.2
"""Bits a character, of what stands after `password:` and its like; words and placeholders have less."""
MIN_TOKEN_ENTROPY = 2.6
"""Of a token whose shape is known; a row of x has none."""
MAX_TOLD = 20

_TOKENS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "a private key",
        re.compile(
            r"-----BEGIN (?:[A-Z]{2,10} ){0,2}PRIVATE KEY(?: BLOCK)?-----\s+(?P<secret>[A-Za-z0-9+/=]{20,9999})"
        ),
    ),
    ("an AWS access key", re.compile(r"(?<![\w-])(?P<secret>(?:AKIA|ASIA)[0-9A-Z]{16})\b")),
    (
        "a GitHub token",
        re.compile(r"(?<![\w-])(?P<secret>gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{60,255})\b"),
    ),
    ("a GitLab token", re.compile(r"(?<![\w-])(?P<secret>glpat-[\w-]{20,64})")),
    ("a Slack token", re.compile(r"(?<![\w-])(?P<secret>xox[abeprs]-[A-Za-z0-9-]{10,250})")),
    ("a Slack webhook", re.compile(r"hooks\.slack\.com/services/(?P<secret>T\w{6,15}/B\w{6,15}/\w{16,40})")),
    ("a Google API key", re.compile(r"(?<![\w-])(?P<secret>AIza[\w-]{35})")),
    ("a Stripe key", re.compile(r"(?<![\w-])(?P<secret>[rs]k_live_[A-Za-z0-9]{16,250})")),
    ("an API key of a model", re.compile(r"(?<![\w-])(?P<secret>sk-(?:ant-|proj-)?[A-Za-z0-9_-]{32,250})")),
    ("an npm token", re.compile(r"(?<![\w-])(?P<secret>npm_[A-Za-z0-9]{36})\b")),
    ("a PyPI token", re.compile(r"(?<![\w-])(?P<secret>pypi-[\w-]{50,250})")),
    ("an Octavo key", re.compile(r"(?<![\w-])(?P<secret>octavo_[\w-]{43})(?![\w-])")),
    ("a JSON Web Token", re.compile(r"(?<![\w-])(?P<secret>eyJ[\w-]{10,2000}\.eyJ[\w-]{10,4000}\.[\w-]{16,1000})")),
)
_NAMED = re.compile(
    r"(?P<name>\b[\w-]{0,30}(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key))"
    r"[\"']?\s{0,3}(?::|=|=>)\s{0,3}[\"'`]?(?P<secret>[^\s\"'`<>{}|]{8,200})",
    re.IGNORECASE,
)
_IN_URL = re.compile(
    r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"'<>]{1,100}:(?P<secret>[^\s/:@\"'<>]{6,100})@[\w.-]+", re.IGNORECASE
)
_HARMLESS = re.compile(
    r"example|sample|placeholder|change[-_]?me|dummy|redacted|your[-_]|my[-_]?(?:secret|pass|token|key)|x{4}|\*{3}|\.{3}|…|"
    r"1234|abcd|<|\$\{?|\{\{|!secret|^env[.\[(]|^os\.|process\.env|[()\[\]]|^https?:|^ep:|^sha256|^/",
    re.IGNORECASE,
)


def check_credentials(subject: Subject) -> Iterator[Found]:
    """Credentials in all documents."""
    for page in subject.pages:
        yield from credentials_in(page)


def credentials_in(page: Page) -> Iterator[Found]:
    """The credentials of a document, at most MAX_TOLD; those in code too, for an example that works is none."""
    taken: list[tuple[int, int]] = []
    for kind, found in _candidates(page.text):
        start, end = found.span("secret")
        if any(first < end and start < last for first, last in taken):
            continue
        if len(taken) == MAX_TOLD:
            return
        taken.append((start, end))
        line = page.text.count("\n", 0, start) + 1
        yield Found(page.path, line, "deep-secret", f"{kind}: {redacted(found['secret'])}")


def _candidates(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    """What looks like one, known shapes before guesses."""
    for kind, pattern in _TOKENS:
        for found in pattern.finditer(text):
            if entropy(found["secret"]) >= MIN_TOKEN_ENTROPY and not re.search("example|x{6}", found["secret"], re.I):
                yield kind, found
    for found in _NAMED.finditer(text):
        secret = found["secret"].rstrip(".,;)")
        mixed = re.search(r"\d", secret) and re.search(r"[A-Za-z]", secret)
        harmless = "public" in found["name"].casefold() or _HARMLESS.search(secret)
        if mixed and not harmless and entropy(secret) >= MIN_ENTROPY:
            yield f"a value of `{found['name']}`", found
    for found in _IN_URL.finditer(text):
        if entropy(found["secret"]) >= 2.5 and not _HARMLESS.search(found["secret"]) and not _is_word(found["secret"]):
            yield "a password in an address", found


def _is_word(secret: str) -> bool:
    return secret.casefold() in ("password", "passwd", "secret", "token", "postgres", "userpass")


def entropy(text: str) -> float:
    """Bits a character, by how often each occurs in the text itself."""
    return -math.fsum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


def redacted(secret: str) -> str:
    """What a person needs to find it again and nobody else can use: at most a fifth of it, and its length."""
    return f"{secret[: min(4, len(secret) // 5)]}… ({len(secret)} characters)"
