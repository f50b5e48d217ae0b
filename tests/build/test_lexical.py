from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
import tantivy

from octavo_artifact.errors import ArtifactError
from octavo_artifact.text import ANALYZER, FIELD, LITERALS, lexical_text, terms_of
from octavo_build import lexical
from octavo_build.lexical import LexicalRow, write_lexical


def row(number: int) -> LexicalRow:
    return LexicalRow(
        text=lexical_text("Wallets", ("Wallets", f"Part {number}"), ("keys",), f"migrating wallet{number} 秘密鍵"),
        type="concept" if number % 2 else None,
        tags=("keys", "a tag of words"),
        path=f"guides/part {number}.md",
        document=number // 2,
        hit=json.dumps({"row": number, "text": "é" * 50}, ensure_ascii=False),
    )


def files(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*")}


def rows_with(index: tantivy.Index, field: str, term: str) -> list[int]:
    query = tantivy.Query.term_query(index.schema, field, term, "freq" if field == FIELD else "basic")
    return sorted(address.doc for _, address in index.searcher().search(query, 1000).hits)


def test_two_builds_are_equal_byte_for_byte(tmp_path: Path):
    first, second = tmp_path / "a" / "lexical", tmp_path / "another folder" / "lexical"
    write_lexical(first, map(row, range(500)))
    before = os.umask(0o077)
    try:
        write_lexical(second, map(row, range(500)))
    finally:
        os.umask(before)

    assert files(first) == files(second)
    for path in (second, *second.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) == (0o755 if path.is_dir() else 0o644)


def test_another_pack_has_another_segment_name(tmp_path: Path):
    write_lexical(tmp_path / "one", [row(1)])
    write_lexical(tmp_path / "two", [row(2)])

    names = [{path.stem for path in (tmp_path / name).glob("*.store")} for name in ("one", "two")]
    assert names[0] != names[1]


def test_nothing_is_left_over(tmp_path: Path):
    write_lexical(tmp_path / "lexical", [row(1)])

    (segment,) = {path.stem for path in (tmp_path / "lexical").glob("*.store")}
    parts = {f"{segment}.{ending}" for ending in ("fast", "fieldnorm", "idx", "pos", "store", "term")}
    assert set(files(tmp_path / "lexical")) == {"meta.json", ".managed.json", *parts}
    assert set(json.loads((tmp_path / "lexical" / ".managed.json").read_bytes())) == {"meta.json", *parts}


def test_the_index_opens_in_two_lines_without_registration(tmp_path: Path):
    write_lexical(tmp_path / "lexical", map(row, range(20)))

    index = tantivy.Index.open(str(tmp_path / "lexical"))
    hits = index.searcher().search(index.parse_query("migrat wallet7", [FIELD]), 10).hits

    assert hits[0][1].doc == 7
    assert len(hits) == 10


def test_document_ids_are_passage_rows(tmp_path: Path):
    write_lexical(tmp_path / "lexical", map(row, range(3_000)))

    searcher = tantivy.Index.open(str(tmp_path / "lexical")).searcher()
    addresses = [tantivy.DocAddress(0, number) for number in range(3_000)]
    assert searcher.num_docs == 3_000
    assert searcher.num_segments == 1
    assert [searcher.doc(address).get_first("hit") for address in addresses] == [
        row(number).hit.encode() for number in range(3_000)
    ]
    assert searcher.fast_field_values("document", addresses) == [number // 2 for number in range(3_000)]


def test_filters_match_whole_values(tmp_path: Path):
    write_lexical(tmp_path / "lexical", map(row, range(6)))

    index = tantivy.Index.open(str(tmp_path / "lexical"))
    assert rows_with(index, "type", "concept") == [1, 3, 5]
    assert rows_with(index, "tags", "a tag of words") == [0, 1, 2, 3, 4, 5]
    assert rows_with(index, "tags", "tag") == []
    assert rows_with(index, "path", "guides/part 4.md") == [4]


def test_terms_are_ready_in_the_index(tmp_path: Path):
    write_lexical(tmp_path / "lexical", map(row, range(3)))

    index = tantivy.Index.open(str(tmp_path / "lexical"))

    assert ANALYZER == "whitespace"
    terms = set(terms_of(row(2).text, "en", lexical.stem))
    assert terms == {"wallet", "part", "2", "key", "migrat", "wallet2", "秘密", "密鍵", "秘", "密", "鍵"}
    assert all(2 in rows_with(index, FIELD, term) for term in terms)


def test_literals_folders_tiers_and_days_are_indexed_whole(tmp_path: Path):
    made = replace(row(1), text="set --dry-run in a/b.yaml", path="guides/deep/a.md", verified_on=date(2026, 1, 2))
    write_lexical(tmp_path / "lexical", [row(0), replace(made, tier="always")])

    index = tantivy.Index.open(str(tmp_path / "lexical"))
    for field, term in {LITERALS: "--dry-run", "folders": "guides/deep", "tier": "always"}.items():
        assert rows_with(index, field, term) == [1]
    assert rows_with(index, "folders", "guides") == [0, 1]
    days = tantivy.Query.range_query(
        index.schema, "verified_day", tantivy.FieldType.Integer, date(2026, 1, 2).toordinal(), None
    )
    assert [address.doc for _, address in index.searcher().search(days, 10).hits] == [1]


def test_a_read_only_index_opens_through_links(tmp_path: Path):
    source, links = tmp_path / "lexical", tmp_path / "links"
    write_lexical(source, map(row, range(5)))
    before = files(source)
    source.chmod(0o555)
    links.mkdir()
    for file in source.iterdir():
        (links / file.name).symlink_to(file)

    index = tantivy.Index.open(str(links))
    schema, searcher = index.schema, index.searcher()
    del index
    for link in links.iterdir():
        link.unlink()
    links.rmdir()

    (hit,) = searcher.search(tantivy.Query.term_query(schema, FIELD, "wallet3", "freq"), 10).hits
    assert searcher.doc(hit[1]).get_first("hit") == row(3).hit.encode()
    assert files(source) == before


def test_an_index_without_rows_opens(tmp_path: Path):
    write_lexical(tmp_path / "lexical", [])

    assert set(files(tmp_path / "lexical")) == {"meta.json", ".managed.json"}
    index = tantivy.Index.open(str(tmp_path / "lexical"))
    assert index.searcher().num_docs == 0
    assert rows_with(index, FIELD, "wallet") == []


@pytest.mark.slow
def test_rows_that_need_a_second_segment_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lexical, "_HEAP_BYTES", 15_000_000)
    words = " ".join(f"word{number}" for number in range(250_000))

    with pytest.raises(ArtifactError, match=r"lexical: \d segments, expected one"):
        write_lexical(tmp_path / "lexical", [LexicalRow(words, None, (), "a.md", 0, "{}")] * 3)
