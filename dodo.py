"""What is made from what: `doit list` shows the tasks, `doit serve` is where to begin.

The work itself is in the packages; this file only names it.
"""

import json
from importlib.util import find_spec
from pathlib import Path
from sys import executable

from doit.action import CmdAction
from doit.tools import Interactive, LongRunning

from octavo_build.progress import make_progress
from octavo_build.tasks import Build, build_tasks
from octavo_build.workers import Workers

STATE = Path(".octavo")
DOIT_CONFIG = {"default_tasks": ["release"], "dep_file": f"{STATE}/dodo.sqlite", "backend": "sqlite3", "verbosity": 2}

BIN = Path(executable).parent
PACKS = sorted(path for path in Path("packs").iterdir() if path.is_dir())
DIST = Path("dist")
BUILD = Build(PACKS, DIST, STATE, Workers(), make_progress(bars=False), point=False)
EVALS = Path("evals")
BENCHES = sorted(Path("evals/bench").glob("[a-z]*.py"))

SMALL = "SmolLM2-135M-Instruct-Q4_1"
"""What evals/local_model.py serves."""

PROCESSES = "-n auto --maxprocesses 4 --dist loadfile"
"""Of pytest: one a core, four at most; a file's tests stay together, for they share what it builds."""

STATE.mkdir(exist_ok=True)


def task_build():
    """Compile every pack in packs/ into releases under dist/: a task a stage and pack, only what changed."""
    yield from build_tasks(BUILD)


def task_eval():
    """Ask each pack's questions of the release that was built."""
    for slug in evaluated():
        yield {
            "name": slug,
            "actions": [
                f"mkdir -p {STATE}/eval",
                of_release(
                    slug,
                    f"eval run {EVALS}/{slug}/questions.yaml "
                    f"--pack {slug} --release {{digest}} --dist {DIST} --out {STATE}/eval/{slug}.json",
                ),
            ],
            "task_dep": [f"build:{slug}:release"],
            "uptodate": [False],
        }
    for slug in answered():
        yield {
            "name": f"{slug}:answers",
            "actions": [f"mkdir -p {STATE}/eval", quoted(slug, STATE / "eval" / f"{slug}.answers.json")],
            "task_dep": [f"build:{slug}:release"],
            "uptodate": [False],
        }


def task_answers():
    """Write the committed answers anew: those that only quote, and those of a small model on this machine (slow)."""
    for slug in answered():
        asked = f"eval answers run {EVALS}/{slug}/answers.yaml --pack {slug} --release {{digest}} --dist {DIST}"
        bounds = "--passages 2 --context-tokens 2048 --max-tokens 128 --chunk-timeout 900"
        model = f"--model-url {{{{url}}}} --model {SMALL} --out {EVALS}/{slug}/answers.smollm2.json"
        yield {
            "name": slug,
            "actions": [
                quoted(slug, EVALS / slug / "answers.quoting.json"),
                of_release(slug, f"{asked} {bounds} {model}", f"{executable} {EVALS}/local_model.py "),
            ],
            "task_dep": [f"build:{slug}:release"],
            "uptodate": [False],
        }


def task_gate():
    """Judge what was built by each pack's committed results and floors."""
    for slug in evaluated():
        folder, new = EVALS / slug, STATE / "eval" / f"{slug}.json"
        check = f"--cases {folder}/questions.yaml --dist {DIST} --release {{digest}} --floors {folder}/floors.yaml"
        yield {
            "name": slug,
            "actions": [
                of_release(slug, f"eval gate check {folder}/results.json {check}"),
                of_release(slug, f"eval gate check {new} {check}"),
                of_release(slug, f"eval gate compare {folder}/results.json {new} --across-releases"),
            ],
            "task_dep": [f"eval:{slug}"],
            "uptodate": [False],
        }
    for slug in answered():
        folder, new = EVALS / slug, STATE / "eval" / f"{slug}.answers.json"
        cases, release = f"--cases {folder}/answers.yaml", f"--dist {DIST} --release {{digest}}"
        floors = f"--floors {folder}/answers.floors.yaml"
        # a model's answers take a quarter of an hour, so it is not asked anew
        others = [
            f"{BIN}/octavo eval gate check {path} {cases} --floors {path.with_suffix('.floors.yaml')}"
            for path in sorted(folder.glob("answers.*.json"))
            if path.name != "answers.quoting.json"
        ]
        yield {
            "name": f"{slug}:answers",
            "actions": [
                *others,
                of_release(slug, f"eval gate check {folder}/answers.quoting.json {cases} {release} {floors}"),
                of_release(slug, f"eval gate check {new} {cases} {release} {floors}"),
                of_release(slug, f"eval gate compare {folder}/answers.quoting.json {new} --across-releases"),
            ],
            "task_dep": [f"eval:{slug}:answers"],
            "uptodate": [False],
        }


def task_release():
    """Make what was built current, where the gate passes."""
    for slug in BUILD.slugs():
        gated = slug in evaluated()
        yield {
            "name": slug,
            "actions": [of_release(slug, f"release {DIST}/{slug}/{{digest}} {'' if gated else '--ungated'}")],
            "task_dep": [f"gate:{slug}" if gated else f"build:{slug}:release"],
            "uptodate": [False],
        }


def evaluated():
    """Slugs of the packs that have questions; none where the extra [evals] is not installed, which only judges."""
    slugs = BUILD.slugs() if find_spec("ir_measures") else ()
    return [slug for slug in slugs if (EVALS / slug / "questions.yaml").exists()]


def answered():
    """Slugs of the packs that have cases for answers."""
    return [slug for slug in evaluated() if (EVALS / slug / "answers.yaml").exists()]


def quoted(slug: str, out: Path):
    """Ask the cases of the model that only quotes."""
    asked = f"eval answers run {EVALS}/{slug}/answers.yaml --pack {slug} --release {{digest}} --dist {DIST}"
    return of_release(slug, f"{asked} --quoting --out {out}")


def of_release(slug: str, arguments: str, before: str = ""):
    """`octavo` with the digest that the pack's build made, known only when the build has run; after words `before`."""

    def command():
        digest = json.loads((STATE / "work" / slug / "released.json").read_bytes())["digest"]
        return f"{before}{BIN}/octavo {arguments.format(digest=digest)}"

    return CmdAction(command)


def task_verify():
    """Check every release and encoder in dist/ against its digest."""
    return {"actions": [f"{BIN}/octavo verify {DIST}"], "task_dep": ["release"], "uptodate": [False]}


def task_serve():
    """Build, gate, verify and serve every pack on 127.0.0.1."""
    return {"actions": [LongRunning(f"{BIN}/octavo serve {DIST}")], "task_dep": ["verify"], "uptodate": [False]}


def task_examples():
    """Write the configuration that is shown in examples/, and its JSON Schema, anew from the settings."""
    made = (("--example", "octavo.yaml"), ("--schema", "octavo.schema.json"))
    actions = [f"{BIN}/octavo config {option} > examples/{name}" for option, name in made]
    return {"actions": actions, "uptodate": [False]}


def task_lint():
    """Ruff and pyright, strict."""
    return {"actions": [f"{BIN}/ruff check", f"{BIN}/ruff format --check", f"{BIN}/pyright"], "uptodate": [False]}


def task_test():
    """The default test suite."""
    return {"actions": [Interactive(f"{BIN}/pytest {PROCESSES} -m 'not slow'")], "uptodate": [False]}


def task_slow():
    """The tests that take longer than the default suite may."""
    return {"actions": [Interactive(f"{BIN}/pytest {PROCESSES} -m slow")], "uptodate": [False]}


def task_check():
    """All that must hold before a commit."""
    return {"actions": None, "task_dep": ["lint", "test"]}


def task_bench():
    """Measurements: CPU time, and ratios against a baseline of the same run."""
    for bench in BENCHES:
        yield {"name": bench.stem, "actions": [Interactive(f"{executable} {bench}")], "uptodate": [False]}


def task_retrieval():
    """Evidence for retrieval, evals/RETRIEVAL.md: the collections that are on this machine, a stage off in turn."""
    return {"actions": [Interactive(f"{executable} -m octavo_evals.evidence")], "uptodate": [False]}
