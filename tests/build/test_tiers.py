from __future__ import annotations

import pytest

from octavo_build.sources.tiers import Tiers, tiers_of


@pytest.mark.parametrize(
    ("entries", "path", "tier"),
    [
        pytest.param({}, "a.md", None, id="nothing said"),
        pytest.param({"a.md": "always"}, "a.md", "always", id="the file"),
        pytest.param({"a": "on_demand"}, "a/b/c.md", "on_demand", id="a folder above"),
        pytest.param({"a": "on_demand", "a/b": "always"}, "a/b/c.md", "always", id="the nearest folder"),
        pytest.param({"a": "on_demand", "a/b.md": "always"}, "a/b.md", "always", id="the file before its folder"),
        pytest.param({"ab": "on_demand"}, "abc/d.md", None, id="a folder is whole names"),
        pytest.param({"a/*.md": "always"}, "a/b.md", "always", id="a pattern"),
        pytest.param({"a/*.md": "always"}, "a/b/c.md", None, id="a star stays in its folder"),
        pytest.param({"a/**/c.md": "always"}, "a/x/y/c.md", "always", id="two stars do not"),
        pytest.param({"*.md": "always"}, "a/b.md", None, id="a pattern begins at the root"),
        pytest.param({"a": "on_demand", "a/*.md": "always"}, "a/b.md", "always", id="a pattern before its folder"),
        pytest.param({"a/b": "on_demand", "a/**": "always"}, "a/b/c.md", "on_demand", id="more parts before fewer"),
        pytest.param({"a/b-*.md": "always", "a/b-1.md": "on_demand"}, "a/b-1.md", "on_demand", id="the file first"),
        pytest.param({".": "on_demand"}, "a/b.md", "on_demand", id="everything"),
    ],
)
def test_the_most_specific_entry_decides(entries: dict[str, str], path: str, tier: str | None) -> None:
    assert Tiers(entries).of(path) == tier


def test_entries_are_taken_from_the_members_root() -> None:
    context = {"always": ["overview.md", "./x/"], "on_demand": ["volatile/", 3], "searchable": None}
    assert tiers_of(context, "part/") == {
        "part/overview.md": "always",
        "part/x": "always",
        "part/volatile": "on_demand",
    }


@pytest.mark.parametrize("context", [None, [], "always", {"always": "overview.md"}])
def test_a_context_of_another_kind_says_nothing(context: object) -> None:
    assert tiers_of(context, "") == {}
