"""The console script `frazil`, which also answers where the packages of the command line are missing."""

from __future__ import annotations

import sys

from frazil.errors.missing_package import missing_package
from frazil.exit_codes import Exit


def main() -> None:
    """Run the command line."""
    try:
        from frazil.cli.main import main as run
    except ModuleNotFoundError as error:
        if (missing := missing_package(error.name)) is None:
            raise
        sys.stderr.write(f"error: {missing}\n")
        sys.exit(Exit.SERVICE_UNAVAILABLE)
    run()
