"""Queries to vectors, with the encoder that made the passages' vectors."""

from __future__ import annotations

import math
from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octavo_artifact.errors import ArtifactError
from octavo_artifact.layout import ENCODER_MODEL, ENCODER_TOKENIZER
from octavo_artifact.manifest import read_encoder
from octavo_artifact.schema import EncoderSpec
from octavo_serve.onnx_session import open_session

CACHED_QUERIES = 1024
"""Vectors kept: 1.5 KiB each at 384 dimensions."""


class Encoder:
    """An ONNX sentence encoder: mean pooling over the mask, unit length. Safe to call from several threads."""

    def __init__(self, directory: Path, fingerprint: str) -> None:
        """Check the encoder's files against `fingerprint` and load it.

        Raises ArtifactError naming the file that is missing, damaged or another encoder's.
        """
        self.spec: EncoderSpec = read_encoder(directory, fingerprint)
        self._session = _session(directory / ENCODER_MODEL, fingerprint)
        self._tokenizer = _tokenizer(directory / ENCODER_TOKENIZER, self.spec.max_tokens)
        self._cache: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._lock = Lock()

    def encode(self, text: str) -> NDArray[np.float32]:
        """The vector of a query: float32 [dim], unit length. Longer text than the encoder takes is cut."""
        with self._lock:
            if (cached := self._cache.get(text)) is not None:
                self._cache.move_to_end(text)
                return cached
        ids = np.array([self._tokenizer.encode(text).ids], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        hidden: NDArray[np.float32] = self._session.run(None, inputs)[0][0]
        # Exactly as octavo_build.encode does it; a test compares the bits.
        mean = hidden.mean(axis=0, dtype=np.float64)
        vector = (mean / math.sqrt(math.fsum(mean * mean))).astype(np.float32)
        vector.flags.writeable = False
        with self._lock:
            self._cache[text] = vector
            if len(self._cache) > CACHED_QUERIES:
                self._cache.popitem(last=False)
        return vector


def _session(model: Path, fingerprint: str) -> Any:
    try:
        return open_session(model)
    except Exception as error:
        raise ArtifactError(f"encoders/{fingerprint}/{ENCODER_MODEL}: onnxruntime cannot load it") from error


def _tokenizer(file: Path, max_tokens: int) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    # The file's own padding and truncation (128) would silently cut and dilute: .78 fell to .29 in one measurement.
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer
