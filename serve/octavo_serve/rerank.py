"""The optional second opinion on the order: a model that reads the query and a passage together.

It is a cross-encoder in a local folder, or an endpoint that answers `POST rerank`. Both are bounded in passages and in
time, and neither can fail a search: the order then stays as it was, and `rerank` says why.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from octavo_artifact.errors import ConfigError
from octavo_serve.onnx_session import open_session
from octavo_serve.ranking import Ranking
from octavo_serve.settings import RerankerSettings

log = logging.getLogger(__name__)

MAX_TOKENS = 512
"""Of a pair, even where the model takes more: passages are shorter, and the time for a search is short."""

MAX_ANSWER = 4 * 1024 * 1024
"""Bytes of an endpoint's answer; some repeat the passages in it."""


class Reranker(Protocol):
    """Whoever tells how well texts answer a query. Safe to call from several threads."""

    @property
    def pairs(self) -> int:
        """How many texts it is shown for a query, at most."""
        ...

    def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32 [n], higher is better, any scale: of the first n texts, of all unless the time was over.

        Raises TimeoutError when it has none in time, and any other exception when it fails.
        """
        ...


@dataclass(frozen=True, slots=True)
class Reranked:
    """A ranking and what became of its reranking."""

    ranking: Ranking
    degraded: str | None
    """Why the order is the old one, wholly or in part, in words for clients; None when all went well."""


def rerank(reranker: Reranker, query: str, ranking: Ranking, texts: Callable[[list[int]], Sequence[str]]) -> Reranked:
    """Put the head of a ranking into the reranker's order; the tail stays behind it. `texts` gives those of passages.

    A passage takes the score of the place it comes to: scores stay descending, and comparable with those of the tail,
    while a reranker's own are on no known scale. What it scores alike stays in the order in which it was.
    """
    head = ranking.rows[: reranker.pairs]
    if len(head) < 2:
        return Reranked(ranking, None)
    passages = texts(head.tolist())
    try:
        scores = reranker.scores(query, passages)
        if scores.ndim != 1 or len(scores) > len(head) or not np.isfinite(scores).all():
            raise ValueError(f"found scores of shape {scores.shape}, expected {len(head)} finite ones")
    except TimeoutError:
        log.warning("the reranker was late")
        return Reranked(ranking, "not reranked: the reranker was late")
    except Exception as error:  # whatever a native runtime or a stranger's server raises, the search has an order
        log.warning("the reranker failed: %r", error)
        return Reranked(ranking, "not reranked: the reranker failed")
    rows = ranking.rows.copy()
    rows[: len(scores)] = head[np.argsort(-scores, kind="stable")]
    late = f"reranked the first {len(scores)} of {len(head)} passages: the time was over"
    return Reranked(Ranking(rows, ranking.scores), late if len(scores) < len(head) else None)


def open_reranker(settings: RerankerSettings, environment: Mapping[str, str]) -> Reranker:
    """The reranker of a server. Raises ConfigError when its model does not work or its key is missing.

    An endpoint is not asked yet: it may start later than the server.
    """
    seconds = settings.milliseconds / 1000
    if settings.path is not None:
        return CrossEncoder(settings.path, settings.pairs, seconds)
    key = None
    if settings.key_env is not None:
        key = environment.get(settings.key_env, "")
        if not (key.isascii() and key.isprintable() and key.strip() == key != ""):
            raise ConfigError(f"reranker: the variable {settings.key_env} holds no key, expected one line of ASCII")
    return RerankEndpoint(settings.url or "", settings.model, key, settings.pairs, seconds)


class CrossEncoder:
    """An ONNX model for sequence classification: a pair in, one logit out, or two of which the last says yes.

    Pairs run one by one, unpadded: in a batch the scores of a quantized model depend on its neighbours, and the time
    could not be looked at in between.
    """

    def __init__(self, folder: Path, pairs: int, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        """Load `model.onnx`, or `onnx/model.onnx`, and `tokenizer.json`, and try them on a pair.

        `clock` gives seconds that never go back. Raises ConfigError naming what does not work.
        """
        self.pairs = pairs
        self._seconds = seconds
        self._clock = clock
        self._tokenizer = _tokenizer(folder)
        model = next((file for file in (folder / "model.onnx", folder / "onnx/model.onnx") if file.is_file()), None)
        if model is None:
            raise ConfigError(f"reranker: {folder}: no model.onnx and no onnx/model.onnx, expected one of them")
        try:
            self._session = open_session(model)
            self._inputs = {each.name for each in self._session.get_inputs()}
            self._score("query", "text")
        except Exception as error:  # onnxruntime's own exception classes share no base but Exception
            raise ConfigError(f"reranker: {model}: not a cross-encoder that works here ({error})") from error

    def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """The logits of the pairs; at least of the first. When the time is over those that are there are returned."""
        end = self._clock() + self._seconds
        scores: list[float] = []
        for text in texts:
            if scores and self._clock() >= end:
                break
            scores.append(self._score(query, text))
        return np.array(scores, dtype=np.float32)

    def _score(self, query: str, text: str) -> float:
        pair = self._tokenizer.encode(query, text)
        values = {"input_ids": pair.ids, "attention_mask": pair.attention_mask, "token_type_ids": pair.type_ids}
        feed = {name: np.array([ids], dtype=np.int64) for name, ids in values.items() if name in self._inputs}
        logits: NDArray[np.float32] = self._session.run(None, feed)[0]
        if logits.shape not in ((1, 1), (1, 2)):
            raise ValueError(f"found logits of shape {logits.shape}, expected [1, 1] or [1, 2]")
        return float(logits[0, -1])


def _tokenizer(folder: Path) -> Any:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        configuration = folder / "tokenizer_config.json"
        named = json.loads(configuration.read_bytes()) if configuration.is_file() else {}
        # Where the model names no limit of its own this is as large as 1e30.
        limit = min(int(named.get("model_max_length") or MAX_TOKENS), MAX_TOKENS)
        tokenizer.no_padding()
        tokenizer.enable_truncation(limit)
    except Exception as error:  # tokenizers raises plain Exception
        raise ConfigError(f"reranker: {folder}: its tokenizer cannot be read ({error})") from error
    return tokenizer


class RerankEndpoint:
    """A server that answers `POST rerank` as Cohere's and Jina's do, and those of llama.cpp, vLLM and Infinity."""

    def __init__(self, url: str, model: str | None, key: str | None, pairs: int, seconds: float) -> None:
        import httpx2

        self.pairs = pairs
        self._seconds = seconds
        self._model = {} if model is None else {"model": model}
        self._late = httpx2.TimeoutException
        # Redirects are not followed: the key is for this place.
        self._client = httpx2.Client(
            base_url=url,
            headers={} if key is None else {"Authorization": f"Bearer {key}"},
            timeout=seconds,
            follow_redirects=False,
        )

    def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """The relevance of all texts. Raises TimeoutError, ValueError for a wrong answer, and httpx2's exceptions."""
        end = monotonic() + self._seconds
        request = {**self._model, "query": query, "documents": list(texts), "top_n": len(texts)}
        content = bytearray()
        try:
            with self._client.stream("POST", "rerank", json=request) as answer:
                if answer.status_code != 200:
                    raise ValueError(f"found status {answer.status_code}, expected 200")
                for part in answer.iter_bytes():
                    content += part
                    if len(content) > MAX_ANSWER:
                        raise ValueError(f"found an answer of more than {MAX_ANSWER} bytes")
                    if monotonic() >= end:
                        raise TimeoutError  # the client's own limit is for each part
        except self._late as error:
            raise TimeoutError from error
        return _relevance(json.loads(content), len(texts))

    def close(self) -> None:
        """Close the connections that were kept open."""
        self._client.close()


def _relevance(answer: Any, count: int) -> NDArray[np.float32]:
    """float32 [count], by the index of the text, which stands once for each, in any order."""
    try:
        results = [(each["index"], each["relevance_score"]) for each in answer["results"]]
        scores = np.array([score for _, score in sorted(results)], dtype=np.float32)
    except (TypeError, KeyError, ValueError) as error:
        raise ValueError("found no results, expected a list of index and relevance_score") from error
    if sorted(index for index, _ in results) != list(range(count)):
        raise ValueError(f"found {len(results)} results, expected each index below {count} once")
    return scores
