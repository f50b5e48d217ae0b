"""An artifact is nobody's captive: five libraries open it, as the README shows, and `octavo sql` asks it anything."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from running import ROOT, octavo

HEADING = "Open an artifact with anything"
LIBRARIES = ("duckdb", "pyarrow", "lancedb", "lance", "tantivy")


def shown() -> list[str]:
    """The Python blocks of the README between that heading and the next."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = re.search(rf"^#+ {HEADING}\n(.*?)(?=^##+ |\Z)", readme, re.M | re.S)
    return re.findall(r"^```python\n(.*?)^```", section[1], re.M | re.S) if section else []


@pytest.fixture(scope="module")
def blocks() -> list[str]:
    if not (found := shown()):
        pytest.skip(f"README.md has no heading {HEADING!r} with Python under it")
    return found


def tree(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_readme_opens_an_artifact(built: Path, blocks: list[str], library: str, tmp_path: Path) -> None:
    (block,) = [block for block in blocks if re.search(rf"^import\b.*\b{library}\b", block, re.M)]
    assert len(ast.parse(block).body) <= 3, "the import, and two lines at most"
    for slug in re.findall(r"dist/([a-z-]+)", block):
        shutil.copytree(built / "tiny", tmp_path / "dist" / slug, dirs_exist_ok=True)
    before = tree(tmp_path / "dist")
    assert before
    command = [sys.executable, "-W", "error", "-c", block]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()
    assert tree(tmp_path / "dist") == before, "opening it changed it"


def rows(built: Path, query: str) -> list[dict[str, object]]:
    done = octavo("sql", built / "tiny", query, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_sql_reads_documents_passages_and_vectors(built: Path) -> None:
    counted = rows(
        built,
        "select (select count(*) from documents) documents, (select count(*) from passages) passages, "
        "(select count(*) from edges) edges, (select count(*) from nodes) nodes, "
        "(select count(*) from sections) sections, (select count(*) from edges where kind = 'requires') requires, "
        "(select count(*) from resources) resources, (select count(frontmatter) from resources) skills, "
        "(select count(*) from vectors) windows, "
        "(select min(len(vector)) from vectors) dimensions",
    )
    manifest = next((built / "tiny").glob("*/manifest.json"))
    assert counted == [{**json.loads(manifest.read_bytes())["counts"], "dimensions": 384}]


def test_sql_gives_bytes_and_lists_as_json(built: Path) -> None:
    (row,) = rows(built, "select raw, tags, verified_by from documents where path = 'concepts/water.md'")
    assert "Hard water leaves limescale" in str(row["raw"])
    assert (row["tags"], row["verified_by"]) == (["water", "maintenance"], "human")


def test_sql_shows_a_table_to_a_person(built: Path) -> None:
    digest = json.loads((built / "tiny" / "latest.json").read_bytes())["digest"]
    by_slug, by_digest = (
        octavo("sql", artifact, "select path from documents order by path")
        for artifact in (built / "tiny", built / "tiny" / digest)
    )
    assert (by_slug.returncode, by_slug.stderr) == (0, "")
    assert "concepts/water.md" in by_slug.stdout
    assert by_digest.stdout == by_slug.stdout


REFUSED = {
    "reads a file": "select * from read_csv('/etc/passwd')",
    "reads a file by its name": "select * from '/etc/passwd'",
    "reads text": "select content from read_text('/etc/hostname')",
    "lists files": "select * from glob('/etc/*')",
    "reads Parquet": "select * from read_parquet('documents.parquet')",
    "calls a host": "select * from read_csv('http://127.0.0.1:9/')",
    "writes a file": "copy documents to 'stolen.csv'",
    "writes a file after an answer": "select 1; copy documents to 'stolen.csv'",
    "exports": "export database 'stolen'",
    "attaches a database": "attach 'stolen.db'",
    "installs an extension": "install httpfs",
    "loads an extension": "load httpfs",
    "unlocks files": "set enable_external_access = true",
    "spills to a folder": "set temp_directory = '.'",
    "unlocks settings": "set lock_configuration = false",
    "reads the program's variables": "select * from arguments",
    "has an error in its syntax": "selec",
    "has an error in a row": "select cast(path as integer) from documents",
    "raises": "select error('so it is')",
    "names no table": "select * from nothing",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sql")


@pytest.mark.parametrize("query", REFUSED)
def test_sql_refuses_a_query_that(
    built: Path, place: Path, query: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from octavo_serve.cli import main

    monkeypatch.chdir(place)
    (place / "documents.parquet").write_bytes(next((built / "tiny").glob("*/documents.parquet")).read_bytes())
    assert main(["sql", str(built / "tiny"), REFUSED[query], "--json"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("octavo: sql: ")
    assert "Traceback" not in said.err
    assert [path.name for path in place.iterdir()] == ["documents.parquet"]


def test_sql_makes_tables_that_nobody_keeps(built: Path, tmp_path: Path) -> None:
    before = tree(built)
    done = octavo(
        "sql", built / "tiny", "create table mine as select * from documents; select count(*) n from mine", "--json",
        cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, json.loads(done.stdout)) == (0, [{"n": 6}])
    assert octavo("sql", built / "tiny", "delete from documents", cwd=tmp_path).returncode == 1
    assert tree(built) == before
    assert list(tmp_path.iterdir()) == []


def test_sql_never_spills_to_disk(built: Path) -> None:
    assert rows(built, "select current_setting('temp_directory') folder") == [{"folder": ""}]


@pytest.mark.parametrize("query", ["", ";", "-- nothing"])
def test_sql_without_a_statement_is_silent(built: Path, query: str) -> None:
    done = octavo("sql", built / "tiny", query)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_sql_names_what_is_no_artifact(tmp_path: Path) -> None:
    done = octavo("sql", tmp_path, "select 1")
    assert done.returncode == 1
    assert "not an artifact; expected dist/SLUG or dist/SLUG/DIGEST" in done.stderr
