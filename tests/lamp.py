"""A small pack, two releases of it that differ in every way one can, and results of questions about them."""

from __future__ import annotations

from pathlib import Path

from octavo_evals.bootstrap import estimates
from octavo_evals.diff.questions import Question
from octavo_evals.diff.releases import resolve
from octavo_evals.results import (
    Artifact,
    Cases,
    Configuration,
    Qrel,
    QueryResult,
    Results,
    ScoredDoc,
    ScoredPassage,
    cases_sha256,
)
from running import octavo

HOSTILE = "</script><script>alert(1)</script>"

MANIFEST = "slug: lamp\nname: Lamp\ntype: product\nversion: '{version}'\nentry_point: overview.md\n"
LONG = " ".join(f"The {n}th turn of the screw moves the wick by a tenth." for n in range(60))
TURNING = f"\n## Turning\n\n{LONG}\n"

OLD = {
    "manifest.yaml": MANIFEST.format(version="1"),
    "overview.md": "# Lamp\n\nA lamp for the harbour.\n",
    "wick.md": "---\ntitle: Wick\ntype: concept\ntags: [wick]\nverified_at: '2026-01-01'\nrelated: [oil.md]\n---\n"
    f"# Wick\n\nTrim the wick weekly. {LONG}\n{TURNING}",
    "oil.md": "---\ntitle: Oil\nid: lamp/oil\n---\n# Oil\n\nThe tank holds three litres of paraffin.\n",
    "glass.md": "# Glass\n\nClean the glass chimney with vinegar.\n",
    "storm.md": "# Storm\n\nShutter the lantern room before a gale.\n",
    "log.md": f"# Log\n\n{LONG}\n\n## Entries\n\n{LONG[::-1]}\n",
    "label.md": "---\ntitle: Label\ntype: concept\nrelated: [storm.md]\n---\n# Label\n\nThe brass label says 1881.\n",
}
NEW = {
    "manifest.yaml": MANIFEST.format(version="2") + "retrieval:\n  words_weight: 9\n",
    "overview.md": OLD["overview.md"],
    "wick.md": OLD["wick.md"].replace(TURNING, "").replace("weekly", "every week").replace("2026-01-01", "2026-06-01"),
    "tank/oil.md": OLD["oil.md"],
    "lens/glass.md": OLD["glass.md"],
    "beam.md": f"---\ntitle: 'Beam {HOSTILE}'\n---\n# Beam\n\nIt reaches twelve miles. "
    f"See [the wick](wick.md), [gone](gone.md). {LONG}\n{TURNING}",
    "log.md": OLD["log.md"].replace("# Log", "# Logbook"),
    "label.md": OLD["label.md"].replace("type: concept", "type: fact"),
}

CASES = (Question("storm", "shutter before a gale", "label", ("storm.md",)),)


def release(root: Path, name: str, files: dict[str, str]) -> Path:
    source = root / name / "lamp"
    for path, text in files.items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text(text)
    done = octavo("build", source, "--out", root / "dist", "--state", root / name / "state", "-q")
    assert done.returncode == 0, done.stderr
    return resolve(str(root / "dist/lamp"), root / "dist")


def query(
    name: str, value: float, *, file: str = "wick.md", refused: bool = False, probability: float | None = None
) -> QueryResult:
    """A question that is answered with `file`; the pack does not answer those whose name begins with `no`."""
    answerable = not name.startswith("no")
    measure = "nDCG@10" if answerable else "right_refusal"
    return QueryResult(
        id=name,
        text=f"What of {name}? {HOSTILE}",
        category=f"answered {HOSTILE}" if answerable else "unanswerable",
        expected=(Qrel("wick.md", 1),) if answerable else (),
        must_not=("storm.md",),
        filters={},
        answerable=answerable,
        facts=(),
        refused=refused,
        run=(ScoredDoc(file, 0.5),),
        passages=() if refused else (ScoredPassage(f"lamp/{file[:-3]}#{HOSTILE}:0123456789ab", file, 0.5),),
        measures={measure: value, "must_not@10": float(file == "storm.md")},
        answer_probability=probability,
    )


def results(digest: str, *queries: QueryResult, slug: str = "lamp", file: str = "questions.yaml") -> Results:
    """Results of those questions."""
    names = ("nDCG@10", "right_refusal", "must_not@10")
    categories = sorted({each.category for each in queries})
    return Results(
        cases=Cases(file, cases_sha256(queries), len(queries)),
        artifact=Artifact(slug, digest, "1.0", "dist"),
        configuration=Configuration({"k": 50}),
        libraries={"octavo": "0.1.0"},
        date="2026-11-30",
        measures=estimates([each.measures for each in queries], names),
        categories={
            name: estimates([each.measures for each in queries if each.category == name], names) for name in categories
        },
        queries=queries,
    )
