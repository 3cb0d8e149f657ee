"""Prints a session of an MCP client with `drillrank mcp`: initialize, tools, outline, ask, the next passages, read.

    python tools/mcp_session.py FOLDER "QUESTION" [-- COMMAND ...]

COMMAND starts the server; by default, it is `python -m drillrank mcp FOLDER`. Each answer is shown as the agent gets
it, with its tokens by the estimate of drillrank. A long answer is cut for display.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from drillrank.text import count_tokens

SHOWN = 700  # characters of an answer


def show(title: str, text: str) -> None:
    """Print an answer with its tokens."""
    print(f"\n→ {title}\n← {count_tokens(text):,} tokens: {text[:SHOWN]}{' […]' * (len(text) > SHOWN)}")


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool, print the call and its answer, and return the answer."""
    result = await client.call_tool(tool, arguments)
    text = result.content[0].text  # type: ignore[union-attr]
    show(f"{tool} {json.dumps(arguments)}", text)
    assert not result.is_error, text
    return json.loads(text)  # type: ignore[no-any-return]


async def main(folder: str, question: str, command: list[str]) -> None:
    """Run the session."""
    command = command or [sys.executable, "-m", "drillrank", "mcp", folder]
    async with Client(StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))) as client:
        print(f"→ initialize\n← {client.server_info.name} {client.server_info.version}: {client.instructions}")
        tools = (await client.list_tools()).tools
        listed = json.dumps([tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools])
        show("tools/list", listed)
        await call(client, "outline", max_tokens=100)
        answer = await call(client, "ask", question=question, top_n=2)
        if "next" in answer:
            await call(client, "ask", question=question, top_n=2, start=answer["next"])
        assert answer["evidence"], "no passage"
        await call(client, "read", file=answer["evidence"][0]["at"], max_tokens=200)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[4:]))  # after --
