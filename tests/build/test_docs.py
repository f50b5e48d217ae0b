"""The docs format: any folder of documentation, written for whichever site generator."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from octavo_artifact.schema import Document
from octavo_build.bodies import MIME_TYPES
from octavo_build.pack import Pack
from octavo_build.sources import read
from octavo_build.sources.files import list_files


def docs(root: Path, files: dict[str, bytes | str]) -> Pack:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    return read(root)


def paths(root: Path, files: dict[str, bytes | str]) -> list[str]:
    return [document.path for document in docs(root, files).documents]


def page(root: Path, text: bytes | str, name: str = "page.md") -> Document:
    (document,) = docs(root, {name: text}).documents
    return document


def told(pack: Pack) -> list[tuple[str, str]]:
    return [(finding.path, finding.code) for finding in pack.findings]


# which files


def test_every_kind_of_prose_is_read_and_knows_its_kind(tmp_path: Path) -> None:
    names = [f"page{suffix}" for suffix in MIME_TYPES]
    found = docs(tmp_path, {**dict.fromkeys(names, "x"), "README": "x", "a.PDF": "x", "b.py": "x", "UP.MD": "x"})
    assert {document.path: document.mime_type for document in found.documents} == {
        **{f"page{suffix}": kind for suffix, kind in MIME_TYPES.items()},
        "README": "text/plain",
        "UP.MD": "text/markdown",
    }


def test_what_generators_make_and_machines_read_is_no_prose(tmp_path: Path) -> None:
    files = ["_site/a.html", "x/_build/a.txt", "_includes/a.html", "robots.txt", "requirements-dev.txt", ".hidden.md"]
    assert paths(tmp_path, {**dict.fromkeys([*files, ".git/a.md", "node_modules/a.md"], "x"), "a.md": "x"}) == ["a.md"]


@pytest.mark.parametrize(
    ("pack", "expected"),
    [
        pytest.param("", ["a.md", "api/b.md", "api/deep/c.md", "old/d.md"], id="nothing said"),
        pytest.param("include: api/", ["api/b.md", "api/deep/c.md"], id="a folder"),
        pytest.param("include: ['*.md', '!/a.md']", ["api/b.md", "api/deep/c.md", "old/d.md"], id="all but one"),
        pytest.param("include: robots.txt", ["robots.txt"], id="what is else left out"),
        pytest.param("exclude: [old/, '/api/*.md']", ["a.md", "api/deep/c.md"], id="exclude"),
        pytest.param("include: api/\nexclude: deep/", ["api/b.md"], id="both"),
        pytest.param("exclude: ['api/**', '!api/b.md']", ["a.md", "api/b.md", "old/d.md"], id="exception"),
    ],
)
def test_a_pack_says_what_of_its_folder_is_meant(tmp_path: Path, pack: str, expected: list[str]) -> None:
    files = dict.fromkeys(["a.md", "api/b.md", "api/deep/c.md", "old/d.md", "robots.txt"], "x")
    assert paths(tmp_path, {**files, "pack.yaml": pack}) == expected


@pytest.mark.parametrize(
    ("ignores", "expected"),
    [
        pytest.param({".gitignore": "gen/\n*.txt\n"}, ["a.md", "sub/a.md"], id="the folder's"),
        pytest.param({".gitignore": "/a.md\n"}, ["a.txt", "gen/a.md", "sub/a.md", "sub/a.txt"], id="anchored"),
        pytest.param({"sub/.gitignore": "a.*\n"}, ["a.md", "a.txt", "gen/a.md"], id="a deeper one"),
        pytest.param(
            {".gitignore": "*.txt\n", "sub/.gitignore": "!a.txt\n"},
            ["a.md", "gen/a.md", "sub/a.md", "sub/a.txt"],
            id="the nearest has the last word",
        ),
        pytest.param(
            {".gitignore": "sub/\n", "sub/.gitignore": "!a.md\n"},
            ["a.md", "a.txt", "gen/a.md"],
            id="not below a folder",
        ),
        pytest.param(
            {".gitignore": "# *.md\r\n\r\ngen\r\n"}, ["a.md", "a.txt", "sub/a.md", "sub/a.txt"], id="comments, crlf"
        ),
    ],
)
def test_gitignore_is_honoured_at_every_level(tmp_path: Path, ignores: dict[str, str], expected: list[str]) -> None:
    files = dict.fromkeys(["a.md", "a.txt", "gen/a.md", "sub/a.md", "sub/a.txt"], "x")
    assert paths(tmp_path, {**files, **ignores}) == expected


def test_a_pattern_that_cannot_be_used_costs_only_itself(tmp_path: Path) -> None:
    wild = "*a" * 50
    pack = docs(
        tmp_path, {"a.md": "x", "b.md": "x", ".gitignore": f"a.md\n\\\n{wild}\n[z-a]\n", "pack.yaml": "exclude: '!'"}
    )
    assert [document.path for document in pack.documents] == ["b.md"]
    assert [(f.path, f.line, f.code) for f in pack.findings] == [
        (".gitignore", 2, "pattern-invalid"),
        (".gitignore", 3, "pattern-invalid"),
        (".gitignore", 4, "pattern-invalid"),
        ("pack.yaml", 0, "pattern-invalid"),
    ]


def test_patterns_that_select_nothing_are_told(tmp_path: Path) -> None:
    assert told(docs(tmp_path, {"a.md": "x", "pack.yaml": "include: api/"})) == [("pack.yaml", "manifest-path")]


def test_a_gitignore_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("*.md\n")
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / ".gitignore").symlink_to(tmp_path / "elsewhere")
    assert paths(tmp_path / "pack", {"a.md": "x"}) == ["a.md"]


def test_an_ignored_folder_is_not_walked(tmp_path: Path) -> None:
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "up").symlink_to(tmp_path)
    (tmp_path / "current").symlink_to(tmp_path)
    assert told(docs(tmp_path, {"a.md": "x", ".gitignore": "venv/\ncurrent\n# * or * or * or *\n"})) == []


def test_the_builds_bookkeeping_knows_all_that_decides(tmp_path: Path) -> None:
    docs(tmp_path, {"a.md": "x", "pack.yaml": "", "mkdocs.yml": "", ".gitignore": "", "sub/.gitignore": ""})
    assert list_files(tmp_path) == [".gitignore", "a.md", "mkdocs.yml", "pack.yaml", "sub/.gitignore"]


# drafts

DRAFTS: dict[str, bytes | str] = {
    "draft.md": "---\ndraft: true\n---\nx",
    "unpublished.md": "---\npublished: false\n---\nx",
    "hugo.md": "+++\ndraft = true\n+++\nx",
    "hugo.mdx": '{"draft": true}\nx',
    "_drafts/jekyll.md": "x",
    "done.md": "---\ndraft: false\npublished: true\n---\nx",
    "dated.md": "---\npublished: 2024-01-01\ndraft: first\n---\nx",
}


def test_drafts_are_left_out_and_counted_and_not_named(tmp_path: Path) -> None:
    pack = docs(tmp_path, DRAFTS)
    assert [document.path for document in pack.documents] == ["dated.md", "done.md"]
    assert [(f.path, f.code, f.message) for f in pack.findings] == [("", "draft-omitted", "5 drafts")]


def test_drafts_are_read_where_the_pack_says_so(tmp_path: Path) -> None:
    pack = docs(tmp_path, {**DRAFTS, "pack.yaml": "drafts: true"})
    assert (len(pack.documents), told(pack)) == (len(DRAFTS), [])


def test_an_unlisted_page_can_be_read_and_not_found(tmp_path: Path) -> None:
    pack = docs(tmp_path, {"a.md": "---\nunlisted: true\n---\nx", "b.md": "x"})
    assert {document.path: document.searchable for document in pack.documents} == {"a.md": False, "b.md": True}
    assert told(pack) == [("a.md", "unlisted")]


# titles and the rest


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        pytest.param("a.md", "---\ntitle: T\nsidebar_label: L\n---\n# H\n", "T", id="frontmatter"),
        pytest.param("a.md", "---\nsidebar_label: L\n---\nH\n===\n", "H", id="setext heading before a menu's label"),
        pytest.param("a.mdx", "---\nsidebar_label: L\n---\n# H\n", "H", id="mdx"),
        pytest.param("a.md", "---\nsidebar_label: L\n---\n## H\n", "L", id="docusaurus"),
        pytest.param("a.md", "+++\nlinkTitle = 'L'\n+++\nx", "L", id="hugo"),
        pytest.param("a.md", "---\nnav_title: [L]\n---\nx", "a", id="a label of another kind"),
        pytest.param("my-page_one.md", "x", "my page one", id="name"),
        pytest.param("_posts/2024-05-06-my-post.md", "x", "my post", id="jekyll post"),
        pytest.param("2024-05-06.md", "x", "2024 05 06", id="a date alone"),
        pytest.param("the-guide/index.md", "x", "the guide", id="index"),
        pytest.param("the-guide/README.md", "x", "the guide", id="readme"),
        pytest.param("the-guide/_index.md", "x", "the guide", id="hugo index"),
        pytest.param("index.md", "x", "The Pack", id="first page"),
        pytest.param("faq.ipynb", '{\n "title": 1}', "faq", id="no frontmatter in JSON"),
        pytest.param("faq.txt", "---\ntitle: T\n---\n", "faq", id="no frontmatter in plain text"),
        pytest.param("faq.html", "---\ntitle: T\n---\n<p>x", "T", id="frontmatter in html"),
    ],
)
def test_a_page_is_called_as_its_author_would_call_it(tmp_path: Path, name: str, text: str, title: str) -> None:
    (document,) = docs(tmp_path, {name: text, "pack.yaml": "name: The Pack"}).documents
    assert document.title == title


def test_mkdocs_names_the_site_and_pages_without_a_heading(tmp_path: Path) -> None:
    site = """
site_name: Pumps
site_description: All about pumps
nav:
  - Home: index.md
  - plain.md
  - Guides:
    - First steps: guides/start.md
    - Headed: guides/headed.md
theme: !ENV [THEME, x]
markdown_extensions:
  - toc: {slugify: !!python/name:os.system }
"""
    pack = docs(
        tmp_path,
        {
            "mkdocs.yml": site,
            "docs/index.md": "x",
            "docs/plain.md": "x",
            "docs/guides/start.md": "x",
            "docs/guides/headed.md": "# The heading\n",
        },
    )
    assert (pack.name, pack.description, told(pack)) == ("Pumps", "All about pumps", [])
    assert {document.path.removeprefix("docs/"): document.title for document in pack.documents} == {
        "index.md": "Home", "plain.md": "plain", "guides/start.md": "First steps", "guides/headed.md": "The heading",
    }  # fmt: skip


def test_a_broken_mkdocs_file_is_one_finding(tmp_path: Path) -> None:
    assert told(docs(tmp_path, {"mkdocs.yml": "site_name: a: b\n", "a.md": "x"})) == [("mkdocs.yml", "yaml-invalid")]


def test_descriptions_and_tags_have_several_names(tmp_path: Path) -> None:
    text = "---\nsummary: S\nexcerpt: E\ntags: [a, b]\nkeywords: b, c\ncategories: [d, {}]\n---\nx"
    document = page(tmp_path, text)
    assert (document.description, document.tags) == ("S", ("a", "b", "c"))


def test_fields_that_mean_something_else_elsewhere_are_no_mistakes(tmp_path: Path) -> None:
    pack = docs(tmp_path, {"a.md": "---\nrelated: [{url: x}]\nrequires: {php: 8}\nsummary: [x]\n---\nx"})
    assert (pack.documents[0].related, told(pack)) == ((), [])


def test_ids_that_pages_share_are_none(tmp_path: Path) -> None:
    pack = docs(
        tmp_path,
        {
            "pack.yaml": "slug: p",
            "a/intro.md": "---\nid: intro\n---\nx",
            "b/intro.md": "---\nid: intro\n---\nx",
            "c.md": "---\nid: own\n---\nx",
        },
    )
    assert [document.id for document in pack.documents] == ["p/a/intro", "p/b/intro", "own"]
    assert told(pack) == []


@pytest.mark.parametrize(
    ("names", "entry"),
    [
        (["README.md", "index.html", "index.md"], "index.md"),
        (["_index.md", "readme.rst"], "readme.rst"),
        (["README", "README.md"], "README.md"),
        (["docs/index.md"], None),
    ],
)
def test_the_entry_is_the_first_page_at_the_top(tmp_path: Path, names: list[str], entry: str | None) -> None:
    assert docs(tmp_path, dict.fromkeys(names, "x")).entry_point == entry


@pytest.mark.parametrize(
    ("files", "languages"),
    [
        pytest.param({"docs/de/a.md": "x", "docs/en/a.md": "x"}, ["de", "en"], id="folders side by side"),
        pytest.param({"i18n/pt-BR/a.md": "x", "i18n/zh_Hant/a.md": "x"}, ["pt-BR", "zh-Hant"], id="region, script"),
        pytest.param({"a.md": "x", "fr/a.md": "x"}, [None, "fr"], id="beside the original"),
        pytest.param({"a.FR.md": "x", "a.md": "x"}, ["fr", None], id="in the name"),
        pytest.param({"a.de.md": "x", "a.fr.md": "x"}, ["de", "fr"], id="in names side by side"),
        pytest.param({"is/a.md": "x", "b.md": "x"}, [None, None], id="a folder that is called so"),
        pytest.param({"cs/a.md": "x", "ts/a.md": "x"}, [None, None], id="languages of another kind"),
        pytest.param({"what.is.md": "x"}, [None], id="a name that ends so"),
        pytest.param({"de/en/a.md": "x", "fr/en/a.md": "x"}, ["de", "fr"], id="the outermost"),
        pytest.param({"a.md": "---\nlang: FR-ca\n---\nx"}, ["fr-ca"], id="frontmatter"),
        pytest.param({"a.md": "---\nlanguage: python\n---\nx"}, [None], id="a field that means another language"),
        pytest.param(
            {"de/a.md": "---\nlanguage: en\n---\nx", "en/a.md": "x"}, ["en", "en"], id="frontmatter before folder"
        ),
        pytest.param({"pack.yaml": "language: gsw", "a.md": "x"}, ["gsw"], id="the pack's"),
        pytest.param(
            {"pack.yaml": "language: en", "a.md": "x", "de/a.md": "x"}, ["en", "de"], id="folder before the pack's"
        ),
    ],
)
def test_a_page_is_in_the_language_its_author_says(
    tmp_path: Path, files: dict[str, bytes | str], languages: list[str | None]
) -> None:
    assert [document.language for document in docs(tmp_path, files).documents] == languages


def test_a_packs_language_that_is_none_is_told(tmp_path: Path) -> None:
    assert told(docs(tmp_path, {"pack.yaml": "language: English", "a.md": "x"})) == [("pack.yaml", "manifest-field")]


@pytest.mark.parametrize(
    "pack", ["include: {a: b}", "exclude: [[a]]", "drafts: perhaps"], ids=["mapping", "nested", "neither"]
)
def test_a_setting_of_another_kind_is_told_and_left_out(tmp_path: Path, pack: str) -> None:
    found = docs(tmp_path, {"pack.yaml": pack, "a.md": "x"})
    assert [document.path for document in found.documents] == ["a.md"]
    assert told(found) == [("pack.yaml", "manifest-field")]


# what editors and other systems leave


def test_a_habit_of_many_files_is_told_once(tmp_path: Path) -> None:
    pack = docs(tmp_path, {f"{number:02}.md": "a\r\nb" for number in range(30)})
    assert [(f.path, f.code, f.message) for f in pack.findings] == [("", "crlf", "30 files, the first of them 00.md")]


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"\xef\xbb\xbf---\ntitle: T\ntags: [a]\n---\n# H\n", id="frontmatter"),
        pytest.param(b"\xef\xbb\xbf# T\n", id="heading"),
        pytest.param(b"\xef\xbb\xbfT\n===\n", id="setext"),
    ],
)
def test_a_byte_order_mark_is_in_nothing_but_the_file(tmp_path: Path, raw: bytes) -> None:
    document = page(tmp_path, raw)
    assert (document.title, document.raw) == ("T", raw)
    assert "\ufeff" not in document.title + document.id + document.frontmatter
    assert document.raw[document.body_offset :].lstrip()[:1] in (b"#", b"T")


def test_line_ends_change_nothing_an_author_said(tmp_path: Path) -> None:
    text = b"---  \ntitle: T\ntags: [a]\n---\t\nHello\n"
    unix, windows = page(tmp_path / "a", text), page(tmp_path / "b", text.replace(b"\n", b"\r\n"))
    assert (unix.title, unix.tags, unix.frontmatter) == (windows.title, windows.tags, windows.frontmatter)
    assert windows.raw[windows.body_offset :] == b"Hello\r\n"


def test_a_letterhead_between_rules_is_body(tmp_path: Path) -> None:
    letter = "---\n**Pump Works**\n**12 Water Street**\n---\nDear reader"
    pack = docs(tmp_path, {"letter.md": letter, "other.md": "x"})
    assert told(pack) == [("letter.md", "frontmatter-not-mapping")]
    assert pack.documents[0].body_offset == 0


@pytest.mark.parametrize(
    "line",
    ["path: C: drive: x", "star: *bold", "- [[link]]tail\nkey: v", "note: text (see: below)"],
    ids=["colons", "alias", "wikilink", "colon in brackets"],
)
def test_bad_yaml_is_one_finding_and_the_body_is_kept(tmp_path: Path, line: str) -> None:
    pack = docs(tmp_path, {"a.md": f"---\n{line}\nother: y\n---\nBody", "b.md": "x"})
    assert [(f.path, f.code, f.line > 0) for f in pack.findings] == [("a.md", "yaml-invalid", True)]
    document = pack.documents[0]
    assert (document.frontmatter, document.raw[document.body_offset :]) == ("{}", b"Body")


def test_values_stay_as_written(tmp_path: Path) -> None:
    text = "---\ntitle: 1.10\ndescription: 12:30\ntype: null\ntags: [no, 0123, 2024-05-06]\n---\nx"
    document = page(tmp_path, text)
    assert (document.title, document.description, document.type) == ("1.10", "12:30", None)
    assert document.tags == ("no", "0123", "2024-05-06")


def test_links_out_of_the_folder_and_round_it_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    root = tmp_path / "pack"
    docs(root, {"dir/a.rst": "A"})
    (root / "in.rst").symlink_to("dir/a.rst")
    (root / "out.txt").symlink_to(tmp_path / "secret.txt")
    (root / "dir" / "up").symlink_to(root)
    pack = read(root)
    assert [document.path for document in pack.documents] == ["dir/a.rst", "in.rst"]
    assert told(pack) == [("dir/up", "symlink-directory"), ("out.txt", "symlink-escapes")]


@pytest.mark.parametrize(
    ("raw", "code", "readable"),
    [
        pytest.param("# T".encode("utf-16"), "encoding-utf16", False, id="utf-16"),
        pytest.param("# Café".encode("latin-1"), "encoding-invalid", True, id="latin-1"),
        pytest.param(b"# T\nin the\0middle", "control-character", True, id="nul"),
    ],
)
def test_legacy_files_are_told_and_kept(tmp_path: Path, raw: bytes, code: str, readable: bool) -> None:
    pack = docs(tmp_path, {"a.md": raw, "b.md": "x"})
    assert told(pack) == [("a.md", code)]
    assert [document.searchable for document in pack.documents] == [readable, True]


def test_what_is_too_large_or_closed_is_told(tmp_path: Path) -> None:
    docs(tmp_path, {"a.md": "x", "closed.txt": "x"})
    with (tmp_path / "large.txt").open("wb") as file:
        file.truncate(30 * 2**20)
    (tmp_path / "closed.txt").chmod(0)
    expected = [("large.txt", "file-over-limit")]
    if not os.access(tmp_path / "closed.txt", os.R_OK):  # root may read everything
        expected.insert(0, ("closed.txt", "file-unreadable"))
    assert told(read(tmp_path)) == expected
