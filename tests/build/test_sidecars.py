from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from octavo_artifact.schema import Document
from octavo_build.passages import PassageText, passages_of
from octavo_build.sidecars import MAX_PREFIX
from octavo_build.sources import read

MANIFEST = b"slug: demo\nname: Demo\ntype: product\n"
FRONT = b"---\ntitle: A\nid: demo/a\n---\n"
BODY = b"# Sun\n\nPanels face south.\n\n## Wind\n\nTurbines stand high.\n"
"""Lines 5 to 11 of the file."""
HASH = sha256(BODY).hexdigest()
CHUNKS = """\
chunks:
- {chunk_id: a--panels, line_range: [5, 7], context_prefix: About a roof in Norway.}
- {chunk_id: a--turbines, line_range: [9, 11]}
"""


def demo(
    root: Path, sidecar: str, front: bytes = FRONT, body: bytes = BODY, name: str = "a.chunks.yaml"
) -> tuple[Document, list[str]]:
    """The document, and the codes of what was found of its sidecar."""
    root.mkdir(exist_ok=True)
    (root / "manifest.yaml").write_bytes(MANIFEST)
    (root / "overview.md").write_bytes(b"---\ntitle: O\nid: demo/o\n---\nHello.\n")
    (root / "a.md").write_bytes(front + body)
    if sidecar:
        (root / name).write_text(sidecar)
    pack = read(root)
    codes = [finding.code for finding in pack.findings if finding.code.startswith("sidecar")]
    return next(document for document in pack.documents if document.path == "a.md"), codes


def hashed(text: str) -> str:
    return f"content_hash: sha256:{HASH}\n{text}"


def cut(document: Document) -> list[PassageText]:
    return passages_of(document, 0)[0]


def test_a_sidecars_chunks_become_the_passages(tmp_path: Path) -> None:
    document, codes = demo(tmp_path, hashed(CHUNKS))
    assert codes == []
    assert [(each.passage.section, each.passage.heading_path, each.text) for each in cut(document)] == [
        ("panels", ("Sun",), "# Sun\n\nPanels face south.\n\n"),
        ("turbines", ("Sun", "Wind"), "## Wind\n\nTurbines stand high.\n"),
    ]


def test_a_context_prefix_is_indexed_and_never_shown(tmp_path: Path) -> None:
    panels, turbines = cut(demo(tmp_path, hashed(CHUNKS))[0])
    assert panels.visible == "About a roof in Norway.\n\n" + panels.text
    assert "Norway" not in panels.text
    assert panels.passage.span_sha256 == sha256(panels.text.encode()).hexdigest()
    assert turbines.visible == turbines.text


def test_chunks_in_any_order_stand_in_the_documents(tmp_path: Path) -> None:
    first, second = CHUNKS.splitlines()[1:]
    document, codes = demo(tmp_path, hashed(f"chunks:\n{second}\n{first}\n"))
    assert (codes, [each.passage.section for each in cut(document)]) == ([], ["panels", "turbines"])


def test_lines_without_text_belong_to_the_chunk_before_them(tmp_path: Path) -> None:
    body = b"\n<!-- context: topic=sun -->\n" + BODY
    ranges = CHUNKS.replace("[5, 7]", "[7, 9]").replace("[9, 11]", "[11, 13]")
    document, codes = demo(tmp_path, ranges, body=body)
    passages = cut(document)
    assert codes == ["sidecar-unchecked"]
    assert [each.passage.start_byte for each in passages] == [len(FRONT), (FRONT + body).index(b"## Wind")]
    assert passages[-1].passage.end_byte == len(FRONT + body)


@pytest.mark.parametrize(
    "claimed",
    [
        pytest.param(sha256(BODY).hexdigest(), id="bare hex"),
        pytest.param("sha256:" + sha256(FRONT + BODY).hexdigest(), id="of the whole file"),
        pytest.param("sha256:" + sha256(b"\n" + BODY).hexdigest(), id="with the newline before the body"),
    ],
)
def test_a_hash_may_be_of_the_body_or_the_file(tmp_path: Path, claimed: str) -> None:
    assert demo(tmp_path, f"content_hash: {claimed}\n{CHUNKS}")[1] == []


@pytest.mark.parametrize(
    ("sidecar", "code"),
    [
        pytest.param(f"content_hash: sha256:{'0' * 64}\n" + CHUNKS, "sidecar-stale", id="another text's hash"),
        pytest.param(f"content_hash: [{HASH}]\n" + CHUNKS, "sidecar-stale", id="a list for a hash"),
        pytest.param(hashed(CHUNKS.replace("[9, 11]", "[7, 11]")), "sidecar-invalid", id="overlap"),
        pytest.param(hashed(CHUNKS.replace("[9, 11]", "[11, 11]")), "sidecar-invalid", id="text in no chunk"),
        pytest.param(hashed(CHUNKS.replace("[5, 7]", "[2, 7]")), "sidecar-invalid", id="frontmatter"),
        pytest.param(hashed(CHUNKS.replace("[9, 11]", "[9, 99]")), "sidecar-invalid", id="after the end"),
        pytest.param(hashed(CHUNKS.replace("[9, 11]", "[11, 9]")), "sidecar-invalid", id="backwards"),
        pytest.param(hashed(CHUNKS.replace("[9, 11]", "9-11")), "sidecar-invalid", id="no range"),
        pytest.param(hashed(CHUNKS.replace("[9, 11]", "[9, 1e1]")), "sidecar-invalid", id="no numbers"),
        pytest.param(hashed(CHUNKS.replace("a--turbines", "a--panels")), "sidecar-invalid", id="one id twice"),
        pytest.param(hashed(CHUNKS.replace("Norway.", "Norway" * MAX_PREFIX)), "sidecar-invalid", id="endless prefix"),
        pytest.param(
            hashed(CHUNKS + "- {chunk_id: a--none, line_range: [8, 8]}\n"), "sidecar-invalid", id="a chunk of blanks"
        ),
        pytest.param(hashed("chunks: all\n"), "sidecar-invalid", id="no chunks"),
        pytest.param(hashed("chunks: [1, [2]]\n"), "sidecar-invalid", id="chunks of another kind"),
    ],
)
def test_a_sidecar_that_does_not_fit_is_told_and_not_used(tmp_path: Path, sidecar: str, code: str) -> None:
    document, codes = demo(tmp_path, sidecar)
    assert set(codes) == {code}
    assert cut(document) == cut(replace(document, chunks="[]"))


def test_a_broken_sidecar_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    document, _ = demo(tmp_path / "p", "chunks:\n- [\n")
    (broken,) = (finding for finding in read(tmp_path / "p").findings if finding.path == "a.chunks.yaml")
    assert (broken.code, broken.line > 0, document.chunks) == ("yaml-invalid", True, "[]")


def test_a_sidecar_may_have_another_name_inside_the_pack(tmp_path: Path) -> None:
    front = FRONT.replace(b"---\n", b"---\nchunks_sidecar: cuts.yaml\n", 1)
    moved = CHUNKS.replace("[5, 7]", "[6, 8]").replace("[9, 11]", "[10, 12]")
    document, codes = demo(tmp_path, hashed(moved), front, name="cuts.yaml")
    assert (codes, len(json.loads(document.chunks))) == ([], 2)


@pytest.mark.parametrize("name", ["../out.yaml", "/etc/hosts", "none.yaml"])
def test_a_sidecar_outside_the_pack_is_never_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "out.yaml").write_text(hashed(CHUNKS))
    front = FRONT.replace(b"---\n", f"---\nchunks_sidecar: {name}\n".encode(), 1)
    document, codes = demo(tmp_path / "p", "", front)
    assert (codes, document.chunks) == (["sidecar-missing"], "[]")


def test_an_atomic_document_stays_whole(tmp_path: Path) -> None:
    front = FRONT.replace(b"---\n", b"---\nretrieval_strategy: atomic\n", 1)
    moved = CHUNKS.replace("[5, 7]", "[6, 8]").replace("[9, 11]", "[10, 12]")
    document, codes = demo(tmp_path, hashed(moved), front)
    assert (codes, len(cut(document))) == (["sidecar-unused"], 1)


def test_a_chunk_is_one_passage_of_any_size(tmp_path: Path) -> None:
    body = b"# Sun\n\n" + b"Panels face south. " * 400 + b"\n"
    document, _ = demo(tmp_path, "chunks: [{line_range: [5, 7]}]\n", body=body)
    (passage,), (finding,) = passages_of(document, 0)
    assert (passage.passage.end_byte, finding.code) == (len(FRONT + body), "passage-oversized")
