"""`octavo lint` of an OKF bundle of 1,000 files, against reading frontmatter and Markdown of the same files once.

Both are CPU seconds of this process; the command's include reading the files, all checks and printing, the other's
do not. What Python needs to import is in neither: both have run once before, on a bundle of a few files.
"""

from __future__ import annotations

import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from octavo_build.bodies.markdown import parse_body
from octavo_build.commands import LINT
from octavo_build.frontmatter import read_frontmatter

FILES, FOLDERS, RUNS = 1_000, 20, 5
LIMIT = 2.0


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder, "small"), Path(folder, "large")
        write_bundle(small, FOLDERS)
        write_bundle(large, FILES)
        for work in (parse, lint):
            work(small)
        parsing = min(measured(parse, large) for _ in range(RUNS))
        linting = min(measured(lint, large) for _ in range(RUNS))
    ratio = linting / parsing
    print(f"parse {FILES} files     {parsing:6.2f} s CPU")
    print(f"octavo lint            {linting:6.2f} s CPU, {ratio:.2f} times as much (at most {LIMIT})")
    return 0 if ratio <= LIMIT else 1


def write_bundle(root: Path, files: int) -> None:
    """Concepts that link to each other, with sources, footnotes, tables and code, and a listing in every folder."""
    names = [f"topic-{number % FOLDERS:02}/concept-{number:04}" for number in range(files)]
    for number, name in enumerate(names):
        links = [names[(number * 7 + step * 13) % files] for step in range(1, 6)]
        path = root / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_concept(number, links))
    for folder in sorted({name.partition("/")[0] for name in names}):
        listed = [name.partition("/")[2] for name in names if name.startswith(folder + "/")]
        lines = "".join(f"* [{name}]({name}.md) - Concept {name}.\n" for name in listed)
        (root / folder / "index.md").write_text(f"# {folder}\n\n{lines}")
    folders = "".join(f"* [{f}]({f}/) - Folder.\n" for f in sorted({name.partition("/")[0] for name in names}))
    (root / "index.md").write_text(f'---\nokf_version: "0.2"\n---\n\n# Bundle\n\n{folders}')


def _concept(number: int, links: list[str]) -> str:
    paragraphs = "".join(
        f"\n## Part {part}\n\nThe reading {number} is compared with [its neighbour](/{link}.md#part-1), as the rule for"
        f" part {part} demands, and noted in the book. [^rule]\n\nA reading that differs by more than {part} percent is"
        " taken again on the next day, by another person, with another instrument.\n\n"
        f"- first step of part {part}\n- second step, see [the other]({'../' + link}.md)\n- third step\n"
        for part, link in enumerate(links, 1)
    )
    return f"""---
type: Metric
title: Concept {number}
description: How reading {number} is taken and compared.
resource: https://example.org/readings/{number}
tags: [reading, topic-{number % FOLDERS}]
generated: {{by: writer/1.0, at: 2026-05-01T10:00:00Z}}
verified:
  - {{by: human:reader, at: 2026-06-01T10:00:00Z}}
status: stable
stale_after: 2027-01-01T00:00:00Z
sources:
  - id: rule
    resource: https://example.org/rules/{number}
    title: Rule {number}
---

# Concept {number}
{paragraphs}
## Values

| day | value |
|---|---|
| 1 | {number} |
| 2 | {number + 1} |

```sql
SELECT value FROM readings WHERE id = {number}
```

[^rule]: Rule {number}
"""


def parse(root: Path) -> None:
    for path in sorted(root.rglob("*.md")):
        raw = path.read_bytes()
        parse_body(raw, read_frontmatter(path.name, raw).body_offset)


def lint(root: Path) -> None:
    parser = ArgumentParser()
    LINT.add_arguments(parser)
    with redirect_stdout(StringIO()):
        LINT.run(parser.parse_args([str(root)]))


def measured(work: Callable[[Path], None], root: Path) -> float:
    start = time.process_time()
    work(root)
    return time.process_time() - start


if __name__ == "__main__":
    sys.exit(main())
