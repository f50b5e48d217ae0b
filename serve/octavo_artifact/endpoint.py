"""Asking an OpenAI-compatible endpoint for embeddings; the compiler asks for windows, the server for queries.

`POST <url>/embeddings` with `model` and `input`, answered by `data`: a list of `index` and `embedding`. Where the
endpoint is, and in which environment variable its key, is kept beside the encoder's spec and decides no vector.
"""

from __future__ import annotations

import json
import math
import os
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from octavo_artifact.errors import ArtifactError, OctavoError
from octavo_artifact.layout import ENCODER_ENDPOINT
from octavo_artifact.schema import EncoderSpec

PROBE = "The quick brown fox jumps over the lazy dog."
"""The sentence by whose vector other weights behind the same name are noticed."""
PROBE_VALUES = 64
PROBE_DIGITS = 4
PROBE_COSINE = 0.999
"""An endpoint's arithmetic may differ a little from day to day; other weights are far below."""

_MAX_ANSWER = 256 * 2**20
_TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_MAX_PAUSE = 10.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where embeddings are asked for: the content of `endpoint.json`."""

    url: str
    """Base URL, such as `https://host/v1`."""
    key_env: str
    """Name of the environment variable that holds the key; empty when none is sent."""
    send_dimensions: bool
    """Whether the request names the number of dimensions, which not all servers take."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an answer is waited for."""

    timeout: float
    """Seconds of each attempt without a byte."""
    attempts: int


def read_endpoint(directory: Path, fingerprint: str) -> Endpoint:
    """Where the encoder in `directory` is asked. Raises ArtifactError when its file is missing or damaged."""
    label = f"encoders/{fingerprint}/{ENCODER_ENDPOINT}"
    try:
        values = json.loads((directory / ENCODER_ENDPOINT).read_bytes())
        endpoint = Endpoint(**values)
    except OSError as error:
        raise ArtifactError(f"{label}: cannot be read ({error.strerror})") from error
    except (ValueError, TypeError) as error:
        raise ArtifactError(f"{label}: not an endpoint, expected its url, key_env and send_dimensions") from error
    if not is_address(values["url"]) or not isinstance(values["key_env"], str):
        raise ArtifactError(f"{label}: expected a url (http or https, no user, no query) and key_env as text")
    return endpoint


def is_address(url: object) -> bool:
    """Whether `url` may be a base URL: one that holds no secret."""
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
    except ValueError:
        return False
    bare = parts is not None and not parts.query and not parts.fragment and "@" not in parts.netloc
    return parts is not None and bare and parts.scheme in ("http", "https") and bool(parts.hostname)


class EndpointError(OctavoError):
    """The endpoint gave no usable vectors; the message has no address and no key."""


def embed(endpoint: Endpoint, spec: EncoderSpec, texts: Sequence[str], patience: Patience) -> list[list[float]]:
    """The vectors of `texts` in their order, each `spec.dimensions` values of unit length.

    Raises EndpointError, after `patience.attempts` where waiting may help.
    """
    body: dict[str, Any] = {"model": spec.model, "input": list(texts), "encoding_format": "float"}
    if endpoint.send_dimensions:
        body["dimensions"] = spec.dimensions
    answer = _ask(endpoint, spec, json.dumps(body).encode(), patience)
    return _vectors(answer, spec, len(texts))


def probe(endpoint: Endpoint, spec: EncoderSpec, patience: Patience) -> tuple[float, ...]:
    """The first values of the vector of `PROBE`, rounded. Raises EndpointError."""
    (vector,) = embed(endpoint, spec, [PROBE], patience)
    return tuple(round(value, PROBE_DIGITS) for value in vector[:PROBE_VALUES])


def same_weights(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two probes are of the same weights."""
    if len(one) != len(other):
        return False
    lengths = math.sqrt(math.fsum(x * x for x in one) * math.fsum(y * y for y in other))
    return lengths > 0 and math.fsum(x * y for x, y in zip(one, other, strict=True)) / lengths >= PROBE_COSINE


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key, and the texts, to somebody else."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any) -> None:  # noqa: PLR0917
        """Refuse: the redirect is then an error like any other status."""


def _ask(endpoint: Endpoint, spec: EncoderSpec, body: bytes, patience: Patience) -> Mapping[str, Any]:
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if endpoint.key_env:
        key = os.environ.get(endpoint.key_env, "").strip()
        if not key:
            raise EndpointError(f"encoder {spec.model}: the environment variable {endpoint.key_env} holds no key")
        headers["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(f"{endpoint.url.rstrip('/')}/embeddings", body, headers)
    opener = urllib.request.build_opener(_NoRedirect)
    reason = "not asked"
    for attempt in range(1, patience.attempts + 1):
        pause = min(0.5 * 2**attempt, _MAX_PAUSE)
        try:
            with opener.open(request, timeout=patience.timeout) as response:
                return json.loads(response.read(_MAX_ANSWER))
        except urllib.error.HTTPError as error:
            error.close()
            reason = f"the endpoint answered {error.code}"
            if error.code not in _TRANSIENT:
                raise EndpointError(f"encoder {spec.model}: {reason}") from None
            pause = _asked_pause(error.headers.get("Retry-After"), pause)
        except (OSError, HTTPException) as error:  # URLError and time-outs among them
            cause = getattr(error, "reason", error)
            timed_out = isinstance(cause, TimeoutError)
            reason = "the endpoint did not answer in time" if timed_out else "the endpoint cannot be reached"
        except (ValueError, RecursionError):
            raise EndpointError(f"encoder {spec.model}: the endpoint's answer is not JSON") from None
        if attempt < patience.attempts:
            time.sleep(pause)
    tried = f", tried {patience.attempts} times" if patience.attempts > 1 else ""
    raise EndpointError(f"encoder {spec.model}: {reason}{tried}")


def _asked_pause(retry_after: str | None, otherwise: float) -> float:
    """Seconds to wait as the endpoint asks (RFC 9110, the form in seconds), within bounds."""
    return min(float(retry_after), _MAX_PAUSE) if retry_after and retry_after.isdecimal() else otherwise


def _vectors(answer: Mapping[str, Any], spec: EncoderSpec, count: int) -> list[list[float]]:
    try:
        rows = sorted(answer["data"], key=lambda row: row["index"])
        found = [[float(value) for value in row["embedding"]] for row in rows]
        indexes = [row["index"] for row in rows]
    except (KeyError, TypeError, ValueError):
        raise EndpointError(f"encoder {spec.model}: the answer is not a list of embeddings") from None
    if indexes != list(range(count)):
        raise EndpointError(f"encoder {spec.model}: found embeddings {indexes[:5]}, expected one of each of {count}")
    return [_unit(vector, spec) for vector in found]


def _unit(vector: list[float], spec: EncoderSpec) -> list[float]:
    if spec.dimensions and len(vector) != spec.dimensions:
        raise EndpointError(f"encoder {spec.model}: found {len(vector)} dimensions, expected {spec.dimensions}")
    length = math.sqrt(math.fsum(value * value for value in vector))
    if not 0 < length < math.inf:
        raise EndpointError(f"encoder {spec.model}: found a vector of length {length}, expected a finite one above 0")
    return [value / length for value in vector]
