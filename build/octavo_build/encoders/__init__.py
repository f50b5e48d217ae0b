"""Encoders: which one a pack's vectors are made with, and its way into `dist/encoders/<fingerprint>/`.

One adapter a kind, each with one signature (`adapter`), in one registry. Whatever they read or ask, the result is a
folder that a server loads by its fingerprint alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from octavo_artifact import placing
from octavo_artifact.errors import ArtifactError, ConfigError
from octavo_artifact.ids import canonical_json
from octavo_artifact.layout import ENCODER_ENDPOINT, ENCODER_SPEC, ENCODERS
from octavo_artifact.manifest import fingerprint, read_encoder
from octavo_build.encoders import folder, hub, openai, package
from octavo_build.encoders.adapter import Adapter, Places, Prepared, parse

ADAPTERS: Mapping[str, Adapter] = {
    "package": package.ADAPTER,
    "path": folder.ADAPTER,
    "openai": openai.ADAPTER,
    "hub": hub.ADAPTER,
}
"""By the kind that an encoder's text begins with."""

DEFAULT = "package:"

DEFAULT_ENCODER = package.DEFAULT_ENCODER

LANGUAGES: Mapping[str, tuple[str, ...]] = {fingerprint(DEFAULT_ENCODER): ("en",)}
"""The languages that an encoder was trained for, by its fingerprint, where they are known."""


def prepare(text: str, relative_to: Path, places: Places) -> Prepared:
    """The encoder that `text` names; a relative path in it is one from `relative_to`.

    Raises ConfigError naming what is wrong.
    """
    choice = parse(text, relative_to)
    adapter = ADAPTERS.get(choice.kind)
    if adapter is None:
        raise ConfigError(f"encoder: kind {choice.kind!r}, expected one of {', '.join(ADAPTERS)}")
    for name in choice.options:
        if name not in adapter.options:
            known = ", ".join(sorted(adapter.options)) or "none"
            raise ConfigError(f"{choice.shown}: option {name!r}, expected one of: {known}")
    return adapter.prepare(choice, places)


def wanted_encoder() -> str:
    """Fingerprint of the encoder that is used where nobody chose one."""
    return fingerprint(DEFAULT_ENCODER)


def install_encoder(dist: Path, encoder: Prepared = package.PREPARED) -> str:
    """Put an encoder into `dist/encoders/<fingerprint>/`, unless it is there undamaged; its fingerprint.

    Raises ConfigError when its files cannot be had.
    """
    name = fingerprint(encoder.spec)
    target = dist / ENCODERS / name
    with placing.exclusive(dist / ENCODERS):
        if not _is_installed(encoder, target):
            placing.install({**encoder.files(), ENCODER_SPEC: canonical_json(asdict(encoder.spec))}, target)
    return name


def _is_installed(encoder: Prepared, target: Path) -> bool:
    try:
        read_encoder(target, target.name)
        # where it is asked decides no vector, and so may have changed under the same fingerprint
        return not encoder.spec.model or encoder.files()[ENCODER_ENDPOINT] == (target / ENCODER_ENDPOINT).read_bytes()
    except (ArtifactError, OSError):
        return False
