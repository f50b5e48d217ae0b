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


@pytest.mark.parametrize("change", ["title", "strategy", "path", "file_sha256", "marks", "chunks"])
def test_whatever_decides_a_cut_makes_a_new_one(tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cut(tmp_path / "c")
    monkeypatch.setattr(cuts, "_cut", refuse)
    other = [replace(document, **{change: "other"}) for document in DOCUMENTS]
    with pytest.raises(AssertionError, match="cut before"):
        list(cut_documents(other, TOKENIZER, ContentCache(tmp_path / "c"), "compiler"))
    with pytest.raises(AssertionError, match="cut before"):
        cut(tmp_path / "c", identity="another compiler")
