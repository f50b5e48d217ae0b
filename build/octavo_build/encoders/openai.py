"""`openai:URL#MODEL`, a model behind an OpenAI-compatible `/embeddings` endpoint.

Such a model has no weights to hash. In their place stands a probe, the vector of a fixed sentence: rounded, it is part
of the spec and so of the fingerprint. An endpoint's arithmetic is not the same to the last bit every day; where dist
has a spec whose probe is near enough, that one is used again, and with it all its vectors.

An endpoint does not tell its tokenizer either: the default encoder's cuts the windows, well below the usual limits.
"""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from pathlib import Path

from octavo_artifact.endpoint import Endpoint, EndpointError, Patience, embed, is_address, probe, same_weights
from octavo_artifact.errors import ArtifactError, ConfigError
from octavo_artifact.ids import DIGEST, canonical_json, sha256_hex
from octavo_artifact.layout import ENCODER_ENDPOINT, ENCODER_TOKENIZER, ENCODERS
from octavo_artifact.manifest import read_encoder
from octavo_artifact.schema import EncoderSpec
from octavo_build.encoders import package
from octavo_build.encoders.adapter import Adapter, Choice, Places, Prepared

PATIENCE = Patience(timeout=60, attempts=4)
MAX_TOKENS = 256
"""Of the default encoder's tokenizer; models behind endpoints take 512 of their own or more."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def prepare(choice: Choice, places: Places) -> Prepared:
    """The endpoint's model, asked for its dimensions and its probe. Raises ConfigError."""
    url, _, model = choice.location.partition("#")
    key_env = choice.options.get("key_env", "")
    if not is_address(url) or not model:
        raise ConfigError("encoder openai: expected openai:URL#MODEL, the URL http or https, without user and query")
    if key_env and not _VARIABLE.fullmatch(key_env):
        raise ConfigError(f"{choice.shown}: key_env: expected the name of an environment variable, never the key")
    dimensions = choice.number("dimensions")
    endpoint = Endpoint(url, key_env, send_dimensions=dimensions is not None)
    tokenizer = package.tokenizer()
    spec = EncoderSpec(
        name=model,
        model_sha256="",
        tokenizer_sha256=sha256_hex(tokenizer),
        dimensions=dimensions or 0,
        max_tokens=choice.number("max_tokens") or MAX_TOKENS,
        pooling="endpoint",
        normalize=True,
        query_prefix=choice.options.get("query_prefix", ""),
        passage_prefix=choice.options.get("passage_prefix", ""),
        model=model,
    )
    try:
        if dimensions is None:
            (vector,) = embed(endpoint, spec, ["one"], PATIENCE)
            spec = replace(spec, dimensions=len(vector))
        spec = _known(replace(spec, probe=probe(endpoint, spec, PATIENCE)), places.dist)
    except EndpointError as error:
        raise ConfigError(str(error)) from error
    files = {ENCODER_TOKENIZER: tokenizer, ENCODER_ENDPOINT: canonical_json(asdict(endpoint))}
    return Prepared(spec, lambda: files)


ADAPTER = Adapter(frozenset({"dimensions", "key_env", "max_tokens", "query_prefix", "passage_prefix"}), prepare)


def _known(spec: EncoderSpec, dist: Path) -> EncoderSpec:
    """The spec of the same encoder in `dist`, the one with the least fingerprint if several; else `spec`."""
    for directory in sorted((dist / ENCODERS).glob("*")):
        if not DIGEST.fullmatch(directory.name):
            continue
        try:
            found = read_encoder(directory, directory.name)
        except ArtifactError:
            continue
        if replace(found, probe=spec.probe) == spec and same_weights(found.probe, spec.probe):
            return found
    return spec
