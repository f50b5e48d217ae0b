"""Documents that are not shown as they are written, or not whole."""

from __future__ import annotations

import json
from pathlib import Path


def write_formats(source: Path) -> None:
    """Make a docs folder of long tables, long prose, a data URI, CRLF, bad bytes, and every format."""
    source.mkdir()
    rows = "".join(f"| part {n} | torque of bolt {n} is {n * 3} newton metres |\n" for n in range(120))
    (source / "table.md").write_text(f"# Bolts\n\n| part | torque |\n|---|---|\n{rows}")
    (source / "prose.md").write_text("# Story\n\n" + "The river rises in spring and floods the meadow. " * 200)
    (source / "image.md").write_text(f"# Image\n\nA sketch of a pump: ![pump](data:image/png;base64,{'A' * 3000})\n")
    (source / "crlf.md").write_bytes(b"---\r\ntitle: W\r\n---\r\n# W\r\n\r\nWindows line ends.\r\n")
    (source / "bad.md").write_bytes(b"# Bad\n\nbroken \xff byte and a NUL \0 here\n")
    cells = "".join(f"<tr><td>valve {n}<td>valve {n} opens at {n * 3} &lt;bar&gt;</td></tr>" for n in range(150))
    (source / "valves.html").write_text(f"<title>Valves</title><table><tr><th>valve<th>opens</tr>{cells}</table>")
    notes = [{"cell_type": "markdown", "source": '# Quokka\n\nA quokka "smiles".'}, {"source": ["a = 1\n", "b"]}]
    (source / "quokka.ipynb").write_text(json.dumps({"cells": notes}))
    (source / "wombat.rst").write_text("Wombat\n======\n\n.. c\n\nA :ref:`wombat <w>` digs.\n")
    (source / "numbat.mdx").write_text("import A from 'a'\n\n# Numbat\n\n<A title='t'>A numbat eats termites.</A>\n")
    (source / "bilby.txt").write_text("Bilby\n\nA bilby has long ears.\n")
