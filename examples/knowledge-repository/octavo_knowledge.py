# /// script
# requires-python = ">=3.11"
# dependencies = ["octavo[build]"]
# ///
"""Serves what this repository exports to the MCP client that starts it; `.mcp.json` says how."""

import sys
from pathlib import Path

from octavo_serve.cli import main

if __name__ == "__main__":  # the build's worker processes import this file too
    sys.exit(main(["knowledge", str(Path(__file__).parent), *sys.argv[1:]]))
