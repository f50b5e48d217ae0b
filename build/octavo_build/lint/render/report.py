"""Findings as JSON for scripts; each as `report.json` of a build has it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from octavo_build.findings import count_by_severity
from octavo_build.lint.render.linted import Linted


def render(packs: Sequence[Linted]) -> str:
    """`{packs: [{slug, folder, documents, failed, counts, findings}]}`."""
    outcome = [
        {
            "slug": pack.slug,
            "folder": pack.folder,
            "documents": pack.documents,
            "failed": pack.failed,
            "counts": count_by_severity(pack.findings),
            "findings": [finding.as_json() for finding in pack.findings],
        }
        for pack in packs
    ]
    return json.dumps({"packs": outcome}, ensure_ascii=False, indent=2) + "\n"
