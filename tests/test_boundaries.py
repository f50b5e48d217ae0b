from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = {
    "octavo_artifact": ROOT / "serve" / "octavo_artifact",
    "octavo_serve": ROOT / "serve" / "octavo_serve",
    "octavo_deploy": ROOT / "serve" / "octavo_deploy",
    "octavo_build": ROOT / "build" / "octavo_build",
    "octavo_evals": ROOT / "evals" / "octavo_evals",
}
MAY_IMPORT = {
    "octavo_artifact": set[str](),
    "octavo_serve": {"octavo_artifact"},
    "octavo_deploy": {"octavo_artifact"},
    "octavo_build": {"octavo_artifact"},
    "octavo_evals": {"octavo_artifact", "octavo_serve"},
}


def imports(package: str) -> dict[str, set[str]]:
    """Top-level packages that each module of a package imports, wherever the import stands."""
    found: dict[str, set[str]] = {}
    for path in sorted(SOURCES[package].rglob("*.py")):
        names: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.partition(".")[0])
        found[path.relative_to(ROOT).as_posix()] = names
    return found


@pytest.mark.parametrize("package", SOURCES)
def test_arrows_point_at_the_format_and_never_across(package: str) -> None:
    allowed = MAY_IMPORT[package] | {package}
    crossing = {
        path: sorted(names & SOURCES.keys() - allowed)
        for path, names in imports(package).items()
        if names & SOURCES.keys() - allowed
    }
    assert crossing == {}


def test_the_format_needs_the_standard_library_only() -> None:
    foreign = {
        path: sorted(names - sys.stdlib_module_names - {"octavo_artifact"})
        for path, names in imports("octavo_artifact").items()
        if names - sys.stdlib_module_names - {"octavo_artifact"}
    }
    assert foreign == {}


def test_every_module_name_says_what_it_holds() -> None:
    names = {path.stem for source in SOURCES.values() for path in source.rglob("*.py")}
    assert not names & {"utils", "helpers", "manager", "common", "misc", "types", "http", "mcp", "json"}
