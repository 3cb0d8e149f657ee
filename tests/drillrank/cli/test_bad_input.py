"""Sizes, patterns, folders and addresses that the command line and the MCP server refuse."""

from __future__ import annotations

import socket

import pytest

from drillrank import D3, limits
from drillrank.cli.folder_tools import FolderTools, name_folders
from drillrank.cli.options import EvidenceSize
from drillrank.cli.patterns import select_paths
from drillrank.cli.sources import list_input_files
from drillrank.errors import InvalidInput
from tests.drillrank.helpers import refuses


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The current folder, which contains the folder `docs`."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "manual.md").write_text("# Kettle\n\nThe warranty covers the heater.\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


test_an_argument_that_cannot_be_used_is_refused = refuses(
    *(
        (lambda name=name, value=value: EvidenceSize(**{name: value}), name)
        for name, value in (("top_n", 0), ("max_tokens", 0), ("max_tokens", -1))
    ),
    *(
        (lambda pattern=pattern: select_paths(["a.md"], [], [pattern]), "--exclude must be a pattern")
        for pattern in ("", " ", "#a.md", "!", "/", "[", "**/**/**/**", "a*a*a*a*")
    ),
    *(
        (lambda folders=folders: name_folders(folders), "folder")
        for folders in ([], ["missing"], ["docs", "docs/manual.md"])
    ),
)


def test_a_file_that_grows_after_it_was_found_is_refused(monkeypatch):
    [file] = list_input_files(["."])[0]
    monkeypatch.setattr(limits, "FILE_BYTES", 5)
    with pytest.raises(InvalidInput, match="is larger than"):
        file.read()


TOKEN = "a-secret-of-the-test"
HOSTS = [("0.0.0.0", ""), ("::", ""), ("192.168.1.2", ""), ("example.org", ""), ("127.0.0.1", "short")]
ADDRESSES = ["", "http", "127.0.0.1", "1:0", "::1:99999999", "localhost:-1"]


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        *(("check_token", pair, "DRILLRANK_MCP_TOKEN") for pair in HOSTS),
        *(("parse_address", (address,), "--http must be a port") for address in ADDRESSES),
    ],
)
def test_an_address_of_the_mcp_server_is_refused(function, arguments, message):
    pytest.importorskip("mcp")
    from drillrank.cli import mcp

    with pytest.raises(InvalidInput, match=message):
        getattr(mcp, function)(*arguments)


@pytest.mark.parametrize(
    ("host", "token"), [*((host, "") for host in ("127.0.0.1", "localhost", "::1")), ("0.0.0.0", TOKEN)]
)
def test_this_machine_needs_no_token_and_others_are_served_with_one(host, token):
    pytest.importorskip("mcp")
    from drillrank.cli.mcp import check_token

    check_token(host, token)


def test_a_port_of_the_mcp_server_that_is_in_use_is_refused(folder):
    pytest.importorskip("mcp")
    from drillrank.cli.mcp import serve_http

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        tools = FolderTools(D3(), [str(folder / "docs")])
        with pytest.raises(InvalidInput, match=r"cannot be used\. Choose another port"):
            serve_http(tools, "127.0.0.1", taken.getsockname()[1], "")
