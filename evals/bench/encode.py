"""Encoding: our graph against the graph as its package ships it, and a build against a bare onnxruntime loop.

CPU time of one thread for the graphs; windows a second, in as many processes of one thread, for the build. What is
compared takes turns on the same texts, so that whatever else the machine does meets both.
"""

from __future__ import annotations

import multiprocessing
import operator
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import _server  # the compiler may be driven here: benchmarks are no part of octavo_evals
import numpy as np

TEXTS = 320
GRAPH_TEXTS = 20
QUERY = "How do I move a crypto wallet?"
QUERIES = 50
ROUNDS = 5
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
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
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


def _query_ms(encode: Callable[[str], object], round_: int) -> float:
    start = time.process_time()
    for number in range(QUERIES):
        encode(f"{QUERY} {round_}{number:03}")  # no query twice: the server keeps the vectors of those it knows
    return (time.process_time() - start) / QUERIES * 1e3


def _windows_a_cpu_second(directory: Path, sample: list[str]) -> float:
    start = time.process_time()
    return _bare(directory, sample) / (time.process_time() - start)


def compare_graphs(directory: Path, sample: list[str]) -> None:
    """The graph as shipped and ours: milliseconds of CPU a query, windows a second of CPU."""
    from octavo_build.encoders.package import PACKAGE
    from octavo_serve.encoder import open_encoder

    package = find_spec(PACKAGE)
    assert package is not None
    assert package.origin is not None
    with tempfile.TemporaryDirectory() as folder:
        shipped = Path(folder)
        shutil.copy(Path(package.origin).with_name("model.onnx"), shipped)
        shutil.copy(directory / "tokenizer.json", shipped)
        query: dict[Path, list[float]] = {shipped: [], directory: []}
        windows: dict[Path, list[float]] = {shipped: [], directory: []}
        whole: list[float] = []
        encoder = open_encoder(directory, directory.name)
        for round_ in range(ROUNDS + 1):
            for graph in (shipped, directory):
                query[graph].append(_query_ms(lambda text, graph=graph: _bare(graph, [text]), round_))
                windows[graph].append(_windows_a_cpu_second(graph, sample))
            whole.append(_query_ms(encoder.encode, round_))
            if not round_:  # the first only warms up
                for measured in (*query.values(), *windows.values(), whole):
                    measured.clear()
    for name, graph in (("as shipped", shipped), ("ours", directory)):
        print(
            f"{name:10}  {statistics.median(query[graph]):5.2f} CPU ms a query,"
            f" {statistics.median(windows[graph]):5.1f} windows a CPU second"
        )
    faster = statistics.median(map(operator.truediv, query[shipped], query[directory]))
    more = statistics.median(map(operator.truediv, windows[directory], windows[shipped]))
    print(f"ratio: queries {faster:.2f} times as fast, windows {more:.2f} times")
    print(f"a query in the server, pooling included: {statistics.median(whole):.2f} CPU ms")


def main() -> None:
    from octavo_build.content_cache import ContentCache
    from octavo_build.encode import encode_windows
    from octavo_build.encoders import wanted_encoder
    from octavo_build.workers import Workers

    sample = texts()
    directory = _server.BENCH / "dist" / "encoders" / wanted_encoder()
    known = _server.BENCH / "no-cache.sqlite"
    spawn = multiprocessing.get_context("spawn")
    compare_graphs(directory, sample[:: max(1, len(sample) // GRAPH_TEXTS)])
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
