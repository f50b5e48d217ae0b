"""Encoding windows in a build against a bare onnxruntime loop, in as many processes of one thread, on the same texts.

The two take turns, so that whatever else the machine does meets both.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import sys
import time
from functools import cache, partial
from pathlib import Path
from typing import Any

import _server  # the compiler may be driven here: benchmarks are no part of octavo_evals
import numpy as np

TEXTS = 320
ROUNDS = 3
PROCESSES = len(os.sched_getaffinity(0))


def texts() -> list[str]:
    """Windows of the packs at hand, as the build makes them."""
    import pyarrow.parquet as pq

    _server.releases()
    tables = sorted((_server.BENCH / "state" / "work").glob("*/windows.parquet"))
    found = [text for table in tables for text in pq.read_table(table).column("text").to_pylist()]
    return found[:: max(1, len(found) // TEXTS)][:TEXTS]


@cache
def _load(directory: Path) -> Any:
    import onnxruntime
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(directory / "model.onnx"), options, providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    return session, tokenizer


def _bare(directory: Path, mine: list[str]) -> int:
    session, tokenizer = _load(directory)
    for text in mine:
        ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
        session.run(None, {"input_ids": ids, "attention_mask": ids * 0 + 1, "token_type_ids": ids * 0})
    return len(mine)


def main() -> None:
    from octavo_build.content_cache import ContentCache
    from octavo_build.encode import encode_windows
    from octavo_build.encoders import wanted_encoder
    from octavo_build.workers import Workers

    sample = texts()
    directory = _server.BENCH / "dist" / "encoders" / wanted_encoder()
    known = _server.BENCH / "no-cache.sqlite"
    spawn = multiprocessing.get_context("spawn")
    bare: list[float] = []
    ours: list[float] = []
    with spawn.Pool(PROCESSES) as pool, Workers(PROCESSES) as workers:
        run = partial(_bare, directory)
        pool.map(run, [sample[:4]] * PROCESSES, chunksize=1)
        encode_windows(sample[:60], directory, workers, ContentCache(known), {}, lambda _: None)
        for _ in range(ROUNDS):
            known.unlink(missing_ok=True)
            start = time.perf_counter()
            list(pool.imap(run, [[text] for text in sample], chunksize=4))
            bare.append(len(sample) / (time.perf_counter() - start))
            start = time.perf_counter()
            encode_windows(sample, directory, workers, ContentCache(known), {}, lambda _: None)
            ours.append(len(sample) / (time.perf_counter() - start))
    known.unlink(missing_ok=True)
    print(f"{len(sample)} windows, {PROCESSES} processes, {ROUNDS} rounds")
    print(f"bare onnxruntime loop: {statistics.median(bare):6.1f} windows a second")
    print(f"the build's encoding:  {statistics.median(ours):6.1f} windows a second")
    ratios = [mine / other for mine, other in zip(ours, bare, strict=True)]
    print(f"ratio: {statistics.median(ratios):.1%} (each round: {', '.join(f'{ratio:.1%}' for ratio in ratios)})")


if __name__ == "__main__":
    sys.exit(main())
