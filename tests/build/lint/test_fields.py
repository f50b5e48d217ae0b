"""The JSON Schemas that editors use, and that they and lint say the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from octavo_build.lint.fields import SCHEMAS, check_fields, schema, schema_text
from octavo_build.sources import read
from running import ROOT, TINY


class Loader(yaml.SafeLoader):
    """As editors read YAML: a date is text."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}

MANIFEST = "name: N\nslug: n\ntype: product\nversion: 1.0\ndescription: D\nentry_point: overview.md\n"
FRONT = "title: T\ntype: concept\ntags: [a, 2026]\npack: n\n"

VALUES = [
    # schema, value, whether it is right
    ("manifest", "schema_version: 4.1", True),
    ("manifest", "schema_version: four", False),
    ("manifest", "type: book", False),
    ("manifest", "subtype: agent", True),
    ("manifest", "created: 2026-13-01", False),
    ("manifest", "created: 2026-12-01", True),
    ("manifest", "freshness: {refresh_cycle: P90D, coverage_pct: 70, total_file_count: 3}", True),
    ("manifest", "freshness: {refresh_cycle: 90}", False),
    ("manifest", "freshness: {coverage_pct: 101}", False),
    ("manifest", "freshness: {total_file_count: few}", False),
    ("manifest", "context: {always: [overview.md], overrides: {a: {always: [b.md]}}}", True),
    ("manifest", "context: {always: {a: b}}", False),
    ("manifest", "context: {overrides: {a: [b.md]}}", False),
    ("manifest", "packs: [{path: a, role: voice}, b]", True),
    ("manifest", "packs: [{path: a, role: singer}]", False),
    ("manifest", "conflicts: {strategy: fight}", False),
    ("manifest", "mcp: {skills: {enabled: true}}", True),
    ("manifest", "mcp: {skills: {enabled: perhaps}}", False),
    ("manifest", "complexity: extreme", False),
    ("manifest", "anything: {else: [1]}", True),
    ("frontmatter", "verified_at: 2026-04-21", True),
    ("frontmatter", "verified_at: 2026-04-21T10:00:00Z", True),
    ("frontmatter", "verified_at: April", False),
    ("frontmatter", "verified_by: robot", False),
    ("frontmatter", "retrieval_strategy: atomic", True),
    ("frontmatter", "retrieval_strategy: whole", False),
    ("frontmatter", "volatile: {refresh: PT12H, expires_at: 2026-01-01}", True),
    ("frontmatter", "volatile: {refresh: 12h}", False),
    ("frontmatter", "id: n/concepts/a_b-1.0", True),
    ("frontmatter", "id: n/concepts/a.md", False),
    ("frontmatter", "id: a", False),
    ("frontmatter", f"content_hash: sha256:{'0' * 64}", True),
    ("frontmatter", "content_hash: md5:0", False),
    ("frontmatter", "ek_score: 0.5", True),
    ("frontmatter", "ek_score: 2", False),
    ("frontmatter", "sources: [{type: community, date: 2026-03}]", True),
    ("frontmatter", "sources: {type: community}", False),
    ("frontmatter", "sensitivity: secret", False),
]


def parsed(text: str, loader: Any) -> Any:
    return yaml.load(text, Loader=loader)


@pytest.mark.parametrize(("name", "line", "right"), VALUES, ids=[f"{name} {line[:60]}" for name, line, _ in VALUES])
def test_lint_and_the_schema_agree_on_a_value(name: str, line: str, right: bool) -> None:
    text = {"manifest": MANIFEST, "frontmatter": FRONT}[name]
    text = (
        "".join(old for old in text.splitlines(keepends=True) if old.split(":")[0] != line.split(":", maxsplit=1)[0])
        + line
    )
    assert Draft202012Validator(schema(name)).is_valid(parsed(text, Loader)) is right
    assert ([*check_fields(name, parsed(text, yaml.BaseLoader))] == []) is right


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_one_and_requires_what_the_format_does(name: str) -> None:
    Draft202012Validator.check_schema(schema(name))
    assert json.loads(schema_text(name)) == schema(name)
    for field in schema(name)["required"]:
        text = {"manifest": MANIFEST, "frontmatter": FRONT}[name]
        value = {key: value for key, value in parsed(text, Loader).items() if key != field}
        assert not Draft202012Validator(schema(name)).is_valid(value)


@pytest.mark.parametrize("root", [TINY, ROOT / "packs" / "octavo"], ids=["tiny", "handbook"])
def test_our_packs_fit_the_schemas(root: Path) -> None:
    fits(root)


@pytest.mark.shared
@pytest.mark.parametrize("slug", ["blender-3d", "home-assistant", "solar-diy"])
def test_the_real_packs_fit_the_schemas(slug: str, shared: Path) -> None:
    fits(shared / "packs" / slug, {"home-assistant/process/patterns/notification-patterns"})


def fits(root: Path, incomplete: frozenset[str] | set[str] = frozenset()) -> None:
    """Check manifests and frontmatter, the latter as written in the file and not as read by us."""
    for path in root.rglob("manifest.yaml"):
        Draft202012Validator(schema("manifest")).validate(parsed(path.read_text(), Loader))
    for document in read(root).documents:
        front = document.raw.decode().split("---\n")[1]
        if document.id not in incomplete:
            Draft202012Validator(schema("frontmatter")).validate(parsed(front, Loader))
