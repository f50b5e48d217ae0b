"""Windows to vectors.

A vector depends on the encoder, its runtime and the window's text, on nothing else: each text is run alone (batches
gain nothing on a CPU), on one thread, so that neither order, workers nor cache can change a bit. Of an encoder behind
an endpoint that is for the endpoint to keep.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import math
import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from octavo_artifact.errors import ConfigError
from octavo_artifact.layout import ENCODER_MODEL, ENCODER_TOKENIZER
from octavo_artifact.manifest import read_encoder
from octavo_artifact.schema import EncoderSpec
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
_REQUEST = 64
"""Texts that an endpoint is asked for at once."""
_TRIED = 512
"""Tokens of the text on which an encoder is tried out: a limit that is no limit of its shows then."""
_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})


def encode_windows(  # noqa: PLR0917  # six inputs of one kind each
    texts: Sequence[str],
    encoder_dir: Path,
    workers: Workers,
    cache: ContentCache,
    seed: Mapping[bytes, Vectors],
    progress: Callable[[int], None],
    *,
    as_queries: bool = False,
) -> Vectors:
    """The vectors of `texts`: float32 [texts, dim], rows unit length.

    `encoder_dir` is named by the encoder's fingerprint. `seed` has vectors of an earlier artifact by sha256 of the
    text; they must be of the same encoder and runtime. `progress` is called in this thread with the number of
    texts that were done since its last call. Text longer than the encoder takes is cut. The texts are passages
    unless they are encoded `as_queries`.
    Raises ArtifactError for a damaged encoder, EndpointError when one cannot be asked, OctavoError when a worker dies.
    """
    spec = read_encoder(encoder_dir, encoder_dir.name)
    prefix = spec.query_prefix if as_queries else spec.passage_prefix
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
    identity = f"{encoder_dir.name} {runtime_of(spec)} {prefix}".encode()
    key_of = _cache_keys(identity, [text_sha256 for text_sha256 in rows if text_sha256 not in seeded])
    cached = cache.read(list(key_of.values()))
    place({text_sha256: np.frombuffer(cached[key], "<f4") for text_sha256, key in key_of.items() if key in cached})

    missing = {text_sha256: texts[rows[text_sha256][0]] for text_sha256, key in key_of.items() if key not in cached}
    shards = _shards(missing, _REQUEST if spec.model else _SHARD)
    encode = functools.partial(_ask if spec.model else _encode, encoder_dir, spec)
    mapped = map if spec.model or len(missing) <= _FEW or workers.processes == 1 else workers.map
    prefixed = [[prefix + text for text in shard.values()] for shard in shards]
    for shard, encoded in zip(shards, mapped(encode, prefixed), strict=True):
        found = dict(zip(shard, encoded, strict=True))
        cache.write({key_of[text_sha256]: vector.astype("<f4").tobytes() for text_sha256, vector in found.items()})
        place(found)
    return vectors


def runtime_of(spec: EncoderSpec) -> str:
    """What decides a vector besides the encoder: another release of onnxruntime may round in another way."""
    return "" if spec.model else f"onnxruntime {importlib.metadata.version('onnxruntime')}"


def dimensions_of(model: bytes, tokenizer: bytes, max_tokens: int, shown: str) -> int:
    """The number of dimensions that a sentence encoder's ONNX graph gives, found by running it.

    Raises ConfigError, in which `shown` names the encoder, when the graph does not load, or its first output is not
    float32 [texts, tokens, dimensions] of nothing but token ids, their mask and types.
    """
    with tempfile.TemporaryDirectory() as folder:
        # from files, as in a build: onnxruntime holds what it gets as bytes twice
        (Path(folder) / ENCODER_MODEL).write_bytes(model)
        (Path(folder) / ENCODER_TOKENIZER).write_bytes(tokenizer)
        try:
            session, cutter = _open(Path(folder), max_tokens)
        except Exception as error:  # onnxruntime's and tokenizers' own classes share no base but Exception
            reason = str(error).replace(folder, "")[:200]
            raise ConfigError(f"{shown}: {ENCODER_MODEL} or {ENCODER_TOKENIZER} does not load ({reason})") from error
    inputs = {each.name: each.type for each in session.get_inputs()}
    if "input_ids" not in inputs or not inputs.keys() <= _INPUTS or set(inputs.values()) != {"tensor(int64)"}:
        raise ConfigError(
            f"{shown}: inputs {', '.join(sorted(inputs))}, expected int64 of {', '.join(sorted(_INPUTS))}"
        )
    try:
        hidden = _hidden(session, cutter, "a " * _TRIED)
    except Exception as error:
        raise ConfigError(
            f"{shown}: {ENCODER_MODEL} does not run on {min(max_tokens, _TRIED)} tokens ({type(error).__name__})"
        ) from error
    if hidden.ndim != 2 or hidden.dtype != np.float32 or not np.isfinite(hidden).all():
        raise ConfigError(
            f"{shown}: the first output is {hidden.dtype} {hidden.shape}, expected float32 vectors of tokens"
        )
    return hidden.shape[1]


def _cache_keys(identity: bytes, hashes: Sequence[bytes]) -> dict[bytes, bytes]:
    """Key in the cache by sha256 of the text."""
    return {text_sha256: hashlib.sha256(identity + text_sha256).digest() for text_sha256 in hashes}


def _shards(texts: Mapping[bytes, str], size: int) -> list[dict[bytes, str]]:
    """`texts` in pieces of equal number, longest texts first, so that the last pieces to be done are short."""
    ordered = sorted(texts.items(), key=lambda item: (-len(item[1]), item[0]))
    return [dict(ordered[start : start + size]) for start in range(0, len(ordered), size)]


def _ask(encoder_dir: Path, spec: EncoderSpec, texts: Sequence[str]) -> Vectors:
    """Have the texts encoded by the encoder's endpoint."""
    from octavo_artifact.endpoint import Patience, embed, read_endpoint

    endpoint = read_endpoint(encoder_dir, encoder_dir.name)
    return np.array(embed(endpoint, spec, texts, Patience(timeout=60, attempts=4)), dtype=np.float32)


def _encode(encoder_dir: Path, spec: EncoderSpec, texts: Sequence[str]) -> Vectors:
    """Encode each text alone; runs in a worker."""
    session, tokenizer = _load(encoder_dir, spec.max_tokens)
    return np.stack([_encode_one(session, tokenizer, text, spec.pooling) for text in texts])


def _encode_one(session: InferenceSession, tokenizer: Tokenizer, text: str, pooling: str) -> Vectors:
    hidden = _hidden(session, tokenizer, text)
    match pooling:
        case "cls":
            pooled = hidden[0].astype(np.float64)
        case "last":
            pooled = hidden[-1].astype(np.float64)
        case _:
            # The text stands alone, without padding, so the mean over the mask is the mean.
            pooled = hidden.mean(axis=0, dtype=np.float64)
    # Sums are exact or in a fixed order: numpy's norm and BLAS add in an order that depends on the CPU.
    return (pooled / math.sqrt(math.fsum(pooled * pooled))).astype(np.float32)


def _hidden(session: InferenceSession, tokenizer: Tokenizer, text: str) -> Vectors:
    """The tokens' vectors of one text, float32 [tokens, dim]."""
    ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    wanted = {each.name for each in session.get_inputs()}
    output: Any = session.run(None, {name: value for name, value in inputs.items() if name in wanted})[0]
    return output[0]


@functools.lru_cache(maxsize=1)
def _load(encoder_dir: Path, max_tokens: int) -> tuple[InferenceSession, Tokenizer]:
    return _open(encoder_dir, max_tokens)


def _open(encoder_dir: Path, max_tokens: int) -> tuple[InferenceSession, Tokenizer]:
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
