"""Other people's clients work: what each sees is what the pack holds, over each transport."""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.matrix import ANSWER, CLIENTS, TRANSPORTS, Table, fill, targets

pytestmark = pytest.mark.slow

TOOLS = ["ep_search", "ep_read", "ep_list_topics", "ep_graph_traverse", "ep_ask"]


@pytest.fixture(scope="module")
def table(with_skills: Path, tmp_path_factory: pytest.TempPathFactory) -> Table:
    with targets(with_skills, tmp_path_factory.mktemp("keys")) as at:
        return fill(at)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_of_others_sees_what_the_pack_holds(table: Table, client: str, transport: str) -> None:
    seen = table[client, transport]
    if isinstance(seen, BaseException):
        raise seen
    assert seen["version"] == CLIENTS[client].version
    assert set(TOOLS) <= {*seen["tools"]}
    assert {"ep://tiny/manifest", "ep://tiny/file/concepts/water.md", "skill://tiny/SKILL.md"} <= {*seen["resources"]}
    assert seen["prompts"] == ["descale", "skill_tiny"]
    assert (seen["found"], seen["read"]) == ("tiny/workflows/descale", "tiny/workflows/descale")
    assert seen["answered"] == ANSWER
    if "told" in seen:
        assert seen["told"][0].endswith(("source", "sources"))
        # TypeScript's takes its answer from stdio before it looks at what it was told last
        late = client.startswith("TypeScript") and transport == "stdio"
        assert seen["told"][-1] == "answered with 1 citation" or (late and seen["told"][-1] == seen["told"][0])
    if CLIENTS[client].skills:
        assert {"skill://tiny/SKILL.md", "skill://tiny/concepts/water.md"} <= {*seen["skills"]}


def test_all_clients_see_the_same(table: Table) -> None:
    seen = [
        {name: value for name, value in outcome.items() if name not in ("version", "skills", "told")}
        for outcome in table.values()
        if isinstance(outcome, dict)
    ]
    assert [each for each in seen if each != seen[0]] == []
