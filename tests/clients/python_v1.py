# type: ignore  # mcp 1.x, in an environment of its own
"""The official client in Python, version 1."""

import asyncio

from look import HEADERS, TARGET, look, show
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


async def main():
    """Connect, look and print."""
    if "command" in TARGET:
        transport = stdio_client(StdioServerParameters(command=TARGET["command"][0], args=TARGET["command"][1:]))
    else:
        transport = streamablehttp_client(TARGET["url"], headers=HEADERS)
    async with transport as streams, ClientSession(streams[0], streams[1]) as session:
        initialized = await session.initialize()
        show(initialized.protocolVersion, await look(session))


asyncio.run(main())
