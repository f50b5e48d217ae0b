from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from octavo_artifact.schema import Document
from octavo_build.content_cache import ContentCache
from octavo_build.cuts import cut_documents
from octavo_build.freshness import with_expiry
from octavo_build.pack import Pack
from octavo_build.passages import PassageLimits, passages_of
from octavo_build.sources import read
from octavo_build.windows import load_tokenizer

SMALL = PassageLimits(min_tokens=1, target_tokens=10, ceiling_tokens=20)
VOLATILE = "<!-- refresh\n  decay: volatile\n  as_of: 2026-Q1\n-->"
SLOW = "<!-- refresh\n  decay: slow-moving\n  as_of: 2026-Q1\n-->"


def expertpack(root: Path, front: str = "", body: str = "Body.\n", freshness: str = "") -> Pack:
    (root / "overview.md").write_text("---\ntitle: O\n---\n# O\n\nText.\n")
    (root / "manifest.yaml").write_text(f"slug: demo\nname: Demo\ntype: product\n{freshness}")
    (root / "a.md").write_text(f"---\ntitle: A\n{front}---\n{body}")
    return read(root)


def page(pack: Pack) -> Document:
    return next(document for document in pack.documents if document.path == "a.md")


def told(pack: Pack, path: str = "a.md") -> list[tuple[str, int]]:
    return [(finding.code, finding.line) for finding in pack.findings if finding.path == path and finding.line != 1]


@pytest.mark.parametrize(
    ("front", "freshness", "refresh", "expires_at"),
    [
        pytest.param("", "", None, None, id="nothing said"),
        pytest.param("", "freshness: {refresh_cycle: P90D}\n", "P90D", None, id="the manifest's"),
        pytest.param("refresh: P2W\n", "freshness: {refresh_cycle: P90D}\n", "P2W", None, id="the file's first"),
        pytest.param("volatile: {refresh: P1M}\n", "freshness: {refresh_cycle: P9D}\n", "P1M", None, id="volatile"),
        pytest.param("refresh: P1Y\nvolatile: {refresh: P1M}\n", "", "P1Y", None, id="the file's before volatile"),
        pytest.param("volatile: {expires_at: 2026-05-01}\n", "", None, "2026-05-01", id="expires_at"),
        pytest.param("volatile: {expires_at: 2026-05}\n", "", None, "2026-05-31", id="expires with the month"),
        pytest.param(
            "volatile: {refresh: P1M, fetched_at: 2026-01-31}\n", "", "P1M", "2026-02-28", id="fetched and refresh"
        ),
        pytest.param(
            "refresh: P1Y\nvolatile: {refresh: P7D, fetched_at: '2026-01-31T23:00:00Z'}\n", "", "P1Y", "2026-02-07",
            id="what is volatile expires by its own refresh",
        ),
        pytest.param(
            "volatile: {fetched_at: 2026-01-01}\n", "freshness: {refresh_cycle: P10D}\n", "P10D", "2026-01-11",
            id="fetched and the manifest's cycle",
        ),
        pytest.param(
            "volatile: {refresh: P1D, fetched_at: 2026-01-01, expires_at: 2027-01-01}\n", "", "P1D", "2027-01-01",
            id="expires_at before fetched",
        ),
        pytest.param("volatile: {fetched_at: 2026-01-01}\n", "", None, None, id="fetched without a duration"),
    ],
)  # fmt: skip
def test_a_document_says_when_it_is_due_and_when_it_expires(
    tmp_path: Path, front: str, freshness: str, refresh: str | None, expires_at: str | None
) -> None:
    pack = expertpack(tmp_path, front, freshness=freshness)
    assert (page(pack).refresh, page(pack).expires_at) == (refresh, expires_at)
    assert told(pack) == []


@pytest.mark.parametrize(
    ("front", "code"),
    [
        ("verified_at: yesterday", "date-invalid"),
        ("valid_from: 2026-02-30", "date-invalid"),
        ("recorded_at: [2026]", "date-invalid"),
        ("refresh: 90", "duration-invalid"),
        ("refresh: {every: P1D}", "duration-invalid"),
        ("volatile: {refresh: P1.5D}", "duration-invalid"),
        ("volatile: {fetched_at: soon}", "date-invalid"),
        ("volatile: {expires_at: never}", "date-invalid"),
        ("volatile: true", "frontmatter-value"),
    ],
)
def test_a_bad_value_is_told_with_its_line_and_the_next_one_is_used(tmp_path: Path, front: str, code: str) -> None:
    pack = expertpack(tmp_path, f"{front}\n", freshness="freshness: {refresh_cycle: P90D}\n")
    assert told(pack) == [(code, 3)]
    assert (page(pack).refresh, page(pack).expires_at) == ("P90D", None)


@pytest.mark.parametrize("cycle", ["quarterly", "[P1D]", "P-1D"])
def test_a_bad_cycle_is_told_once_for_the_pack(tmp_path: Path, cycle: str) -> None:
    pack = expertpack(tmp_path, freshness=f"freshness: {{refresh_cycle: {cycle}}}\n")
    assert told(pack, "manifest.yaml") == [("duration-invalid", 0)]
    assert page(pack).refresh is None


@pytest.mark.parametrize("freshness", ["freshness: [a]\n", "freshness:\n", "freshness: {}\n"])
def test_a_pack_needs_no_cycle(tmp_path: Path, freshness: str) -> None:
    assert page(expertpack(tmp_path, freshness=freshness)).refresh is None


def test_children_of_a_composite_have_their_own_cycles(tmp_path: Path) -> None:
    for name, cycle in (("one", "freshness: {refresh_cycle: P1D}\n"), ("two", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.yaml").write_text(f"slug: {name}\nname: N\ntype: product\n{cycle}")
        (tmp_path / name / "x.md").write_text(f"---\ntitle: {name}\n---\nx\n")
    pack = expertpack(tmp_path, freshness="packs: [{path: one}, {path: two}]\nfreshness: {refresh_cycle: P9D}\n")
    assert {document.path: document.refresh for document in pack.documents} == {
        "a.md": "P9D", "overview.md": "P9D", "one/x.md": "P1D", "two/x.md": None,
    }  # fmt: skip


def test_a_folder_of_docs_has_its_own_meaning_of_these_words(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(f"---\nrefresh: daily\nvolatile: no\nverified_at: soon\n---\nBody\n\n{VOLATILE}\n")
    pack = read(tmp_path)
    assert (page(pack).refresh, page(pack).expires_at, page(pack).marks) == (None, None, "[]")
    assert pack.findings == ()


@pytest.mark.parametrize(
    ("yaml", "code"),
    [
        ("decay: rapid\n  as_of: 2026", "refresh-invalid"),
        ("decay: [volatile]\n  as_of: 2026", "refresh-invalid"),
        ("as_of: 2026", "refresh-invalid"),
        ("decay: volatile", "refresh-invalid"),
        ("decay: volatile\n  as_of: 2026-Q7", "date-invalid"),
        ("decay: volatile\n  as_of: [2026]", "date-invalid"),
        ("next week", "refresh-invalid"),
        ("decay: [", "refresh-invalid"),
    ],
)
def test_a_refresh_block_that_cannot_be_used_is_told_and_expires_nothing(tmp_path: Path, yaml: str, code: str) -> None:
    pack = expertpack(tmp_path, body=f"# A\n\nText.\n\n<!-- refresh\n  {yaml}\n-->\n")
    assert [found for found, _ in told(pack)] == [code]
    assert expiries(page(pack)) == [None]


def expiries(document: Document, limits: PassageLimits = SMALL) -> list[str | None]:
    passages, _ = passages_of(document, 0, limits)
    return [each.passage.expires_at for each in with_expiry(document, passages)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("Text.\n", [None], id="no block"),
        pytest.param(f"Text.\n\n{VOLATILE}\n", ["2026-06-30"], id="one"),
        pytest.param(f"Text.\n\n{SLOW}\n\n{VOLATILE}\n\n{SLOW}\n", ["2026-06-30"], id="the earliest of several"),
        pytest.param("Text.\n\n<!-- refresh\n  decay: permanent\n-->\n", [None], id="permanent"),
        pytest.param("Text.\n\n<!-- refresh\n  decay: permanent\n  as_of: 2020\n-->\n", [None], id="permanent, dated"),
        pytest.param(f"## One\n\nSome text.\n\n{VOLATILE}\n\n## Two\n\nOther.\n", ["2026-06-30", None], id="section"),
        pytest.param(f"## One\n\nSome text.\n\n## Two\n\n{VOLATILE}\n\nOther.\n", [None, "2026-06-30"], id="heading"),
        pytest.param(f"{VOLATILE}\n\nSome text.\n", ["2026-06-30"], id="before all text"),
    ],
)
def test_a_passage_expires_with_the_refresh_blocks_of_its_span(
    tmp_path: Path, body: str, expected: list[str | None]
) -> None:
    assert expiries(page(expertpack(tmp_path, body=body))) == expected


def test_an_atomic_document_expires_with_the_first_of_all_its_blocks(tmp_path: Path) -> None:
    body = f"## One\n\nText.\n\n{SLOW}\n\n## Two\n\nText.\n\n{VOLATILE}\n"
    assert expiries(page(expertpack(tmp_path, "retrieval_strategy: atomic\n", body))) == ["2026-06-30"]


def test_a_block_directly_below_a_passage_counts_for_it_too(tmp_path: Path) -> None:
    """Where a passage begins with a block, as a cut inside a paragraph can make it, the text above is meant too."""
    body = "One two three.\n\nFour five six.\n\n<!-- context: a=b -->\n" + VOLATILE + "\nSeven eight.\n\n" + SLOW + "\n"
    document = page(expertpack(tmp_path, body=body))
    (whole,), _ = passages_of(document, 0)
    at = [document.raw.index(word) for word in (b"One", b"Four", b"<!-- context", b"Seven")]

    def cut(*starts: int) -> list[str | None]:
        ends = [*starts[1:], len(document.raw)]
        parts = [
            replace(whole, passage=replace(whole.passage, start_byte=start, end_byte=end))
            for start, end in zip(starts, ends, strict=True)
        ]
        return [each.passage.expires_at for each in with_expiry(document, parts)]

    assert cut(at[0], at[1], at[2]) == [None, "2026-06-30", "2026-06-30"]
    assert cut(at[0], at[1], at[3]) == [None, "2026-06-30", "2027-03-31"]


def test_a_cut_from_the_cache_keeps_its_expiry_and_other_marks_make_another(tmp_path: Path) -> None:
    (tmp_path / "pack").mkdir()
    document = page(expertpack(tmp_path / "pack", body=f"Text.\n\n{VOLATILE}\n"))
    tokenizer = load_tokenizer(Path(str(files("octavo_build.encoders") / "minilm-tokenizer.json")))

    def dates(marks: str) -> list[str | None]:
        cache = ContentCache(tmp_path / "cache")
        cuts = cut_documents([replace(document, marks=marks)], tokenizer, cache, "compiler")
        return [each.passage.expires_at for cut in cuts for each in cut.passages]

    assert [dates(document.marks), dates(document.marks), dates("[]")] == [["2026-06-30"], ["2026-06-30"], [None]]


@pytest.mark.shared
def test_the_blocks_of_the_real_packs_date_their_passages(shared: Path) -> None:
    pack = read(shared / "packs" / "solar-diy")
    document = next(each for each in pack.documents if each.path.endswith("battery-systems-2026.md"))
    limits = PassageLimits()
    passages = with_expiry(document, passages_of(document, 0, limits)[0])
    dated = {each.passage.section: each.passage.expires_at for each in passages if each.passage.expires_at}
    assert set(dated.values()) == {"2026-06-30"}
    assert all("<!-- refresh" in each.text for each in passages if each.passage.expires_at)
