# SPDX-License-Identifier: Apache-2.0
"""The public client of the Model Context Protocol speaks with swsim.mcp: python3 mcp_client.py PLAN, one that is violated."""
import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def speak(plan):
    """Connect, list the tools, call some; an assertion fails where an answer is another one."""
    server = StdioServerParameters(command=sys.executable, args=["-m", "swsim.mcp"], env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        greeting = json.loads((await session.initialize()).model_dump_json(by_alias=True))
        assert greeting["serverInfo"]["name"] == "swsim", greeting
        listed = json.loads((await session.list_tools()).model_dump_json(by_alias=True))
        names = {tool["name"] for tool in listed["tools"]}
        assert {"verify", "predict", "what_if", "why", "explain"} <= names, names
        assert all(tool["annotations"]["readOnlyHint"] for tool in listed["tools"]), listed
        for name, given in (("verify", {"plan": plan}), ("explain", {"word": "retire"})):
            answer = json.loads((await session.call_tool(name, given)).model_dump_json(by_alias=True))
            assert not answer["isError"] and answer["structuredContent"], answer
        answer = json.loads((await session.call_tool("verify", {"plan": "/no/such/plan.yaml"})).model_dump_json(by_alias=True))
        assert answer["isError"] and "/no/such/plan.yaml" in answer["content"][0]["text"], answer


asyncio.run(asyncio.wait_for(speak(sys.argv[1]), 100))
