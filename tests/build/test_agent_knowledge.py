"""Packs as records of agent knowledge."""

from __future__ import annotations

import hashlib
import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import pytest

from octavo_build.agent_knowledge import MAX_STATEMENT, canonical_statement, records
from octavo_build.commands import AKS
from octavo_build.markdown import parse_body
from octavo_build.sources import read

MANIFEST = "name: Pumps\nslug: pumps\ntype: product\nversion: '1'\ndescription: D\nentry_point: overview.md\n"
VALVE = """\
---
title: Valves
type: concept
tags: [water, flow]
pack: pumps
id: pumps/concepts/valve
verified_at: 2026-05-01
recorded_at: '2025-01-01'
requires: [pump]
related: [seal.md]
supersedes: old-valve.md
confidence: crawled
---
"""
BODY = """\
# Valves

A **valve** opens and closes the [[seal|way]] of the water.

More of it.
"""


def page(identity: str, body: str = "Text.\n", front: str = "") -> str:
    return f"---\ntitle: T\ntype: concept\n{identity}{front}---\n{body}"


def pack(root: Path, files: dict[str, str] | None = None) -> Path:
    default = {
        "manifest.yaml": MANIFEST,
        "concepts/valve.md": VALVE + BODY,
        "concepts/seal.md": page("id: pumps/seal\n"),
        "concepts/pump.md": page("id: pumps/a-pump\n"),
    }
    for path, content in {**default, **(files or {})}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content, encoding="utf-8")
    return root


def exported(root: Path, files: dict[str, str] | None = None) -> dict[str, dict[str, Any]]:
    return {record["id"]: record for record in records(read(pack(root, files)))}


def test_a_record_says_what_a_document_holds_and_where_it_stands(tmp_path: Path) -> None:
    checksum = f"sha256:{hashlib.sha256(BODY.encode()).hexdigest()}"
    assert exported(tmp_path)["pumps/concepts/valve"] == {
        "schema": "expertpack.agent_knowledge.v1",
        "id": "pumps/concepts/valve",
        "canonical_statement": "A valve opens and closes the way of the water.",
        "title": "Valves",
        "type": "concept",
        "pack": "pumps",
        "canonical_path": "concepts/valve.md",
        "source_span_uri": "pumps/concepts/valve.md",
        "content_hash": checksum,
        "source_checksum": checksum,
        "verified_at": "2026-05-01",
        "recorded_at": "2025-01-01",
        "tags": ("water", "flow"),
        "requires": ["pumps/a-pump"],
        "related": [{"id": "pumps/seal", "kind": "related"}, {"id": "pumps/seal", "kind": "wikilink"}],
        "supersedes": ("old-valve.md",),
    }


def test_records_are_sorted_by_id_and_have_no_empty_field(tmp_path: Path) -> None:
    found = exported(tmp_path)
    assert list(found) == ["pumps/a-pump", "pumps/concepts/valve", "pumps/seal"]
    assert all(record[name] for record in found.values() for name in record)


@pytest.mark.parametrize(
    "left_out",
    [
        pytest.param({"concepts/x.md": page("id: pumps/x\nsensitivity: family\n")}, id="private"),
        pytest.param({"x.md": page("id: pumps/x\n"), "_access.json": '{"overrides": {"x.md": "self"}}'}, id="access"),
        pytest.param({"concepts/_index.md": page("id: pumps/x\n")}, id="index"),
        pytest.param({"meta/source-coverage.md": page("id: pumps/x\n")}, id="navigation"),
        pytest.param({"concepts/_notes.md": page("id: pumps/x\n")}, id="notes"),
        pytest.param({"eval/x.md": page("id: pumps/x\n")}, id="eval"),
        pytest.param({"concepts/x.md": page("")}, id="no id"),
    ],
)
def test_what_is_private_no_knowledge_or_without_an_id_has_no_record(left_out: dict[str, str], tmp_path: Path) -> None:
    assert not any("x" in identity or "notes" in identity for identity in exported(tmp_path, left_out))


def test_a_record_names_no_private_document(tmp_path: Path) -> None:
    found = exported(tmp_path, {"concepts/seal.md": page("id: pumps/seal\nsensitivity: self\n")})
    assert "pumps/seal" not in json.dumps(found["pumps/concepts/valve"])


@pytest.mark.parametrize(
    ("body", "statement"),
    [
        pytest.param("# T\n\nOne *two*\nthree.\n\nFour.\n", "One two three.", id="paragraph"),
        pytest.param("First.\n\n> **Lead summary:** The gist.\n", "The gist.", id="lead summary"),
        pytest.param("First.\n\n> The lead summary says: no.\n", "First.", id="no lead summary"),
        pytest.param("> A quote.\n\nThe text.\n", "The text.", id="quote"),
        pytest.param("- One\n- Two\n\nText.\n", "One Two", id="list"),
        pytest.param("```\ncode here\n```\n\n| a |\n|---|\n| b |\n\n![x](y.png)\n\nText.\n", "Text.", id="code"),
        pytest.param("<!-- note -->\n\nText <!-- hidden --> seen.\n", "Text seen.", id="comments"),
        pytest.param("# T\n", "", id="none"),
        pytest.param("word " * 400, "word " * 159 + "word…", id="long"),
        pytest.param("水" * 1_000, "水" * 799 + "…", id="long without spaces"),
    ],
)
def test_the_statement_is_the_lead_summary_or_the_first_text(body: str, statement: str) -> None:
    found = canonical_statement(parse_body(body.encode(), 0))
    assert (found, len(found) <= MAX_STATEMENT) == (statement, True)


def test_a_document_without_text_is_stated_by_its_description_or_title(tmp_path: Path) -> None:
    files = {
        "a.md": page("id: pumps/a\n", "# H\n", "description: Said before.\n"),
        "b.md": page("id: pumps/b\n", "# H\n"),
    }
    found = exported(tmp_path, files)
    assert [found[f"pumps/{name}"]["canonical_statement"] for name in "ab"] == ["Said before.", "T"]


def test_the_command_prints_a_line_a_record_and_counts_what_it_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = ArgumentParser()
    AKS.add_arguments(parser)
    root = pack(tmp_path, {"concepts/x.md": page("")})
    assert AKS.run(parser.parse_args([str(root)])) == AKS.run(parser.parse_args([str(root)])) == 0
    out, err = capsys.readouterr()
    assert out[: len(out) // 2] == out[len(out) // 2 :]
    assert [json.loads(line)["id"] for line in out.splitlines()[:3]] == list(exported(tmp_path))
    assert err.splitlines()[0] == "octavo: pumps: 1 documents have no id of their own; left out"
