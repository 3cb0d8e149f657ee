"""Start the MCP server of drillrank for the folders in the arguments."""

import sys

from drillrank.cli import main

sys.exit(main(["mcp", "--", *sys.argv[1:]]))
