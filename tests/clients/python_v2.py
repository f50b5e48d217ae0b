# type: ignore  # as its siblings
"""The official client in Python, version 2; the second argument is its mode."""

import asyncio
import sys

from look import HEADERS, QUESTION, TARGET, look, show
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client


async def main():
    """Connect, look and print."""
    async with create_mcp_http_client(HEADERS) as http_client:
        if "command" in TARGET:
            command, *arguments = TARGET["command"]
            transport = stdio_client(StdioServerParameters(command=command, args=arguments))
        else:
            transport = streamable_http_client(TARGET["url"], http_client=http_client)
        async with Client(transport, mode=sys.argv[2]) as client:
            told = []

            async def note(progress, total, message):
                told.append(message)

            await client.call_tool("ep_ask", {"question": QUESTION}, progress_callback=note)
            show(client.protocol_version, {**await look(client), "told": told})


asyncio.run(main())
