from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto
from onnx.helper import make_graph, make_model, make_node, make_tensor_value_info
from onnx.numpy_helper import from_array

from octavo_artifact.layout import ENCODER_MODEL, ENCODER_TOKENIZER, ENCODERS
from octavo_build.encoders import install_encoder
from octavo_build.encoders.package import PACKAGE
from octavo_build.encoders.repack import repack
from octavo_build.windows import load_tokenizer

TEXTS = [
    "How do I descale the boiler?",
    "boiler",
    "Wie reinige ich den Kessel?",
    "A wallet keeps the keys of an account. " * 20,
]
Tokens = NDArray[np.float32]


def shipped() -> bytes:
    spec = find_spec(PACKAGE)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).with_name("model.onnx").read_bytes()


@pytest.fixture(scope="module")
def encoder_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    dist = tmp_path_factory.mktemp("dist")
    return dist / ENCODERS / install_encoder(dist)


@pytest.fixture(scope="module")
def inputs(encoder_dir: Path) -> list[list[int]]:
    tokenizer = load_tokenizer(encoder_dir / ENCODER_TOKENIZER)
    return [tokenizer.encode(text).ids for text in TEXTS]


def runner(model: bytes, threads: int = 1) -> Callable[[list[list[int]]], list[Tokens]]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def run(rows: list[list[int]]) -> list[Tokens]:
        """The vectors of each row's tokens, all rows in one batch."""
        longest = max(map(len, rows))
        ids = np.array([row + [0] * (longest - len(row)) for row in rows])
        mask = np.array([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
        output = session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": ids * 0})[0]
        return [each[: len(row)] for each, row in zip(np.asarray(output), rows, strict=True)]

    return run


def test_the_repacked_model_means_what_the_shipped_one_does(encoder_dir: Path, inputs: list[list[int]]):
    ours, theirs = runner((encoder_dir / ENCODER_MODEL).read_bytes()), runner(shipped())
    for ids in inputs:
        one, other = ours([ids])[0].mean(axis=0), theirs([ids])[0].mean(axis=0)
        assert one @ other / np.linalg.norm(one) / np.linalg.norm(other) >= 0.999


def test_a_text_has_the_same_bits_alone_and_in_a_batch_and_on_two_threads(encoder_dir: Path, inputs: list[list[int]]):
    model = (encoder_dir / ENCODER_MODEL).read_bytes()
    one_thread, two_threads = runner(model), runner(model, threads=2)
    alone = [one_thread([ids])[0] for ids in inputs]

    assert all(map(np.array_equal, alone, one_thread(inputs)))
    assert all(map(np.array_equal, alone, [two_threads([ids])[0] for ids in inputs]))


def test_a_weight_that_is_repacked_is_not_rounded():
    rows, columns = 64, 6
    values = np.arange(rows * columns, dtype=np.int64).reshape(rows, columns).astype(np.int8)
    scale = np.linspace(0.01, 0.02, columns, dtype=np.float32)[None]
    graph = make_graph(
        [
            make_node("Cast", ["values"], ["cast"], to=TensorProto.FLOAT),
            make_node("Mul", ["cast", "scale"], ["weight"]),
            make_node("MatMul", ["x", "weight"], ["y"]),
        ],
        "product",
        [make_tensor_value_info("x", TensorProto.FLOAT, ["n", rows])],
        [make_tensor_value_info("y", TensorProto.FLOAT, ["n", columns])],
        [from_array(values, "values"), from_array(scale, "scale")],
    )
    session = onnxruntime.InferenceSession(repack(make_model(graph, ir_version=10).SerializeToString()))
    # rows of the unit matrix lose nothing as 8-bit activations, so that the product is the weight itself
    weight = np.asarray(session.run(None, {"x": np.eye(rows, dtype=np.float32)})[0])

    assert np.allclose(weight, values * scale, rtol=1e-5, atol=0)


def test_a_model_without_int8_weights_is_refused():
    graph = make_graph(
        [make_node("MatMul", ["x", "x"], ["y"])],
        "product",
        [make_tensor_value_info("x", TensorProto.FLOAT, [2, 2])],
        [make_tensor_value_info("y", TensorProto.FLOAT, [2, 2])],
    )
    with pytest.raises(ValueError, match="expected a MatMul by int8 weights"):
        repack(make_model(graph).SerializeToString())
