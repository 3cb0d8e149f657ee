"""`drillrank mcp`, driven by the official SDK's own client over standard input and output and over HTTP."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

mcp = pytest.importorskip("mcp")
from mcp.client.stdio import StdioServerParameters  # noqa: E402
from mcp.client.streamable_http import streamable_http_client  # noqa: E402
from mcp.shared._httpx_utils import create_mcp_http_client  # noqa: E402

from tests.processes import interruptible  # noqa: E402

MANUAL = "# Kettle\n\n## Warranty\n\nThe warranty covers the heater.\n\n## Care\n\nBoil vinegar.\n"
TOKEN = "a-secret-of-the-test"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "manual.md").write_text(MANUAL, encoding="utf-8")
    (tmp_path / "secret.md").write_text("The secret heater.", encoding="utf-8")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    return folder


def environment(folder: Path, cache: str = "../cache", **variables: str) -> dict[str, str]:
    paths = {"PYTHONPATH": os.pathsep.join(sys.path), "XDG_CACHE_HOME": os.path.normpath(folder / cache)}
    return {**os.environ, **paths, "DRILLRANK_EMBED": "none", **variables}


def client(folder: Path, *options: str, cache: str = "../cache") -> mcp.Client:
    arguments = ["-m", "drillrank", "mcp", str(folder), *options]
    return mcp.Client(StdioServerParameters(command=sys.executable, args=arguments, env=environment(folder, cache)))


def state(folder: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.lstat().st_mtime_ns, path.lstat().st_size) for path in folder.rglob("*")}


async def call(agent: mcp.Client, tool: str, **arguments):
    result = await agent.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is None  # an answer comes once
    return json.loads(result.content[0].text)


async def test_a_session_of_an_agent(folder):
    before = state(folder)
    async with client(folder) as agent:
        tools = {tool.name: tool for tool in (await agent.list_tools()).tools}
        assert sorted(tools) == ["ask", "check", "outline", "read"]
        assert all(tool.annotations.read_only_hint and tool.description for tool in tools.values())
        [evidence] = (await call(agent, "ask", question="What does the warranty cover?"))["evidence"]
        assert evidence["at"] == "manual.md:1-9"
        assert (await call(agent, "outline"))["files"] == {"": ["manual.md"]}
        assert (await call(agent, "read", file=f"manual.md:{evidence['best']}"))["text"].startswith("The warranty")
        for tool, arguments, message in (
            ("read", {"file": "link.md"}, "is not a file of this folder"),
            ("read", {"file": "manual.md", "section": "care"}, "Did you mean 'Kettle > Care'?"),
            ("ask", {"question": " "}, "query"),
        ):
            result = await agent.call_tool(tool, arguments)
            assert result.is_error
            assert message in result.content[0].text
    assert state(folder) == before


async def test_several_folders_with_links_in_one_session_and_a_cache_in_a_folder_is_not_used(folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "lid.md").write_text("The warranty covers the lid.")
    before = state(folder)
    async with client(folder, str(other), "--follow-links", cache="cache") as agent:
        files = (await call(agent, "outline"))["files"]
        assert files == {"docs/": ["link.md", "manual.md"], "other/": ["lid.md"]}
        assert (await call(agent, "read", file="docs/link.md"))["text"] == "The secret heater."
    assert state(folder) == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, None])
def test_a_signal_ends_the_server_at_once_and_a_client_that_is_gone_in_peace(folder, number):
    version = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    command = [sys.executable, "-m", "drillrank", "mcp", str(folder), "--no-cache"]
    with interruptible(command, stdin=subprocess.PIPE, text=True) as server:
        print(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": version}), file=server.stdin)
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["result"]["serverInfo"]["name"] == "drillrank"
        if number:
            server.send_signal(number)
        else:
            server.stdout.close()
            print(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}), file=server.stdin)
            server.stdin.close()
        assert server.wait(60) in ([-number] if number else [0, 141])  # it may have seen the end of its input first
        assert server.stderr.read() == ""


def wait_for_port(port: int) -> None:
    for _ in range(600):
        with suppress(ConnectionError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.1)
    raise TimeoutError(port)


@contextmanager
def http_server(folder: Path, **variables: str) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "drillrank", "mcp", str(folder), "--no-cache", "--http", str(port)]
    with interruptible(command, text=True, env=environment(folder, **variables)) as server:
        try:
            assert f"http://127.0.0.1:{port}/mcp" in server.stderr.readline()
            wait_for_port(port)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.terminate()
            server.wait(60)


async def ask_over_http(url: str, **headers: str):
    async with (
        create_mcp_http_client(headers=headers) as http,
        mcp.Client(streamable_http_client(url, http_client=http)) as agent,
    ):
        return await call(agent, "ask", question="What does the warranty cover?")


def status_of(url: str, **headers: str) -> int:
    headers |= {"Accept": "application/json, text/event-stream"}
    return httpx.post(url, headers=headers, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}).status_code


async def test_http_serves_this_machine_without_a_token(folder):
    with http_server(folder) as url:
        assert (await ask_over_http(url))["evidence"][0]["at"] == "manual.md:1-9"
        assert status_of(url, Host="rebinding.example") == 421  # a site whose name leads to this machine
        assert status_of(url, Origin="https://rebinding.example") == 403


async def test_http_with_a_token_refuses_other_tokens(folder):
    with http_server(folder, DRILLRANK_MCP_TOKEN=TOKEN) as url:
        assert (await ask_over_http(url, Authorization=f"Bearer {TOKEN}"))["evidence"]
        assert status_of(url) == 401
        assert status_of(url, Authorization="Bearer another-secret-here") == 401
        assert status_of(url, Authorization=f"Bearer {TOKEN}") != 401
