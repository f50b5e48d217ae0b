"""The hash of a body, as the tools around ExpertPacks make it: they do not agree on where a body begins."""

from __future__ import annotations

from octavo_artifact.ids import sha256_hex
from octavo_build.frontmatter import read_frontmatter


def body_hashes(raw: bytes, body_offset: int) -> frozenset[str]:
    """Every sha256 (bare hex) that an author's tool may have made of the body of the file `raw`.

    It may begin after the first or the last frontmatter block, with or without the newlines that follow; the official
    tool reads CRLF as LF.
    """
    first = read_frontmatter("", raw).body_offset
    bodies = {raw[first:], raw[body_offset:]}
    bodies |= {body.replace(b"\r\n", b"\n") for body in bodies}
    bodies |= {body.lstrip(b"\r\n") for body in bodies} | {b"\n" + body for body in bodies}
    return frozenset(sha256_hex(body) for body in bodies)
