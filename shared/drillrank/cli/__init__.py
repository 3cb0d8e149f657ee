"""The command line: `drillrank ask`, `drillrank outline`, `drillrank demo` and `drillrank components`."""

from drillrank.cli.command import main

__all__ = ["main"]
