from __future__ import annotations

from typing import Any

import pytest

from octavo_serve.prompts import list_prompts


def document(path: str, type: str = "workflow", **fields: Any) -> dict[str, Any]:  # noqa: A002  # the field's name
    return {
        "path": path,
        "id": f"p/{path}",
        "title": path,
        "description": None,
        "type": type,
        "tier": "searchable",
        **fields,
    }


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("roll-back", "roll_back"),
        ("wf-roll-back", "roll_back"),
        ("process-setup", "setup"),
        ("Ünï 7", "n_7"),
        ("---", None),
    ],
)
def test_every_workflow_is_a_prompt_named_after_its_file(stem: str, name: str | None) -> None:
    prompts = list_prompts({}, [document("a/x.md", "concept"), document(f"a/{stem}.md")])
    assert [(prompt.name, prompt.document) for prompt in prompts] == ([(name, 1)] if name else [])


def test_a_manifests_prompts_replace_the_workflows() -> None:
    metadata = {"mcp": {"prompts": [
        {"name": "Set up", "description": "how", "source": "b.md"},
        {"name": "gone", "source": "none.md"},
        "no mapping",
    ]}}  # fmt: skip
    (prompt,) = list_prompts(metadata, [document("a.md"), document("b.md", "concept")])
    assert (prompt.name, prompt.description, prompt.document) == ("set_up", "how", 1)


def test_a_prompt_that_nobody_described_is_described_by_its_title() -> None:
    prompts = list_prompts({}, [document("a.md"), document("b.md", description="How to.")])
    assert [prompt.description for prompt in prompts] == ["a.md", "How to."]


@pytest.mark.parametrize("mcp", [None, "x", [], {"prompts": None}, {"prompts": "x"}])
def test_a_manifest_without_prompts_leaves_the_workflows(mcp: object) -> None:
    assert [prompt.name for prompt in list_prompts({"mcp": mcp}, [document("a.md")])] == ["a"]


@pytest.mark.parametrize("arguments", [None, "x", {}, [None, "x", {"name": "no name"}, {"name": ["a"]}, {"name": ""}]])
def test_arguments_of_another_shape_are_none(arguments: object) -> None:
    metadata = {"mcp": {"prompts": [{"name": "a", "source": "a.md", "arguments": arguments}]}}
    (prompt,) = list_prompts(metadata, [document("a.md")])
    assert prompt.arguments == ()
    assert prompt.filled("{{x}} {{ no name }}", {"x": "1"}) == "{{x}} {{ no name }}"


def test_an_argument_that_is_declared_twice_is_one() -> None:
    twice = [{"name": "a", "required": "true"}, {"name": "a", "values": "x"}]
    metadata = {"mcp": {"prompts": [{"name": "a", "source": "a.md", "arguments": twice}]}}
    (prompt,) = list_prompts(metadata, [document("a.md")])
    assert [(each.name, each.required, each.values) for each in prompt.arguments] == [("a", True, ())]


def test_two_files_of_one_name_are_one_prompt() -> None:
    prompts = list_prompts({}, [document("a/x.md"), document("b/x.md")])
    assert [(prompt.name, prompt.document) for prompt in prompts] == [("x", 0)]


def test_on_demand_workflows_are_not_offered() -> None:
    assert list_prompts({}, [document("a.md", tier="on_demand")]) == []
