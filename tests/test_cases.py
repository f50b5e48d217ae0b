"""Inputs that broke systems like ours, at the compiler: each by its number in ../shared/cases.md, with the tests that
hold us to the right behaviour. What no other test says of a row is tested below, in every source format.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest
import regex
from tokenizers import Tokenizer

import octavo_build
from octavo_artifact.ids import document_uri
from octavo_artifact.layout import DOCUMENTS, PASSAGES
from octavo_artifact.schema import Document, Passage
from octavo_artifact.text import heading_line, unix_lines
from octavo_build import stages
from octavo_build.bodies import MIME_TYPES, body_of, format_of
from octavo_build.content_cache import ContentCache
from octavo_build.cuts import Cut, cut_documents
from octavo_build.findings import Finding
from octavo_build.pack import Pack
from octavo_build.plain import plain_text
from octavo_build.sources import ADAPTERS, read
from octavo_build.stages import Work
from octavo_build.tables import read_table
from octavo_build.windows import LIMITS, load_tokenizer
from octavo_serve.catalog import OpenPack, open_catalog
from octavo_serve.cli import main
from octavo_serve.requests import ReadRequest, SearchRequest
from running import is_test

CASES = {
    "B01 a byte order mark": [
        "test_cases.py::test_a_byte_order_mark_changes_nothing_but_offsets",
        "test_cases.py::test_a_byte_order_mark_hides_no_metadata",
        "build/test_docs.py::test_a_byte_order_mark_is_in_nothing_but_the_file",
        "build/bodies/test_every_format.py::test_a_byte_order_mark_is_no_part_of_the_body",
    ],
    "B02 CRLF, a fence that ends the file, spaces after fences": [
        "test_cases.py::test_line_ends_change_nothing_but_offsets",
        "test_cases.py::test_fences_may_be_written_carelessly",
        "build/test_frontmatter.py::test_metadata_is_the_same_however_the_fences_are_written",
        "build/test_passages.py::test_places_are_those_of_the_raw_file",
    ],
    "B03 a letterhead between rules": [
        "test_cases.py::test_a_letterhead_is_told_and_found",
        "test_cases.py::test_a_letterhead_where_frontmatter_decides_is_told_or_not_meant",
        "build/test_frontmatter.py::test_text_between_rules_is_body",
        "build/test_docs.py::test_a_letterhead_between_rules_is_body",
    ],
    "B04 bad YAML": [
        "test_cases.py::test_bad_yaml_is_one_finding_with_its_line_and_reason",
        "test_cases.py::test_bad_yaml_changes_nothing_of_other_files",
        "test_cases.py::test_bad_yaml_refuses_a_strict_build",
        "build/test_frontmatter.py::test_broken_yaml_costs_the_metadata_and_keeps_the_body",
    ],
    "B05 scalars that YAML takes for something else": [
        "test_cases.py::test_scalars_stay_as_written_to_the_last_answer",
        "build/test_frontmatter.py::test_scalars_stay_as_written",
        "build/test_docs.py::test_values_stay_as_written",
    ],
    "B07 files that say nothing": [
        "test_cases.py::test_a_file_that_says_nothing_is_reported_and_never_encoded",
        "test_cases.py::test_an_empty_file_of_any_kind_is_reported_and_never_encoded",
        "build/test_cuts.py::test_no_empty_text_is_encoded",
        "build/test_passages.py::test_a_body_that_says_nothing_has_no_passage",
    ],
    "B09 headings inside fences": [
        "test_cases.py::test_only_real_headings_open_sections",
        "build/bodies/test_markdown.py::test_only_top_level_headings_are_headings",
        "build/test_passages.py::test_a_fence_that_fits_is_never_cut",
    ],
    "B11 text without a place to cut": [
        "test_cases.py::test_every_window_fits_the_encoder_and_nothing_is_lost",
        "build/test_passages.py::test_oversized_text_is_cut_whatever_it_is",
    ],
    "B12 a table larger than two passages": [
        "test_cases.py::test_each_part_of_a_table_begins_with_its_header",
        "build/test_passages.py::test_a_table_that_is_cut_repeats_its_header_and_not_its_caption",
    ],
    "B13 data URIs": [
        "test_cases.py::test_the_payload_of_a_data_uri_is_in_nothing_but_the_file",
        "build/test_passages.py::test_a_data_uri_is_neither_shown_nor_counted_nor_cut",
        "build/bodies/test_markdown.py::test_data_uris_become_a_marker",
    ],
    "B15 graphemes at the edges": [
        "test_cases.py::test_no_passage_of_any_format_begins_or_ends_inside_a_grapheme",
        "build/test_passages.py::test_no_cut_falls_inside_a_grapheme",
    ],
    "B17 delete, shorten, move": [
        "test_reproducible.py::test_an_incremental_build_is_a_clean_build",
        "test_reproducible.py::test_a_deleted_and_a_shortened_file_leave_no_text_behind",
        "test_reproducible.py::test_a_moved_file_keeps_its_vectors",
    ],
    "B19 twice, elsewhere": [
        "test_reproducible.py::test_surroundings_do_not_change_a_digest",
        "test_reproducible.py::test_surroundings_do_not_change_a_byte_or_a_mode_of_dist",
    ],
    "B21 names": [
        "test_cases.py::test_any_name_is_read_by_its_uri",
        "build/test_sources.py::test_odd_names_are_documents_with_reversible_uris",
        "build/test_sources.py::test_names_that_some_file_systems_confuse_are_told",
        "test_cases.py::test_names_that_become_one_are_told_in_every_format",
    ],
    "B22 symlinks": [
        "test_cases.py::test_links_lead_to_files_of_the_pack_or_nowhere",
        "build/test_sources.py::test_links_are_followed_to_files_of_the_pack_only",
        "build/test_repository.py::test_a_link_out_of_the_repository_is_not_followed",
    ],
    "B24 a bundle's README, log and root index": [
        "build/lint/test_okf.py::test_a_readme_a_typed_log_and_a_bare_root_index_are_accepted_with_warnings",
        "build/test_okf.py::test_case_3_a_reserved_file_with_a_type_is_a_warning_and_no_concept",
        "build/test_okf.py::test_case_9_files_about_the_repository_have_a_code_of_their_own",
    ],
    "B25 legacy encodings, large and closed files": [
        "test_cases.py::test_a_file_that_cannot_be_taken_is_told_and_the_others_are_read",
        "build/test_docs.py::test_legacy_files_are_told_and_kept",
        "build/test_docs.py::test_what_is_too_large_or_closed_is_told",
    ],
    "B33 another encoder": [
        "test_damage.py::test_a_release_whose_encoder_is_another_or_damaged_is_refused",
        "test_damage.py::test_an_encoder_is_known_by_its_fingerprint_and_not_by_its_name",
        "test_encoder_missing.py::test_an_encoder_that_is_another_one_is_refused_in_one_line",
        "test_encoder_missing.py::test_the_same_weights_under_another_name_are_the_encoder",
        "test_encoder_missing.py::test_other_weights_behind_the_endpoint_are_refused_in_one_line",
    ],
    "B55 skills": [
        "build/test_skills.py::test_a_pack_over_the_limits_is_cut_by_folder_then_deeper_then_in_parts",
        "build/test_skills.py::test_a_file_that_no_skill_can_hold_is_left_out_with_an_error",
        "build/test_skills.py::test_a_skill_file_that_a_host_would_refuse_is_an_error_and_one_is_made",
        "test_skills.py::test_every_file_is_served_with_the_digest_and_size_that_its_skill_tells",
    ],
    "B58 a word that only the context has": [
        "test_every_field.py::test_a_context_prefix_finds_a_passage_and_is_no_part_of_it",
        "build/test_sidecars.py::test_a_context_prefix_is_indexed_and_never_shown",
    ],
}


@pytest.mark.parametrize("case", CASES)
def test_a_case_names_tests_that_exist(case: str) -> None:
    assert [name for name in CASES[case] if not is_test(name)] == []


@pytest.mark.shared
def test_every_row_of_the_build_has_its_case(shared: Path) -> None:
    rows = re.findall(r"^\| (B\d+) \|[^|]*\| ([A-Z,]+) \|", (shared / "cases.md").read_text(), re.MULTILINE)
    assert [name.split()[0] for name in CASES] == [row for row, layers in rows if "B" in layers.split(",")]


TOKENIZER = Path(octavo_build.__file__).parent / "encoders" / "minilm-tokenizer.json"
BOM = b"\xef\xbb\xbf"
FRONT = "export: true\ntype: Note\n"
"""What makes a Markdown file a document in every source format."""

MANIFESTS = {
    "expertpack": {"manifest.yaml": b"slug: p\nname: P\ntype: product\n"},
    "okf": {"index.md": b'---\nokf_version: "0.2"\n---\n# P\n'},
}

FORMATS = pytest.mark.parametrize("adapter", ADAPTERS)
ENDINGS = pytest.mark.parametrize("ending", MIME_TYPES)


def page(body: str, front: str = "") -> bytes:
    return f"---\n{FRONT}{front}---\n{body}".encode()


def written(root: Path, adapter: str, files: dict[str, bytes]) -> Path:
    for name, data in (MANIFESTS.get(adapter, {}) | files).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def options(adapter: str) -> dict[str, str]:
    return {"format": adapter, "owner": "p", "roots": "."}


def pack_of(root: Path, adapter: str, files: dict[str, bytes]) -> Pack:
    return read(written(root, adapter, files), options(adapter))


def document(pack: Pack, path: str) -> Document:
    return next(each for each in pack.documents if each.path == path)


def told(pack: Pack, path: str) -> list[Finding]:
    return [finding for finding in pack.findings if finding.path == path]


@cache
def tokenizer() -> Tokenizer:
    return load_tokenizer(TOKENIZER)


def cut(root: Path, one: Document) -> Cut:
    """The document cut for the real encoder."""
    return next(cut_documents([one], tokenizer(), ContentCache(root / "cache.sqlite"), ""))


def staged(root: Path, adapter: str, files: dict[str, bytes]) -> Work:
    """All that is made of a pack before its vectors."""
    work = Work(root / "work")
    stages.source(written(root / "p", adapter, files), work, options(adapter))
    encoder = root / "encoder"
    encoder.mkdir()
    (encoder / "tokenizer.json").symlink_to(TOKENIZER)
    stages.passages(work, encoder, ContentCache(root / "cache.sqlite"), "")
    stages.graph(work)
    stages.resources(work)
    return work


def built(root: Path, adapter: str, files: dict[str, bytes], *arguments: str) -> int:
    source = written(root / "p", adapter, {"pack.yaml": f"format: {adapter}\nslug: p\n".encode(), **files})
    return main(["build", str(source), "--out", str(root / "dist"), "--state", str(root / "state"), "-q", *arguments])


def notebook(*cells: tuple[str, str]) -> str:
    return json.dumps({"cells": [{"cell_type": kind, "source": text} for kind, text in cells]}, indent=1)


WORDS = "The pump hums at night.\n" * 40
TEXTS = {
    ".md": f"# Heading\n\n{WORDS}\n## Next\n\n{WORDS}",
    ".mdx": f"# Heading\n\n{WORDS}\n## Next\n\n{WORDS}",
    ".html": f"<h1>Heading</h1>\n<p>{WORDS}</p>\n<h2>Next</h2>\n<p>{WORDS}</p>\n",
    ".rst": f"Heading\n=======\n\n{WORDS}\nNext\n----\n\n{WORDS}",
    ".txt": f"Heading\n\n{WORDS}\n{WORDS}",
    ".ipynb": notebook(
        ("markdown", f"# Heading\n\n{WORDS}"), ("code", "pump.run()"), ("markdown", f"## Next\n\n{WORDS}")
    ),
}


def text_of(ending: str) -> str:
    return TEXTS.get(ending) or TEXTS[{".markdown": ".md", ".htm": ".html"}[ending]]


@dataclass(frozen=True, slots=True)
class Told:
    """What users and the encoder are told of a document."""

    title: str
    places: list[tuple[str, tuple[str, ...], int, int]]
    texts: list[tuple[str, str]]
    windows: tuple[tuple[str, ...], ...]


def told_of(root: Path, one: Document) -> Told:
    made = cut(root, one)
    for each in made.passages:
        span = one.raw[each.passage.start_byte : each.passage.end_byte]
        assert each.text == unix_lines(body_of(one).shown(each.passage.start_byte, each.passage.end_byte))
        assert span.strip()
    places = [(p.section, p.heading_path, p.start_line, p.end_line) for p in (each.passage for each in made.passages)]
    return Told(one.title, places, [(each.text, each.visible) for each in made.passages], made.windows)


@ENDINGS
def test_a_byte_order_mark_changes_nothing_but_offsets(ending: str, tmp_path: Path) -> None:
    raw = text_of(ending).encode()
    pack = pack_of(tmp_path, "docs", {f"a/x{ending}": raw, f"b/x{ending}": BOM + raw})
    plain, marked = document(pack, f"a/x{ending}"), document(pack, f"b/x{ending}")
    assert marked.raw == BOM + raw
    assert told_of(tmp_path, marked) == told_of(tmp_path, plain)
    assert told_of(tmp_path, plain).title == "Heading"
    offsets, shifted = (
        [(p.start_byte, p.end_byte) for p in (each.passage for each in cut(tmp_path, one).passages)]
        for one in (plain, marked)
    )
    assert shifted == [(start + 3, end + 3) for start, end in offsets]
    assert "\ufeff" not in repr(told_of(tmp_path, marked)) + marked.id


@FORMATS
@pytest.mark.parametrize("body", ["# T\n\nText.\n", "T\n=\n\nText.\n"], ids=["heading", "setext heading"])
def test_a_byte_order_mark_hides_no_metadata(adapter: str, body: str, tmp_path: Path) -> None:
    pack = pack_of(tmp_path, adapter, {"T.md": BOM + page(body, "tags: [a]\n")})
    one = document(pack, "T.md")
    assert (one.title, one.type, one.tags) == ("T", "Note", ("a",))
    assert one.raw[one.body_offset :] == body.encode()
    assert cut(tmp_path, one).passages[0].text == body
    assert "\ufeff" not in one.title + one.id + one.frontmatter + repr(told_of(tmp_path, one))


@ENDINGS
@pytest.mark.parametrize("end", ["\r\n", "\r"], ids=["CRLF", "CR"])
def test_line_ends_change_nothing_but_offsets(ending: str, end: str, tmp_path: Path) -> None:
    text = text_of(ending)
    raws = {"a": text.encode(), "b": text.replace("\n", end).encode()}
    pack = pack_of(tmp_path, "docs", {f"{folder}/x{ending}": raw for folder, raw in raws.items()})
    plain, other = (document(pack, f"{folder}/x{ending}") for folder in raws)
    assert told_of(tmp_path, other) == told_of(tmp_path, plain)
    for one in (plain, other):
        passages = [each.passage for each in cut(tmp_path, one).passages]
        assert (passages[0].start_byte, passages[-1].end_byte) == (0, len(one.raw))


SOUND = page("Text.\n", "title: T\ntags: [a, b]\nid: x\n")


@FORMATS
@pytest.mark.parametrize(
    ("raw", "body"),
    [
        pytest.param(SOUND.replace(b"\n", b"\r\n"), b"Text.\r\n", id="CRLF"),
        pytest.param(SOUND.replace(b"---\n", b"--- \t\n"), b"Text.\n", id="spaces after the fences"),
        pytest.param(SOUND.removesuffix(b"\nText.\n"), b"", id="nothing after the fence"),
    ],
)
def test_fences_may_be_written_carelessly(adapter: str, raw: bytes, body: bytes, tmp_path: Path) -> None:
    sound = document(pack_of(tmp_path / "a", adapter, {"x.md": SOUND}), "x.md")
    one = document(pack_of(tmp_path / "b", adapter, {"x.md": raw}), "x.md")
    assert one.raw[one.body_offset :] == body
    for field in ("id", "title", "type", "tags", "frontmatter", "searchable", "tier", "strategy"):
        assert getattr(one, field) == getattr(sound, field)


LETTER = b"---\n**Pump Works**\n**12 Water Street**\n---\nDear reader\n"


@pytest.mark.parametrize("adapter", ["expertpack", "docs"])
def test_a_letterhead_is_told_and_found(adapter: str, tmp_path: Path) -> None:
    others = {"a.md": page("A text.\n"), "z.md": page("Another text.\n")}
    alone = pack_of(tmp_path / "p", adapter, others)
    pack = pack_of(tmp_path / "p", adapter, {"letter.md": LETTER})
    (finding,) = [each for each in told(pack, "letter.md") if each.code == "frontmatter-not-mapping"]
    assert finding.severity == "warning"
    (passage,) = cut(tmp_path, document(pack, "letter.md")).passages
    assert passage.visible == LETTER.decode()
    assert [each for each in pack.documents if each.path != "letter.md"] == list(alone.documents)


@pytest.mark.parametrize("adapter", ["okf", "repository"])
def test_a_letterhead_where_frontmatter_decides_is_told_or_not_meant(adapter: str, tmp_path: Path) -> None:
    pack = pack_of(tmp_path, adapter, {"letter.md": LETTER, "a.md": page("A text.\n")})
    assert [each.code for each in told(pack, "letter.md")] == ["okf-frontmatter-missing"] * (adapter == "okf")
    assert document(pack, "a.md").searchable


BAD_YAML = pytest.mark.parametrize(
    "line",
    ["path: C:\\data: x", "star: *bold", "items:\n  - [[link]]tail", "note: text (see: below)"],
    ids=["a path with a second colon", "an asterisk", "a wikilink with a tail", "a colon in brackets"],
)


@FORMATS
@BAD_YAML
def test_bad_yaml_is_one_finding_with_its_line_and_reason(adapter: str, line: str, tmp_path: Path) -> None:
    pack = pack_of(tmp_path, adapter, {"bad.md": page("The body.\n", f"{line}\n"), "good.md": page("Good.\n")})
    (finding,) = told(pack, "bad.md")
    assert (finding.code, finding.line) == ("yaml-invalid", 4 + line.count("\n"))
    assert len(finding.message) > 10
    if adapter in ("expertpack", "docs"):
        bad = document(pack, "bad.md")
        assert bad.frontmatter == "{}"
        assert [each.visible for each in cut(tmp_path, bad).passages] == ["The body.\n"]


@FORMATS
def test_bad_yaml_changes_nothing_of_other_files(adapter: str, tmp_path: Path) -> None:
    others = {f"{name}.md": page(f"# {name}\n\nText of {name}.\n", "title: T\n") for name in "acx"}
    rows: list[list[tuple[Document, list[Passage]]]] = []
    for place, bad in (("a", b"---\npath: C:\\data: x\n---\nBody\n"), ("b", page("Body\n", "title: T\n"))):
        work = staged(tmp_path / place, adapter, {**others, "b.md": bad})
        documents = read_table(work.parts / DOCUMENTS.file, Document)
        passages = read_table(work.parts / PASSAGES.file, Passage)
        rows.append(
            [
                (each, [replace(p, document=0) for p in passages if p.document == row])
                for row, each in enumerate(documents)
                if each.path != "b.md"
            ]
        )
    assert rows[0] == rows[1]
    assert len(rows[0]) >= len(others)


@pytest.mark.parametrize("adapter", ["expertpack", "docs"])
def test_bad_yaml_refuses_a_strict_build(adapter: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"overview.md": page("O.\n"), "bad.md": b"---\npath: C:\\data: x\n---\nBody\n"}
    assert built(tmp_path, adapter, files, "--strict") == 1
    assert "bad.md:2: yaml-invalid" in capsys.readouterr().err
    assert not list((tmp_path / "dist").glob("p/*/manifest.json"))


SCALARS = (
    "day: 2026-05-06\nat: 2026-05-06T07:08:09+02:00\nclock: 12:30\nversion: 1.10\nanswer: no\nnumber: 0123\n"
    "type: null\n"
)
AS_WRITTEN = {
    "day": "2026-05-06", "at": "2026-05-06T07:08:09+02:00", "clock": "12:30", "version": "1.10", "answer": "no",
    "number": "0123", "type": None,
}  # fmt: skip

PAYLOAD = "iVBORw0KGgo" * 18_000
IMAGES = (
    f"# Diagrams\n\n![the boiler](data:image/png;base64,{PAYLOAD})\n\nSee ![the valve][v].\n\n"
    f'<img alt="the pump" src="data:image/png;base64,{PAYLOAD}">\n\n[v]: data:image/png;base64,{PAYLOAD}\n'
)
NAMES = [
    "a b.md", "a#b.md", "a?b.md", "100%.md", "a%20b.md", "a&b.md", "a+b.md", "a\nb.md", "a\\b.md", "Case.md", "case.md",
    unicodedata.normalize("NFC", "é.md"), unicodedata.normalize("NFD", "ö.md"),
]  # fmt: skip


@pytest.fixture(scope="module")
def messy(tmp_path_factory: pytest.TempPathFactory) -> OpenPack:
    root = tmp_path_factory.mktemp("messy")
    files = {name: f"# About\n\nThis is file {number}.\n".encode() for number, name in enumerate(NAMES)}
    files |= {"scalars.md": f"---\n{SCALARS}---\nA sundial tells the time.\n".encode(), "images.md": IMAGES.encode()}
    assert built(root, "docs", files) == 0
    return open_catalog(root / "dist").choose(None)


def test_scalars_stay_as_written_to_the_last_answer(messy: OpenPack, tmp_path: Path) -> None:
    answer = json.loads(json.dumps(messy.search(SearchRequest(query="sundial"))))
    assert answer["results"][0]["source_file"] == "scalars.md"
    assert (answer["results"][0]["type"], answer["results"][0]["title"]) == (None, "scalars")
    reading = json.loads(json.dumps(messy.read(ReadRequest(path="scalars.md"))))
    assert reading["content"].endswith("sundial tells the time.\n")
    for adapter in ("expertpack", "docs", "okf", "repository"):
        front = SCALARS.replace("type: null\n", "") + "kind: null\n"
        one = document(pack_of(tmp_path / adapter, adapter, {"x.md": page("Text.\n", front)}), "x.md")
        assert AS_WRITTEN.items() - {("type", None)} <= json.loads(one.frontmatter).items()
        assert json.loads(one.frontmatter)["kind"] is None


def test_the_payload_of_a_data_uri_is_in_nothing_but_the_file(messy: OpenPack, tmp_path: Path) -> None:
    assert len(PAYLOAD) > 190_000
    one = document(pack_of(tmp_path, "docs", {"images.md": IMAGES.encode()}), "images.md")
    made = cut(tmp_path, one)
    (passage,) = made.passages
    for text in (passage.text, passage.visible, *made.windows[0]):
        assert "iVBOR" not in text
        assert all(words in text for words in ("the boiler", "the valve", "the pump"))
    assert passage.text.count("data:…") == 3
    hits = messy.search(SearchRequest(query="boiler valve pump diagrams"))["results"]
    assert [hit["source_file"] for hit in hits][:1] == ["images.md"]
    assert "iVBOR" not in json.dumps(hits)
    assert messy.read(ReadRequest(path="images.md", start_line=5))["content"].startswith("See ![the valve]")
    assert messy.resource(one.uri.replace(one.pack, "p", 1))[1] == IMAGES.encode()


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_read_by_its_uri(messy: OpenPack, name: str) -> None:
    path = unicodedata.normalize("NFC", name)
    (listed,) = [each for each in messy.resources() if each.uri == document_uri(messy.slug, path)]
    assert messy.resource(listed.uri)[1] == f"# About\n\nThis is file {NAMES.index(name)}.\n".encode()
    assert messy.read(ReadRequest(id=listed.uri))["path"] == path


@FORMATS
def test_names_that_become_one_are_told_in_every_format(adapter: str, tmp_path: Path) -> None:
    composed, decomposed = (unicodedata.normalize(form, "é.md") for form in ("NFC", "NFD"))
    names = ["A.md", "a.md", composed, decomposed]
    pack = pack_of(tmp_path, adapter, {name: page(f"{n}\n", f"id: {n}\n") for n, name in enumerate(names)})
    assert {"A.md", "a.md", composed} <= {each.path for each in pack.documents}
    assert all(unicodedata.is_normalized("NFC", each.path + each.id) for each in pack.documents)
    assert [each.code for each in told(pack, composed)].count("file-unreadable") == 1
    assert [each.code for each in told(pack, "a.md")].count("path-collision") == 1


NOTHING = {
    "zero.md": b"", "space.md": b" \n\n\t\n", "front.md": f"---\n{FRONT}---\n".encode(), "title.md": page("# Title"),
    "hash.md": page("#"),
}  # fmt: skip


@FORMATS
def test_a_file_that_says_nothing_is_reported_and_never_encoded(adapter: str, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    work = staged(tmp_path, adapter, NOTHING)
    documents = read_table(work.parts / DOCUMENTS.file, Document)
    cut_ = [documents[each.document].path for each in read_table(work.parts / PASSAGES.file, Passage)]
    assert cut_ == ["title.md"]
    assert all(text.strip() for text in pq.read_table(work.windows)["text"].to_pylist())
    findings = [*json.loads(work.pack.read_bytes())["findings"], *json.loads(work.passage_findings.read_bytes())]
    reported = {finding["path"] for finding in findings}
    meant = {each.path for each in documents}
    assert {"front.md", "hash.md"} <= reported
    assert {"zero.md", "space.md"} & meant <= reported


@ENDINGS
@pytest.mark.parametrize("raw", [b"", b" \n\n\t\n"], ids=["no byte", "blank lines"])
def test_an_empty_file_of_any_kind_is_reported_and_never_encoded(ending: str, raw: bytes, tmp_path: Path) -> None:
    pack = pack_of(tmp_path, "docs", {f"x{ending}": raw})
    (one,) = pack.documents
    made = cut(tmp_path, one) if one.searchable else None
    assert made is None or made.passages == made.windows == ()
    codes = {each.code for each in (*pack.findings, *(made.findings if made else ()))}
    assert codes & {"no-content", "format-invalid"}


FENCES = """# One

```python
# comment
```

## Two

~~~
## not a heading
~~~

## Three

````
```
# shown
```
````

## Four

- item

  ```
  # in a list
  ```

## Five

end
"""


@FORMATS
def test_only_real_headings_open_sections(adapter: str, tmp_path: Path) -> None:
    long = re.sub(r"^(?=## )", "Words that fill a section. " * 20 + "\n\n", FENCES, flags=re.MULTILINE)
    one = document(pack_of(tmp_path, adapter, {"x.md": page(long)}), "x.md")
    made = cut(tmp_path, one)
    assert [each.title for each in made.sections] == ["One", "Two", "Three", "Four", "Five"]
    assert [each.text.splitlines()[0] for each in made.passages] == ["# One", "## Two", "## Three", "## Four"]


UNCUTTABLE = {
    "a paragraph of 40,000 characters": "".join(f"Some words, {n} of a paragraph without an end, " for n in range(900)),
    "Korean, a URL at every line end": "".join(
        f"한국어 문장 {n} 은 끝나지 않는다 https://example.com/a/very/long/path/{n}?of=it\n" for n in range(600)
    ),
    "minified JSON in a fence": "```json\n"
    + "".join(f'{{"a":{n},"b":[2,3],"c":"d"}},' for n in range(270))
    + "\n```\n",
    "a token of 12,000 characters": "x" * 12_000,
}


@cache
def uncuttable(ending: str, name: str) -> bytes:
    text = UNCUTTABLE[name]
    if ending == ".ipynb":
        return notebook(("markdown", text)).encode()
    return {".html": f"<p>{text}</p>", ".htm": f"<p>{text}</p>"}.get(ending, text).encode()


@ENDINGS
@pytest.mark.parametrize("name", UNCUTTABLE)
def test_every_window_fits_the_encoder_and_nothing_is_lost(ending: str, name: str, tmp_path: Path) -> None:
    (one,) = pack_of(tmp_path, "docs", {f"x{ending}": uncuttable(ending, name)}).documents
    made = cut(tmp_path, one)
    for passage, windows in zip(made.passages, made.windows, strict=True):
        assert all(len(each) <= LIMITS.window_tokens for each in tokenizer().encode_batch(list(windows)))
        visible = plain_text(passage.visible) if format_of(one).marked else passage.visible
        above = heading_line(one.title, passage.passage.heading_path) + "\n"
        assert covers([each.removeprefix(above) for each in windows], visible)
    joined = "".join(each.visible for each in made.passages)
    body = body_of(one).visible(one.body_offset, len(one.raw))
    assert "".join(joined.split()) == "".join(body.split())
    assert len(made.passages) > 1


def covers(pieces: list[str], text: str) -> bool:
    """Whether the pieces, which may overlap, go through the text from its beginning to its end."""
    squeezed, reached = "".join(text.split()), 0
    for piece in ("".join(each.split()) for each in pieces):
        start = squeezed.find(piece, max(0, reached - len(piece)))
        if not 0 <= start <= reached:
            return False
        reached = max(reached, start + len(piece))
    return reached == len(squeezed)


def markdown_table(rows: list[list[str]]) -> str:
    head, *rest = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([head, "|:---|---:|", *rest]) + "\n"


def html_table(rows: list[list[str]]) -> str:
    def row(cells: list[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>\n"

    return f"<table>\n<thead>{row(rows[0], 'th')}</thead>\n{''.join(row(each, 'td') for each in rows[1:])}</table>\n"


def grid_table(rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def rule(mark: str) -> str:
        return "+" + "+".join(mark * (width + 2) for width in widths) + "+\n"

    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |\n" for row in rows
    ]
    return rule("-") + lines[0] + rule("=") + "".join(line + rule("-") for line in lines[1:])


ROWS = [["Name \\| alias", "Remark"], *([f"row {n} \\| x", "many words of a remark " * 6] for n in range(60))]
CAPTION = "Table 1: the sizes."


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        pytest.param(".md", f"# Sizes\n\n{CAPTION}\n\n{markdown_table(ROWS)}", id="markdown"),
        pytest.param(".mdx", f"# Sizes\n\n{CAPTION}\n\n{markdown_table(ROWS)}", id="mdx"),
        pytest.param(".html", f"<h1>Sizes</h1>\n<p>{CAPTION}</p>\n{html_table(ROWS)}", id="html"),
        pytest.param(".rst", f"Sizes\n=====\n\n{CAPTION}\n\n{grid_table(ROWS)}", id="rst"),
        pytest.param(
            ".ipynb", notebook(("markdown", f"# Sizes\n\n{CAPTION}\n\n{markdown_table(ROWS)}")), id="notebook"
        ),
    ],
)
def test_each_part_of_a_table_begins_with_its_header(ending: str, text: str, tmp_path: Path) -> None:
    (one,) = pack_of(tmp_path, "docs", {f"x{ending}": text.encode()}).documents
    first, *later = cut(tmp_path, one).passages
    assert len(later) > 1
    assert sum(each.text.count(CAPTION) for each in (first, *later)) == 1
    assert first.passage.prefix == ""
    (prefix,) = {each.passage.prefix for each in later}
    assert "Remark" in prefix
    assert not prefix.endswith("\n\n")
    for each in later:
        assert each.text.startswith(prefix)
        assert each.text.removeprefix(prefix).lstrip("|+- \n").startswith("row ")
        assert each.passage.heading_path == ("Sizes",)
        span = one.raw[each.passage.start_byte : each.passage.end_byte].decode()
        assert "Remark" not in span
        assert "row " in span


CLUSTERS = ["👨‍👩‍👧‍👦", "e\u0301", "🇩🇪"]


@ENDINGS
@pytest.mark.parametrize("cluster", CLUSTERS, ids=["family", "accent", "flag"])
@pytest.mark.parametrize("shift", range(4))
def test_no_passage_of_any_format_begins_or_ends_inside_a_grapheme(
    ending: str, cluster: str, shift: int, tmp_path: Path
) -> None:
    text = "x" * shift + cluster * 3_000
    raw = {".html": f"<p>{text}</p>", ".htm": f"<p>{text}</p>"}.get(ending, text)
    if ending == ".ipynb":
        raw = json.dumps({"cells": [{"cell_type": "markdown", "source": text}]}, ensure_ascii=False)
    (one,) = pack_of(tmp_path, "docs", {f"x{ending}": raw.encode()}).documents
    passages = cut(tmp_path, one).passages
    assert len(passages) > 1
    for each in passages:
        one.raw[each.passage.start_byte : each.passage.end_byte].decode()
        assert set(regex.findall(r"\X", each.text.strip())) <= {cluster, "x"}


@FORMATS
def test_links_lead_to_files_of_the_pack_or_nowhere(adapter: str, tmp_path: Path) -> None:
    root = written(tmp_path / "p", adapter, {"a.md": page("A.\n", "id: a\n"), "dir/b.md": page("B.\n", "id: b\n")})
    (root / "in.md").symlink_to("dir/b.md")
    (root / "dir" / "up").symlink_to("..")
    (root / "hosts.md").symlink_to("/etc/hosts")
    (root / "gone.md").symlink_to("nowhere.md")
    pack = read(root, options(adapter))
    paths = {each.path for each in pack.documents} - {"index.md"}
    # in a repository both have the URI that their id makes, and the first one counts
    assert paths == {"a.md", "dir/b.md"} | ({"in.md"} if adapter != "repository" else set())
    codes = {each.path: each.code for each in pack.findings if each.code.startswith("symlink")}
    assert codes == {"dir/up": "symlink-directory", "hosts.md": "symlink-escapes", "gone.md": "symlink-dangling"}


@FORMATS
def test_a_file_that_cannot_be_taken_is_told_and_the_others_are_read(adapter: str, tmp_path: Path) -> None:
    files = {
        "utf16.md": b"\xff\xfe" + page("Text.\n").decode().encode("utf-16-le"),
        "latin.md": page("Caf\u00e9.\n").decode().encode("latin-1"),
        "nul.md": page("in the\0middle\n"),
        "large.md": page("large " * (5 * 2**20)),
        "closed.md": page("closed\n"),
        "sound.md": page("Sound.\n"),
    }
    root = written(tmp_path, adapter, files)
    (root / "closed.md").chmod(0)
    pack = read(root, options(adapter))
    expected = {
        "utf16.md": "encoding-utf16", "latin.md": "encoding-invalid", "nul.md": "control-character",
        "large.md": "file-over-limit", "closed.md": "file-unreadable",
    }  # fmt: skip
    if os.access(root / "closed.md", os.R_OK):  # root may read everything
        del expected["closed.md"]
    assert expected.items() <= {(each.path, each.code): 0 for each in pack.findings}.keys()
    assert not told(pack, "sound.md") or adapter == "expertpack"
    assert document(pack, "sound.md").searchable
    for name in ("latin.md", "nul.md"):
        assert "\ufffd" in cut(tmp_path, document(pack, name)).passages[0].text
