"""Installs into the running Python what pip would: with uv, in a sixth of the time, or with pip where uv cannot.

    python tools/install.py "torch==2.13.0" --editable ".[dev]"

uv does not read pip's configuration. It is told where pip looks, so that both find the same packages.
"""

from __future__ import annotations

import ast
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
UV = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable]
# pip's option, uv's variable and what stands between the values of one; where uv's variable is set, it stands.
VARIABLES = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "proxy": ("ALL_PROXY", " "),
}


def pip_options(listing: str) -> dict[str, str]:
    """The options for `pip install` in what `pip config list` says: lines of `section.option='value'`."""
    options: dict[str, str] = {}
    lines = [line.partition("=") for line in listing.splitlines()]
    for wanted in ("global", "install", ":env:"):  # a later section counts
        for key, _, value in lines:
            section, _, option = key.partition(".")
            if section == wanted and value:
                options[option] = str(ast.literal_eval(value))
    return options


def uv_environment(options: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """The environment in which uv looks where pip looks, and takes the best version of all places as pip does.

    Files are copied, as pip does, too: nltk, which LlamaIndex cuts sentences with, reads none that has a second link.
    """
    told = {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_LINK_MODE": "copy"}
    for option, (variable, between) in VARIABLES.items():
        if option in options:
            told[variable] = between.join(options[option].split())
    return {**told, **environment}


def read_environment() -> dict[str, str]:
    """Return the environment in which uv looks where pip is configured to look."""
    listing = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=False).stdout
    return uv_environment(pip_options(listing), os.environ)


def install(arguments: Sequence[str]) -> int:
    """Install; returns the exit status."""
    environment = read_environment()
    if subprocess.run([*PIP, "install", "uv==0.13.9"], check=False).returncode == 0:
        if subprocess.run([*UV, *arguments], env=environment, check=False).returncode == 0:
            return 0
        print("uv could not install it; trying pip.", file=sys.stderr)
    return subprocess.run([*PIP, "install", *arguments], check=False).returncode


if __name__ == "__main__":
    if sys.argv[1:] == ["--environment"]:  # what uv needs, for a shell
        changes = {name: value for name, value in read_environment().items() if os.environ.get(name) != value}
        print("\n".join(f"export {name}={shlex.quote(value)}" for name, value in changes.items()))
        sys.exit()
    sys.exit(install(sys.argv[1:]))
