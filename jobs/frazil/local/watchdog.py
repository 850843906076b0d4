"""Ends a world whose owner was killed: a test run that is shot leaves no broker behind.

The keeper is a process that waits for the end of its input. The owner holds the other end of that pipe, which the
system closes however the owner ends.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def kept_from_outliving(folder: Path, *, is_temporary: bool) -> Iterator[None]:
    """Have the world in this folder ended, should this process be killed inside the `with` block.

    A temporary folder is then removed too.
    """
    keeper = subprocess.Popen(
        [sys.executable, "-m", "frazil.local.watchdog", str(folder), *(["--remove"] if is_temporary else [])],
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
    from frazil.local.services import down

    folder = Path(sys.argv[1])
    down(folder)
    if "--remove" in sys.argv[2:]:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
