from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from octavo_artifact.errors import ConfigError, PackError
from octavo_evals.ablation import DEFAULT, STAGES, Ablation, Variation, read_ablation
from octavo_evals.evidence.__main__ import FOLDER, PAGE, main, write_page
from octavo_evals.evidence.collections import Asked, Collection, read_collections, write_pack
from octavo_evals.evidence.page import page
from octavo_evals.results import Artifact, Cases, Estimate
from running import ROOT, TINY

pytestmark = pytest.mark.slow  # it builds and measures releases of its own

DOCUMENTS = (
    {"_id": "tea-1", "title": "Black\n tea", "text": "Black tea steeps for four minutes."},
    {"_id": "tea-2", "title": "", "text": "Green tea steeps for two minutes, in water of 70 degrees."},
    {"_id": "tea-3", "text": "茶は中国で生まれた。"},
)
QUESTIONS = "pack: tiny\nqueries:\n- {id: a, query: how fine should I grind, expected: [concepts/grinder.md]}\n"
COLLECTIONS = """today: '2026-11-30'
collections:
- name: teas
  title: Teas
  about: Three documents about tea.
  asked:
  - {pack: teas, fields: {language: en}}
  gate: 'off'
  measures: [nDCG@10, R_cap@1]
  known:
    somebody: {nDCG@10: .5}
  target: {R_cap@1: .9}
- name: machine
  title: A coffee machine
  about: A pack of ours.
  asked:
  - {pack: tiny, cases: [questions.yaml]}
  measures: [RR, must_not@5, false_refusal]
- name: absent
  title: Absent
  about: It lies elsewhere.
  asked:
  - {pack: no/such/pack, cases: [questions.yaml]}
  measures: [RR]
"""


def collection(folder: Path) -> Path:
    folder.mkdir()
    (folder / "corpus.jsonl").write_text("".join(json.dumps(each) + "\n" for each in DOCUMENTS))
    (folder / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "how long does black tea steep"}\n{"_id": "q2", "text": "中国の茶"}\n'
    )
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ttea-1\t1\nq2\ttea-3\t1\n")
    return folder


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the evidence of two collections, measured once; a third is not there."""
    root = tmp_path_factory.mktemp("evidence")
    (root / FOLDER).mkdir(parents=True)
    (root / FOLDER / "collections.yaml").write_text(COLLECTIONS)
    (root / "questions.yaml").write_text(QUESTIONS)
    shutil.copytree(TINY, root / "tiny")
    collection(root / "teas")
    assert main(["--root", str(root), "--state", str(root / "state")]) == 0
    return root


def test_a_document_is_a_file_with_its_title_as_heading(tmp_path: Path) -> None:
    pack = tmp_path / "teas"
    pack.mkdir()
    (pack / "old.md").write_text("gone")
    write_pack(collection(tmp_path / "source"), pack, {"language": "en"})
    assert {path.name: path.read_text("utf-8") for path in pack.iterdir()} == {
        "pack.yaml": "slug: teas\nname: teas\nlanguage: en\n",
        "tea-1.md": "# Black tea\n\nBlack tea steeps for four minutes.\n",
        "tea-2.md": "Green tea steeps for two minutes, in water of 70 degrees.\n",
        "tea-3.md": "茶は中国で生まれた。\n",
    }


@pytest.mark.parametrize("line", ["[]", "{", '{"_id": "a"}', "1"])
def test_a_line_that_is_no_document_is_an_error(line: str, tmp_path: Path) -> None:
    source = collection(tmp_path / "source")
    with (source / "corpus.jsonl").open("a") as corpus:
        corpus.write(line + "\n")
    with pytest.raises(PackError, match=r"source/corpus\.jsonl:4: expected a JSON object"):
        write_pack(source, tmp_path / "pack", {})


def test_every_question_of_a_collection_is_asked_of_its_documents(root: Path) -> None:
    found = read_ablation(root / FOLDER / "teas.json")
    names = [one.name for one in found.variations]
    assert names[0] == DEFAULT
    assert set(names[1:]) <= STAGES.keys()
    assert {"lexical off", "vector off", "document signal off", "cap off"} <= set(names)
    assert (found.gate, found.cases[0].count, found.artifacts[0].slug) == ("off", 2, "teas")
    assert found.variations[0].measures["nDCG@10"].mean == 1.0
    assert found.libraries.keys() >= {"octavo", "tantivy"}
    assert found.configurations[0]["retrieval"]["candidates"] == 100


def test_the_page_has_what_was_measured_and_what_was_not_is_left_out(root: Path) -> None:
    written = (root / PAGE).read_text()
    assert "## Teas\n\nThree documents about tea.\n2 questions of `teas " in written
    assert "| as it is | 1.000 | 1.000 |\n" in written
    assert "| *somebody* | 0.500 |  |\n| *target* |  | 0.900 |\n" in written
    assert "## A coffee machine\n" in written
    assert "Absent" not in written


def test_a_collection_that_is_not_there_is_told(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (root / PAGE).read_bytes()
    assert main(["absent", "--root", str(root), "--state", str(root / "state")]) == 0
    assert capsys.readouterr().out == "absent: left out, no/such/pack is not on this machine\n"
    assert (root / PAGE).read_bytes() == before


def test_measured_again_it_has_the_same_bytes(root: Path) -> None:
    before = {path: path.read_bytes() for path in (root / PAGE, *(root / FOLDER).glob("*.json"))}
    assert main(["--root", str(root), "--state", str(root / "state")]) == 0
    assert {path: path.read_bytes() for path in before} == before


def test_an_unknown_collection_is_an_error(root: Path) -> None:
    with pytest.raises(ConfigError, match="none: no collection; expected one of teas, machine, absent"):
        main(["none", "--root", str(root)])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param("today: ", "day: ", "'today' is missing", id="no day"),
        pytest.param("  about: A pack of ours.\n", "", "'about' is missing", id="no description"),
        pytest.param("'off'", "closed", "teas: gate: 'closed', expected one of", id="no such gate"),
        pytest.param("[RR]", "[R@7]", "absent: 'R@7' is no measure", id="no such measure"),
        pytest.param("{nDCG@10: .5}", "{NDCG: .5}", "teas: 'NDCG' is no measure", id="no such measure of others"),
        pytest.param("today", "[", "not YAML", id="no YAML"),
    ],
)
def test_collections_are_checked(old: str, new: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(COLLECTIONS.replace(old, new))
    with pytest.raises(ConfigError, match=rf"^c\.yaml: {message}"):
        read_collections(tmp_path / "c.yaml")


def test_a_cell_says_how_far_it_is_and_whether_chance_explains_it() -> None:
    def estimates(**values: tuple[float, float, float]) -> dict[str, Estimate]:
        return {name: Estimate(*figures, 9) for name, figures in values.items()}

    lamps = Collection("lamps", "Lamps", "About lamps.", (Asked(Path("lamps")),), ("RR", "must_not@5", "R@1"))
    base = Variation("default", {}, estimates(RR=(0.8, 0.7, 0.9), **{"R@1": (0.5, 0.4, 0.6)}), {})
    none = Variation(
        "no lens",
        {"lens": False, "weight": 0.5},
        estimates(RR=(0.7, 0.6, 0.8), **{"R@1": (0.5, 0.4, 0.6)}),
        estimates(RR=(-0.1, -0.2, -0.05), **{"R@1": (0.0, 0.0, 0.0)}),
    )
    found = Ablation(
        (Artifact("lamps", "d" * 64, None, "dist"),) * 2,
        (Cases("a.yaml", "0" * 64, 1000), Cases("b.yaml", "1" * 64, 9)),
        ({}, {}),
        {"octavo": "1", "numpy": "2"},
        50,
        None,
        "2026-11-30",
        (base, none),
    )
    assert page([(lamps, found)]).partition("## ")[2].splitlines() == [
        "Lamps",
        "",
        "About lamps.",
        "1,009 questions of `lamps dddddddddddd`; gate: the pack's own.",
        "",
        "|  | RR | R@1 |",
        "| --- | ---: | ---: |",
        "| as it is | 0.800 | 0.500 |",
        "| no lens | **0.700 -0.100 (-0.200 to -0.050)** | 0.500 = |",
        "",
        "## What each row changes",
        "",
        "| row | parameters of the search |",
        "| --- | --- |",
        "| no lens | `lens: false`, `weight: 0.5` |",
        "",
        "Measured with octavo 1, numpy 2.",
    ]


def test_the_committed_page_is_made_of_the_committed_figures(tmp_path: Path) -> None:
    shutil.copytree(ROOT / FOLDER, tmp_path / FOLDER)
    write_page(tmp_path)
    assert (tmp_path / PAGE).read_text() == (ROOT / PAGE).read_text()


@pytest.mark.parametrize("name", ["scifact", "xquadr-en", "xquadr-zh", "xquadr-ru", "xquadr-ar", "jsquad-valid-ja"])
def test_words_alone_reach_the_fields_bm25(name: str) -> None:
    file = ROOT / FOLDER / f"{name}.json"
    words = {one.name: one.measures for one in read_ablation(file).variations} if file.is_file() else {}
    if "vector off" not in words:
        pytest.skip(f"{name} was not measured with the vectors off")
    _, collections = read_collections(ROOT / FOLDER / "collections.yaml")
    known = next(each.known or {} for each in collections if each.name == name)
    theirs = max(figures["nDCG@10"] for system, figures in known.items() if system.startswith("BM25"))
    assert words["vector off"]["nDCG@10"].mean >= theirs - 0.01


@pytest.mark.shared
@pytest.mark.usefixtures("shared")
def test_the_collections_are_where_the_project_keeps_them() -> None:
    _, collections = read_collections(ROOT / FOLDER / "collections.yaml")
    assert len({each.name for each in collections}) == len(collections)
    assert {each.name: each.missing(ROOT) for each in collections} == {each.name: [] for each in collections}
