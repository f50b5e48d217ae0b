"""What files need and replace: `requires` and its cycles, `supersedes`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from octavo_build.findings import Finding
from octavo_build.lint.subject import Page, Subject
from octavo_build.values import items


def check_requires(subject: Subject) -> Iterator[Finding]:
    """Targets of `requires`; below schema 4.1 a missing one has the build's code."""
    for member in subject.members:
        missing = "W-V41-04" if member.schema >= (4, 1) else "link-unresolved"
        for page in member.pages:
            for reference in page.document.requires:
                targets = subject.resolver.resolve(reference, page.document)
                if not targets:
                    yield page.finding(missing, f"requires: {reference!r}", "requires")
                elif len(targets) > 1:
                    shown = ", ".join(target.path for target in targets[:3])
                    yield page.finding("requires-ambiguous", f"requires: {reference!r} ({shown})", "requires")


def check_cycles(subject: Subject) -> Iterator[Finding]:
    """Cycles of any length; one finding for each group of files that require each other, with its shortest cycle
    through the group's first file.
    """
    pages = {page.path: page for page in subject.pages}
    needs = {path: _needs(subject, page) for path, page in pages.items()}
    modern = {page.path for member in subject.members if member.schema >= (4, 1) for page in member.pages}
    for group in strong_components(needs):
        first = min(group)
        cycle = _shortest_cycle(needs, first, group)
        if cycle and group & modern:
            yield pages[first].finding("W-V41-05", f"requires: {' -> '.join(cycle)}", "requires")


def _needs(subject: Subject, page: Page) -> list[str]:
    found = (subject.resolver.resolve(reference, page.document) for reference in page.document.requires)
    return sorted({targets[0].path for targets in found if len(targets) == 1})


def strong_components(edges: Mapping[str, list[str]]) -> Iterator[frozenset[str]]:
    """Groups of nodes that reach each other (Tarjan 1972), without recursion: a chain may be long."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    stacked: set[str] = set()
    work: list[tuple[str, Iterator[str]]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        stacked.add(node)
        work.append((node, iter(edges.get(node, ()))))

    for root in edges:
        if root not in index:
            visit(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    visit(target)
                    break
                if target in stacked:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = {stack.pop()}
                    while node not in group:
                        group.add(stack.pop())
                    stacked -= group
                    yield frozenset(group)


def _shortest_cycle(edges: Mapping[str, list[str]], start: str, group: frozenset[str]) -> list[str]:
    before: dict[str, str] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for target in edges.get(node, ()):
            if target == start:
                cycle = [start]
                while node != start:
                    cycle.append(node)
                    node = before[node]
                return [start, *reversed(cycle[1:]), start]
            if target in group and target not in before:
                before[target] = node
                queue.append(target)
    return []


def check_supersedes(subject: Subject) -> Iterator[Finding]:
    """Superseded files that are still there; by path, else by name."""
    for member in subject.members:
        if member.schema < (4, 0):
            continue
        paths = {page.inner for page in member.content}
        names = {page.name for page in member.content}
        for page in member.content:
            written = page.text("supersedes")
            for old in [written] if written else items(page.metadata.get("supersedes")):
                name = PurePosixPath(old).name if isinstance(old, str) else ""
                if old in paths or (name in names and name != page.name):
                    yield page.finding("W-V40-01", f"supersedes: {old!r}", "supersedes")
