"""A process that stops local services whose owner was killed, so that a killed test run does not leave a broker running.

The watchdog waits for the end of its input. The owner holds the other end of that pipe, which the system closes however
the owner ends.
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
    """Stop the services in this folder if this process is killed inside the `with` block.

    In that case, a temporary folder is removed too.
    """
    watchdog = subprocess.Popen(
        [sys.executable, "-m", "frazil.local.watchdog", str(folder), *(["--remove"] if is_temporary else [])],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with watchdog:
        try:
            yield
        finally:
            watchdog.kill()


def main() -> int:
    """Wait for the owner's end, then stop its services."""
    sys.stdin.read()
    from frazil.local.services import down

    folder = Path(sys.argv[1])
    down(folder)
    if "--remove" in sys.argv[2:]:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
