"""`drillrank mcp`, driven by the official SDK's own client over standard input and output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

mcp = pytest.importorskip("mcp")
from mcp.client.stdio import StdioServerParameters  # noqa: E402

from tests import pdf_files  # noqa: E402
from tests.processes import interruptible  # noqa: E402

MANUAL = "# Kettle\n\n## Warranty\n\nThe warranty covers the heater.\n\n### Not\n\nLime.\n\n## Care\n\nBoil vinegar.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "manual.md").write_text(MANUAL, encoding="utf-8")
    (folder / "sub" / "long.txt").write_text("The pot is wide. " * 2_000, encoding="utf-8")
    pages = [pdf_files.lines(f"The lease of page {number} ends in May.", y=110) for number in (1, 2, 3)]
    (folder / "lease_2021.pdf").write_bytes(pdf_files.pdf_of([[*page] for page in pages]).content())
    (folder / "image.png").write_bytes(b"\x89PNG\0")
    (folder / ".env").write_text("KEY=heater", encoding="utf-8")
    (tmp_path / "secret.md").write_text("The secret heater.", encoding="utf-8")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    return folder


def client(folder: Path, *options: str, cache: str = "../cache") -> mcp.Client:
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "XDG_CACHE_HOME": os.path.normpath(folder / cache)}
    environment["DRILLRANK_EMBED"] = "none"
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "drillrank", "mcp", str(folder), *options], env=environment
    )
    return mcp.Client(command)


def state(folder: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.lstat().st_mtime_ns, path.lstat().st_size) for path in folder.rglob("*")}


async def test_a_session_of_an_agent(folder):
    before = state(folder)
    async with client(folder) as agent:

        async def call(tool, **arguments):
            result = await agent.call_tool(tool, arguments)
            assert not result.is_error, result.content
            return result.structured_content

        tools = {tool.name: tool for tool in (await agent.list_tools()).tools}
        assert sorted(tools) == ["ask", "outline", "read"]
        assert all(tool.annotations.read_only_hint and tool.description for tool in tools.values())
        found = await call("ask", question="What does the warranty cover?", top_n=1)
        [evidence] = found["evidence"]
        assert found["found"] is True
        assert found["finding"]
        assert found["confidence"] > 0.5
        assert evidence["lines"] == [1, 13]
        assert evidence["text"].startswith("# Kettle\n\n## Warranty")
        assert evidence["best"]["lines"] == [5, 5]
        assert evidence["best"]["text"] == "The warranty covers the heater."
        assert not {"question", "scoring", "found"} & evidence.keys()
        assert (evidence["file"], evidence["section"]) == ("manual.md", ["Kettle"])
        assert any("image.png is an image (PNG)" in problem for problem in found["problems"])
        nothing = await call("ask", question="Quantum chromodynamics?")
        assert (nothing["found"], nothing["evidence"]) == (False, [])
        assert "Ask again in words that the files may use." in nothing["finding"]
        only = await call("ask", question="Is the pot wide?", include=["*.md", "*.pdf"], exclude=["lease*"])
        assert {one["file"] for one in only["evidence"]} <= {"manual.md"}
        short = await call("ask", question="What does the warranty cover?", max_tokens=30)
        assert sum(len(one["text"].split()) for one in short["evidence"]) <= 30
        lease = await call("ask", question="When does the lease of page 2 end?", top_n=1)
        assert (lease["evidence"][0]["file"], lease["evidence"][0]["pages"]) == ("lease_2021.pdf", [2, 2])
        early = await call("ask", question="When does the lease of page 2 end?", as_of="2020")
        assert "lease_2021.pdf" not in {one["file"] for one in early["evidence"]}
        files = [one["file"] for one in (await call("outline"))["result"]]
        assert files == ["image.png", "lease_2021.pdf", "manual.md", os.path.join("sub", "long.txt")]
        sections = (await call("outline", file="manual.md"))["result"]
        assert [one["section"][-1] for one in sections] == ["Kettle", "Warranty", "Not", "Care"]
        read = await call("read", file="manual.md", section=["Kettle", "Warranty"])
        assert read == await call("read", file="manual.md", section="Kettle > Warranty")
        assert read["text"] == MANUAL[slice(*read["span"])] == MANUAL[MANUAL.index("## W") : MANUAL.index("## C")]
        page = await call("read", file="lease_2021.pdf", first_page=2)
        assert "page 2" in page["text"]
        assert "page 1" not in page["text"]
        assert "page 3" not in page["text"]
        text, start = "", 0
        while start is not None:
            part = await call("read", file=str(folder / "sub" / "long.txt"), start=start)
            text, start = text + part["text"], part["next"]
        assert text == (folder / "sub" / "long.txt").read_text(encoding="utf-8")
        (folder / "new.md").write_text("The warranty covers the lid.", encoding="utf-8")
        found = await call("ask", question="Does the warranty cover the lid?", top_n=1)
        assert found["evidence"][0]["file"] == "new.md"
        (folder / "new.md").unlink()
    after = state(folder)
    assert {path: was for path, was in after.items() if path != folder} == before


OUTSIDE = ("../secret.md", "link.md", ".env", "sub", "missing.md", "/etc/passwd", "sub/../../secret.md", "\0", "-")
REFUSED = [
    *((tool, {"file": file}, "is not a file of this folder") for tool in ("read", "outline") for file in OUTSIDE),
    ("read", {"file": "manual.md", "section": ["Kettle", "None"]}, "has no section"),
    ("read", {"file": "manual.md", "first_page": 2}, "has no page 2"),
    ("read", {"file": "lease_2021.pdf", "first_page": 9}, "has no page 9"),
    ("read", {"file": "image.png"}, "image.png is an image (PNG)"),
    ("ask", {"question": " "}, "query"),
    ("ask", {"question": "Who?", "top_n": 0}, "top_n"),
    ("ask", {"question": "Who?", "max_tokens": 0}, "max_tokens"),
    ("ask", {"question": "Who?", "include": ["#"]}, "--include must be a pattern"),
    ("ask", {"question": "Who?", "as_of": "soon"}, "A date is a year"),
]


async def test_what_is_refused(folder):
    before = state(folder)
    async with client(folder) as agent:
        for tool, arguments, message in REFUSED:
            result = await agent.call_tool(tool, arguments)
            assert result.is_error, arguments
            assert message in result.content[0].text
            assert "secret heater" not in json.dumps(result.model_dump(mode="json"))
    assert state(folder) == before


async def test_links_are_followed_on_request_and_a_cache_in_the_folder_is_not_used(folder):
    before = state(folder)
    async with client(folder, "--follow-links", cache="cache") as agent:
        result = await agent.call_tool("ask", {"question": "Which is the secret heater?"})
        assert result.structured_content["evidence"][0]["file"] == "link.md"
        result = await agent.call_tool("read", {"file": "link.md"})
        assert result.structured_content["text"] == "The secret heater."
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
