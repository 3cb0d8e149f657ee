"""`drillrank install-agent`: add the MCP server and the skill to the agents on this machine, or remove them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import unified_diff
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from drillrank.cli import terminal
from drillrank.cli.config_files import Entry, get_entry, remove_entry, set_entry
from drillrank.cli.folder_tools import name_folders
from drillrank.cli.terminal import one_line, print_problem, shorten
from drillrank.errors import InvalidInput, require
from drillrank.files import replace_file

_MAX_FILE_BYTES = 10_000_000
_MAX_LINE_CHARACTERS = 160  # of a change that is shown
_BACKUP_SUFFIX = ".drillrank-backup"
_SKILL = ("drillrank", "SKILL.md")
_SKILL_START = "---\nname: drillrank\n"


@dataclass(frozen=True)
class Agent:
    """Agent that reads its MCP servers from a file.

    Attributes:
        name: Name on the command line.
        title: Name for the user.
        config: Path of the configuration file, with `~` for the home folder and `{data}` for the folder of the
            applications' data.
        key: Table of the file that contains the servers.
        marker: Path that exists if the agent is installed; the folder of the configuration file by default.
        fields: Fields of a server in addition to its command.
        skills: Folder of the user's skills; empty if the agent has none.
    """

    name: str
    title: str
    config: str
    key: str = "mcpServers"
    marker: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    skills: str = ""

    @property
    def config_path(self) -> Path:
        """Path of the configuration file."""
        return _expand(self.config)

    @property
    def is_installed(self) -> bool:
        """True if the agent seems to be on this machine."""
        return self.config_path.exists() or (_expand(self.marker) if self.marker else self.config_path.parent).is_dir()


AGENTS = (
    Agent("claude-desktop", "Claude Desktop", "{data}/Claude/claude_desktop_config.json"),
    Agent("claude-code", "Claude Code", "~/.claude.json", marker="~/.claude", skills="~/.claude/skills"),
    Agent("cursor", "Cursor", "~/.cursor/mcp.json", skills="~/.agents/skills"),
    Agent(
        "vscode",
        "Visual Studio Code",
        "{data}/Code/User/mcp.json",
        "servers",
        fields={"type": "stdio"},
        skills="~/.agents/skills",
    ),
    Agent("windsurf", "Windsurf", "~/.codeium/windsurf/mcp_config.json"),
    Agent("codex", "Codex", "{codex}/config.toml", "mcp_servers", skills="~/.agents/skills"),
    Agent("gemini-cli", "Gemini CLI", "~/.gemini/settings.json", skills="~/.agents/skills"),
    Agent("zed", "Zed", "{zed}/settings.json", "context_servers"),
)


@dataclass(frozen=True)
class FileChange:
    """Change of a file that the user confirms.

    Attributes:
        path: Path of the file; links to it are resolved.
        before: Content; None if the file does not exist.
        after: New content; None to remove the file.
        is_undo: True if this restores the content before drillrank's first change.
    """

    path: Path
    before: str | None
    after: str | None
    is_undo: bool = False

    @property
    def backup(self) -> Path:
        """Path of the copy of the old content."""
        return self.path.with_name(self.path.name + _BACKUP_SUFFIX)

    @property
    def is_skill(self) -> bool:
        """True if the file is a skill."""
        return self.path.parts[-2:] == _SKILL

    def lines(self) -> list[str]:
        """Return the lines that change, with - or + in front."""
        lines = unified_diff((self.before or "").splitlines(), (self.after or "").splitlines(), n=0, lineterm="")
        return [line for line in lines if not line.startswith(("---", "+++", "@@"))]

    def write(self) -> None:
        """Write the new content, and a backup of the old one.

        Raises:
            InvalidInput: The file has changed meanwhile, or it cannot be written.
        """
        if _read(self.path) != self.before:
            raise InvalidInput(f"{self.path} was changed by another program meanwhile. Run the command again.")
        try:
            if self.before is not None and not self.is_undo:
                _write(self.backup, self.before, self.path)
            if self.after is None:
                self.path.unlink()
            else:
                _write(self.path, self.after, self.path)
            if self.is_undo:
                self.backup.unlink(missing_ok=True)
            if self.after is None and self.is_skill:
                with suppress(OSError):  # the user has other files in it
                    self.path.parent.rmdir()
        except OSError as cause:
            raise InvalidInput(f"{self.path} cannot be written: {cause.strerror}. Check its permissions.") from cause


def run_install_agent(
    folders: Sequence[str], agents: Sequence[str], name: str, *, remove: bool, with_skill: bool, yes: bool
) -> bool:
    """Add the server to agents, or remove it. Show the changes and ask first. `--help` explains the options.

    Returns:
        True if something was changed, or if nothing had to be.

    Raises:
        InvalidInput: A folder does not exist, no agent is installed, or a file cannot be read or written.
    """
    out = terminal.console
    selected = [agent for agent in AGENTS if agent.name in agents or (not agents and agent.is_installed)]
    if not selected:
        raise InvalidInput(f"No agent was detected. Name one with --agent: {', '.join(a.name for a in AGENTS)}.")
    command: Entry = {}
    if not remove:
        require("mcp.server.mcpserver", "mcp")
        paths = [str(path) for path in name_folders(folders).values()]
        command = {"command": sys.executable, "args": ["-m", "drillrank", "mcp", *paths]}
    changes: list[FileChange] = []
    problems: list[InvalidInput] = []
    for agent in selected:
        change = _try_change(agent, name, None if remove else {**agent.fields, **command})
        if isinstance(change, FileChange):
            changes.append(change)
            _print_change(agent.title, change)
        else:
            problems.append(change)
    for skills in dict.fromkeys(agent.skills for agent in selected if agent.skills and with_skill):
        changes.append(change_skill(_expand(skills).joinpath(*_SKILL), remove))
        _print_change("Skill", changes[-1])
    changes = [item for item in changes if item.before != item.after]
    is_confirmed = bool(changes) and (yes or _confirm(f"Change {terminal.count_of(len(changes), 'file')}?"))
    for change in changes if is_confirmed else ():
        change.write()
    if is_confirmed:
        out.print("Done. Restart the agents. Backups end in " + _BACKUP_SUFFIX + ".", soft_wrap=True)
    for problem in problems[:-1]:
        print_problem("red", problem)
    if problems:
        raise problems[-1]
    return is_confirmed or not changes


def _try_change(agent: Agent, name: str, entry: Entry | None) -> FileChange | InvalidInput:
    """Return the change of an agent's configuration file, or why the file cannot be changed."""
    try:
        return change_config(agent, name, entry)
    except InvalidInput as error:
        return InvalidInput(f"{agent.title}: {agent.config_path} is not changed: {error}")


def change_config(agent: Agent, name: str, entry: Entry | None) -> FileChange:
    """Return the change of an agent's configuration file.

    Args:
        agent: The agent.
        name: Name of the server.
        entry: The server; None to remove it. If nothing else has changed since it was added, the file becomes what it
            was before.

    Raises:
        InvalidInput: The file cannot be read or edited.
    """
    path = Path(os.path.realpath(agent.config_path))
    before = _read(path)
    text = before or ""
    old_entry = get_entry(text, path.name, agent.key, name)
    if entry is not None:
        is_same = old_entry is not None and dict(old_entry) == entry
        return FileChange(path, before, before if is_same else set_entry(text, path.name, agent.key, name, entry))
    if old_entry is None:
        return FileChange(path, before, before)
    backup = _read(path.with_name(path.name + _BACKUP_SUFFIX))
    with suppress(InvalidInput):
        has_older_entry = get_entry(backup or "", path.name, agent.key, name) is not None  # of an earlier installation
        if not has_older_entry and set_entry(backup or "", path.name, agent.key, name, old_entry) == text:
            return FileChange(path, before, backup, is_undo=True)
    return FileChange(path, before, remove_entry(text, path.name, agent.key, name))


def change_skill(path: Path, remove: bool) -> FileChange:
    """Return the change of a skill file. A file of that name which is not drillrank's is not removed."""
    before = _read(path)
    if not remove:
        return FileChange(path, before, read_skill())
    is_ours = (before or "").startswith(_SKILL_START)
    return FileChange(path, before, None if is_ours else before, is_undo=is_ours)


def read_skill() -> str:
    """Return the skill that tells an agent when and how to use drillrank."""
    return (files("drillrank") / "data" / "SKILL.md").read_text(encoding="utf-8")


def _expand(path: str) -> Path:
    """Return a path of an agent on this system."""
    data, config = _data_folder(), os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    codex = os.environ.get("CODEX_HOME") or "~/.codex"
    zed = f"{data}/Zed" if sys.platform == "win32" else f"{config}/zed"
    try:
        return Path(path.format(data=data, codex=codex, zed=zed)).expanduser()
    except RuntimeError as cause:
        raise InvalidInput(f"Agents cannot be looked for: {cause} Set HOME.") from cause


def _data_folder() -> str:
    if sys.platform == "darwin":
        return "~/Library/Application Support"
    if sys.platform == "win32":
        return os.environ.get("APPDATA") or "~/AppData/Roaming"
    return os.environ.get("XDG_CONFIG_HOME") or "~/.config"


def _read(path: Path) -> str | None:
    """Return the content of a file with its line ends; None if it does not exist."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as cause:
        raise InvalidInput(f"{path} cannot be read: {cause.strerror}. Check its permissions.") from cause
    if len(content) > _MAX_FILE_BYTES:
        raise InvalidInput(f"{path} has {len(content):,} bytes, at most {_MAX_FILE_BYTES:,} are read. Edit it by hand.")
    try:
        return content.decode()
    except UnicodeDecodeError as cause:
        raise InvalidInput(f"{path} is not UTF-8: {cause.reason}. Edit it by hand.") from cause


def _write(path: Path, text: str, permissions_of: Path) -> None:
    """Replace a file as a whole. It gets the permissions of another file, if that exists."""
    with replace_file(path) as file:
        file.write(text.encode())
        if permissions_of.exists():
            os.chmod(file.name, permissions_of.stat().st_mode & 0o777)


def _print_change(title: str, change: FileChange) -> None:
    """Print what happens to a file, and the lines that change. Of a skill that is new or removed, print its path."""
    kind = ""
    if change.before == change.after:
        kind = " stays as it is"
    elif change.before is None or change.after is None:
        kind = " is created" if change.before is None else " is removed"
    terminal.console.print(f"[bold]{title}[/bold]: {one_line(change.path)}{kind}", soft_wrap=True)
    for line in change.lines() if not (kind and change.is_skill) else ():
        color = "green" if line.startswith("+") else "red"
        text = line if len(line) <= _MAX_LINE_CHARACTERS else shorten(line, _MAX_LINE_CHARACTERS)
        terminal.console.print(f"  [{color}]{escape(text)}[/{color}]", soft_wrap=True)


def _confirm(question: str) -> bool:
    """Return the user's answer; False if there is none."""
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        return False
