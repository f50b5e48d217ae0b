# type: ignore  # fastmcp, in an environment of its own
"""The client of fastmcp."""

import asyncio

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from look import HEADERS, TARGET, look, show


async def main():
    """Connect, look and print."""
    if "command" in TARGET:
        transport = StdioTransport(TARGET["command"][0], TARGET["command"][1:])
    else:
        transport = StreamableHttpTransport(TARGET["url"], headers=HEADERS)
    async with Client(transport) as client:
        show(client.session.protocol_version, await look(client))


asyncio.run(main())
