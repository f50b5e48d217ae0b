"""Receipts: what an answer rests on, in enough words to make its prompt again and to prove what it cites."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from octavo_artifact import __version__
from octavo_artifact.errors import ArtifactError, RequestError
from octavo_artifact.ids import DIGEST, SLUG, sha256_hex
from octavo_artifact.manifest import read_manifest
from octavo_serve.answering.model import Sampling
from octavo_serve.answering.prompt import TEMPLATE_SHA256, Prompt, Shown, visible, written
from octavo_serve.answering.results import Receipt, ReceiptPassage, ReceiptSampling
from octavo_serve.freshness import freshness
from octavo_serve.introduction import authority_of
from octavo_serve.reconstruct import document_of, index_of, stored_passages
from octavo_serve.results import Authority, Hit
from octavo_serve.stages.expand import joined

FORMAT = 1


def receipt_of(prompt: Prompt, as_of: date, sampling: Sampling, model: str | None, answer: str) -> Receipt:
    """The receipt of an answer that was written to `prompt`."""
    return {
        "format": FORMAT,
        "octavo": __version__,
        "question": prompt.question,
        "as_of": as_of.isoformat(),
        "passages": [
            {
                "pack": shown.hit["pack"],
                "digest": shown.hit["digest"],
                "source_file": shown.hit["source_file"],
                "fragment_id": shown.hit["fragment_id"],
                "byte_range": shown.hit["byte_range"],
                "shown": len(shown.text),
            }
            for shown in prompt.sources
        ],
        "template_sha256": TEMPLATE_SHA256,
        "fence_seed": prompt.seed,
        "model": model,
        "sampling": cast(ReceiptSampling, asdict(sampling)),
        "prompt_sha256": prompt.sha256,
        "answer_sha256": sha256_hex(answer.encode()),
    }


class Release:
    """What a release says, as far as it is asked; all of it is what its digest vouches for."""

    def __init__(self, artifact: Path) -> None:
        """`artifact` is the folder of a release, dist/SLUG/DIGEST. Raises ArtifactError."""
        self._artifact = artifact
        self._manifest = read_manifest(artifact)
        self._index = index_of(artifact, self._manifest)
        self._raw: dict[str, bytes] = {}

    def raw(self, source_file: str) -> bytes:
        """The bytes of a document as they were in its file. Raises ArtifactError."""
        if source_file not in self._raw:
            self._raw[source_file] = document_of(self._artifact, self._manifest, source_file)[0]
        return self._raw[source_file]

    def authority(self) -> Authority | None:
        """What it says of its own bounds."""
        return authority_of(self._manifest.pack["metadata"])

    def hit(self, passage: ReceiptPassage, as_of: date) -> Hit:
        """The passage as a search on that day finds it, but for its score. Raises ArtifactError."""
        source, (start, end) = passage["source_file"], passage["byte_range"]
        parts = stored_passages(self._index, source, start, end)
        hit = joined(parts, lambda: self.raw(source))
        if hit["fragment_id"] != passage["fragment_id"]:
            raise ArtifactError(
                f"{source}: bytes {start} to {end} are {hit['fragment_id']}, not what the receipt names"
            )
        aged = freshness(hit["verified_at"], hit["refresh"], hit["expires_at"], as_of)
        named = {"pack": self._manifest.slug, "digest": self._manifest.digest}
        return cast(Hit, {**hit, **named, **cast(Mapping[str, Any], aged)})


Releases = Callable[[str, str], Release]
"""The release of a slug and a digest; raises ArtifactError where there is none."""


def releases_in(dist: Path) -> Releases:
    """The releases of a dist, each opened once."""

    @cache
    def find(slug: str, digest: str) -> Release:
        artifact = dist / slug / digest
        if not (SLUG.fullmatch(slug) and DIGEST.fullmatch(digest) and artifact.is_dir()):
            raise ArtifactError(f"{slug}@{digest[:12]}: not in this dist; build it, or bring it here as a bundle")
        return Release(artifact)

    return find


def parse_receipt(value: object) -> Receipt:
    """A receipt of this format. Raises RequestError for anything else, ArtifactError for one of another version."""
    found: Mapping[str, Any] = cast(Mapping[str, Any], value) if isinstance(value, Mapping) else {}
    maker = found.get("octavo")
    if isinstance(found.get("format"), int) and found["format"] != FORMAT:
        raise ArtifactError(
            f"receipt: format {found['format']}, of Octavo {maker}; this is Octavo {__version__}, which reads {FORMAT}"
        )
    try:
        receipt = TypeAdapter(Receipt).validate_python(value, strict=True)
        if any(len(passage["byte_range"]) != 2 for passage in receipt["passages"]):
            raise RequestError("receipt", "byte_range, expected start and end")
        date.fromisoformat(receipt["as_of"])
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "expected an object"
        raise RequestError("receipt", f"{place}: {first['msg']}") from error
    except ValueError as error:
        raise RequestError("receipt", "as_of, expected a day as YYYY-MM-DD") from error
    return receipt


def rebuild(receipt: Receipt, releases: Releases) -> Prompt:
    """The prompt of a receipt, made again from the releases that it names.

    Raises ArtifactError for the first link that does not hold: another template, no such release, no such passage,
    other bytes in the end.
    """
    if receipt["template_sha256"] != TEMPLATE_SHA256:
        raise ArtifactError(
            f"prompt: written by the template {receipt['template_sha256'][:12]} of Octavo {receipt['octavo']}; this is "
            f"Octavo {__version__} with {TEMPLATE_SHA256[:12]}, so verify it with that one"
        )
    as_of = date.fromisoformat(receipt["as_of"])
    shown: list[Shown] = []
    authorities: dict[str, Authority] = {}
    for number, passage in enumerate(receipt["passages"], 1):
        release = releases(passage["pack"], passage["digest"])
        hit = release.hit(passage, as_of)
        text = visible(hit["text"])
        if not 0 < passage["shown"] <= len(text):
            raise ArtifactError(f"passage {number}: {passage['shown']} characters shown, it has {len(text)}")
        shown.append(Shown(hit, text[: passage["shown"]]))
        if authority := release.authority():
            authorities[passage["pack"]] = authority
    prompt = written(receipt["question"], shown, authorities, receipt["fence_seed"])
    if prompt.sha256 != receipt["prompt_sha256"]:
        raise ArtifactError(
            f"prompt: made again it has sha256 {prompt.sha256[:12]}, the receipt says {receipt['prompt_sha256'][:12]}: "
            "its question, day, seed, passages or what it shows of them are not those that were asked with"
        )
    return prompt
