"""Clients of other people, as they are published, against the server over each of its transports.

`python tests/clients/matrix.py` prints the table; `test_clients.py` is the same as tests. Each client connects, lists
tools, resources and prompts, searches, reads what it found by its id and as a resource, has a question answered; those
that know skills read them all, verified, and some are told how far an answer is. What it then prints is `Seen`.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from clients.node import HERE, program, script
from octavo_serve.callers.keys import new_key
from running import OCTAVO, ROOT, build_with_skills, serving
from scripted import answer, scripted

QUESTION = "the display shows E-17, what now?"
ANSWER = "Descale it [1]."
ENVIRONMENTS = ROOT / ".octavo" / "clients"
"""Environments of clients in Python that cannot be installed beside Octavo."""

Target = Mapping[str, Any]
"""`{url, key?}` or `{command: [program, ...arguments]}`, as the scripts get it."""
Seen = dict[str, Any]
"""version (of the protocol), tools, resources, prompts, found, read, answered, resource (its SHA-256); skills, told."""


@dataclass(frozen=True, slots=True)
class Client:
    """One row of the table."""

    version: str
    """Of the protocol, which it is to agree on with the server."""
    run: Callable[[Target], Seen]
    """Raises CalledProcessError, or AssertionError."""
    skills: bool = False
    """Whether it knows them."""


def by_script(command: Callable[[], list[str]], *arguments: str) -> Callable[[Target], Seen]:
    """A client that is a script beside this file."""
    return lambda target: json.loads(_output([*command(), json.dumps(target), *arguments]))


def in_python(name: str, *requirements: str) -> list[str]:
    """The command of a script in Python; in an environment of its own if it has requirements."""
    return [str(_environment(requirements)) if requirements else sys.executable, str(HERE / name)]


def inspect(era: str, target: Target) -> Seen:
    """The Inspector's command, once for each thing it is to do."""
    where = target["command"] if "command" in target else [target["url"], "--transport", "http"]
    if "key" in target:
        where = [*where, "--header", f"Authorization: Bearer {target['key']}"]

    def ask(method: str, *arguments: str) -> str:
        with tempfile.TemporaryDirectory() as home:
            command = [*program("mcp-inspector"), "--cli", *where, "--protocol-era", era, "--format", "json"]
            return _output([*command, "--method", method, *arguments], HOME=home)

    def call(tool: str, argument: str) -> Any:
        result = json.loads(ask("tools/call", "--tool-name", tool, "--tool-arg", argument))["result"]
        return result["structuredContent"]

    def names(kind: str, name: str, *arguments: str) -> list[str]:
        return [each[name] for each in json.loads(ask(f"{kind}/list", *arguments))["result"][kind]]

    hit = call("ep_search", f"query={QUESTION}")["results"][0]
    (content,) = json.loads(ask("resources/read", "--uri", hit["uri"]))["result"]["contents"]
    seen = {
        "version": "2026-07-28" if era == "modern" else "2025-11-25",
        "tools": names("tools", "name", "--strict"),
        "resources": names("resources", "uri"),
        "prompts": names("prompts", "name"),
        "found": hit["id"],
        "read": call("ep_read", f"id={hit['id']}")["id"],
        "answered": call("ep_ask", f"question={QUESTION}")["answer"],
        "resource": sha256(content["text"].encode()).hexdigest(),
    }
    if era == "modern":
        reports = map(json.loads, ask("skills/list", "--verify", "--require-digests").splitlines())
        seen["skills"] = sorted(
            file["uri"] for report in reports for file in report["files"] if file["status"] == "verified"
        )
    return seen


CLIENTS = {
    "TypeScript SDK v1": Client("2025-11-25", by_script(partial(script, "typescript_v1.mjs"))),
    "TypeScript SDK v2": Client("2025-11-25", by_script(partial(script, "typescript_v2.mjs"))),
    "TypeScript SDK v2, auto": Client("2026-07-28", by_script(partial(script, "typescript_v2.mjs"), "auto")),
    "ext-skills": Client("2026-07-28", by_script(partial(script, "ext_skills.mjs")), skills=True),
    "Python SDK v1": Client("2025-11-25", by_script(partial(in_python, "python_v1.py", "mcp==1.30.0"))),
    "Python SDK v2, legacy": Client("2025-11-25", by_script(partial(in_python, "python_v2.py"), "legacy")),
    "Python SDK v2, auto": Client("2026-07-28", by_script(partial(in_python, "python_v2.py"), "auto")),
    "Python SDK v2, 2026-07-28": Client("2026-07-28", by_script(partial(in_python, "python_v2.py"), "2026-07-28")),
    "fastmcp": Client("2026-07-28", by_script(partial(in_python, "with_fastmcp.py", "fastmcp==4.2.3"))),
    "Inspector, legacy": Client("2025-11-25", partial(inspect, "legacy")),
    "Inspector, modern": Client("2026-07-28", partial(inspect, "modern"), skills=True),
}
TRANSPORTS = ("http", "http with a key", "stdio")

Outcome = Seen | BaseException
Table = dict[tuple[str, str], Outcome]
"""By client and transport; what went wrong instead of what was seen, `pytest.skip`'s exception included."""


@contextmanager
def targets(dist: Path, folder: Path) -> Generator[dict[str, Target]]:
    """Where the packs of `dist` are served over each transport; `folder` takes the configuration."""
    key = new_key()
    hashed = sha256(key.encode()).hexdigest()
    with scripted(answer(ANSWER)) as model:
        answers = {"answers": {"model": {"url": model.url}, "max_concurrent": 16}}
        keys = {"keys": [{"name": "matrix", "sha256": hashed, "packs": "*"}]}
        plain_file, keyed_file = folder / "plain.yaml", folder / "keyed.yaml"
        plain_file.write_text(json.dumps(answers))
        keyed_file.write_text(json.dumps(answers | keys))
        with (
            serving(dist, "--config", str(plain_file)) as plain,
            serving(dist, "--config", str(keyed_file)) as keyed,
        ):
            yield {
                "http": {"url": f"{plain.address}/mcp"},
                "http with a key": {"url": f"{keyed.address}/mcp", "key": key},
                "stdio": {"command": [str(script_of(folder, "stdio", dist, "--config", plain_file))]},
            }


def script_of(folder: Path, *arguments: object) -> Path:
    """A program that runs the command with these arguments: the Inspector takes `--config` for itself."""
    path = folder / "octavo-with-arguments"
    path.write_text(f"#!/bin/sh\nexec {shlex.join(map(str, (OCTAVO, *arguments)))}\n")
    path.chmod(0o755)
    return path


def fill(at: Mapping[str, Target]) -> Table:
    """Run every client over every transport, two at a time."""

    def cell(place: tuple[str, str]) -> Outcome:
        try:
            return CLIENTS[place[0]].run(at[place[1]])
        except (Exception, pytest.skip.Exception) as error:  # a cell's failure is the cell's content
            return error

    places = [(client, transport) for client in CLIENTS for transport in TRANSPORTS]
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(places, pool.map(cell, places), strict=True))


_installing = Lock()


def _environment(requirements: tuple[str, ...]) -> Path:
    folder = ENVIRONMENTS / "+".join(requirements)
    python, done = folder / "bin/python", folder / "done"
    with _installing:
        if not done.exists():
            venv.create(folder, clear=True)
            _output([sys.executable, "-m", "pip", "--python", str(python), "install", "-q", *requirements])
            done.touch()
    return python


def _output(command: list[str], **environment: str) -> str:
    variables = {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=variables)
    assert done.returncode == 0, f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-3000:]}{done.stderr}"
    return done.stdout


def main() -> None:
    """Print the table; the exit code is 1 if a client failed."""
    with tempfile.TemporaryDirectory() as folder:
        dist = build_with_skills(Path(folder))
        with targets(dist, Path(folder)) as at:
            table = fill(at)
    print(f"| client | protocol | {' | '.join(TRANSPORTS)} |\n|---|---|{'---|' * len(TRANSPORTS)}")
    failed: list[str] = []
    for name, client in CLIENTS.items():
        cells: list[str] = []
        for transport in TRANSPORTS:
            outcome = table[name, transport]
            if isinstance(outcome, dict):
                cells.append("ok")
            elif isinstance(outcome, pytest.skip.Exception):
                cells.append("skipped")
            else:
                cells.append("failed")
                failed.append(f"{name} over {transport}: {outcome}")
        print(f"| {name} | {client.version} | {' | '.join(cells)} |")
    sys.exit("\n".join(failed) or None)


if __name__ == "__main__":
    main()
