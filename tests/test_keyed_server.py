"""A server with keys as an operator starts it: a key made, the file written, the official client let in."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.error
import urllib.request
from argparse import ArgumentParser
from collections.abc import Generator
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from octavo_serve.commands.serving import KEY
from running import OCTAVO, Serving, octavo, serving


def made(capsys: pytest.CaptureFixture[str], *packs: str) -> tuple[str, str]:
    """A new key and its line for the file, from what the command prints."""
    parser = ArgumentParser()
    KEY.add_arguments(parser)
    KEY.run(parser.parse_args(["new", *(part for pack in packs for part in ("--pack", pack))]))
    lines = capsys.readouterr().out.splitlines()
    return lines[0], next(line for line in lines if line.startswith("  - "))


@pytest.fixture
def keyed(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Generator[tuple[Serving, str]]:
    key, line = made(capsys, "tiny")
    file = tmp_path / "octavo.yaml"
    file.write_text(f"allowed_hosts: [kb.example.org]\nkeys:\n{line}\nrate_limit: {{requests: 50, per_seconds: 1}}\n")
    with serving(built, "--config", str(file)) as running:
        yield running, key


def test_the_key_that_was_made_opens_its_pack_to_the_official_client(keyed: tuple[Serving, str]) -> None:
    server, key = keyed

    async def use() -> None:
        async with create_mcp_http_client({"Authorization": f"Bearer {key}"}) as http_client:
            target = streamable_http_client(f"{server.address}/mcp", http_client=http_client)
            async with Client(target) as client:
                found = await client.call_tool("ep_search", {"query": "hard water"})
                assert found.structured_content is not None
                assert found.structured_content["pack"] == "tiny"

    anyio.run(use)
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(f"{server.address}/search?q=water", timeout=20)
    with error.value as refused:
        assert refused.code == 401
    with urllib.request.urlopen(f"{server.address}/healthz", timeout=20) as answer:
        assert json.load(answer) == {"status": "ok"}


def test_the_server_prints_how_to_send_a_key_and_which_of_its_packs_is_missing(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key, line = made(capsys, "tiny", "valves")
    (tmp_path / "octavo.yaml").write_text(f"dist: {built}\nport: 0\nkeys:\n{line}\n")
    variables = {**os.environ, "OCTAVO_CONFIG": str(tmp_path / "octavo.yaml"), "OCTAVO_HOST": "localhost"}
    with subprocess.Popen(
        [OCTAVO, "serve"], env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        said = ""
        for text in process.stdout:
            said += text
            if text.startswith("Ctrl-C"):
                break
        process.terminate()
        complaints = process.communicate(timeout=20)[1]
    assert '"Authorization": "Bearer KEY"' in said
    assert "curl -H 'Authorization: Bearer KEY'" in said
    assert complaints == "octavo: key tiny-valves is for valves, which is not served\n"
    assert key not in said + complaints


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("prot: 1", "octavo.yaml: prot: unknown, expected perhaps port; ", id="unknown key"),
        pytest.param("port: 1", "dist: missing, expected a folder of releases", id="no dist"),
    ],
)
def test_a_wrong_file_stops_the_server_with_exit_2(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "octavo.yaml").write_text(text)
    done = octavo("serve", "--config", "octavo.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"octavo: {message}")
