"""Ends a world whose owner was killed: a test run that is shot leaves no broker behind.

The keeper is a process that waits for the end of its input. The owner holds the other end of that pipe, which the
system closes however the owner ends.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def kept_from_outliving(folder: Path) -> Iterator[None]:
    """Have the world in this folder ended, should this process be killed inside the `with` block."""
    keeper = subprocess.Popen(
        [sys.executable, "-m", "frazil.local.keeper", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with keeper:
        try:
            yield
        finally:
            keeper.kill()


def main() -> int:
    """Wait for the owner's end, then end its world."""
    sys.stdin.read()
    from frazil.local.world import down

    down(Path(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
