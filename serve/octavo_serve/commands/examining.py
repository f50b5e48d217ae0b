"""`octavo doctor`."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from octavo_artifact.command import Command
from octavo_serve.commands.arguments import dist_argument, is_colourful, json_argument

if TYPE_CHECKING:
    from octavo_serve.doctor.finding import Finding

_COLOURS = {"ok": "\x1b[32m", "warn": "\x1b[33m", "fail": "\x1b[31m"}


def _arguments(parser: ArgumentParser) -> None:
    dist_argument(parser, "?")
    parser.add_argument("--config", type=Path, metavar="FILE", help="octavo.yaml (what OCTAVO_CONFIG names)")
    json_argument(parser)


def _doctor(arguments: Namespace) -> int:
    from octavo_serve.doctor.checks import diagnose
    from octavo_serve.doctor.configuring import SOURCES

    flags = {} if arguments.dist is None else {"dist": arguments.dist}
    findings: list[Finding] = []
    for finding in diagnose(arguments.config, os.environ, flags):
        findings.append(finding)
        if not arguments.json:
            print(_line(finding, coloured=is_colourful(sys.stdout)), flush=True)
    if arguments.json:
        print(json.dumps({"findings": [asdict(finding) for finding in findings]}, ensure_ascii=False))
    failed = {finding.check for finding in findings if finding.status == "fail"}
    return 2 if failed & SOURCES else 1 if failed else 0


def _line(finding: Finding, *, coloured: bool) -> str:
    """One line: what was looked at, what was found, and what to do."""
    status = f"{finding.status:<4}"
    if coloured:
        status = f"{_COLOURS[finding.status]}{status}\x1b[0m"
    advice = f"; expected {finding.expected}; next: {finding.step}" if finding.expected and finding.step else ""
    return f"{status}  {finding.check:<15}  {' '.join(finding.found.split())}{advice}"


DOCTOR = Command(
    name="doctor",
    summary="say what is wrong with this machine and this configuration",
    description="Look at all that `octavo serve` needs, as the user who runs this: libraries, configuration,\n"
    "releases, encoders, disk, address. A line a check: ok, warn (it works, but hardly as it is meant) or fail.\n"
    "Exit codes: 0 nothing fails, 1 something does, 2 the configuration does, or wrong arguments.",
    examples=(
        "octavo doctor dist",
        "octavo doctor --config octavo.yaml",
        "octavo doctor /srv/dist --json | jq '.findings[] | select(.status != \"ok\")'",
    ),
    add_arguments=_arguments,
    run=_doctor,
)
