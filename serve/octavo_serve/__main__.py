"""`python -m octavo_serve` is `octavo`, for a process that knows its interpreter and not where scripts are."""

from __future__ import annotations

import sys

from octavo_serve.cli import main

if __name__ == "__main__":
    sys.exit(main())
