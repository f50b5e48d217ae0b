"""`octavo verify`, `verify-hit`, `verify-answer`, `inspect`: what an artifact is, and whether all is as it says."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from octavo_artifact.command import Command
from octavo_artifact.errors import ArtifactError, ConfigError
from octavo_artifact.ids import DIGEST
from octavo_artifact.layout import ENCODERS, MANIFEST, POINTER
from octavo_serve.commands.arguments import dist_argument, json_argument, styles

Outcome = dict[str, Any]
"""What was checked, by name; `error` is None when it is right."""


def _artifact(parser: ArgumentParser) -> None:
    parser.add_argument(
        "artifact", type=Path, metavar="ARTIFACT", help="dist/SLUG/DIGEST, dist/SLUG for the current one, dist for all"
    )
    json_argument(parser)


def _named(path: Path) -> list[Path]:
    """What a path means: an artifact, a pack's folder, or each pack's folder of a dist. Raises ConfigError."""
    from octavo_artifact.manifest import pack_directories

    if (path / MANIFEST).exists() or (path / POINTER).exists() or (path.parent / POINTER).exists():
        return [path.resolve()]
    found = pack_directories(path) if path.is_dir() else []
    if not found:
        raise ConfigError(f"{path}: no artifact; expected dist/SLUG/DIGEST, dist/SLUG or dist")
    return found


def _current(path: Path) -> Path:
    """The artifact itself, or the current one of a pack's folder. Raises ArtifactError."""
    from octavo_artifact.manifest import read_pointer

    return path if _is_artifact(path) else path / read_pointer(path)


def _is_artifact(path: Path) -> bool:
    """Whether a path means an artifact, be it missing, and not the folder of a pack, be its pointer missing."""
    return DIGEST.fullmatch(path.name) is not None or (path / MANIFEST).exists()


def _verify(arguments: Namespace) -> int:
    def said(outcome: Outcome) -> str:
        return f"{outcome['slug']} {outcome['digest'][:12]}  {outcome['files']} files and the encoder verified"

    outcomes = [_check(path) for path in _named(arguments.artifact)]
    return _told("artifacts", outcomes, said, as_json=arguments.json)


def _told(name: str, outcomes: Sequence[Outcome], said: Callable[[Outcome], str], *, as_json: bool) -> int:
    """Print the outcomes, as JSON under `name` or a line each, as `said` of those that are right; the exit code."""
    if as_json:
        print(json.dumps({name: outcomes}, ensure_ascii=False))
    else:
        for outcome in outcomes:
            if outcome["error"]:
                print(f"octavo: {outcome['error']}", file=sys.stderr)
            else:
                print(said(outcome))
    return 1 if any(outcome["error"] for outcome in outcomes) else 0


def _check(path: Path) -> Outcome:
    from octavo_artifact.manifest import check_files, fingerprint, read_encoder, read_manifest

    slug = path.parent.name if _is_artifact(path) else path.name
    outcome: Outcome = {"slug": slug, "digest": None, "files": 0, "error": None}
    try:
        artifact = _current(path)
        outcome["digest"] = artifact.name
        manifest = read_manifest(artifact)
        check_files(artifact, manifest)
        name = fingerprint(manifest.encoder)
        read_encoder(artifact.parent.parent / ENCODERS / name, name)
        outcome["files"] = len(manifest.files) + 1
    except ArtifactError as error:
        outcome["error"] = str(error)
    return outcome


def _verify_hit_arguments(parser: ArgumentParser) -> None:
    dist_argument(parser)
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="a hit or an answer as JSON (stdin)")
    json_argument(parser)


def _verify_hit(arguments: Namespace) -> int:
    from octavo_artifact.errors import OctavoError
    from octavo_serve.reconstruct import prove

    outcomes: list[Outcome] = []
    for hit in _hits(arguments.file):
        outcome: Outcome = {"fragment_id": hit.get("fragment_id"), "release": None, "error": None}
        try:
            outcome["release"] = prove(arguments.dist, hit)
        except OctavoError as error:
            outcome["error"] = str(error)
        outcomes.append(outcome)

    def said(outcome: Outcome) -> str:
        return f"{outcome['fragment_id']} is what {outcome['release']} says"

    return _told("hits", outcomes, said, as_json=arguments.json)


def _hits(file: Path | None) -> list[dict[str, Any]]:
    """The hits in a file or on stdin: one, a list of them, or an answer. Raises ConfigError."""
    name, data = _given(file)
    given = _json(name, data, "a hit, or the answer of a search")
    hits = given.get("results", [given]) if isinstance(given, dict) else given
    if not isinstance(hits, list) or not hits or not all(isinstance(hit, dict) for hit in hits):
        raise ConfigError(f"{name}: no hit in it; expected a hit, or the answer of a search")
    return hits


def _given(file: Path | None) -> tuple[str, bytes]:
    """How a file or stdin is called, and what is in it. Raises ConfigError."""
    name = file.name if file else "stdin"
    try:
        return name, file.read_bytes() if file else sys.stdin.buffer.read()
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read ({error.strerror})") from error


def _json(name: str, data: bytes, expected: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name}: not JSON; expected {expected}") from error


def _verify_answer_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="an answer, or its receipt, as JSON (stdin)")
    parser.add_argument(
        "--dist",
        type=Path,
        default=Path("dist"),
        metavar="DIST",
        help="folder with the releases that it rests on (dist)",
    )
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--prompt",
        action="store_true",
        help="print the messages that the model was sent instead: canonical JSON, whose sha256 is prompt_sha256",
    )
    instead.add_argument("--json", action="store_true", help="print JSON")


def _verify_answer(arguments: Namespace) -> int:
    from octavo_artifact.ids import canonical_json
    from octavo_serve.answering.proof import prove_answer

    proof = prove_answer(_answer(arguments.file), arguments.dist)
    if proof.error is None and arguments.prompt:
        sys.stdout.buffer.write(canonical_json(list(proof.messages)))
    elif arguments.json:
        print(json.dumps({"holds": list(proof.holds), "error": proof.error}, ensure_ascii=False))
    else:
        for line in proof.holds if not arguments.prompt else ():
            print(line)
        if proof.error:
            print(f"octavo: {proof.error}", file=sys.stderr)
    return 1 if proof.error else 0


def _answer(file: Path | None) -> dict[str, Any]:
    """What a file or stdin has: an answer, an envelope of one, a receipt, or the events of a stream put together.

    Raises ConfigError.
    """
    name, data = _given(file)
    expected = "an answer, a `done` event, an envelope, or a receipt"
    given: Any = {}
    if data.lstrip()[:6] in (b"event:", b"data: ") or data.startswith(b":"):
        told = (line.removeprefix(b"data: ") for line in data.splitlines() if line.startswith(b"data: "))
        for event in (_json(name, each, expected) for each in told):
            given |= event if isinstance(event, dict) else {}
    else:
        given = _json(name, data, expected)
    if isinstance(given, dict) and "success" in given:
        given = given.get("data")
    if isinstance(given, dict) and "prompt_sha256" in given:
        given = {"receipt": given}
    if not isinstance(given, dict) or "receipt" not in given:
        raise ConfigError(f"{name}: no answer in it; expected {expected}")
    if given["receipt"] is None:
        raise ConfigError(
            f"{name}: nothing to verify: the question was refused without a prompt ({given.get('reason')})"
        )
    return given


def _inspect(arguments: Namespace) -> int:
    from octavo_artifact.manifest import fingerprint, read_manifest

    described: list[dict[str, Any]] = []
    for path in _named(arguments.artifact):
        manifest = read_manifest(_current(path))
        described.append(
            {
                "digest": manifest.digest,
                "pack": manifest.pack,
                "counts": manifest.counts,
                "encoder": {"name": manifest.encoder.name, "fingerprint": fingerprint(manifest.encoder)},
                "parameters": manifest.parameters,
                "libraries": manifest.libraries,
                "index": None if manifest.index is None else asdict(manifest.index),
                "files": {path: entry.size for path, entry in manifest.files.items()},
                "size": sum(entry.size for entry in manifest.files.values()),
            }
        )
    if arguments.json:
        print(json.dumps({"artifacts": described}, ensure_ascii=False))
        return 0
    bold, dim, plain = styles()
    for one in described:
        pack = one["pack"]
        print(f"{bold}{pack['name']}{plain} ({pack['slug']} {pack['version']}, {pack['source_format']} {pack['type']})")
        print(f"  digest     {one['digest']}")
        print(f"  contents   {', '.join(f'{count} {name}' for name, count in one['counts'].items())}")
        print(f"  encoder    {one['encoder']['name']} {dim}{one['encoder']['fingerprint'][:12]}{plain}")
        if index := one["index"]:
            nearest = f"{index['nprobes']} of {index['partitions']} partitions"
            print(f"  index      {index['kind']}, recall@10 {index['recall']} in {nearest}")
        print(f"  built with {', '.join(f'{name} {found}' for name, found in one['libraries'].items())}")
        print(f"  size       {one['size']:,} bytes")
        for path, size in sorted(one["files"].items()):
            print(f"    {size:>12,}  {path}")
    return 0


VERIFY = Command(
    name="verify",
    summary="check releases against their digests",
    description="Check every file of an artifact, and its encoder, against the hashes that its digest vouches for.\n"
    "Exit codes: 0 all intact, 1 one is not (the file is named), 2 nothing there to verify.",
    examples=("octavo verify dist", "octavo verify dist/octavo --json"),
    add_arguments=_artifact,
    run=_verify,
)


VERIFY_HIT = Command(
    name="verify-hit",
    summary="prove that a hit is what a release says",
    description="Check, offline, that a search result's bytes, hash and text belong to the release that it names.\n"
    "Exit codes: 0 all proven, 1 one is not (and why), 2 no hit was given.",
    examples=(
        "octavo search dist 'how do I roll back?' --pack octavo --json | octavo verify-hit dist",
        "octavo verify-hit dist answer.json --json",
    ),
    add_arguments=_verify_hit_arguments,
    run=_verify_hit,
)


VERIFY_ANSWER = Command(
    name="verify-answer",
    summary="prove what an answer rests on",
    description="Check, offline, an answer by its receipt: make its prompt again, byte for byte, from the releases in\n"
    "DIST that it names, and compare its sha256, that of the answer, its sources, and the evidence of each citation.\n"
    "FILE is what `octavo ask --json` or POST /ask answered, in one piece or as a stream, or the receipt alone.\n"
    "What the model made of the prompt cannot be proven, nor which model it was.\n"
    "Exit codes: 0 all of it holds, 1 something does not (the first is told), 2 no answer was given.",
    examples=(
        "octavo ask dist 'how do I roll back?' --json | octavo verify-answer",
        "octavo verify-answer answer.json --dist /srv/dist --json",
        "octavo verify-answer answer.json --prompt | sha256sum",
    ),
    add_arguments=_verify_answer_arguments,
    run=_verify_answer,
)


INSPECT = Command(
    name="inspect",
    summary="show what an artifact holds",
    description="Show identity, counts, encoder, parameters, library versions and files of an artifact.",
    examples=("octavo inspect dist/octavo", "octavo inspect dist --json | jq '.artifacts[].counts'"),
    add_arguments=_artifact,
    run=_inspect,
)
