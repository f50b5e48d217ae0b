"""Queries to vectors, with the encoder that made the passages' vectors: a model in a file or behind an endpoint."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from octavo_artifact.errors import ArtifactError, OctavoError
from octavo_artifact.layout import ENCODER_MODEL, ENCODER_SPEC, ENCODER_TOKENIZER
from octavo_artifact.manifest import fingerprint, read_encoder
from octavo_artifact.schema import EncoderSpec
from octavo_serve.onnx_session import open_session

CACHED_QUERIES = 1024
"""Vectors kept: 1.5 KiB each at 384 dimensions."""
QUERY_TIMEOUT = 4.0
"""Seconds that an endpoint has for a query; a pack has ten for its answer."""
COOL_DOWN = 5.0
"""Seconds for which an endpoint that failed is not asked again, so that not every search waits for it."""

Vector = NDArray[np.float32]


class Encoder(Protocol):
    """What a search asks of an encoder. Safe to call from several threads."""

    @property
    def spec(self) -> EncoderSpec:
        """What it is."""
        ...

    @property
    def failure(self) -> str | None:
        """Why a query could not be encoded, in words that clients may see; None again when one could."""
        ...

    def encode(self, text: str) -> Vector:
        """The vector of a query: float32 [dim], unit length. Longer text than the encoder takes is cut.

        Raises whatever its runtime does; a search can then still look for words.
        """
        ...


def open_encoder(directory: Path, name: str, *, trusting: bool = False) -> Encoder:
    """The encoder of fingerprint `name` in `directory`, its files checked; an endpoint is asked for its probe.

    Raises ArtifactError naming the file that is missing, damaged or another encoder's, EndpointError when an endpoint
    cannot be asked or has other weights; `trusting` that it will be right later, that shows as its `failure` only.
    """
    spec = read_encoder(directory, name)
    if not spec.model:
        return OnnxEncoder(directory, spec)
    encoder = EndpointEncoder(directory, spec)
    try:
        encoder.check()
    except OctavoError as error:
        if not trusting:
            raise
        encoder.failure = str(error)
    return encoder


class _Remembering(ABC):
    """The vectors of queries asked before, and whether the last one that was not could be encoded."""

    def __init__(self, spec: EncoderSpec) -> None:
        self.spec = spec
        self.failure: str | None = None
        self._cache: OrderedDict[str, Vector] = OrderedDict()
        self._lock = Lock()

    def encode(self, text: str) -> Vector:
        """The vector of a query; see `Encoder`."""
        with self._lock:
            if (cached := self._cache.get(text)) is not None:
                self._cache.move_to_end(text)
                return cached
        try:
            vector = self._encode(self.spec.query_prefix + text)
            if vector.shape != (self.spec.dimensions,):
                raise ArtifactError(f"encoder: found {vector.shape} values, expected {self.spec.dimensions}")
        except Exception as error:
            self.failure = str(error) if isinstance(error, OctavoError) else f"the encoder failed ({_kind(error)})"
            raise
        self.failure = None
        vector.flags.writeable = False
        with self._lock:
            self._cache[text] = vector
            if len(self._cache) > CACHED_QUERIES:
                self._cache.popitem(last=False)
        return vector

    @abstractmethod
    def _encode(self, text: str) -> Vector: ...


class OnnxEncoder(_Remembering):
    """An ONNX sentence encoder and its tokenizer, run in this process."""

    def __init__(self, directory: Path, spec: EncoderSpec) -> None:
        """Load it. Raises ArtifactError when onnxruntime cannot, or when it is of other dimensions."""
        super().__init__(spec)
        name = fingerprint(spec)
        self._session = _session(directory / ENCODER_MODEL, name)
        self._inputs = frozenset(each.name for each in self._session.get_inputs())
        found = self._session.get_outputs()[0].shape[-1]
        if isinstance(found, int) and found != spec.dimensions:
            raise ArtifactError(
                f"encoders/{name}/{ENCODER_MODEL}: {found} dimensions, {ENCODER_SPEC} says {spec.dimensions}"
            )
        self._tokenizer = _tokenizer(directory / ENCODER_TOKENIZER, spec.max_tokens)

    def _encode(self, text: str) -> Vector:
        # Exactly as octavo_build.encode does it; a test compares the bits.
        ids = np.array([self._tokenizer.encode(text).ids], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        fed = {name: value for name, value in inputs.items() if name in self._inputs}
        hidden: NDArray[np.float32] = self._session.run(None, fed)[0][0]
        match self.spec.pooling:
            case "cls":
                pooled = hidden[0].astype(np.float64)
            case "last":
                pooled = hidden[-1].astype(np.float64)
            case _:
                pooled = hidden.mean(axis=0, dtype=np.float64)
        return (pooled / math.sqrt(math.fsum(pooled * pooled))).astype(np.float32)


class EndpointEncoder(_Remembering):
    """A model behind an OpenAI-compatible endpoint. Before it is trusted its probe must be that of the spec."""

    def __init__(self, directory: Path, spec: EncoderSpec) -> None:
        """Read where it is. Raises ArtifactError when the file that says so is missing or damaged."""
        from octavo_artifact.endpoint import read_endpoint

        super().__init__(spec)
        self._endpoint = read_endpoint(directory, fingerprint(spec))
        self._checked = False
        self._resting_until = -math.inf

    def check(self) -> None:
        """Ask for the probe. Raises EndpointError when the endpoint fails, or other weights answer."""
        from octavo_artifact.endpoint import EndpointError, Patience, probe, same_weights

        found = probe(self._endpoint, self.spec, Patience(QUERY_TIMEOUT, 1))
        if not same_weights(found, self.spec.probe):
            raise EndpointError(
                f"encoder {self.spec.model}: the endpoint has other weights under this name than the pack was built "
                "with; build the pack again, or serve the weights of before"
            )
        self._checked = True

    def _encode(self, text: str) -> Vector:
        from octavo_artifact.endpoint import EndpointError, Patience, embed

        if time.monotonic() < self._resting_until:
            raise EndpointError(self.failure or f"encoder {self.spec.model}: the endpoint failed")
        try:
            if not self._checked:
                self.check()
            (values,) = embed(self._endpoint, self.spec, [text], Patience(QUERY_TIMEOUT, 1))
        except EndpointError:
            self._resting_until = time.monotonic() + COOL_DOWN
            raise
        return np.array(values, dtype=np.float32)


class AbsentEncoder:
    """In the place of an encoder that cannot be had, where the operator allows a search by words only."""

    def __init__(self, spec: EncoderSpec, reason: str) -> None:
        """`reason` says why, and whom it concerns."""
        self.spec = spec
        self.failure: str | None = reason

    def encode(self, text: str) -> Vector:
        """Raise ArtifactError, always."""
        raise ArtifactError(str(self.failure))


def _kind(error: Exception) -> str:
    return type(error).__name__


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
