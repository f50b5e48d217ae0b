"""What is made from what: `doit list` shows the tasks, `doit serve` is where to begin.

The work itself is in the packages; this file only names it.
"""

from pathlib import Path
from sys import executable

from doit.tools import LongRunning

from octavo_build.progress import make_progress
from octavo_build.tasks import Build, build_tasks
from octavo_build.workers import Workers

STATE = Path(".octavo")
DOIT_CONFIG = {"default_tasks": ["build"], "dep_file": f"{STATE}/dodo.sqlite", "backend": "sqlite3", "verbosity": 2}

BIN = Path(executable).parent
PACKS = sorted(path for path in Path("packs").iterdir() if path.is_dir())
DIST = Path("dist")
QUESTIONS = sorted(path for path in Path("evals").glob("*/*.yaml") if (Path("packs") / path.parent.name).is_dir())
BENCHES = sorted(Path("evals/bench").glob("[a-z]*.py"))

STATE.mkdir(exist_ok=True)


def task_build():
    """Compile every pack in packs/ into releases under dist/: a task a stage and pack, only what changed."""
    yield from build_tasks(Build(PACKS, DIST, STATE, Workers(), make_progress(bars=False)))


def task_verify():
    """Check every release and encoder in dist/ against its digest."""
    return {"actions": [f"{BIN}/octavo verify {DIST}"], "task_dep": ["build"], "uptodate": [False]}


def task_serve():
    """Build, verify and serve every pack on 127.0.0.1."""
    return {"actions": [LongRunning(f"{BIN}/octavo serve {DIST}")], "task_dep": ["verify"], "uptodate": [False]}


def task_lint():
    """Ruff and pyright, strict."""
    return {"actions": [f"{BIN}/ruff check", f"{BIN}/ruff format --check", f"{BIN}/pyright"], "uptodate": [False]}


def task_test():
    """The default test suite."""
    return {"actions": [LongRunning(f"{BIN}/pytest -m 'not slow'")], "uptodate": [False]}


def task_slow():
    """The tests that take longer than the default suite may."""
    return {"actions": [LongRunning(f"{BIN}/pytest -m slow")], "uptodate": [False]}


def task_check():
    """All that must hold before a commit."""
    return {"actions": None, "task_dep": ["lint", "test"]}


def task_eval():
    """Retrieval figures of the packs in packs/."""
    questions = " ".join(map(str, QUESTIONS))
    return {
        "actions": [f"{executable} -m octavo_evals.retrieval {DIST} {questions}"],
        "task_dep": ["build"],
        "uptodate": [False],
    }


def task_bench():
    """Measurements: CPU time, and ratios against a baseline of the same run."""
    for bench in BENCHES:
        yield {"name": bench.stem, "actions": [LongRunning(f"{executable} {bench}")], "uptodate": [False]}
