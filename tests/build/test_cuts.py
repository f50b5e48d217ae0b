from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from octavo_build import cuts
from octavo_build.content_cache import ContentCache
from octavo_build.cuts import Cut, cut_documents
from octavo_build.sources import read
from octavo_build.windows import load_tokenizer
from running import TINY

DOCUMENTS = read(TINY).documents
TOKENIZER = load_tokenizer(Path(str(files("octavo_build.encoders") / "minilm-tokenizer.json")))


def cut(cache: Path, identity: str = "compiler") -> list[Cut]:
    return list(cut_documents(DOCUMENTS, TOKENIZER, ContentCache(cache), identity))


def refuse(*_: object) -> None:
    raise AssertionError("cut what was cut before")


def test_only_searchable_documents_are_cut(tmp_path: Path) -> None:
    searchable = {row for row, document in enumerate(DOCUMENTS) if document.searchable}
    assert {each.passage.document for one in cut(tmp_path / "c") for each in one.passages} == searchable


def test_a_cut_from_the_cache_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = cut(tmp_path / "c")
    monkeypatch.setattr(cuts, "_cut", refuse)
    assert cut(tmp_path / "c") == fresh


def test_a_document_keeps_its_cut_when_its_row_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut(tmp_path / "c")
    monkeypatch.setattr(cuts, "_cut", refuse)
    later = list(cut_documents(DOCUMENTS[3:], TOKENIZER, ContentCache(tmp_path / "c"), "compiler"))
    assert min(each.passage.document for one in later for each in one.passages) == 0


@pytest.mark.parametrize(
    ("raw", "windows"),
    [
        pytest.param(b"", 0, id="no byte"),
        pytest.param(b" \n\n", 0, id="blank lines"),
        pytest.param(b"---\ntitle: x\n---\n", 0, id="frontmatter alone"),
        pytest.param(b"#", 0, id="an empty heading"),
        pytest.param(b"# Title", 1, id="a title alone"),
    ],
)
def test_no_empty_text_is_encoded(tmp_path: Path, raw: bytes, windows: int) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "a.md").write_bytes(raw)
    (made,) = cut_documents(read(tmp_path / "pack").documents, TOKENIZER, ContentCache(tmp_path / "c"), "compiler")
    texts = [text for each in made.windows for text in each]
    assert len(texts) == windows
    assert all(text.strip() for text in texts)
    assert [finding.code for finding in made.findings] == ([] if windows else ["no-content"])


def test_text_without_markdown_is_encoded_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "pack").mkdir()
    for name, text in {"a.txt": "*a* `b` [c](d)\n", "b.md": "*a* `b` [c](d)\n", "c.html": "<p>*a* `b` [c](d)"}.items():
        (tmp_path / "pack" / name).write_text(text)
    cuts = cut_documents(read(tmp_path / "pack").documents, TOKENIZER, ContentCache(tmp_path / "c"), "compiler")
    bodies = [text.partition("\n")[2] for each in cuts for windows in each.windows for text in windows]
    assert bodies == ["*a* `b` [c](d)", "a b c", "*a* `b` [c](d)"]


@pytest.mark.parametrize("change", ["title", "strategy", "path", "file_sha256", "mime_type", "marks", "chunks"])
def test_whatever_decides_a_cut_makes_a_new_one(tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cut(tmp_path / "c")
    monkeypatch.setattr(cuts, "_cut", refuse)
    other = [replace(document, **{change: "other"}) for document in DOCUMENTS]
    with pytest.raises(AssertionError, match="cut before"):
        list(cut_documents(other, TOKENIZER, ContentCache(tmp_path / "c"), "compiler"))
    with pytest.raises(AssertionError, match="cut before"):
        cut(tmp_path / "c", identity="another compiler")
