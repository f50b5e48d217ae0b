from __future__ import annotations

import json
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from time import sleep
from typing import Any
from urllib.request import urlopen

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor, make_tensor_value_info
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from octavo_artifact.errors import ConfigError
from octavo_serve.catalog import open_catalog
from octavo_serve.ranking import Ranking
from octavo_serve.requests import SearchRequest
from octavo_serve.rerank import CrossEncoder, Reranked, RerankEndpoint, open_reranker, rerank
from octavo_serve.search import Operator
from octavo_serve.settings import RerankerSettings
from running import octavo, serving

WEIGHTS = {"[CLS]": 0, "[SEP]": 0, "[UNK]": 0, "best": 1, "worst": -1, "gold": 3, "silver": 2, "tin": 1}
QUERY = "best metal"
TEXTS = ["some tin", "some gold", "some silver"]
SECRET = "s3cret-value"


def cross_encoder(folder: Path, *, types: bool = True, classes: int = 1, name: str = "model.onnx") -> Path:
    """A model that scores a pair by the weights of its words: those of the query times those of the text."""
    tokenizer = Tokenizer(models.WordLevel({word: row for row, word in enumerate(WEIGHTS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()  # type: ignore[assignment]  # typed as read-only
    tokenizer.post_processor = processors.TemplateProcessing(  # type: ignore[assignment]
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 0), ("[SEP]", 1)]
    )
    tokenizer.enable_padding(length=64)
    tokenizer.enable_truncation(4)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))

    inputs = ["input_ids", "attention_mask", *(["token_type_ids"] if types else [])]
    weights = make_tensor("weights", TensorProto.FLOAT, [len(WEIGHTS)], [float(weight) for weight in WEIGHTS.values()])
    nodes = [
        make_node("Gather", ["weights", "input_ids"], ["each"]),
        make_node("ReduceSum", ["each", "axis"], ["sum"], keepdims=1),
        make_node("Concat", ["score"] * classes, ["logits"], axis=1),
    ]
    if types:
        nodes[2:2] = [
            make_node("Cast", ["token_type_ids"], ["is_text"], to=TensorProto.FLOAT),
            make_node("Mul", ["each", "is_text"], ["each_of_text"]),
            make_node("ReduceSum", ["each_of_text", "axis"], ["text"], keepdims=1),
            make_node("Sub", ["sum", "text"], ["query"]),
            make_node("Mul", ["query", "text"], ["score"]),
        ]
    else:
        nodes[2:2] = [make_node("Identity", ["sum"], ["score"])]
    if classes == 2:
        nodes[-1:] = [make_node("Neg", ["score"], ["no"]), make_node("Concat", ["no", "score"], ["logits"], axis=1)]
    graph = make_graph(
        nodes,
        "cross-encoder",
        [make_tensor_value_info(each, TensorProto.INT64, ["batch", "sequence"]) for each in inputs],
        [make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", classes])],
        [weights, make_tensor("axis", TensorProto.INT64, [1], [1])],
    )
    onnx.save(make_model(graph, opset_imports=[make_opsetid("", 17)], ir_version=10), str(folder / name))
    return folder


def ranking(count: int) -> Ranking:
    """`count` passages in rows that fall, with scores that fall from 1."""
    scores = np.linspace(1, 0.1, count, dtype=np.float32)
    return Ranking(np.arange(10 * count, 0, -10, dtype=np.int64), scores)


@dataclass(slots=True)
class Scripted:
    """A reranker that answers what the test says."""

    answer: Callable[[], Sequence[float]]
    pairs: int = 20
    asked: list[tuple[str, list[str]]] = field(default_factory=list[tuple[str, list[str]]])

    def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked.append((query, list(texts)))
        return np.array(self.answer(), dtype=np.float32)


def names(rows: list[int]) -> list[str]:
    return [f"passage {row}" for row in rows]


# the stage


def test_the_head_takes_the_order_of_the_reranker_and_the_tail_stays():
    before = ranking(5)
    reranker = Scripted(lambda: [-7, 100, 3], pairs=3)
    after = rerank(reranker, "q", before, names)
    assert after.ranking.rows.tolist() == [40, 30, 50, 20, 10]
    assert reranker.asked == [("q", ["passage 50", "passage 40", "passage 30"])]
    assert after.degraded is None
    assert before.rows.tolist() == [50, 40, 30, 20, 10]


def test_scores_belong_to_places_so_they_fall_and_are_comparable_with_the_tail():
    before = ranking(5)
    after = rerank(Scripted(lambda: [-7, 100, 3], pairs=3), "q", before, names).ranking
    assert after.scores.tolist() == before.scores.tolist()


def test_what_is_scored_alike_stays_in_its_order():
    after = rerank(Scripted(lambda: [1, 2, 1, 2]), "q", ranking(4), names)
    assert after.ranking.rows.tolist() == [30, 10, 40, 20]


def test_scores_of_the_first_texts_only_order_those_and_the_answer_says_so():
    after = rerank(Scripted(lambda: [1, 2, 3]), "q", ranking(5), names)
    assert after.ranking.rows.tolist() == [30, 40, 50, 20, 10]
    assert after.degraded == "reranked the first 3 of 5 passages: the time was over"


@pytest.mark.parametrize("count", [0, 1])
def test_where_there_is_nothing_to_order_nobody_is_asked(count: int):
    reranker = Scripted(lambda: [])
    before = ranking(count)
    assert rerank(reranker, "q", before, names) == Reranked(before, None)
    assert reranker.asked == []


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param([1, float("nan"), 3], id="not a number"),
        pytest.param([1, float("inf"), 3], id="infinite"),
        pytest.param([1, 2, 3, 4], id="too many"),
        pytest.param([[1], [2], [3]], id="a column"),
    ],
)
def test_wrong_scores_leave_the_order_and_the_answer_says_so(answer: Any):
    before = ranking(3)
    assert rerank(Scripted(lambda: answer), "q", before, names) == Reranked(before, "not reranked: the reranker failed")


def test_an_exception_leaves_the_order_and_tells_the_log_what_it_was(caplog: pytest.LogCaptureFixture):
    def fail() -> Sequence[float]:
        raise OSError("no such socket")

    before = ranking(3)
    assert rerank(Scripted(fail), "q", before, names) == Reranked(before, "not reranked: the reranker failed")
    assert "no such socket" in caplog.text


# a model in a folder


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        pytest.param("model.onnx", 1, id="one logit"),
        pytest.param("model.onnx", 2, id="two logits"),
        pytest.param("onnx/model.onnx", 1, id="folder of its own"),
    ],
)
def test_a_cross_encoder_reads_query_and_text_together(tmp_path: Path, name: str, classes: int):
    encoder = CrossEncoder(cross_encoder(tmp_path, name=name, classes=classes), 20, 60)
    assert encoder.scores("best", TEXTS).tolist() == [1, 3, 2]
    assert encoder.scores("worst", TEXTS).tolist() == [-1, -3, -2]
    assert encoder.scores("best", TEXTS).dtype == np.float32


def test_a_graph_without_token_types_is_not_given_any(tmp_path: Path):
    encoder = CrossEncoder(cross_encoder(tmp_path, types=False), 20, 60)
    assert encoder.scores("best", TEXTS).tolist() == [2, 4, 3]


def test_the_limits_of_the_tokenizer_file_do_not_cut_a_pair(tmp_path: Path):
    encoder = CrossEncoder(cross_encoder(tmp_path), 20, 60)
    assert encoder.scores("best", ["some " * 100 + "gold"]).tolist() == [3]


def test_a_pair_is_cut_at_the_limit_of_the_model(tmp_path: Path):
    cross_encoder(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"model_max_length": 8}')
    encoder = CrossEncoder(tmp_path, 20, 60)
    assert encoder.scores("best", ["a b c gold", "a b c d gold"]).tolist() == [3, 0]


@pytest.mark.parametrize("limit", ["1000000000000000019884624838656", "1e30", "null"])
def test_a_model_without_a_limit_is_given_512_tokens(tmp_path: Path, limit: str):
    cross_encoder(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(f'{{"model_max_length": {limit}}}')
    encoder = CrossEncoder(tmp_path, 20, 60)
    # of 512 tokens the query takes one, and [CLS] and [SEP] three
    assert encoder.scores("best", ["a " * 507 + "gold", "a " * 508 + "gold"]).tolist() == [3, 0]


def test_a_cross_encoder_stops_when_the_time_is_over_but_scores_one_pair(tmp_path: Path):
    folder = cross_encoder(tmp_path)
    ticks = iter([0.0, 0.4, 0.5])
    assert CrossEncoder(folder, 20, 0.5, lambda: next(ticks)).scores("best", TEXTS).tolist() == [1, 3]
    late = iter([0.0, 9.0])
    assert CrossEncoder(folder, 20, 0.5, lambda: next(late)).scores("best", TEXTS).tolist() == [1]


def test_threads_that_ask_at_once_get_the_scores_of_their_own_texts(tmp_path: Path):
    encoder = CrossEncoder(cross_encoder(tmp_path), 20, 60)
    asked = [("best", TEXTS), ("worst", TEXTS[::-1]), ("best", TEXTS[1:])] * 20
    alone = [encoder.scores(query, texts).tolist() for query, texts in asked]
    with ThreadPoolExecutor(8) as pool:
        together = [pool.submit(encoder.scores, query, texts) for query, texts in asked]
    assert [scores.result().tolist() for scores in together] == alone


def _no_model(folder: Path) -> None:
    (folder / "model.onnx").unlink()


def _no_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def _other_bytes(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(b"no model")


def _three_classes(folder: Path) -> None:
    cross_encoder(folder, classes=3)


def _wrong_limit(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text("[]")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        pytest.param(_no_model, "no model.onnx and no onnx/model.onnx", id="no model"),
        pytest.param(_no_tokenizer, "its tokenizer cannot be read", id="no tokenizer"),
        pytest.param(_wrong_limit, "its tokenizer cannot be read", id="limit"),
        pytest.param(_other_bytes, "not a cross-encoder that works here", id="other bytes"),
        pytest.param(_three_classes, r"found logits of shape \(1, 3\)", id="three classes"),
    ],
)
def test_a_folder_that_is_no_cross_encoder_is_refused_when_it_is_opened(
    tmp_path: Path, spoil: Callable[[Path], None], message: str
):
    spoil(cross_encoder(tmp_path))
    with pytest.raises(ConfigError, match=message):
        open_reranker(RerankerSettings(path=tmp_path), {})


# an endpoint


@dataclass(slots=True)
class Endpoint:
    """A server of one answer, and what it was asked."""

    url: str
    asked: list[tuple[str, Mapping[str, str], Any]] = field(default_factory=list[Any])


@contextmanager
def endpoint(answer: Callable[[Any], tuple[int, bytes]], pause: float = 0) -> Generator[Endpoint]:
    """A real server whose `answer` gives status and body for the JSON that came; `pause` seconds before each byte."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found.asked.append((self.path, dict(self.headers), asked))
            status, body = answer(asked)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Location", "/v1/elsewhere")
            self.end_headers()
            with suppress(OSError):  # the client has gone
                for part in [body[at : at + 1] for at in range(len(body))] if pause else [body]:
                    sleep(pause)
                    self.wfile.write(part)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Endpoint(f"http://127.0.0.1:{server.server_port}/v1")
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def client(url: str, *, key: str | None = None, model: str | None = None, seconds: float = 30) -> Generator[Any]:
    reranker = RerankEndpoint(url, model, key, 20, seconds)
    try:
        yield reranker
    finally:
        reranker.close()


def by_length(asked: Any) -> tuple[int, bytes]:
    """Longer texts are more relevant; best first, with what some servers add."""
    by_rank = sorted((-len(text), index, text) for index, text in enumerate(asked["documents"]))
    results = [{"index": index, "relevance_score": -length / 100, "document": text} for length, index, text in by_rank]
    return 200, json.dumps({"model": "m", "results": results, "usage": {"total_tokens": 9}}).encode()


def test_an_endpoint_is_asked_for_all_texts_and_its_results_are_put_back_in_their_order():
    with endpoint(by_length) as served, client(f"{served.url}/", model="m", key=SECRET) as reranker:
        scores = reranker.scores(QUERY, TEXTS)
    assert scores.tolist() == [np.float32(len(text) / 100) for text in TEXTS]
    path, headers, asked = served.asked[0]
    assert path == "/v1/rerank"
    assert asked == {"model": "m", "query": QUERY, "documents": TEXTS, "top_n": 3}
    assert headers["Authorization"] == f"Bearer {SECRET}"


def test_without_a_model_and_a_key_none_are_sent():
    with endpoint(by_length) as served, client(served.url) as reranker:
        reranker.scores(QUERY, TEXTS)
    _, headers, asked = served.asked[0]
    assert "model" not in asked
    assert "Authorization" not in headers


def test_threads_share_an_endpoint():
    with endpoint(by_length) as served, client(served.url) as reranker, ThreadPoolExecutor(8) as pool:
        asked = [["a" * (1 + each), "b" * 30] for each in range(40)]
        answers = [pool.submit(reranker.scores, QUERY, texts) for texts in asked]
    assert [scores.result().tolist() for scores in answers] == [
        [np.float32(len(text) / 100) for text in texts] for texts in asked
    ]


def test_a_slow_endpoint_is_not_waited_for():
    release = Event()

    def slow(asked: Any) -> tuple[int, bytes]:
        assert release.wait(30)
        return by_length(asked)

    before = ranking(3)
    with endpoint(slow) as served, client(served.url, seconds=0.05) as reranker:
        try:
            after = rerank(reranker, QUERY, before, names)
        finally:
            release.set()
    assert after == Reranked(before, "not reranked: the reranker was late")


def test_an_endpoint_that_keeps_sending_is_not_waited_for():
    before = ranking(3)
    with endpoint(by_length, pause=0.01) as served, client(served.url, seconds=0.5) as reranker:
        after = rerank(reranker, QUERY, before, names)
    assert after == Reranked(before, "not reranked: the reranker was late")


def _answered(results: Any) -> bytes:
    return json.dumps({"results": results}).encode()


_SCORED = [{"index": index, "relevance_score": 0.5} for index in range(3)]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        pytest.param(500, _answered(_SCORED), id="error"),
        pytest.param(307, b"", id="redirect"),
        pytest.param(200, b"<html>", id="no JSON"),
        pytest.param(200, b"[" * 100_000, id="deep"),
        pytest.param(200, b"[1]", id="a list"),
        pytest.param(200, b'{"results": 1}', id="no list"),
        pytest.param(200, _answered(["a", "b", "c"]), id="results of text"),
        pytest.param(200, _answered(_SCORED[:2]), id="one is missing"),
        pytest.param(200, _answered([*_SCORED, _SCORED[0]]), id="one stands twice"),
        pytest.param(200, _answered([*_SCORED[:2], {"index": 3, "relevance_score": 1}]), id="index too large"),
        pytest.param(200, _answered([*_SCORED[:2], {"index": "2", "relevance_score": 1}]), id="index of text"),
        pytest.param(200, _answered([*_SCORED[:2], {"index": 2, "relevance_score": None}]), id="no score"),
        pytest.param(200, _answered([*_SCORED[:2], {"index": 2, "relevance_score": float("nan")}]), id="NaN"),
        pytest.param(200, _answered([*_SCORED[:2], {"index": 2, "relevance_score": 10**400}]), id="huge"),
        pytest.param(200, _answered(_SCORED) + b" " * (4 << 20), id="too long"),
    ],
)
def test_a_wrong_answer_leaves_the_order(status: int, body: bytes, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    before = ranking(3)
    with endpoint(lambda _: (status, body)) as served, client(served.url, key=SECRET) as reranker:
        after = rerank(reranker, QUERY, before, names)
    assert after == Reranked(before, "not reranked: the reranker failed")
    assert len(served.asked) == 1
    assert SECRET not in caplog.text


def test_nobody_at_the_address_leaves_the_order(caplog: pytest.LogCaptureFixture):
    with endpoint(by_length) as served:
        pass
    before = ranking(3)
    with client(served.url, key=SECRET) as reranker:
        assert rerank(reranker, QUERY, before, names) == Reranked(before, "not reranked: the reranker failed")
    assert SECRET not in caplog.text


def test_the_key_is_in_the_variable_that_is_named():
    with endpoint(by_length) as served:
        reranker = open_reranker(RerankerSettings(url=served.url, key_env="RERANK_KEY"), {"RERANK_KEY": SECRET})
        assert isinstance(reranker, RerankEndpoint)
        reranker.scores(QUERY, TEXTS)
        reranker.close()
    assert served.asked[0][1]["Authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize("value", [None, "", f"{SECRET}\n", f" {SECRET}", f"{SECRET}é"])
def test_a_variable_without_a_key_is_refused_and_not_repeated(value: str | None):
    environment = {} if value is None else {"RERANK_KEY": value}
    with pytest.raises(ConfigError, match="the variable RERANK_KEY holds no key") as error:
        open_reranker(RerankerSettings(url="http://127.0.0.1:9", key_env="RERANK_KEY"), environment)
    assert SECRET not in str(error.value)


# the catalog


def test_all_packs_of_a_catalog_take_the_reranker_and_search(built: Path):
    reranker = Scripted(lambda: [])
    pack = open_catalog(built, operator=Operator(reranker=reranker)).choose("tiny")
    result = pack.search(SearchRequest(query="descale"))
    assert result["results"]
    assert result["missing"] == ["reranker"]


def test_the_server_does_not_start_with_a_reranker_that_does_not_work(built: Path, tmp_path: Path):
    (tmp_path / "octavo.yaml").write_text("reranker: {path: models/none}\n")
    result = octavo("serve", built, "--config", tmp_path / "octavo.yaml")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"octavo: reranker: {tmp_path / 'models/none'}: its tokenizer cannot be read")


def test_the_server_starts_with_one_that_works(built: Path, tmp_path: Path):
    cross_encoder(tmp_path / "models")
    (tmp_path / "octavo.yaml").write_text("reranker: {path: models}\n")
    with (
        serving(built, "--config", str(tmp_path / "octavo.yaml")) as server,
        urlopen(f"{server.address}/healthz") as answer,
    ):
        assert answer.status == 200
