"""The handbook in packs/octavo is documentation: what it must name, it names."""

from __future__ import annotations

import re
from dataclasses import fields
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from octavo_artifact.command import GROUP
from octavo_build.findings import CODES
from octavo_build.graph import build_graph
from octavo_build.lint.codes import LINT_CODES
from octavo_build.passages import passages_of
from octavo_build.sources import read
from octavo_serve.configuration import configure
from octavo_serve.settings import RerankerSettings, ServerSettings
from running import ROOT

HANDBOOK = ROOT / "packs" / "octavo"


def test_the_handbook_has_no_finding() -> None:
    pack = read(HANDBOOK)
    graph = build_graph(pack.documents)
    cut = [finding for row, document in enumerate(pack.documents) for finding in passages_of(document, row)[1]]
    assert [*pack.findings, *graph.findings, *cut] == []


def test_the_handbook_has_atoms_enough_and_says_when_each_was_verified() -> None:
    atoms = [document for document in read(HANDBOOK).documents if document.searchable]
    assert len(atoms) >= 20
    assert all(atom.verified_at and atom.type and atom.tags and atom.id for atom in atoms)


@pytest.mark.parametrize("severity", ["error", "warning", "note"])
def test_every_finding_code_is_in_the_table_of_its_severity(severity: str) -> None:
    page = (HANDBOOK / "troubleshooting" / "findings-by-code.md").read_text()
    section = page.partition(f"## {severity.capitalize()}s\n")[2].partition("\n## ")[0]
    documented = set(re.findall(r"^\| `([a-z0-9-]+)`", section, re.MULTILINE))
    assert documented == {code for code, (found, _) in CODES.items() if found == severity}


@pytest.mark.parametrize("severity", ["error", "warning", "note"])
def test_every_lint_code_is_in_the_table_of_its_severity(severity: str) -> None:
    page = (HANDBOOK / "troubleshooting" / "lint-codes.md").read_text()
    section = page.partition(f"## {severity.capitalize()}s\n")[2].partition("\n## ")[0]
    documented = dict(re.findall(r"^\| `([A-Za-z0-9-]+)` \| (.+) \|$", section, re.MULTILINE))
    assert documented == {code: advice for code, (found, advice) in LINT_CODES.items() if found == severity}


def test_every_command_is_in_the_handbook() -> None:
    text = "\n".join(path.read_text() for path in sorted(HANDBOOK.rglob("*.md")))
    missing = [point.name for point in entry_points(group=GROUP) if f"octavo {point.name}" not in text]
    assert missing == []


def test_every_setting_is_in_the_table_of_keys() -> None:
    page = (HANDBOOK / "workflows" / "configure-the-server.md").read_text()
    section = page.partition("## Every key\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([a-z_]+)`", section, re.MULTILINE) == [field.name for field in fields(ServerSettings)]


def test_every_setting_of_a_reranker_is_in_the_table_of_its_page() -> None:
    page = (HANDBOOK / "workflows" / "rerank.md").read_text()
    section = page.partition("## Every key\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([a-z_]+)`", section, re.MULTILINE) == [field.name for field in fields(RerankerSettings)]


@pytest.mark.parametrize("page", ["api-keys", "configure-the-server", "rerank"])
def test_the_configurations_that_are_shown_are_right(page: str, tmp_path: Path) -> None:
    shown = re.findall(r"```yaml\n(.*?)```", (HANDBOOK / "workflows" / f"{page}.md").read_text(), re.DOTALL)
    assert shown
    for text in shown:
        (tmp_path / "octavo.yaml").write_text(text)
        assert configure(tmp_path / "octavo.yaml", {}, {}) != ServerSettings()


def test_related_pages_name_each_other() -> None:
    graph = build_graph(read(HANDBOOK).documents)
    related = {(edge.source, edge.target) for edge in graph.edges if edge.kind == "related"}
    assert {(target, source) for source, target in related} == related
