"""Real documentation compiled without encoding: CPU seconds a stage, peak memory, and the sizes of what comes out.

Each corpus is compiled in a process of its own, from nothing. The last lines compare the peak for a third of the
largest corpus with that for all of it: what a file adds should be little more than its rows in the tables.
`--encode` builds the smallest corpus whole, vectors too.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from _server import OCTAVO, SHARED

Compiled = Mapping[str, Mapping[str, float]]
"""CPU `seconds` and `peak` megabytes by stage, `sizes` of parts and `counts` of files, passages, bytes of tables."""

CORPORA = ("rust-book", "eips", "fastapi", "powershell")


def main() -> int:
    if not (SHARED / "corpora").is_dir():
        print("the reference corpora (../shared/corpora) are not on this machine")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        work, found = Path(folder), dict[str, Compiled]()
        for name in CORPORA:
            found[name] = compiled(SHARED / "corpora" / name, work / name)
            report(name, found[name])
        largest = CORPORA[-1]
        third = a_third(SHARED / "corpora" / largest, work / "some")
        report_growth(largest, compiled(third, work / "third"), found[largest])
        if "--encode" in sys.argv:
            report_encoded(SHARED / "corpora" / CORPORA[0], work)
    return 0


def report(name: str, found: Compiled) -> None:
    """Print what one corpus took."""
    seconds, files = found["seconds"], found["counts"]["files"]
    total = sum(seconds.values())
    print(f"{name}: {files:.0f} files, {found['counts']['passages']:.0f} passages, {total:.1f} s CPU,", end=" ")
    print(f"{files / total:.0f} files/s; peak {found['peak']['resources']:.0f} MB")
    print("  CPU s    ", "  ".join(f"{stage} {value:.2f}" for stage, value in seconds.items()))
    print("  peak MB  ", "  ".join(f"{stage} {value:.0f}" for stage, value in found["peak"].items()))
    print("  parts MB ", "  ".join(f"{part} {size / 1e6:.2f}" for part, size in found["sizes"].items()), flush=True)


def a_third(corpus: Path, folder: Path) -> Path:
    """`folder` with every third page of a corpus."""
    for path in sorted(path for path in corpus.rglob("*.md") if path.is_file())[::3]:
        target = folder / path.relative_to(corpus)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return folder


def report_growth(name: str, third: Compiled, whole: Compiled) -> None:
    """Print what the files of a corpus add to the peak."""
    for label, found in (("a third", third), ("all", whole)):
        files, tables = found["counts"]["files"], found["counts"]["tables"] / 1e6
        print(f"{name}, {label}: {files:.0f} files, peak {found['peak']['resources']:.0f} MB, tables {tables:.0f} MB")
    added = whole["peak"]["resources"] - third["peak"]["resources"]
    rows = (whole["counts"]["tables"] - third["counts"]["tables"]) / 1e6
    print(f"the other files add {added:.0f} MB, {added / rows:.1f} times their rows in Arrow")


def report_encoded(corpus: Path, work: Path) -> None:
    """Print the time of a whole build."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [OCTAVO, "build", corpus, "--out", work / "dist", "--state", work / "state", "-q", "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    windows = json.loads(done.stdout)["packs"][0]["counts"]["windows"]
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{corpus.name}, encoded: {windows} windows, {time.perf_counter() - start:.0f} s, {cpu:.0f} s CPU")


def compiled(corpus: Path, work: Path) -> Compiled:
    """What compiling `corpus` in a fresh process took."""
    command = [sys.executable, __file__, "--child", corpus, work]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def compile_corpus(corpus: Path, folder: Path) -> Compiled:
    """Compile `corpus` in this process, but for its vectors."""
    import pyarrow.parquet as pq

    from octavo_artifact.layout import TABLES
    from octavo_build import stages
    from octavo_build.content_cache import ContentCache
    from octavo_build.encoders import install_encoder, wanted_encoder

    folder.mkdir(parents=True, exist_ok=True)
    install_encoder(folder)
    encoder = folder / "encoders" / wanted_encoder()
    work = stages.Work(folder / "work")
    cache = ContentCache(folder / "cache.sqlite")
    steps: dict[str, Callable[[], None]] = {
        "source": lambda: stages.source(corpus, work, {"format": "docs"}),
        "passages": lambda: stages.passages(work, encoder, cache, "bench"),
        "lexical": lambda: stages.lexical(work),
        "graph": lambda: stages.graph(work),
        "resources": lambda: stages.resources(work),
    }
    seconds: dict[str, float] = {}
    peak = {"start": _peak()}
    for stage, step in steps.items():
        start = time.process_time()
        step()
        seconds[stage], peak[stage] = time.process_time() - start, _peak()
    tables = [work.parts / table.file for table in TABLES]
    sizes = {path.name: _size(path) for path in sorted(work.parts.iterdir())}
    counts = {
        "files": pq.read_metadata(tables[0]).num_rows,
        "passages": pq.read_metadata(work.texts).num_rows,
        "tables": sum(pq.read_table(path).nbytes for path in (*tables, work.texts, work.windows)),
    }
    return {"seconds": seconds, "peak": peak, "sizes": sizes, "counts": counts}


def _peak() -> float:
    """Megabytes that this process has held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else (path,)
    return sum(each.stat().st_size for each in files if each.is_file())


if __name__ == "__main__":
    if "--child" in sys.argv:
        print(json.dumps(compile_corpus(*map(Path, sys.argv[2:4]))))
        sys.exit()
    sys.exit(main())
