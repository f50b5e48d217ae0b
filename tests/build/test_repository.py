from __future__ import annotations

import os
from argparse import ArgumentParser
from pathlib import Path

import pytest

from octavo_build.knowledge import cache_folder
from octavo_build.pack import Pack
from octavo_build.resources import list_resources
from octavo_build.source_options import OWNER_VARIABLE, ROOTS_VARIABLE, add_format, add_repository, options_of
from octavo_build.sources import adapter_of, read, slug_of
from octavo_build.sources.repository import description_of, id_of, top_level, type_slug

EXPORTED = "---\nexport: true\ntype: Note\n---\nBody.\n"


def repository(root: Path, files: dict[str, str], **options: str) -> Pack:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return read(root, {"format": "repository", "owner": "me", **options})


def exporting(front: str, body: str = "Body.\n") -> str:
    return f"---\nexport: true\ntype: Note\n{front}\n---\n{body}"


def uris(pack: Pack) -> dict[str, str]:
    return {document.path: document.uri for document in pack.documents}


def told(pack: Pack) -> list[tuple[str, str, str]]:
    found = [finding for finding in pack.findings if finding.code != "root-skipped"]
    return [(finding.path, finding.severity, finding.code) for finding in found]


@pytest.mark.parametrize(
    ("front", "exported"),
    [
        pytest.param("export: true\ntype: Note", True, id="true and a type"),
        pytest.param("export: True\ntype: Note", True, id="another spelling of true"),
        pytest.param("export: false\ntype: Note", False, id="false"),
        pytest.param("type: Note", False, id="no export"),
        pytest.param('export: "true"\ntype: Note', False, id="a text"),
        pytest.param("export: yes\ntype: Note", False, id="a word that only YAML 1.1 takes for true"),
        pytest.param("export: 1\ntype: Note", False, id="a number"),
        pytest.param("export: [true]\ntype: Note", False, id="a list"),
        pytest.param("export: true", False, id="no type"),
        pytest.param("export: true\ntype: ' '", False, id="a blank type"),
        pytest.param("export: true\ntype: [Note]", False, id="a list of types"),
        pytest.param("nested: {export: true}\ntype: Note", False, id="true in another place"),
    ],
)
def test_true_and_a_type_opt_a_file_in_and_nothing_else_does(tmp_path: Path, front: str, exported: bool) -> None:
    pack = repository(tmp_path, {"design/a.md": f"---\n{front}\n---\nBody.\n", "design/b.md": "No frontmatter.\n"})
    assert list(uris(pack)) == (["design/a.md"] if exported else [])


def test_a_document_has_the_address_name_and_description_of_the_contract(tmp_path: Path) -> None:
    text = exporting("tags: [x]", "\n# Heading\n\nFirst line.\nSecond line.\n")
    ((resource,), _) = list_resources(repository(tmp_path, {"backlog/docs/doc-1 - Some Title.md": text}))
    assert (resource.uri, resource.name) == ("knowledge://me/note/doc-1", "doc-1 - Some Title")
    assert (resource.description, resource.mime_type) == ("First line.", "text/markdown")
    body = text.encode()[resource.start : resource.start + resource.size]
    assert body == b"# Heading\n\nFirst line.\nSecond line."


@pytest.mark.parametrize(
    ("metadata", "path", "expected"),
    [
        ({"id": "x-1"}, "design/a b.md", "x-1"),
        ({"id": " "}, "design/doc-1 - Title.md", "doc-1"),
        ({}, "design/plain-name.md", "plain-name"),
        ({"id": ["x"]}, "design/a.v2.md", "a.v2"),
        ({}, "design/冬季 ノート.md", "冬季"),
    ],
)
def test_an_id_is_as_written_else_the_first_word_of_the_name(
    metadata: dict[str, object], path: str, expected: str
) -> None:
    assert id_of(metadata, path) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("# A\n\nText\nmore\n", "Text", id="first line of the first paragraph"),
        pytest.param("\r\n# A\r\n\r\nText\r\nmore\r\n", "Text", id="CRLF"),
        pytest.param("# A\n\n## B\n", "", id="headings only"),
        pytest.param("", "", id="empty"),
        pytest.param("ü" * 600, "ü" * 500, id="cut at 500 characters"),
    ],
)
def test_a_description_falls_back_on_the_text(body: str, expected: str) -> None:
    assert description_of({}, body.encode()) == expected
    assert description_of({"description": "written " * 100}, body.encode()) == "written " * 100


@pytest.mark.parametrize(
    ("kind", "slug"),
    [
        ("Architecture Decision", "architecture-decision"),
        ("  C++ / API_v2! ", "c-api-v2"),
        ("Café", "café"),
        ("設計 メモ", "設計-メモ"),
        ("Ｆｕｌｌ", "full"),
        ("🚀", "u1f680"),
        ("++", "u2b-u2b"),
    ],
)
def test_no_type_slugs_to_nothing(kind: str, slug: str) -> None:
    assert type_slug(kind) == slug


def test_uris_are_percent_encoded(tmp_path: Path) -> None:
    files = {"design/a.md": "---\nexport: true\ntype: 設計\nid: 'a b/ü?#'\n---\n"}
    assert uris(repository(tmp_path, files, owner="my team/x")) == {
        "design/a.md": "knowledge://my%20team%2Fx/%E8%A8%AD%E8%A8%88/a%20b/%C3%BC%3F%23"
    }


def test_a_broken_file_is_a_finding_and_the_others_are_read(tmp_path: Path) -> None:
    files = {
        "design/bad.md": "---\nexport: true\ntype: a: b\n---\nBody.\n",
        "design/good.md": EXPORTED,
        "design/wide.md": "\ufeff",
    }
    pack = repository(tmp_path, files)
    assert list(uris(pack)) == ["design/good.md"]
    assert told(pack) == [("design/bad.md", "error", "yaml-invalid")]


def test_what_is_not_exported_is_nobodys_business(tmp_path: Path) -> None:
    assert told(repository(tmp_path, {"design/a.md": "---\r\ntitle: [x]\r\n---\r\nBody.\0\n"})) == []


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param(
            {"design/a.md": exporting("id: x"), "design/b.md": exporting("id: x").replace("Note", "Guide")},
            [("design/b.md", "error", "id-duplicate")],
            id="one id in two types",
        ),
        pytest.param(
            {"design/a.md": exporting("id: x"), "design/b.md": exporting("id: x")},
            [("design/b.md", "error", "uri-duplicate")],
            id="one id in one type",
        ),
        pytest.param(
            {"design/a.md": "---\nexport: true\n---\n"},
            [("design/a.md", "error", "export-untyped")],
            id="export without type",
        ),
        pytest.param(
            {"design/a.md": EXPORTED, "design/b.md": EXPORTED.replace("Note", "NOTE!")},
            [("design/b.md", "warning", "type-collision")],
            id="two types with one slug",
        ),
        pytest.param(
            {"design/a.md": EXPORTED.replace("true", "yes")},
            [("design/a.md", "warning", "export-value")],
            id="an export that is meant and not true",
        ),
    ],
)
def test_the_invariants_of_the_contract_are_findings(
    tmp_path: Path, files: dict[str, str], expected: list[tuple[str, str, str]]
) -> None:
    assert told(repository(tmp_path, files)) == expected


def test_of_two_documents_with_one_uri_that_of_the_first_root_counts(tmp_path: Path) -> None:
    pack = repository(tmp_path, {"a/x.md": EXPORTED, "b/x.md": EXPORTED}, roots="b, a")
    assert uris(pack) == {"b/x.md": "knowledge://me/note/x"}


def test_roots_are_relative_to_gits_top_level_and_missing_ones_are_told(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "deep" / "down").mkdir(parents=True)
    repository(tmp_path, {"docs/a.md": EXPORTED, "docs/in/b.md": EXPORTED, "design/c.md": EXPORTED})
    pack = read(tmp_path / "deep" / "down", {"format": "repository", "roots": f"docs,docs/in,none,../x,{tmp_path}/d"})
    assert list(uris(pack)) == ["docs/a.md", "docs/in/b.md"]
    assert told(pack) == []
    assert [finding.message for finding in pack.findings if finding.code == "root-skipped"] == [
        "'../x' leads out of the repository",
        "'d' is no folder of the repository",
        "'none' is no folder of the repository",
    ]


def test_a_folder_with_a_pack_yaml_is_its_own_top_level(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    inner = tmp_path / "inner"
    inner.mkdir()
    assert top_level(inner) == tmp_path
    (inner / "pack.yaml").write_text("format: repository\nowner: The Crew\nroots: [notes]\nname: Crew\n")
    assert top_level(inner) == inner
    (inner / "notes").mkdir()
    (inner / "notes" / "a.md").write_text(EXPORTED)
    pack = read(inner)
    assert (pack.slug, pack.name, pack.source_format) == ("the-crew", "Crew", "repository")
    assert list(uris(pack).values()) == ["knowledge://The%20Crew/note/a"]


@pytest.mark.parametrize("roots", ["roots: 7", "roots: {a: b}", 'roots: ["a\\0b"]', "roots: []"])
def test_roots_that_are_none_do_not_stop_a_build(tmp_path: Path, roots: str) -> None:
    (tmp_path / "pack.yaml").write_text(f"format: repository\n{roots}\n")
    assert read(tmp_path).documents == ()


def test_the_owner_is_the_folders_name_when_nobody_says(tmp_path: Path) -> None:
    root = tmp_path / "My.Repo"
    root.mkdir()
    pack = read(root, {"format": "repository"})
    assert (pack.slug, pack.metadata["owner"]) == ("my-repo", "My.Repo")


def test_owners_in_other_scripts_have_different_slugs(tmp_path: Path) -> None:
    slugs = {slug_of(tmp_path, {"format": "repository", "owner": owner}) for owner in ("知識", "渡船", "Ночь")}
    assert len(slugs) == 3


def test_a_link_out_of_the_repository_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text(EXPORTED)
    root = tmp_path / "repo"
    (root / "design").mkdir(parents=True)
    (root / "notes").symlink_to(outside)
    (root / "design" / "a.md").symlink_to(outside / "secret.md")
    pack = repository(root, {"design/b.md": EXPORTED}, roots="design,notes")
    assert list(uris(pack)) == ["design/b.md"]
    assert [finding.code for finding in pack.findings] == ["root-skipped", "symlink-escapes"]


def test_a_build_depends_on_the_markdown_under_the_roots_alone(tmp_path: Path) -> None:
    repository(tmp_path, {"design/a.md": EXPORTED, "design/data.bin": "", "src/b.md": EXPORTED})
    options = {"format": "repository"}
    files = adapter_of(tmp_path, options).files(tmp_path, options)
    assert files == [tmp_path / "pack.yaml", tmp_path / "design" / "a.md"]


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        pytest.param([], {}, {}, id="nothing said"),
        pytest.param(
            [], {OWNER_VARIABLE: "e", ROOTS_VARIABLE: "a:b/"}, {"owner": "e", "roots": "a,b/"}, id="variables"
        ),
        pytest.param(
            ["--owner", "f", "--roots", "x, y"],
            {OWNER_VARIABLE: "e", ROOTS_VARIABLE: "a:b"},
            {"owner": "f", "roots": "x,y"},
            id="arguments before variables",
        ),
        pytest.param(
            ["--owner", " ", "--roots", " , "],
            {OWNER_VARIABLE: "e", ROOTS_VARIABLE: "a"},
            {"owner": "e", "roots": "a"},
            id="an empty argument says nothing",
        ),
    ],
)
def test_the_first_source_that_is_not_empty_wins(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], environment: dict[str, str], expected: dict[str, str]
) -> None:
    for name in (OWNER_VARIABLE, ROOTS_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    parser = ArgumentParser()
    add_format(parser)
    add_repository(parser)
    assert options_of(parser.parse_args(arguments)) == expected


def test_the_cache_is_outside_the_repository_and_one_for_each_reading_of_it(tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": os.fspath(tmp_path / "cache")}
    repo = tmp_path / "repo"
    folders = {
        cache_folder([("repo", repo)], {}, environment),
        cache_folder([("repo", repo)], {"roots": "x"}, environment),
        cache_folder([("other", repo)], {}, environment),
        cache_folder([("repo", tmp_path / "other")], {}, environment),
        cache_folder([("repo", repo), ("other", tmp_path / "other")], {}, environment),
    }
    assert len(folders) == 5
    assert all(folder.parent == tmp_path / "cache" / "octavo" for folder in folders)
    assert cache_folder([("repo", repo)], {}, {"XDG_CACHE_HOME": "relative"}).is_relative_to(Path.home() / ".cache")
