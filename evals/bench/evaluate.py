"""What an evaluation costs beside its searches: 300 questions of SciFact over 1,000 of its documents, in process."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _server import BENCH, OCTAVO, SHARED

from octavo_evals.queries import QuerySet, read_query_set
from octavo_evals.results import results_bytes
from octavo_evals.retrieval import Timing, check_files, evaluate
from octavo_evals.targets import open_target

DOCUMENTS = 1_000
"""Those that are relevant, and as many others as it takes: encoding all 5,183 would take most of the time."""

LIMIT = 3.0


def main() -> int:
    collection = SHARED / "ir" / "scifact"
    if not collection.is_dir():
        print("../shared/ir/scifact is not at hand", file=sys.stderr)
        return 0
    cases = read_query_set(collection, document="{}.md")
    dist = _release(collection, cases)
    start = time.perf_counter()
    target = open_target(dist, "scifact", None, None)
    check_files(target, cases)
    timings: list[Timing] = []
    found = evaluate(target, cases, "2026-11-30", gate="off", timings=timings)
    results_bytes(found)
    whole, searches = time.perf_counter() - start, sum(timing.seconds for timing in timings)
    print(f"{len(timings)} searches   {searches:6.2f} s")
    print(f"the evaluation  {whole:6.2f} s, {whole / searches:.2f} times as much (at most {LIMIT})")
    print(", ".join(f"{name} {found.measures[name].mean:.3f}" for name in ("R@5", "R@10", "RR", "nDCG@10")))
    return 0 if whole / searches <= LIMIT else 1


def _release(collection: Path, cases: QuerySet) -> Path:
    relevant = {path for query in cases.queries for path in query.files}
    with tempfile.TemporaryDirectory() as folder:
        pack = Path(folder, "scifact")
        pack.mkdir()
        documents = [json.loads(line) for line in (collection / "corpus.jsonl").read_text("utf-8").splitlines()]
        documents.sort(key=lambda document: f"{document['_id']}.md" not in relevant)
        for document in documents[:DOCUMENTS]:
            (pack / f"{document['_id']}.md").write_text(f"# {document['title']}\n\n{document['text']}\n", "utf-8")
        dist, state = BENCH / "scifact", BENCH / "scifact-state"
        subprocess.run([OCTAVO, "build", pack, "--out", dist, "--state", state, "-q"], check=True, stdout=2)
    return dist


if __name__ == "__main__":
    sys.exit(main())
