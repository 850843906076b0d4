"""`python -m policies FILE...`: check stacks, plans and documents against the rules.

A FILE is a synthesised stack (`cdktf.out/stacks/*/cdk.tf.json`), a plan (`terraform show -json`) or a document of Frazil. The
rules see all files together, so that a rule about one can use another. Exit codes: 0 no findings, 1 findings, 2 a file could
not be read.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path

from frazil.exit_codes import Exit
from policies.resource_values import Facts
from policies.resources import NothingToReview, Reviewed, read, together
from policies.rules import findings


def main(arguments: Sequence[str], today: date) -> int:
    """Print one finding per line and return the exit code that the module's docstring lists."""
    chosen = _arguments(arguments)
    try:
        reviewed = together(_read(file) for file in chosen.files)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return Exit.INVALID_INPUT
    found = findings(reviewed, Facts(reviewed, today))
    if chosen.json:
        print(json.dumps([asdict(one) for one in found], indent=2))
    else:
        for one in found:
            print(one)
    return Exit.DECISION_REQUIRED if found else Exit.SUCCESS


def _read(file: Path) -> Reviewed:
    try:
        document = json.loads(file.read_text())
        return read(document if isinstance(document, dict) else {})
    except (NothingToReview, ValueError) as error:
        raise NothingToReview(f"{file}: {error}") from error


def _arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m policies", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a stack, a plan as JSON, or a document")
    parser.add_argument("--json", action="store_true", help="findings as JSON")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], date.today()))
