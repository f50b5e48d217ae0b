"""What every source format promises the rest of the compiler, whatever it reads."""

from __future__ import annotations

from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

import pytest

from octavo_artifact.ids import SLUG
from octavo_artifact.layout import DOCUMENTS
from octavo_artifact.parameters import DEFAULTS
from octavo_artifact.schema import AUDIENCES
from octavo_build.bodies import FORMATS
from octavo_build.findings import CODES
from octavo_build.graph import build_graph
from octavo_build.pack import Pack
from octavo_build.passages import passages_of
from octavo_build.resources import list_resources
from octavo_build.sources import ADAPTERS, adapter_of, read, slug_of

TYPED = "---\ntitle: {0}\ntype: note\nid: {1}\ntags: [a, b]\nexport: true\n---\n# {0}\n\nSome words about {0}.\n"
FOLDERS: dict[str, dict[str, str]] = {
    "expertpack": {"manifest.yaml": "slug: p\nname: P\ntype: product\n", "overview.md": TYPED.format("Start", "p/o")},
    "okf": {"index.md": "---\nokf_version: '0.2'\n---\n# Notes\n\n* [One](notes/one.md) - the first\n"},
    "repository": {"pack.yaml": "format: repository\nroots: [notes]\n"},
    "docs": {"pack.yaml": "format: docs\n", "index.md": "# Start\n\nHello.\n"},
}
NOTES = {
    "notes/one.md": TYPED.format("One", "one"),
    "notes/zwei — ü.md": TYPED.format("Zwei", "zwei"),
    "notes/same-id.md": TYPED.format("Same", "one"),
    "notes/broken.md": "---\ntype: [note\nexport: true\n---\n# Broken\n\nStill text.\n",
    "notes/links.md": TYPED.format("Links", "links") + "\n[one](one.md) [[one]] [out](../../x.md) [gone](gone.md)\n",
    ".hidden/secret.md": TYPED.format("Secret", "secret"),
}
BAD_BYTES = {"notes/latin.md": TYPED.format("Latin", "latin").encode() + "é".encode("latin-1")}


@pytest.fixture(params=ADAPTERS)
def format_name(request: pytest.FixtureRequest) -> str:
    return request.param


def folder(root: Path, format_name: str) -> Path:
    root /= "pack"
    for path, text in {**NOTES, **FOLDERS[format_name]}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    for path, raw in BAD_BYTES.items():
        (root / path).write_bytes(raw)
    return root


@pytest.fixture
def root(tmp_path: Path, format_name: str) -> Path:
    return folder(tmp_path, format_name)


@pytest.fixture
def pack(root: Path) -> Pack:
    return read(root)


def test_the_folder_is_of_its_format(root: Path, format_name: str) -> None:
    adapter = adapter_of(root)
    assert (adapter.name, read(root).source_format) == (format_name, format_name)


def test_the_slug_is_known_without_reading_the_documents(root: Path, pack: Pack) -> None:
    assert SLUG.fullmatch(pack.slug)
    assert slug_of(root) == pack.slug


def test_documents_are_sorted_and_go_by_names_of_their_own(pack: Pack) -> None:
    paths = [document.path for document in pack.documents]
    assert paths == sorted(paths)
    for name in ("path", "id", "uri"):
        assert len({getattr(document, name) for document in pack.documents}) == len(paths)


def test_documents_hold_the_bytes_of_their_files(root: Path, pack: Pack) -> None:
    for document in pack.documents:
        raw = (root / document.path).read_bytes()
        assert (document.raw, document.file_sha256) == (raw, sha256(raw).hexdigest())
        assert 0 <= document.body_offset <= len(raw)
        assert document.body_sha256 == sha256(raw[document.body_offset :].lstrip(b"\r\n")).hexdigest()


def test_documents_have_what_the_format_of_artifacts_wants(pack: Pack) -> None:
    for document in pack.documents:
        assert asdict(document).keys() == DOCUMENTS.columns.keys()
        assert document.title
        assert document.mime_type in FORMATS
        assert document.audience in AUDIENCES


def test_hidden_folders_are_not_read(pack: Pack) -> None:
    assert not [document.path for document in pack.documents if "secret" in document.path]


def test_a_bad_file_is_told_with_its_line_and_costs_only_itself(root: Path, pack: Pack) -> None:
    told = [finding for finding in pack.findings if finding.path == "notes/broken.md"]
    assert [finding.code for finding in told if finding.line] != []
    (root / "notes/broken.md").unlink()
    others = [document for document in pack.documents if document.path != "notes/broken.md"]
    assert list(read(root).documents) == others


def test_findings_are_sorted_and_of_known_codes_and_name_no_place_of_the_host(root: Path, pack: Pack) -> None:
    assert list(pack.findings) == sorted(pack.findings)
    assert {finding.code for finding in pack.findings} <= CODES.keys()
    assert not [finding for finding in pack.findings if str(root) in f"{finding.path} {finding.message}"]


def test_what_the_pack_says_of_its_search_is_kept_and_what_is_wrong_in_it_told(root: Path, format_name: str) -> None:
    name = "manifest.yaml" if format_name == "expertpack" else "pack.yaml"
    written = FOLDERS[format_name].get(name, "") + "retrieval: {gate: flag, candidates: 1}\n"
    (root / name).write_text(written)
    pack = read(root)
    assert pack.retrieval == {**asdict(DEFAULTS), "gate": "flag"}
    told = [finding for finding in pack.findings if finding.message.startswith("retrieval: ")]
    assert [(finding.path, finding.code) for finding in told] == [(name, "manifest-field")]


def test_reading_twice_gives_the_same(root: Path, pack: Pack) -> None:
    assert read(root) == pack


def test_where_the_folder_lies_changes_nothing(tmp_path: Path, pack: Pack, format_name: str) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    assert read(folder(other, format_name)).documents == pack.documents


def test_the_later_stages_take_what_it_gives(pack: Pack) -> None:
    for row, document in enumerate(pack.documents):
        spans = [each.passage for each in passages_of(document, row)[0]] if document.searchable else []
        assert b"".join(document.raw[each.start_byte : each.end_byte] for each in spans) == (
            document.raw[document.body_offset :] if spans else b""
        )
    nodes = {node.id for node in build_graph(pack.documents, pack.extras, pack.source_format).nodes}
    assert {document.id for document in pack.documents} <= nodes
    uris = [resource.uri for resource in list_resources(pack)[0]]
    assert uris == sorted(set(uris))
    assert {document.uri for document in pack.documents} <= set(uris)
