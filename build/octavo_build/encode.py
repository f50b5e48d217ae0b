"""Windows to vectors.

A vector depends on the encoder, its runtime and the window's text, on nothing else: each text is run alone (batches
gain nothing on a CPU), on one thread, so that neither order, workers nor cache can change a bit.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import math
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from octavo_artifact.layout import ENCODER_MODEL, ENCODER_TOKENIZER
from octavo_artifact.manifest import read_encoder
from octavo_build.content_cache import ContentCache
from octavo_build.workers import Workers

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

Vectors = NDArray[np.float32]

# A text takes some 60 ms: few enough for workers to end together, enough to make a shard's way there cheap.
_SHARD = 8
# Two workers need about a second to start, in which this process encodes as many.
_FEW = 24


def encode_windows(  # noqa: PLR0917  # six inputs of one kind each
    texts: Sequence[str],
    encoder_dir: Path,
    workers: Workers,
    cache: ContentCache,
    seed: Mapping[bytes, Vectors],
    progress: Callable[[int], None],
) -> Vectors:
    """The vectors of `texts`: float32 [texts, dim], rows unit length.

    `encoder_dir` is named by the encoder's fingerprint. `seed` has vectors of an earlier artifact by sha256 of the
    text; they must be of the same encoder and onnxruntime. `progress` is called in this thread with the number of
    texts that were done since its last call. Text longer than the encoder takes is cut.
    Raises ArtifactError for a damaged encoder, OctavoError when a worker dies.
    """
    spec = read_encoder(encoder_dir, encoder_dir.name)
    vectors = np.empty((len(texts), spec.dimensions), dtype=np.float32)
    rows: defaultdict[bytes, list[int]] = defaultdict(list)
    for row, text in enumerate(texts):
        rows[hashlib.sha256(text.encode()).digest()].append(row)

    def place(found: Mapping[bytes, Vectors]) -> None:
        for text_sha256, vector in found.items():
            vectors[rows[text_sha256]] = vector
        progress(sum(len(rows[text_sha256]) for text_sha256 in found))

    seeded = {text_sha256: seed[text_sha256] for text_sha256 in rows if text_sha256 in seed}
    place(seeded)
    key_of = _cache_keys(encoder_dir.name, [text_sha256 for text_sha256 in rows if text_sha256 not in seeded])
    cached = cache.read(list(key_of.values()))
    place({text_sha256: np.frombuffer(cached[key], "<f4") for text_sha256, key in key_of.items() if key in cached})

    missing = {text_sha256: texts[rows[text_sha256][0]] for text_sha256, key in key_of.items() if key not in cached}
    shards = _shards(missing)
    encode = functools.partial(_encode, encoder_dir, spec.max_tokens)
    mapped = map if len(missing) <= _FEW or workers.processes == 1 else workers.map
    for shard, encoded in zip(shards, mapped(encode, [list(shard.values()) for shard in shards]), strict=True):
        found = dict(zip(shard, encoded, strict=True))
        cache.write({key_of[text_sha256]: vector.astype("<f4").tobytes() for text_sha256, vector in found.items()})
        place(found)
    return vectors


def _cache_keys(encoder: str, hashes: Sequence[bytes]) -> dict[bytes, bytes]:
    """Key in the cache by sha256 of the text; another release of onnxruntime may round in another way."""
    identity = f"{encoder} onnxruntime {importlib.metadata.version('onnxruntime')} ".encode()
    return {text_sha256: hashlib.sha256(identity + text_sha256).digest() for text_sha256 in hashes}


def _shards(texts: Mapping[bytes, str]) -> list[dict[bytes, str]]:
    """`texts` in pieces of equal number, longest texts first, so that the last pieces to be done are short."""
    ordered = sorted(texts.items(), key=lambda item: (-len(item[1]), item[0]))
    return [dict(ordered[start : start + _SHARD]) for start in range(0, len(ordered), _SHARD)]


def _encode(encoder_dir: Path, max_tokens: int, texts: Sequence[str]) -> Vectors:
    """Encode each text alone; runs in a worker."""
    session, tokenizer = _load(encoder_dir, max_tokens)
    return np.stack([_encode_one(session, tokenizer, text) for text in texts])


def _encode_one(session: InferenceSession, tokenizer: Tokenizer, text: str) -> Vectors:
    ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    output: Any = session.run(None, inputs)[0]
    # The text stands alone, without padding, so the mean over the mask is the mean. The sums are exact or in a fixed
    # order: numpy's norm and BLAS add in an order that depends on the CPU.
    mean = output[0].mean(axis=0, dtype=np.float64)
    return (mean / math.sqrt(math.fsum(mean * mean))).astype(np.float32)


@functools.lru_cache(maxsize=1)
def _load(encoder_dir: Path, max_tokens: int) -> tuple[InferenceSession, Tokenizer]:
    # Since 1.29 onnxruntime writes a database under ~/.cache and sends from it, unless this is set before its import.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # the default model's graph carries a harmless shape warning
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(
        str(encoder_dir / ENCODER_MODEL), options, providers=["CPUExecutionProvider"]
    )
    tokenizer = Tokenizer.from_file(str(encoder_dir / ENCODER_TOKENIZER))
    # The file's own padding and truncation (128) would silently cut and dilute.
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return session, tokenizer
