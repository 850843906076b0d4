"""`python -m policies.documents boundary account=… region=… databases=nyc,shop`: print a filled policy as JSON.

Commas separate the items of a list, and `name=` is an empty one. `partition=aws-us-gov` is the partition of other ARNs than
those of `aws`. Without values, prints the placeholders.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from frazil.exit_codes import Exit
from policies.documents import CannotFill, fill, names, placeholders
from policies.documents.filling import Value


def main(arguments: Sequence[str]) -> int:
    """Print a filled policy. Prints every problem on stderr and returns 2 if it cannot be filled."""
    name, *given = arguments or [""]
    try:
        if name in names() and not given:
            sys.stdout.write(" ".join(f"{key}=…" for key in sorted(placeholders(name))) + "\n")
            return Exit.SUCCESS
        pairs = (each.partition("=") for each in given)
        values: dict[str, Value] = {key: _value(text) for key, _, text in pairs}
        partition = str(values.pop("partition", "aws"))
        sys.stdout.write(json.dumps(fill(name, values, partition=partition), indent=2) + "\n")
    except CannotFill as problem:
        sys.stderr.write(f"error: {problem}\n")
        return Exit.INVALID_INPUT
    return Exit.SUCCESS


def _value(text: str) -> Value:
    if not text:
        return []
    return text.split(",") if "," in text else text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
