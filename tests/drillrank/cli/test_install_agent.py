"""`drillrank install-agent` against configuration files as the agents write them."""

from __future__ import annotations

import json
import re
import stat
import sys
from io import StringIO
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("mcp")
tomlkit = pytest.importorskip("tomlkit")

from drillrank.cli import main  # noqa: E402
from drillrank.cli.agents import AGENTS, read_skill  # noqa: E402
from drillrank.cli.config_files import config_format, remove_entry, set_entry  # noqa: E402

CLAUDE_DESKTOP = """{
  "globalShortcut": "Ctrl+Space",
  "mcpServers": {
    "filesystem": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me"]
    }
  }
}"""
CLAUDE_CODE = """{
  "numStartups": 12,
  "projects": {"/home/me/app": {"mcpServers": {"local": {"command": "x"}}}},
  "oauthAccount": {"emailAddress": "me@example.org"}
}
"""
ZED = """// Zed settings
//
// See the documentation
{
    "theme": "One Dark", // the dark one
    /* servers */
    "context_servers": {
        // kept, too
        "other": {"command": "y", "args": []}, // the last one
    },
}
"""
VSCODE = '{\r\n\t"inputs": [],\r\n\t"servers": {}\r\n}\r\n'
CODEX = """# my settings
model = "gpt-5"   # the default

[mcp_servers.other]
command = "x"
args = [
  "a", # first
]

[profiles.fast]
model = "gpt-5-mini"
"""
GEMINI = '{"theme": "GitHub", "mcpServers": {"a": {"command": "b"}}}\n'
FILES = {
    "claude-desktop": (".config/Claude/claude_desktop_config.json", CLAUDE_DESKTOP),
    "claude-code": (".claude.json", CLAUDE_CODE),
    "zed": (".config/zed/settings.json", ZED),
    "vscode": (".config/Code/User/mcp.json", VSCODE),
    "codex": (".codex/config.toml", CODEX),
    "gemini-cli": (".gemini/settings.json", GEMINI),
    "windsurf": (".codeium/windsurf/mcp_config.json", ""),
    "cursor": (".cursor/mcp.json", "{}"),
}
AGENT_BY_NAME = {agent.name: agent for agent in AGENTS}


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    home = tmp_path / "home"
    (home / "contracts").mkdir(parents=True)
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    return home


def write_config(home: Path, agent: str) -> Path:
    name, text = FILES[agent]
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def install(home: Path, *options: str) -> int:
    return main(["install-agent", str(home / "contracts"), *options])


def load(path: Path) -> dict:
    return config_format(path.name).load(path.read_bytes().decode())


@pytest.mark.parametrize("agent", FILES)
def test_the_server_is_added_and_removed_without_a_trace(home, agent):
    path, settings = write_config(home, agent), AGENT_BY_NAME[agent]
    before, old = path.read_bytes(), load(path)
    assert install(home, "--yes") == 0
    entry = {"command": sys.executable, "args": ["-m", "drillrank", "mcp", str(home / "contracts")]}
    assert load(path) == {**old, settings.key: {**old.get(settings.key, {}), "drillrank": {**settings.fields, **entry}}}
    assert path.with_name(f"{path.name}.drillrank-backup").read_bytes() == before
    assert main(["install-agent", "--remove", "--yes"]) == 0
    assert path.read_bytes() == before
    assert {file.name for file in home.rglob("*") if file.is_file()} == {path.name}


@pytest.mark.parametrize("agent", ["zed", "codex", "claude-desktop"])
def test_every_other_line_stays_where_it_was(home, agent):
    path = write_config(home, agent)
    before = path.read_text()
    install(home, "--yes")
    added = [line for line in path.read_text().splitlines() if line not in before.splitlines()]
    kept = [line for line in path.read_text().splitlines() if line in before.splitlines()]
    comma = [line for line in before.splitlines() if line not in kept]  # it gets a comma
    assert len(comma) <= 1
    assert "drillrank" in "".join(added)
    assert re.findall("//.*|/[*].*[*]/|#.*", path.read_text()) == re.findall("//.*|/[*].*[*]/|#.*", before)


@pytest.mark.parametrize("agent", FILES)
def test_what_others_changed_meanwhile_stays(home, agent):
    path, key = write_config(home, agent), AGENT_BY_NAME[agent].key
    install(home, "--yes")
    text = set_entry(path.read_bytes().decode(), path.name, key, "later", {"command": "z"})
    path.write_bytes(text.encode())
    expected = load(path)
    del expected[key]["drillrank"]
    assert main(["install-agent", "--remove", "--yes"]) == 0
    assert load(path) == expected
    for comment in ("// kept, too", "// the dark one", "# first", "# the default"):
        assert (comment in path.read_text()) == (comment in FILES[agent][1])


def test_other_folders_replace_the_first_ones_and_the_same_change_nothing(home, capsys):
    path = write_config(home, "claude-desktop")
    (home / "notes").mkdir()
    install(home, "--yes")
    assert main(["install-agent", str(home / "notes"), str(home / "contracts"), "--yes"]) == 0
    assert load(path)["mcpServers"]["drillrank"]["args"][-2:] == [str(home / "notes"), str(home / "contracts")]
    capsys.readouterr()
    assert main(["install-agent", str(home / "notes"), str(home / "contracts")]) == 0  # nothing to ask about
    assert "stays as it is" in capsys.readouterr().out


@pytest.mark.parametrize("agent", FILES)
def test_a_second_installation_leaves_nothing_to_remove(home, agent):
    path, key = write_config(home, agent), AGENT_BY_NAME[agent].key
    old = load(path).get(key, {})
    (home / "notes").mkdir()
    install(home, "--yes")
    main(["install-agent", str(home / "notes"), "--yes"])
    assert main(["install-agent", "--remove", "--yes"]) == 0
    assert load(path).get(key, {}) == old


def test_nothing_is_written_before_the_user_agrees(home, capsys, monkeypatch):
    path = write_config(home, "zed")
    for answer, status in (("n\n", 1), ("", 1), ("y\n", 0)):
        monkeypatch.setattr("sys.stdin", StringIO(answer))
        assert install(home) == status
        shown = capsys.readouterr().out
        assert '+        "drillrank": {' in shown
        assert "One Dark" not in shown  # other settings may be secret
        assert (path.read_text() == ZED) == bool(status)


def test_only_agents_that_are_installed_are_changed(home):
    write_config(home, "cursor")
    install(home, "--yes", "--no-skill")
    assert {file.name for file in home.rglob("*") if file.is_file()} == {"mcp.json", "mcp.json.drillrank-backup"}


def test_an_agent_can_be_named_before_it_is_installed(home):
    assert install(home, "--yes", "--agent", "windsurf", "--name", "contracts") == 0
    assert [*load(home / FILES["windsurf"][0])["mcpServers"]] == ["contracts"]


def test_permissions_and_links_stay(home, tmp_path):
    path = write_config(home, "claude-code")
    path.chmod(0o600)
    elsewhere = tmp_path / "dotfiles.json"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    install(home, "--yes")
    assert path.is_symlink()
    for file in (elsewhere, tmp_path / "dotfiles.json.drillrank-backup"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_skill_is_installed_once_for_each_folder(home):
    for agent in ("claude-code", "codex", "gemini-cli"):
        write_config(home, agent)
    (home / ".claude").mkdir()
    install(home, "--yes")
    skills = sorted(path.relative_to(home).as_posix() for path in home.rglob("SKILL.md"))
    assert skills == [".agents/skills/drillrank/SKILL.md", ".claude/skills/drillrank/SKILL.md"]
    assert (home / skills[0]).read_text() == read_skill()
    mine = home / ".claude/skills/drillrank/SKILL.md"
    mine.write_text("---\nname: mine\n---\n")
    main(["install-agent", "--remove", "--yes"])
    assert list(home.rglob("SKILL.md")) == [mine]


def test_the_skill_follows_the_format_of_skills():
    _, head, body = read_skill().split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    assert fields["name"] == "drillrank"
    assert len(fields["description"]) <= 1_024
    for name in ("ask", "read", "outline", "found", "include", "max_tokens"):
        assert f"`{name}`" in body


BAD = {
    "cut off": ("claude-desktop", '{"mcpServers": {', "not valid JSON"),
    "a list": ("cursor", "[]", "must contain a JSON object"),
    "no table": ("gemini-cli", '{"mcpServers": []}', "mcpServers must be a table, got list"),
    "latin": ("cursor", b'{"a": "\xe4"}', "is not UTF-8"),
    "toml": ("codex", "[mcp_servers", "not valid TOML"),
    "deep": ("zed", "[" * 100_000, "not valid JSON"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_file_that_cannot_be_read_is_not_changed_and_the_others_are(home, capsys, case):
    agent, text, message = BAD[case]
    other = write_config(home, "windsurf")
    path = write_config(home, agent)
    content = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(content)
    assert install(home, "--yes") == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert path.read_bytes() == content
    assert "drillrank" in load(other)["mcpServers"]


def test_errors_of_the_command(home, capsys):
    assert install(home, "--yes") == 2
    assert "No agent was detected. Name one with --agent" in capsys.readouterr().err
    write_config(home, "cursor")
    assert main(["install-agent", "--yes"]) == 2
    assert "at least one folder" in capsys.readouterr().err
    assert main(["install-agent", str(home / "missing"), "--yes"]) == 2
    assert "is not a folder" in capsys.readouterr().err


def test_a_file_that_another_program_changes_meanwhile_is_not_overwritten(home, capsys, monkeypatch):
    path = write_config(home, "cursor")

    def confirm(*_, **__):
        path.write_text('{"new": 1}')
        return True

    monkeypatch.setattr("click.confirm", confirm)
    assert install(home, "--no-skill") == 2
    assert "was changed by another program" in " ".join(capsys.readouterr().err.split())
    assert path.read_text() == '{"new": 1}'


@pytest.mark.parametrize(
    ("platform", "environment", "agent", "path"),
    [
        ("darwin", {}, "claude-desktop", "Library/Application Support/Claude/claude_desktop_config.json"),
        ("darwin", {}, "zed", ".config/zed/settings.json"),
        ("win32", {"APPDATA": "{home}/Roaming"}, "vscode", "Roaming/Code/User/mcp.json"),
        ("win32", {}, "zed", "AppData/Roaming/Zed/settings.json"),
        ("linux", {"XDG_CONFIG_HOME": "{home}/xdg"}, "claude-desktop", "xdg/Claude/claude_desktop_config.json"),
        ("linux", {"CODEX_HOME": "{home}/my-codex"}, "codex", "my-codex/config.toml"),
    ],
)
def test_paths_of_systems(home, monkeypatch, platform, environment, agent, path):
    monkeypatch.setattr(sys, "platform", platform)
    for name, value in environment.items():
        monkeypatch.setenv(name, value.format(home=home))
    assert AGENT_BY_NAME[agent].config_path == home / path


# --- any JSON file

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
TABLES = st.dictionaries(st.sampled_from(["a", "b", "servers", "//", '"', ","]), VALUES, max_size=4)
FILLINGS = st.sampled_from(["", " ", "\n", "\n\t", "// ,}\n", '/* { \n " */', "\r\n  "])


@st.composite
def jsonc_texts(draw) -> tuple[str, dict]:
    """JSON with comments, spaces and trailing commas anywhere, and its values."""
    values = draw(TABLES)
    values["servers"] = draw(st.dictionaries(st.sampled_from(["x", "y", "mine"]), VALUES, max_size=3))
    tokens = re.findall(
        r'"(?:[^"\\]|\\.)*"|[^"]', json.dumps(values, separators=(",", ":"), ensure_ascii=draw(st.booleans()))
    )
    tokens = [
        f",{token}" if token in "}]" and before not in "{[" and draw(st.integers(0, 3)) == 0 else token
        for before, token in zip(["{", *tokens], tokens, strict=False)
    ]
    is_atom = re.compile(r"[\w.+-]")
    text = tokens[0]
    for before, token in pairwise(tokens):
        text += token if is_atom.match(before[-1:]) and is_atom.match(token[:1]) else draw(FILLINGS) + token
    return draw(FILLINGS) + text + draw(FILLINGS), values


@given(jsonc_texts())
@example(('{"servers":{"x":"\ufeff"}}', {"servers": {"x": "\ufeff"}}))  # this character is a mark at the start alone
def test_any_json_file_keeps_its_values_and_comments(case):
    text, values = case
    edited = set_entry(text, "a.json", "servers", "mine", {"command": "c", "args": ["1"]})
    loaded = config_format("a.json").load(edited)
    assert loaded == {**values, "servers": {**values["servers"], "mine": {"command": "c", "args": ["1"]}}}
    removed = remove_entry(edited, "a.json", "servers", "mine")
    values["servers"].pop("mine", None)
    assert config_format("a.json").load(removed) == values
    if "mine" not in text:
        for comment in ("// ,}", '/* { \n " */'):
            assert removed.count(comment) == edited.count(comment) == text.count(comment)
