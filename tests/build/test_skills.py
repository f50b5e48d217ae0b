"""Which skills a pack becomes. What a client gets of them is in `tests/test_skills.py`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from octavo_artifact.ids import sha256_hex
from octavo_artifact.schema import Resource
from octavo_build.findings import Finding
from octavo_build.skill_file import MAX_DESCRIPTION, MAX_SKILL_FILE
from octavo_build.skills import MAX_BYTES, MAX_FILES, skill_resources
from octavo_build.sources import read
from octavo_build.sources.audience import released

ON = "mcp:\n  skills:\n    enabled: true\n"
MEGABYTES_5 = "x" * (5 * 2**20)


def page(title: str, body: str = "Words.", **fields: str) -> str:
    more = "".join(f"{key}: {value}\n" for key, value in fields.items())
    return f"---\ntitle: {title}\ntype: concept\ntags: [a]\n{more}---\n\n{body}\n"


def skill(name: str | None = "demo", description: str | None = "When to use it.", more: str = "") -> str:
    lines = [f"name: {name}" if name else "", f"description: {description}" if description else "", more]
    return "\n".join(["---", *filter(None, lines), "---", "", "# Demo", ""])


def make(root: Path, files: Mapping[str, str], manifest: str = ON) -> tuple[list[Resource], list[Finding]]:
    """The skill resources of a pack called `demo` with an overview and `files`."""
    head = "name: Demo\nslug: demo\ntype: product\nversion: '1'\ndescription: All about demos.\n"
    for path, text in {"manifest.yaml": head + manifest, "overview.md": page("Overview"), **files}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return skill_resources(released(read(root)))


def skills(resources: list[Resource]) -> dict[str, list[str]]:
    """Paths of the files below each skill's directory, by its URI."""
    roots = [each.uri.removesuffix("SKILL.md") for each in resources if each.frontmatter]
    found: dict[str, list[str]] = defaultdict(list)
    for resource in resources:
        for root in roots:
            if resource.uri.startswith(root):
                found[root].append(resource.uri.removeprefix(root))
    return found


def text_of(resources: list[Resource], uri: str = "skill://demo/SKILL.md") -> str:
    (content,) = [each.content for each in resources if each.uri == uri]
    assert content is not None
    return content.decode()


def frontmatter_of(text: str) -> Any:
    return yaml.safe_load(text.split("---\n")[1])


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param("", id="silent"),
        pytest.param("mcp:\n  skills:\n    enabled: false\n", id="off"),
        pytest.param("mcp:\n  skills: true\n", id="another shape"),
        pytest.param("mcp: [skills]\n", id="a list"),
    ],
)
def test_a_pack_without_the_switch_has_no_skill(tmp_path: Path, manifest: str) -> None:
    assert make(tmp_path, {"SKILL.md": "no skill"}, manifest) == ([], [])


def test_a_pack_is_one_skill_of_all_its_files(tmp_path: Path) -> None:
    resources, findings = make(tmp_path, {"a b/c#1.md": page("C")})
    assert skills(resources) == {"skill://demo/": ["SKILL.md", "a%20b/c%231.md", "overview.md"]}
    assert findings == []


def test_the_bytes_of_a_file_are_those_of_its_document(tmp_path: Path) -> None:
    resources, _ = make(tmp_path, {"a.md": page("A")})
    (file,) = [each for each in resources if each.uri.endswith("/a.md")]
    raw = (tmp_path / "a.md").read_bytes()
    assert (file.document, file.content, file.size, file.sha256) == (0, None, len(raw), sha256_hex(raw))


def test_what_is_on_demand_or_not_public_is_in_no_skill(tmp_path: Path) -> None:
    files = {
        "old/a.md": page("Alt"),
        "b.md": page("Banned", sensitivity="family"),
        "x/SKILL.md": skill("x").replace("---\n\n", "sensitivity: self\n---\n\n"),
    }
    resources, findings = make(tmp_path, files, f"context:\n  on_demand: [old/]\n{ON}")
    assert skills(resources) == {"skill://demo/": ["SKILL.md", "overview.md"]}
    assert not any(word in text_of(resources) for word in ("Alt", "Banned", "old", "b.md"))
    assert findings == []


def test_a_made_skill_file_says_what_the_pack_is_and_when_to_use_it(tmp_path: Path) -> None:
    boundary = (
        "authority_boundary:\n  in_scope: Demos of series 3.\n  out_of_scope: [prices, law]\n"
        "  refuse_when: [asked for a warranty]\n"
    )
    resources, _ = make(tmp_path, {"guides/a.md": page("'A [new] one'", description="'How to: a'")}, boundary + ON)
    text = text_of(resources)
    expected = {"name": "demo", "description": "All about demos. Use it for: Demos of series 3."}
    assert frontmatter_of(text) == expected
    (own,) = [each for each in resources if each.frontmatter]
    assert json.loads(own.frontmatter or "") == expected
    assert (own.name, own.description, own.mime_type) == (*expected.values(), "text/markdown")
    assert text.split("---\n", 2)[2] == (
        "\n# Demo\n\nAll about demos.\n\n## When to use it\n\nUse it for:\n\n- Demos of series 3\n\n"
        "It does not cover:\n\n- prices\n- law\n\nRefuse to answer when:\n\n- asked for a warranty\n\n"
        "## How to search\n\nAsk the tool `ep_search` with the question in plain words and `pack` set to `demo`: it "
        "finds the passages that answer, each with its file and lines. `ep_read` reads more of a result. Cite file and "
        "lines. Without these tools, read the files below that fit the question, and only those.\n\n"
        "## Files\n\nBegin with [Overview](overview.md).\n\n- [Overview](overview.md)\n\n### guides\n\n"
        "- [A \\[new\\] one](guides/a.md): How to: a\n"
    )


@pytest.mark.parametrize(
    ("name", "description"),
    [
        pytest.param("1e3", "2026-01-01", id="number and date"),
        pytest.param("demo", '"- : # \\"quoted\\" \\\\ \\e[31m \\x7f \\uFEFF"', id="signs"),
        pytest.param("demo", "Öl 油 😀", id="other scripts"),
        pytest.param("demo", "words " * 400, id="too long"),
    ],
)
def test_the_made_frontmatter_is_text_to_every_parser(tmp_path: Path, name: str, description: str) -> None:
    make(tmp_path, {})
    (tmp_path / "manifest.yaml").write_text(
        f"name: Demo\nslug: {name}\ntype: product\nversion: '1'\ndescription: {description}\n{ON}"
    )
    resources, _ = skill_resources(read(tmp_path))
    (own,) = [each for each in resources if each.frontmatter]
    told = json.loads(own.frontmatter or "")
    assert frontmatter_of(text_of(resources, own.uri)) == told
    assert (type(told["name"]), told["name"]) == (str, name)
    assert 1 <= len(told["description"]) <= MAX_DESCRIPTION


def test_a_skill_file_of_the_pack_is_used_as_it_is(tmp_path: Path) -> None:
    more = "license: MIT\nmetadata:\n  version: '1.0'\n  'on': [\"2026-01-01\", a]"
    resources, findings = make(tmp_path, {"SKILL.md": skill(more=more)})
    (own,) = [each for each in resources if each.frontmatter]
    assert (own.uri, own.document, own.content) == ("skill://demo/SKILL.md", 0, None)
    assert json.loads(own.frontmatter or "") == frontmatter_of(skill(more=more))
    assert skills(resources) == {"skill://demo/": ["SKILL.md", "overview.md"]}
    assert findings == []


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        pytest.param(skill(description=None), 1, "description: missing; it says when to use the skill", id="no words"),
        pytest.param(skill(description="''"), 3, "description: missing; it says when to use the skill", id="empty"),
        pytest.param(
            skill(description="w" * 1025), 3, "description: 1025 characters, expected at most 1024", id="too long"
        ),
        pytest.param(skill(name=None), 1, "name: missing, expected 'demo'", id="no name"),
        pytest.param(
            skill(name="other"), 2, "name: 'other', expected 'demo', as the URI of its directory ends", id="other name"
        ),
        pytest.param(
            skill(name="De mo"), 2, "name: 'De mo', expected a-b-c (a-z, 0-9, hyphens), at most 64", id="bad name"
        ),
        pytest.param(skill(more="version: 1.0"), 4, "'1.0' is not text to every YAML parser; quote it", id="number"),
        pytest.param(skill(more="version: 1e3"), 4, "'1e3' is not text to every YAML parser; quote it", id="1e3"),
        pytest.param(
            skill(more="date: 2026-01-01"), 4, "'2026-01-01' is not text to every YAML parser; quote it", id="date"
        ),
        pytest.param(skill(more="a: [yes]"), 4, "'yes' is not text to every YAML parser; quote it", id="boolean"),
        pytest.param(skill(more="a:"), 4, "'' is not text to every YAML parser; quote it", id="null"),
        pytest.param(skill(more="a: !!int '3'"), 4, "'3' is not text to every YAML parser; quote it", id="tag"),
        pytest.param(skill(more="a: b\na: c"), 5, "'a' stands in line 4 too", id="twice"),
        pytest.param("# Demo\n", 1, "name: missing, expected 'demo'", id="no frontmatter"),
    ],
)
def test_a_skill_file_that_a_host_would_refuse_is_an_error_and_one_is_made(
    tmp_path: Path, text: str, line: int, message: str
) -> None:
    resources, findings = make(tmp_path, {"SKILL.md": text})
    assert findings == [Finding("SKILL.md", line, "skill-invalid", message)]
    assert findings[0].severity == "error"
    assert frontmatter_of(text_of(resources)) == {"name": "demo", "description": "All about demos."}
    assert skills(resources) == {"skill://demo/": ["SKILL.md", "overview.md"]}


def test_a_skill_inside_the_pack_counts_for_both(tmp_path: Path) -> None:
    resources, findings = make(tmp_path, {"in/side/SKILL.md": skill("side"), "in/side/a.md": page("A")})
    assert skills(resources) == {
        "skill://demo/": ["SKILL.md", "in/side/SKILL.md", "in/side/a.md", "overview.md"],
        "skill://demo/in/side/": ["SKILL.md", "a.md"],
    }
    assert findings == []


def test_a_bad_skill_inside_the_pack_is_an_error_and_a_file(tmp_path: Path) -> None:
    resources, findings = make(tmp_path, {"side/SKILL.md": skill("other")})
    assert skills(resources) == {"skill://demo/": ["SKILL.md", "overview.md", "side/SKILL.md"]}
    assert [(each.path, each.code) for each in findings] == [("side/SKILL.md", "skill-invalid")]


def within_limits(resources: list[Resource]) -> bool:
    sizes = {each.uri: each.size for each in resources}
    return all(
        len(files) <= MAX_FILES and sum(sizes[root + file] for file in files) <= MAX_BYTES
        for root, files in skills(resources).items()
    )


@pytest.mark.parametrize(
    ("files", "own", "split"),
    [(510, False, False), (511, False, True), (510, True, False), (511, True, True)],
)
def test_a_skill_file_counts_among_the_files(tmp_path: Path, files: int, own: bool, split: bool) -> None:
    pages = {f"{n}.md": "" for n in range(files)}  # and the overview
    if own:
        pages["SKILL.md"] = skill()
        del pages["0.md"]
        pages["0 own.md"] = ""
    resources, findings = make(tmp_path, pages)
    assert within_limits(resources)
    assert [each.code for each in findings if each.code == "skill-split"] == ["skill-split"] * split
    assert ("skill://demo/SKILL.md" in {each.uri for each in resources}) is not split


def test_a_pack_over_the_limits_is_cut_by_folder_then_deeper_then_in_parts(tmp_path: Path) -> None:
    resources, findings = make(
        tmp_path,
        {
            **{f"guides/deep/{n:03}.md": page(f"Page {n}") for n in range(600)},
            "guides/start.md": page("Start"),
            "concepts/a.md": page("A"),
            "Con cepts/b.md": page("B"),
        },
    )
    found = skills(resources)
    assert {root: len(files) for root, files in found.items()} == {
        "skill://demo/con-cepts/": 2,
        "skill://demo/concepts/": 2,
        "skill://demo/demo-1/": 2,
        "skill://demo/guides/deep/deep-1/": 512,
        "skill://demo/guides/deep/deep-2/": 90,
        "skill://demo/guides/guides-1/": 2,
    }
    assert within_limits(resources)
    assert found["skill://demo/demo-1/"] == ["SKILL.md", "overview.md"]
    assert sum(map(len, found.values())) == 604 + len(found) == len(resources)
    assert [each.code for each in findings] == ["skill-split"]
    text = text_of(resources, "skill://demo/guides/deep/deep-2/SKILL.md")
    assert frontmatter_of(text) == {
        "name": "deep-2",
        "description": "guides/deep, part 2 of Demo. All about demos.",
    }
    assert "- [Page 511](511.md)\n" in text
    assert "- <skill://demo/concepts/SKILL.md>\n" in text


def test_folders_whose_names_become_alike_stay_apart(tmp_path: Path) -> None:
    names = ("Guides", "guides", "guides!", "ガイド", "demo-1", "g" * 70)
    pages = {f"{name}/{n}.md": "" for name in names for n in range(100)}
    resources, _ = make(tmp_path, pages)
    roots = sorted(root.split("/")[3] for root in skills(resources))
    assert roots == ["demo-1", "demo-1-2", "g" * 64, "guides", "guides-2", "guides-3", "pack"]
    # the folder whose name needs no change keeps it
    (first,) = [each for each in resources if each.uri == "skill://demo/guides/0.md"]
    assert first.document is not None
    assert released(read(tmp_path)).documents[first.document].path == "guides/0.md"


def test_large_files_are_shared_out_by_their_bytes(tmp_path: Path) -> None:
    resources, findings = make(tmp_path, {f"{n}.md": page(str(n), MEGABYTES_5) for n in range(7)})
    assert [len(files) for files in skills(resources).values()] == [4, 4, 3]
    assert within_limits(resources)
    assert [each.code for each in findings] == ["skill-split"]


def test_a_file_that_no_skill_can_hold_is_left_out_with_an_error(tmp_path: Path) -> None:
    resources, findings = make(tmp_path, {"a.md": page("A", "x" * (MAX_BYTES - 1000)), "b.md": page("B")})
    assert skills(resources) == {"skill://demo/": ["SKILL.md", "b.md", "overview.md"]}
    assert [(each.path, each.code, each.severity) for each in findings] == [("a.md", "skill-file-over-limit", "error")]


def test_a_made_skill_file_is_bounded(tmp_path: Path) -> None:
    boundary = "".join(
        f"  {key}: [{', '.join(['油' * 900] * 50)}]\n" for key in ("in_scope", "out_of_scope", "refuse_when")
    )
    pages = {f"{'長' * 80}/{n:03}.md": page("油" * 900, description="油" * 900) for n in range(500)}
    resources, _ = make(tmp_path, pages, f"{ON}authority_boundary:\n{boundary}")
    text = text_of(resources)
    assert MAX_SKILL_FILE / 2 < len(text.encode()) <= MAX_SKILL_FILE
    assert " more files: list the directory, or search." in text


def test_a_slug_that_cannot_name_a_skill_is_an_error(tmp_path: Path) -> None:
    make(tmp_path, {})
    manifest = (tmp_path / "manifest.yaml").read_text().replace("slug: demo", f"slug: {'a' * 65}")
    (tmp_path / "manifest.yaml").write_text(manifest)
    resources, findings = skill_resources(read(tmp_path))
    assert (resources, [each.code for each in findings]) == ([], ["skill-invalid"])


def test_the_order_in_which_files_come_changes_nothing(tmp_path: Path) -> None:
    files = {f"{folder}/{n}.md": page(str(n)) for folder in ("a", "B", "c") for n in range(250)}
    first, second = tmp_path / "1", tmp_path / "2"
    assert make(first, files) == make(second, dict(reversed(files.items())))
