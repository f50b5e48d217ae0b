"""Small sentence encoders: ONNX models in folders, one behind a real endpoint, and a hub that has some."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
from onnx import TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
from onnx.numpy_helper import from_array
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

WORDS = (
    "[PAD] [CLS] [SEP] [UNK] query passage : the a of how do I descale boiler tea kettle water every four minutes "
    "black steeps in boiling clean with acid"
).split()


def sentence_model(dimensions: int, seed: int = 0) -> bytes:
    """A model whose token vectors are rows of a random table: input_ids, attention_mask -> [texts, tokens, dim]."""
    table = np.random.default_rng(seed).standard_normal((len(WORDS), dimensions)).astype(np.float32)
    ids = [make_tensor_value_info(name, TensorProto.INT64, ["n", "t"]) for name in ("input_ids", "attention_mask")]
    graph = make_graph(
        [make_node("Gather", ["table", "input_ids"], ["hidden"], axis=0)],
        "sentence",
        ids,
        [make_tensor_value_info("hidden", TensorProto.FLOAT, ["n", "t", dimensions])],
        [from_array(table, "table")],
    )
    return make_model(graph, ir_version=10, opset_imports=[make_opsetid("", 17)]).SerializeToString(deterministic=True)


def word_tokenizer() -> str:
    """A tokenizer.json of whole words, with [CLS] and [SEP] around them."""
    tokenizer = Tokenizer(WordLevel({word: row for row, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()  # pyright: ignore[reportAttributeAccessIssue] # its setter is not typed
    tokenizer.post_processor = TemplateProcessing(  # pyright: ignore[reportAttributeAccessIssue] # as above
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return tokenizer.to_str()


def model_folder(
    folder: Path, dimensions: int = 8, seed: int = 0, files: Mapping[str, object] = MappingProxyType({})
) -> Path:
    """A folder as sentence-transformers exports it, mean pooling, 128 tokens; `files` replaces some; None omits one."""
    settings: dict[str, object] = {
        "1_Pooling/config.json": {"word_embedding_dimension": dimensions, "pooling_mode_mean_tokens": True},
        "sentence_bert_config.json": {"max_seq_length": 128},
        **files,
    }
    (folder / "onnx").mkdir(parents=True)
    (folder / "onnx/model.onnx").write_bytes(sentence_model(dimensions, seed))
    (folder / "tokenizer.json").write_text(word_tokenizer())
    for name, content in settings.items():
        if content is not None:
            file = folder / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(json.dumps(content))
    return folder


@dataclass(slots=True)
class FakeEndpoint:
    """What a test tells the endpoint to do, and what it was asked."""

    url: str = ""
    dimensions: int = 12
    weights: str = "first"
    noise: float = 0.0
    """Added to every value, of vectors whose values are about 3."""
    statuses: list[int] = field(default_factory=list[int])
    """Answers of the next requests that are not 200."""
    down: bool = False
    key: str | None = None
    """What must be presented."""
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def vector(self, text: str) -> list[float]:
        """A vector of its own for each text, the nearer the more words are shared."""
        total = np.zeros(self.dimensions)
        for word in text.lower().split():
            seed = hashlib.sha256(f"{self.weights} {word}".encode()).digest()[:4]
            total += np.random.default_rng(int.from_bytes(seed)).standard_normal(self.dimensions)
        return [3 * value + self.noise for value in total.tolist()]  # not of unit length: that is for the client


@contextmanager
def endpoint() -> Generator[FakeEndpoint]:
    """An OpenAI-compatible server of embeddings on a free port."""
    fake = FakeEndpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            fake.requests.append({"path": self.path, **body})
            wanted = f"Bearer {fake.key}" if fake.key else None
            status = 503 if fake.down else fake.statuses.pop(0) if fake.statuses else 200
            if self.headers.get("Authorization") != wanted:
                status = 401
            rows = [{"index": n, "embedding": fake.vector(text)} for n, text in enumerate(body["input"])]
            answer = json.dumps({"data": rows[::-1]} if status == 200 else {"error": "no"}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            if status in (301, 302, 307):
                self.send_header("Location", f"{fake.url}/elsewhere")
            if status == 429:
                self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as http.server calls it
            pass

    with _running(Handler) as address:
        fake.url = f"{address}/v1"
        yield fake


@contextmanager
def hub(repository: str, revision: str, files: Mapping[str, bytes]) -> Generator[tuple[str, list[str]]]:
    """A model hub with one repository at one commit: its address, and the files that were fetched from it."""
    fetched: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            prefix = f"/{repository}/resolve/{revision}/"
            if path == f"/api/models/{repository}/tree/{revision}":
                listed = [{"type": "file", "path": name, "size": len(files[name]), "oid": "0" * 40} for name in files]
                self._answer(json.dumps(listed).encode(), {"Content-Type": "application/json"})
            elif path.startswith(prefix) and (name := path.removeprefix(prefix)) in files:
                if self.command == "GET":
                    fetched.append(name)
                etag = f'"{hashlib.sha256(files[name]).hexdigest()}"'
                self._answer(files[name], {"ETag": etag, "X-Repo-Commit": revision})
            else:
                self.send_response(404)
                self.send_header("Content-Length", "0")
                self.end_headers()

        do_HEAD = do_GET  # noqa: N815  # as http.server calls it

        def _answer(self, body: bytes, headers: Mapping[str, str]) -> None:
            self.send_response(200)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as http.server calls it
            pass

    with _running(Handler) as address:
        yield address, fetched


@contextmanager
def _running(handler: type[BaseHTTPRequestHandler]) -> Generator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
