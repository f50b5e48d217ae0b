"""A one-file edit in about 950 documents: CPU time of the rebuild against the clean build of the same run.

Takes some minutes: the clean build encodes every window. `--files N` takes the first N only.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from _server import OCTAVO, SHARED


def build(source: Path, root: Path) -> tuple[float, dict[str, int]]:
    """CPU seconds of one build, its worker processes included, and the release's counts."""
    before = _children()
    done = subprocess.run(
        [OCTAVO, "build", source, "--out", root / "dist", "--state", root / "state", "-q", "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    return _children() - before, json.loads(done.stdout)["packs"][0]["counts"]


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> int:
    corpus = SHARED / "corpora" / "eips" / "EIPS"
    if not corpus.is_dir():
        print("the reference corpus (../shared/corpora/eips) is not on this machine")
        return 0
    files = sorted(corpus.glob("*.md"))
    if "--files" in sys.argv:
        files = files[: int(sys.argv[sys.argv.index("--files") + 1])]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "eips"
        source.mkdir()
        for file in files:
            shutil.copy(file, source)
        clean, counts = build(source, Path(folder))
        print(
            f"clean build: {clean:.1f} CPU s, {counts['documents']} documents, {counts['windows']} windows", flush=True
        )
        nothing, _ = build(source, Path(folder))
        print(f"nothing changed: {nothing:.2f} CPU s, {nothing / clean:.2%} of clean", flush=True)
        edited = sorted(source.glob("*.md"))[len(files) // 2]
        edited.write_text(edited.read_text(encoding="utf-8") + "\n\nA sentence that was not there before.\n", "utf-8")
        one, _ = build(source, Path(folder))
        print(f"one file edited: {one:.2f} CPU s, {one / clean:.2%} of clean")
    return 0


if __name__ == "__main__":
    sys.exit(main())
