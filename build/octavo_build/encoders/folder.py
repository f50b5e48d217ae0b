"""`path:FOLDER`, a sentence encoder in a folder as sentence-transformers and its ONNX exports lay it out.

Needed are `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json`. Pooling, limit and prefixes are those of
`1_Pooling/config.json`, `sentence_bert_config.json`, `tokenizer_config.json`, `config.json` and
`config_sentence_transformers.json`, where the options do not say otherwise.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from octavo_artifact.errors import ConfigError
from octavo_artifact.ids import sha256_hex
from octavo_artifact.layout import ENCODER_MODEL, ENCODER_TOKENIZER
from octavo_artifact.schema import POOLINGS, EncoderSpec
from octavo_build.encoders.adapter import Adapter, Choice, Places, Prepared

MODELS = (ENCODER_MODEL, f"onnx/{ENCODER_MODEL}")
CONFIGURATIONS = (
    "1_Pooling/config.json",
    "config.json",
    "config_sentence_transformers.json",
    "modules.json",
    "sentence_bert_config.json",
    "tokenizer_config.json",
)
OPTIONS = frozenset({"pooling", "max_tokens", "query_prefix", "passage_prefix"})

_FLAGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls", "pooling_mode_lasttoken": "last"}
_MODULES = frozenset({"Transformer", "Pooling", "Normalize"})
_FEWEST_TOKENS = 16
_MOST_TOKENS = 1_000_000
"""tokenizer_config.json has a number of 30 digits where no limit is known."""


def prepare(choice: Choice, _: Places) -> Prepared:
    """The encoder in the folder that `choice` names, tried out once. Raises ConfigError."""
    return prepare_folder(choice, choice.folder / choice.location)


def prepare_folder(choice: Choice, folder: Path) -> Prepared:
    """As `prepare`, of a folder that `choice` may have had to fetch."""
    from octavo_build.encode import dimensions_of

    model = _model(choice, folder)
    tokenizer = _bytes(choice, folder / ENCODER_TOKENIZER)
    _check_modules(choice, folder)
    prompts = _read(choice, folder, "config_sentence_transformers.json").get("prompts")
    prompts = cast(dict[str, Any], prompts) if isinstance(prompts, dict) else {}
    pooling = choice.options.get("pooling") or _pooling(choice, folder)
    if pooling not in POOLINGS:
        raise ConfigError(f"{choice.shown}: pooling: found {pooling!r}, expected one of {', '.join(POOLINGS)}")
    max_tokens = _max_tokens(choice, folder)
    spec = EncoderSpec(
        name=folder.resolve().name if choice.kind == "path" else choice.location,
        model_sha256=sha256_hex(model),
        tokenizer_sha256=sha256_hex(tokenizer),
        dimensions=dimensions_of(model, tokenizer, max_tokens, choice.shown),
        max_tokens=max_tokens,
        pooling=pooling,
        normalize=True,
        query_prefix=choice.options.get("query_prefix", str(prompts.get("query", ""))),
        passage_prefix=choice.options.get("passage_prefix", str(prompts.get("passage", prompts.get("document", "")))),
    )
    return Prepared(spec, lambda: {ENCODER_MODEL: model, ENCODER_TOKENIZER: tokenizer})


ADAPTER = Adapter(OPTIONS, prepare)


def _model(choice: Choice, folder: Path) -> bytes:
    """The model as one file: weights that lie beside it are taken in."""
    file = next((folder / name for name in MODELS if (folder / name).is_file()), None)
    if file is None:
        raise ConfigError(f"{choice.shown}: no {' or '.join(MODELS)} there")
    model = _bytes(choice, file)
    if {path.name for path in file.parent.glob(f"{ENCODER_MODEL}*")} == {ENCODER_MODEL}:
        return model
    import onnx

    try:
        return onnx.load(str(file)).SerializeToString(deterministic=True)
    except Exception as error:  # onnx, protobuf and the file system each raise their own
        raise ConfigError(f"{choice.shown}: {file.name} and its weights cannot be read as one file") from error


def _check_modules(choice: Choice, folder: Path) -> None:
    """What comes after the model must be what Octavo does itself."""
    modules = _json(choice, folder / "modules.json")
    kinds = [str(module.get("type", "")).rpartition(".")[2] for module in modules or []]
    if other := [kind for kind in kinds if kind not in _MODULES]:
        raise ConfigError(f"{choice.shown}: modules.json: found {other[0]}, expected {', '.join(sorted(_MODULES))}")


def _pooling(choice: Choice, folder: Path) -> str:
    settings = _read(choice, folder, "1_Pooling/config.json")
    found = [settings["pooling_mode"]] if isinstance(settings.get("pooling_mode"), str) else []
    found = found or [name for flag, name in _FLAGS.items() if settings.get(flag) is True]
    unknown = [flag for flag, on in settings.items() if flag.startswith("pooling_mode_") and on is True]
    unknown = [flag for flag in unknown if flag not in _FLAGS]
    if len(found) != 1 or unknown:
        raise ConfigError(
            f"{choice.shown}: 1_Pooling/config.json does not say one pooling of {', '.join(POOLINGS)}; "
            "give it, as ?pooling=mean"
        )
    return str({"lasttoken": "last"}.get(found[0], found[0]))


def _max_tokens(choice: Choice, folder: Path) -> int:
    read = functools.partial(_read, choice, folder)
    found = (
        choice.number("max_tokens"),
        read("sentence_bert_config.json").get("max_seq_length"),
        read("tokenizer_config.json").get("model_max_length"),
        read("config.json").get("max_position_embeddings"),
    )
    limit = next((each for each in found if isinstance(each, int) and each < _MOST_TOKENS), None)
    if limit is None or limit < _FEWEST_TOKENS:
        raise ConfigError(
            f"{choice.shown}: max_tokens: found {limit}, expected {_FEWEST_TOKENS} or more; give it, as ?max_tokens=512"
        )
    return limit


def _read(choice: Choice, folder: Path, name: str) -> Mapping[str, Any]:
    """A configuration; empty when there is none."""
    found = _json(choice, folder / name)
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}


def _json(choice: Choice, file: Path) -> Any:
    if not file.is_file():
        return None
    try:
        return json.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{choice.shown}: {file.name}: not JSON") from error


def _bytes(choice: Choice, file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{choice.shown}: {file.name} cannot be read ({error.strerror})") from error
