"""Process start to the first answered hybrid search over HTTP, in CPU seconds, and where they go.

Baseline: a Python that only imports numpy and onnxruntime and loads the same encoder.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path

from _server import COMMUNITY, cpu_seconds, get, releases, server

RUNS = 5

# Each step is what the server does until it has answered, in its order; printed as CPU milliseconds.
STEPS = """
import sys, time
from pathlib import Path
dist = Path(sys.argv[1])
last = 0.0
def step(name):
    global last
    now = time.process_time()
    print(f"  {name:<44}{(now - last) * 1000:7.0f}")
    last = now
step("Python itself")
import octavo_serve.cli, argparse, importlib.metadata
importlib.metadata.entry_points(group="octavo.commands")
import octavo_serve.commands.serving
step("the command line")
import numpy
step("import numpy")
import pydantic, octavo_serve.requests, octavo_serve.results
step("import pydantic, request and result models")
import tantivy, octavo_serve.lexical
step("import tantivy")
from octavo_artifact import manifest as m
artifacts = [p / m.read_pointer(p) for p in m.pack_directories(dist)]
for artifact in artifacts:
    m.check_files(artifact, m.read_manifest(artifact))
step(f"hash {len(artifacts)} artifacts")
name = m.fingerprint(m.read_manifest(artifacts[0]).encoder)
m.read_encoder(dist / "encoders" / name, name)
step("hash the encoder")
import onnxruntime
step("import onnxruntime")
from octavo_serve.encoder import open_encoder
encoder = open_encoder(dist / "encoders" / name, name)
step("hash the encoder again, load it")
from octavo_serve.catalog import OpenPack
packs = [OpenPack(artifact, encoder, m.read_manifest(artifact)) for artifact in artifacts]
step("open the indexes")
import uvicorn, octavo_serve.over_http.run
step("import uvicorn, starlette, the application")
packs[0].search(octavo_serve.requests.SearchRequest(query="which breaker does a battery need"))
step("the first search")
"""


def main() -> None:
    dist = releases()
    slug = COMMUNITY[-1] if (dist / COMMUNITY[-1]).is_dir() else "octavo"
    seconds: list[float] = []
    for _ in range(RUNS):
        with server(dist) as (address, process):
            answer = json.loads(get(f"{address}/search?pack={slug}&q=which+breaker+does+a+battery+need"))
            assert answer["results"], answer
            assert answer["degraded"] is False
            seconds.append(cpu_seconds(process.pid))
    print(f"process start to first answered hybrid search, {len(list(dist.glob('*/latest.json')))} packs:")
    print(f"  CPU seconds: median {statistics.median(seconds):.2f}, all {', '.join(f'{s:.2f}' for s in seconds)}")
    baseline = _cpu(["-c", _BASELINE, str(_model(dist))])
    print(f"  baseline (import numpy, onnxruntime; load the model): {baseline:.2f};", end=" ")
    print(f"ratio {statistics.median(seconds) / baseline:.2f}")
    print("where they go, CPU ms (one run, step by step in one process):", flush=True)
    subprocess.run([sys.executable, "-c", STEPS, str(dist)], check=True)


_BASELINE = """
import resource, sys, numpy, onnxruntime
o = onnxruntime.SessionOptions(); o.intra_op_num_threads = 1; o.log_severity_level = 3
onnxruntime.InferenceSession(sys.argv[1], o)
u = resource.getrusage(resource.RUSAGE_SELF); print(u.ru_utime + u.ru_stime)
"""


def _cpu(arguments: list[str]) -> float:
    return float(subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True).stdout)


def _model(dist: Path) -> Path:
    return next(dist.glob("encoders/*/model.onnx"))


if __name__ == "__main__":
    main()
