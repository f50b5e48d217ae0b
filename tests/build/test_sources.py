from __future__ import annotations

import json
import os
import unicodedata
from pathlib import Path

import pytest

from octavo_artifact.errors import ConfigError
from octavo_artifact.schema import Document
from octavo_build.pack import Pack
from octavo_build.sources import adapter_of, read, slug_of
from octavo_build.sources.audience import released as released_of

MANIFEST = b"slug: demo\nname: Demo\ntype: product\nversion: 1.10\n"


def write(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def expertpack(root: Path, files: dict[str, bytes], manifest: bytes = MANIFEST) -> Pack:
    return read(write(root, {"manifest.yaml": manifest, "overview.md": b"---\ntitle: O\n---\n# O\n", **files}))


def by_path(pack: Pack) -> dict[str, Document]:
    return {document.path: document for document in pack.documents}


def found(pack: Pack, path: str) -> list[str]:
    return [finding.code for finding in pack.findings if finding.path == path]


def test_a_manifest_makes_an_expertpack_and_any_other_folder_is_docs(tmp_path: Path) -> None:
    assert adapter_of(write(tmp_path / "a", {"manifest.yaml": MANIFEST})).name == "expertpack"
    assert adapter_of(write(tmp_path / "b", {"x.md": b"x"})).name == "docs"


def test_a_folder_may_say_its_format_and_the_command_line_has_the_last_word(tmp_path: Path) -> None:
    root = write(tmp_path, {"manifest.yaml": MANIFEST, "pack.yaml": b"format: docs\n"})
    assert adapter_of(root).name == read(root).source_format == "docs"
    assert adapter_of(root, {"format": "expertpack"}).name == "expertpack"


def test_an_unknown_format_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"format 'epub', expected one of expertpack, .*docs"):
        slug_of(write(tmp_path, {"pack.yaml": b"format: epub\n"}))


def test_a_missing_folder_is_the_operators_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a folder"):
        slug_of(tmp_path / "none")


def test_the_manifest_says_who_the_pack_is(tmp_path: Path) -> None:
    pack = expertpack(tmp_path, {})
    assert (pack.slug, pack.name, pack.type, pack.version) == ("demo", "Demo", "product", "1.10")
    assert pack.entry_point == "overview.md"
    assert pack.metadata["version"] == "1.10"


def test_a_broken_manifest_is_findings_and_the_pack_builds(tmp_path: Path) -> None:
    pack = expertpack(tmp_path / "My Pack", {}, manifest=b"slug: a: b\n")
    assert pack.slug == "my-pack"
    assert found(pack, "manifest.yaml") == ["manifest-field"] * 3 + ["yaml-invalid"]
    assert [document.path for document in pack.documents] == ["overview.md"]


@pytest.mark.parametrize(("written", "slug"), [("Ünïcode Päck", "unicode-pack"), ("a_b", "a-b"), ("***", "pack")])
def test_a_slug_that_is_none_is_made_one(tmp_path: Path, written: str, slug: str) -> None:
    pack = expertpack(tmp_path, {}, manifest=f"slug: '{written}'\nname: n\ntype: t\n".encode())
    assert pack.slug == slug == slug_of(tmp_path)
    assert found(pack, "manifest.yaml") == ["manifest-slug"]


def test_frontmatter_becomes_the_documents_fields(tmp_path: Path) -> None:
    text = b"""---
id: demo/x
title: X
type: concept
tags: [b, a]
verified_at: 2026-01-02
verified_by: agent
requires: [y.md]
related: z
---
---
sources:
  - url: u
---
Body
"""
    document = by_path(expertpack(tmp_path, {"concepts/x.md": text}))["concepts/x.md"]
    assert (document.id, document.title, document.type, document.tags) == ("demo/x", "X", "concept", ("b", "a"))
    assert (document.verified_at, document.verified_by) == ("2026-01-02", "agent")
    assert (document.requires, document.related) == (("y.md",), ("z",))
    assert document.uri == "ep://demo/file/concepts/x.md"
    assert document.raw[document.body_offset :] == b"Body\n"
    assert json.loads(document.frontmatter)["sources"] == [{"url": "u"}]


@pytest.mark.parametrize(
    ("name", "front", "strategy", "searchable"),
    [
        pytest.param("a.md", b"", "standard", True, id="default"),
        pytest.param("a.md", b"retrieval_strategy: atomic\n", "atomic", True, id="atomic"),
        pytest.param("a.md", b"retrieval:\n  strategy: atomic\n", "atomic", True, id="legacy"),
        pytest.param("a.md", b"retrieval_strategy: navigation\n", "navigation", False, id="navigation"),
        pytest.param("a.md", b"concept_scope: navigation\n", "navigation", False, id="navigation scope"),
        pytest.param("c/_index.md", b"", "navigation", False, id="index"),
        pytest.param("volatile/x.md", b"", "standard", False, id="on demand by directory"),
        pytest.param("volatile/kept.md", b"", "standard", True, id="file beats directory"),
    ],
)
def test_strategy_and_tier_decide_what_is_searchable(
    tmp_path: Path, name: str, front: bytes, strategy: str, searchable: bool
) -> None:
    manifest = MANIFEST + b"context:\n  on_demand: [volatile/]\n  searchable: [volatile/kept.md]\n"
    document = by_path(expertpack(tmp_path, {name: b"---\ntitle: A\n" + front + b"---\nB\n"}, manifest))[name]
    assert (document.strategy, document.searchable) == (strategy, searchable)


def test_a_composite_keeps_its_childrens_ids_and_tiers(tmp_path: Path) -> None:
    manifest = b"""slug: whole
name: W
type: composite
packs: [{path: part, role: knowledge}]
context:
  overrides:
    part-of-it: {always: [late.md]}
"""
    pack = expertpack(
        tmp_path,
        {
            "part/manifest.yaml": b"slug: part-of-it\nname: P\ntype: product\ncontext: {on_demand: [late.md, old/]}\n",
            "part/overview.md": b"---\nid: whole/part/overview\ntitle: O\n---\nx",
            "part/late.md": b"---\ntitle: L\n---\nx",
            "part/old/a.md": b"---\ntitle: A\n---\nx",
            "part/eval/q.md": b"not knowledge",
        },
        manifest,
    )
    tiers = {path: (document.id, document.pack, document.tier) for path, document in by_path(pack).items()}
    assert tiers == {
        "overview.md": ("whole/overview", "whole", "always"),
        "part/overview.md": ("whole/part/overview", "part-of-it", "always"),
        "part/late.md": ("whole/part/late", "part-of-it", "always"),
        "part/old/a.md": ("whole/part/old/a", "part-of-it", "on_demand"),
    }


def test_a_child_outside_the_composite_goes_by_its_folders_name(tmp_path: Path) -> None:
    write(tmp_path / "packs/child", {"manifest.yaml": b"slug: child\nname: C\ntype: product\n", "a.md": b"A"})
    manifest = MANIFEST + b"packs: [{path: ../packs/child}, {path: nowhere}]\n"
    pack = expertpack(tmp_path / "whole", {}, manifest)
    assert list(by_path(pack)) == ["child/a.md", "overview.md"]
    assert found(pack, "manifest.yaml") == ["manifest-path"]


def test_the_first_file_keeps_a_repeated_id(tmp_path: Path) -> None:
    text = b"---\nid: same\ntitle: T\n---\nx"
    pack = expertpack(tmp_path, {"a.md": text, "b.md": text, "c.md": b"---\nid: demo/b\ntitle: T\n---\nx"})
    assert {path: document.id for path, document in by_path(pack).items()} == {
        "a.md": "same", "b.md": "demo/b-2", "c.md": "demo/b", "overview.md": "demo/overview",
    }  # fmt: skip
    assert found(pack, "b.md") == ["id-duplicate"]


@pytest.mark.parametrize(
    ("raw", "codes"),
    [
        pytest.param(b"\xef\xbb\xbf---\ntitle: A\nid: a\n---\nx", ["bom"], id="bom"),
        pytest.param(b"---\r\ntitle: A\r\nid: a\r\n---\r\nx", ["crlf"], id="crlf"),
        pytest.param(b"no frontmatter", ["frontmatter-missing", "id-missing"], id="no frontmatter"),
        pytest.param(b"---\nid: a\ntitle: A\n---\nbad \xff byte", ["encoding-invalid"], id="bad utf-8"),
        pytest.param("# Hé".encode("utf-16"), ["encoding-utf16"], id="utf-16"),
        pytest.param(b"---\nid: a\ntitle: A\n---\na\0b", ["control-character"], id="nul"),
        pytest.param(
            b"---\nid: [a]\ntitle: A\ntags: {a: b}\n---\nx", ["frontmatter-value"] * 2 + ["id-missing"], id="kinds"
        ),
        pytest.param(b"", ["id-missing"], id="empty"),
    ],
)
def test_bad_input_is_coded_and_still_a_document(tmp_path: Path, raw: bytes, codes: list[str]) -> None:
    pack = expertpack(tmp_path, {"a.md": raw})
    assert sorted(found(pack, "a.md")) == sorted(codes)
    assert by_path(pack)["a.md"].raw == raw


def test_titles_come_from_frontmatter_then_the_first_heading_then_the_name(tmp_path: Path) -> None:
    pack = read(
        write(
            tmp_path,
            {
                "a.md": b"---\ntitle: Front\n---\n# Heading\n",
                "b.md": b"```\n# no\n```\n\n# The `real` *one*\n",
                "some-file_name.md": b"text",
                "bom.md": b"\xef\xbb\xbfSetext\n===\n",
            },
        )
    )
    titles = {path: document.title for path, document in by_path(pack).items()}
    assert titles == {
        "a.md": "Front",
        "b.md": "The real one",
        "some-file_name.md": "some file name",
        "bom.md": "Setext",
    }


def test_links_are_followed_to_files_of_the_pack_only(tmp_path: Path) -> None:
    root = write(tmp_path / "pack", {"a.md": b"A", "dir/b.md": b"B"})
    (tmp_path / "secret.md").write_bytes(b"secret")
    (root / "inside.md").symlink_to("a.md")
    (root / "outside.md").symlink_to(tmp_path / "secret.md")
    (root / "dangling.md").symlink_to("none.md")
    (root / "loop.md").symlink_to("loop.md")
    (root / "dir" / "up").symlink_to(root)
    pack = read(root)
    assert {path: document.raw for path, document in by_path(pack).items()} == {
        "a.md": b"A", "dir/b.md": b"B", "inside.md": b"A",
    }  # fmt: skip
    assert {finding.path: finding.code for finding in pack.findings} == {
        "outside.md": "symlink-escapes",
        "dangling.md": "symlink-dangling",
        "loop.md": "symlink-dangling",
        "dir/up": "symlink-directory",
    }
    assert not any(str(tmp_path) in finding.message for finding in pack.findings)


@pytest.mark.parametrize("name", ["a b.md", "a#b.md", "a?b.md", "100%.md", "a&b+c.md", "a\nb.md", "a\\b.md", "日本.md"])
def test_odd_names_are_documents_with_reversible_uris(tmp_path: Path, name: str) -> None:
    from urllib.parse import unquote, urlsplit

    document = by_path(read(write(tmp_path, {name: b"x"})))[name]
    assert unquote(urlsplit(document.uri).path.removeprefix("/file/")) == name


def test_names_that_some_file_systems_confuse_are_told(tmp_path: Path) -> None:
    composed, decomposed = unicodedata.normalize("NFC", "é.md"), unicodedata.normalize("NFD", "é.md")
    pack = read(write(tmp_path, {"A.md": b"1", "a.md": b"2", composed: b"3", decomposed: b"4"}))
    assert list(by_path(pack)) == ["A.md", "a.md", composed]
    assert sorted(finding.code for finding in pack.findings) == ["file-unreadable", "path-collision"]


def test_what_is_no_file_is_told_and_skipped(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    assert [finding.code for finding in read(tmp_path).findings] == ["file-not-regular"]


def test_relations_are_an_expertpacks_and_not_any_folders(tmp_path: Path) -> None:
    text = b"---\nrequires: [1014, 1052]\nrelated: x\n---\nbody"
    (document,) = read(write(tmp_path, {"eip-1.md": text})).documents
    assert (document.requires, document.related) == ((), ())


def test_a_docs_folder_may_name_itself(tmp_path: Path) -> None:
    pack = read(write(tmp_path, {"pack.yaml": b"slug: guide\nname: The Guide\nversion: 2.10\n", "index.md": b"# Hi"}))
    assert (pack.slug, pack.name, pack.version, pack.entry_point) == ("guide", "The Guide", "2.10", "index.md")


def person(root: Path, access: bytes | None, front: bytes = b"") -> Pack:
    files = {"a.md": b"---\nid: p/a\ntitle: A\n" + front + b"---\nA story.\n"}
    return expertpack(root, files if access is None else {**files, "_access.json": access})


@pytest.mark.parametrize(
    ("access", "front", "released"),
    [
        pytest.param(None, b"", True, id="nothing said"),
        pytest.param(None, b"sensitivity: public\n", True, id="public"),
        pytest.param(None, b"sensitivity: family\n", False, id="family"),
        pytest.param(b'{"default_access": "friends"}', b"", False, id="default"),
        pytest.param(b'{"default_access": "self", "overrides": {"a.md": "public"}}', b"", True, id="override"),
        pytest.param(b'{"overrides": {"a.md": "self"}}', b"sensitivity: public\n", False, id="the narrower of both"),
        pytest.param(b'{"default_access": "friends"}', b"sensitivity: public\n", False, id="own word widens nothing"),
        pytest.param(b"{", b"sensitivity: public\n", False, id="broken file"),
        pytest.param(b'{"default_access": "everybody"}', b"", False, id="unknown default"),
        pytest.param(b"[]", b"", False, id="no mapping"),
        pytest.param(None, b"sensitivity: secret\n", False, id="unknown word"),
        pytest.param(None, b"sensitivity: [public]\n", False, id="a list"),
    ],
)
def test_only_what_is_public_is_released(tmp_path: Path, access: bytes | None, front: bytes, released: bool) -> None:
    assert ("a.md" in by_path(released_of(person(tmp_path, access, front)))) is released


def test_what_is_withheld_is_counted_and_not_named(tmp_path: Path) -> None:
    pack = released_of(person(tmp_path, None, b"sensitivity: self\ntags: {a: b}\n"))
    assert [finding.message for finding in pack.findings if finding.code == "audience-withheld"] == [
        "1 file is for a narrower audience than public"
    ]
    assert not any("a.md" in finding.path or "a.md" in finding.message for finding in pack.findings)


@pytest.mark.parametrize(
    ("audience", "paths", "label"),
    [
        ("public", ["overview.md"], "public"),
        ("friends", ["overview.md"], "public"),
        ("family", ["a.md", "overview.md"], "family"),
        ("self", ["a.md", "overview.md"], "family"),
    ],
)
def test_a_release_is_for_the_narrowest_audience_of_what_it_holds(
    tmp_path: Path, audience: str, paths: list[str], label: str
) -> None:
    pack = released_of(person(tmp_path, None, b"sensitivity: family\n"), audience)
    assert (list(by_path(pack)), pack.audience) == (paths, label)


def test_what_names_a_withheld_file_goes_with_it(tmp_path: Path) -> None:
    manifest = MANIFEST + (
        b"context: {always: [overview.md, a.md], on_demand: [b/]}\n"
        b"mcp: {prompts: [{name: tell_it, source: a.md}, {name: hello, source: overview.md}]}\n"
    )
    files = {
        "a.md": b"---\nid: demo/x\nsensitivity: self\n---\nA story.\n",
        "b.md": b"---\nid: demo/x\n---\nAnother.\n",
        "_graph.yaml": b"nodes: [{id: demo/x, title: A secret, file: a.md}]\n",
    }
    pack = released_of(expertpack(tmp_path, files, manifest))
    assert pack.metadata["context"] == {"always": ["overview.md"], "on_demand": ["b/"]}
    assert pack.metadata["mcp"]["prompts"] == [{"name": "hello", "source": "overview.md"}]
    assert not pack.extras
    assert not [finding for finding in pack.findings if "a.md" in finding.message]


def test_a_childs_access_file_is_about_the_childs_files(tmp_path: Path) -> None:
    files = {
        "part/manifest.yaml": b"slug: part\nname: P\ntype: person\n",
        "part/a.md": b"---\nid: p/a\ntitle: A\n---\nx",
        "part/b.md": b"---\nid: p/b\ntitle: B\n---\nx",
        "part/_access.json": b'{"overrides": {"a.md": "self"}}',
    }
    pack = expertpack(tmp_path, files, MANIFEST + b"packs: [{path: part}]\n")
    assert list(by_path(released_of(pack))) == ["overview.md", "part/b.md"]


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("# A *b* `c`\n\n# D\n", "A b c"), ("A\nb\n===\n", "A b"), ("   # A #\n", "A"), ("#\tA", "A"),
        ("\ufeff# A\n", "A"),
        ("```\n# no\n```\n\n# A\n", "A"), ("<!--\n# no\n-->\n\n# A\n", "A"), ("- x\n\n  # no\n\n# A\n", "A"),
        ("> # no\n\n# A\n", "A"), ("    # no\n\n# A\n", "A"), ("\\# no\n", "notes"), ("## no\n#no\n", "notes"),
        ("# [A][r] b\n\n[r]: x\n", "A b"), ("# [A] b\n", "[A] b"), ("x\r# A\r", "A"), ("a = b\n\n==\n", "notes"),
    ],
)  # fmt: skip
def test_the_first_heading_is_the_title_of_a_file_without_one(body: str, title: str, tmp_path: Path) -> None:
    pack = read(write(tmp_path, {"notes.md": body.encode()}))
    assert pack.documents[0].title == title


def composite(root: Path, manifest: bytes, files: dict[str, bytes] | None = None) -> dict[str, str]:
    """Tier by path of a composite of `voice/` and `facts/`."""
    child = b"name: C\ntype: person\n"
    return {
        path: document.tier
        for path, document in by_path(
            expertpack(
                root,
                {
                    "voice/manifest.yaml": b"slug: my-voice\n" + child,
                    "voice/presentation/speech-patterns.md": b"Hm.",
                    "facts/manifest.yaml": b"slug: my-facts\n" + child + b"context: {always: [facts/x.md]}\n",
                    "facts/facts/x.md": b"X.",
                    **(files or {}),
                },
                MANIFEST.replace(b"product", b"composite") + manifest,
            )
        ).items()
    }


PACKS = b"packs: [{path: voice, role: voice}, {path: facts, role: knowledge}]\n"


def test_how_the_voice_speaks_is_always_in_context(tmp_path: Path) -> None:
    assert composite(tmp_path / "a", PACKS)["voice/presentation/speech-patterns.md"] == "always"
    plain = PACKS.replace(b", role: voice", b"")
    assert composite(tmp_path / "b", plain)["voice/presentation/speech-patterns.md"] == "searchable"


@pytest.mark.parametrize("key", ["facts", "facts/", "my-facts"])
def test_a_composite_moves_its_childrens_files_to_other_tiers(tmp_path: Path, key: str) -> None:
    override = f"context: {{overrides: {{{key}: {{on_demand: [facts/]}}}}}}\n".encode()
    assert composite(tmp_path, PACKS + override)["facts/facts/x.md"] == "on_demand"


def test_overrides_may_stand_in_a_file_of_their_own(tmp_path: Path) -> None:
    files = {"overrides/context.yaml": b"facts: {on_demand: [facts/x.md]}\nnobody: {}\n"}
    assert composite(tmp_path, PACKS, files)["facts/facts/x.md"] == "on_demand"
    assert [finding.code for finding in read(tmp_path).findings if finding.path == "overrides/context.yaml"] == [
        "manifest-path"
    ]


def test_conflicts_are_kept_for_whoever_answers(tmp_path: Path) -> None:
    composite(tmp_path, PACKS + b"conflicts: {priority: [facts, voice], strategy: priority}\n")
    assert read(tmp_path).metadata["conflicts"] == {"priority": ["facts", "voice"], "strategy": "priority"}


@pytest.mark.parametrize(
    ("written", "activation"),
    [
        pytest.param("{tools: [drill], next: [b.md]}", '{"next":["b.md"],"tools":["drill"]}', id="lists"),
        pytest.param("{tools: drill, constraints: [dry]}", '{"constraints":["dry"]}', id="one of another kind"),
        pytest.param("{todo: [x]}", None, id="unknown key"),
        pytest.param("now", None, id="no mapping"),
    ],
)
def test_activation_is_lists_of_words(tmp_path: Path, written: str, activation: str | None) -> None:
    pack = expertpack(tmp_path, {"a.md": f"---\ntype: workflow\nactivation: {written}\n---\nx\n".encode()})
    assert by_path(pack)["a.md"].activation == activation
    assert ("frontmatter-value" in found(pack, "a.md")) is ("next:" not in written)


def test_only_what_can_be_done_activates(tmp_path: Path) -> None:
    pack = expertpack(tmp_path, {"a.md": b"---\ntype: concept\nactivation: {tools: [x]}\n---\nx\n"})
    assert by_path(pack)["a.md"].activation is None
