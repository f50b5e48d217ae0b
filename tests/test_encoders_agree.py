from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from octavo_artifact.layout import ENCODERS
from octavo_build.content_cache import ContentCache
from octavo_build.encode import encode_windows
from octavo_build.workers import Workers
from octavo_serve.encoder import open_encoder

TEXTS = ["How do I descale the boiler?", "x", "Wie reinige ich den Kessel?", "word " * 400, "電池 🍵 \x00", ""]


@pytest.fixture(scope="module")
def directory(built: Path) -> Path:
    return next((built / ENCODERS).iterdir())


def test_a_query_and_a_window_of_the_same_text_have_the_same_vector(directory: Path, tmp_path: Path) -> None:
    encoder = open_encoder(directory, directory.name)
    with Workers(1) as workers:
        windows = encode_windows(TEXTS, directory, workers, ContentCache(tmp_path / "c"), {}, lambda _: None)
    queries = np.stack([encoder.encode(text) for text in TEXTS])
    assert queries.dtype == windows.dtype == np.float32
    assert np.array_equal(queries, windows)
