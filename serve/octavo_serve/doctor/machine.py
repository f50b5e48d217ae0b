"""The machine: whether it has what a server needs."""

from __future__ import annotations

import os
import platform
import resource
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from octavo_artifact import __version__
from octavo_artifact.layout import POINTER
from octavo_serve.doctor.finding import Finding, Subject

READERS = ("tantivy", "tokenizers", "onnxruntime")
"""Libraries by which the server reads what others of their versions wrote."""
DESCRIPTORS = 1024
"""Files and connections of a process: what Linux gives by default."""
_SLOW = ("none", "sse4_2", "avx")


def python(subject: Subject) -> Iterator[Finding]:
    """Which Octavo, and which Python."""
    yield Finding("versions", "ok", f"Octavo {__version__}, Python {platform.python_version()}, {platform.machine()}")


def libraries(subject: Subject) -> Iterator[Finding]:
    """What reads an artifact should be what wrote it, or newer by what its makers promise."""
    here = {name: _version(name) for name in READERS}
    differing = [
        f"{name} {here[name]} ({pack.slug} was built with {built})"
        for pack in subject.packs
        for name, built in sorted((pack.manifest.libraries if pack.manifest else {}).items())
        if here.get(name) and here[name] != built
    ]
    if differing:
        step = "install the versions of the build (constraints.txt), or build the packs with these"
        yield Finding("libraries", "warn", "; ".join(differing), "the versions of the build", step)
    else:
        yield Finding("libraries", "ok", ", ".join(f"{name} {found}" for name, found in here.items() if found))


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def processor(subject: Subject) -> Iterator[Finding]:
    """Onnxruntime must load, and multiplies 8-bit weights fast with AVX2 only."""
    import pyarrow

    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # see onnx_session
    try:
        import onnxruntime

        onnxruntime.get_available_providers()
    except Exception as error:  # a shared library that does not fit the machine
        found = f"onnxruntime does not load ({error})"
        yield Finding("processor", "fail", found, "a wheel for this machine", "install onnxruntime for it")
        return
    level = pyarrow.runtime_info().detected_simd_level
    if platform.machine().lower() in ("x86_64", "amd64") and level in _SLOW:
        step = "choose a machine with AVX2; queries are encoded several times slower on this one"
        yield Finding("processor", "warn", f"SIMD level {level}", "avx2 or better", step)
    else:
        yield Finding("processor", "ok", f"onnxruntime loads, SIMD level {level}")


def temporary_folder(subject: Subject) -> Iterator[Finding]:
    """Tantivy opens an index in a folder of links."""
    place = subject.environment.get("TMPDIR") or "/tmp"
    try:
        with tempfile.TemporaryDirectory(prefix="octavo-", dir=place) as folder:
            Path(folder, "probe").symlink_to("nowhere")
    except OSError as error:
        found = f"{place} cannot be written ({error.strerror})"
        yield Finding("temporary files", "fail", found, "a folder for links", "set TMPDIR to one; a tmpfs will do")
    else:
        yield Finding("temporary files", "ok", place)


def descriptors(subject: Subject) -> Iterator[Finding]:
    """Each connection takes one, and each pack some ten."""
    found, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if found != resource.RLIM_INFINITY and found < DESCRIPTORS:
        step = f"raise it: `ulimit -n {DESCRIPTORS}`, or LimitNOFILE of the service"
        yield Finding("open files", "warn", f"{found} at most", f"{DESCRIPTORS} or more", step)
    else:
        yield Finding("open files", "ok", f"{'no limit' if found == resource.RLIM_INFINITY else found}")


def clock(subject: Subject) -> Iterator[Finding]:
    """Ages are told by the day, in UTC whatever the time zone; a release from the future means a clock that is late."""
    now = datetime.now(UTC)
    offset = now.astimezone().strftime("%z")
    text = f"{now:%Y-%m-%d %H:%M} in UTC, by which ages are told; the time zone here is {offset}"
    newest = max(filter(None, map(_pointed, (pack.artifact for pack in subject.packs))), default=now)
    if newest > now + timedelta(days=1):
        found = f"{text}, and a pointer was written on {newest:%Y-%m-%d}"
        yield Finding("clock", "warn", found, "a clock that is right", "set the clock (NTP), or serve with --today")
    else:
        yield Finding("clock", "ok", text)


def _pointed(artifact: Path | None) -> datetime | None:
    try:
        return datetime.fromtimestamp((artifact.parent / POINTER).stat().st_mtime, UTC) if artifact else None
    except OSError:
        return None
