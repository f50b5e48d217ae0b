"""What every renderer is given."""

from __future__ import annotations

from dataclasses import dataclass

from octavo_build.findings import SEVERITIES, Finding


@dataclass(frozen=True, slots=True)
class Linted:
    """The findings of one pack."""

    slug: str
    folder: str
    """Of the pack, as paths in the output have it before them: relative, `/` between parts."""
    documents: int
    findings: tuple[Finding, ...]
    fail_on: str
    """The mildest severity that fails the pack."""

    def path(self, finding: Finding) -> str:
        """The file from where the command ran."""
        return f"{self.folder}/{finding.path}".strip("/") if self.folder != "." else finding.path or "."

    def fails(self, finding: Finding) -> bool:
        """Whether the finding is as bad as what fails the pack."""
        return SEVERITIES.index(finding.severity) <= SEVERITIES.index(self.fail_on)

    @property
    def failed(self) -> bool:
        """Whether any finding fails the pack."""
        return any(map(self.fails, self.findings))
