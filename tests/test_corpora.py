"""Real documentation compiles exactly: rust-book, the EIPs, FastAPI in a dozen languages, PowerShell."""

from __future__ import annotations

from pathlib import Path

import pytest

from exactness import check_addresses, check_documents, check_passages, compiled
from octavo_artifact.layout import DOCUMENTS, ENCODERS
from octavo_artifact.schema import Document
from octavo_build.encoders import install_encoder
from octavo_build.tables import read_table

CORPORA = {"rust-book": 112, "eips": 949, "fastapi": 1643, "powershell": 3087}
"""Documents of each."""


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("corpus", CORPORA)
def test_real_documentation_compiles_exactly(corpus: str, shared: Path, tmp_path: Path) -> None:
    root = shared / "corpora" / corpus
    encoder = tmp_path / ENCODERS / install_encoder(tmp_path)
    work = compiled(root, tmp_path, "docs", encoder)
    documents = read_table(work.parts / DOCUMENTS.file, Document)
    assert len(documents) == CORPORA[corpus]
    check_documents(documents, {path.read_bytes() for path in root.rglob("*") if path.is_file()})
    check_passages(documents, work)
    check_addresses(documents, work, "docs")
