# type: ignore  # for whichever SDK its caller has imported
"""What `look.mjs` does, for clients in Python: they have environments of their own, without Octavo."""

import json
import sys
from hashlib import sha256

QUESTION = "the display shows E-17, what now?"
TARGET = json.loads(sys.argv[1])
HEADERS = {"Authorization": f"Bearer {TARGET['key']}"} if "key" in TARGET else {}


async def look(session):
    """What a session of any of the SDKs sees; they differ in the case of a name and in what they unpack."""

    def named(value, snake, camel):
        return getattr(value, snake) if hasattr(value, snake) else getattr(value, camel)

    def unpacked(listed, name):
        return getattr(listed, name, listed)

    async def call(name, arguments):
        return named(await session.call_tool(name, arguments), "structured_content", "structuredContent")

    hit = (await call("ep_search", {"query": QUESTION}))["results"][0]
    read = await call("ep_read", {"id": hit["id"]})
    answer = await call("ep_ask", {"question": QUESTION})
    content = unpacked(await session.read_resource(hit["uri"]), "contents")[0]
    return {
        "tools": [tool.name for tool in unpacked(await session.list_tools(), "tools")],
        "resources": [str(each.uri) for each in unpacked(await session.list_resources(), "resources")],
        "prompts": [prompt.name for prompt in unpacked(await session.list_prompts(), "prompts")],
        "found": hit["id"],
        "read": read["id"],
        "answered": answer["answer"],
        "resource": sha256(content.text.encode()).hexdigest(),
    }


def show(version, seen):
    """Print it as the clients in TypeScript do."""
    print(json.dumps({"version": version, **seen}))
