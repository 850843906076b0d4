"""Class-data sharing, with which Spark's JVM starts in about half the time: it maps its classes instead of loading them.

`python -m frazil.local.toolchain.class_data_sharing` lands a few records of each kind, and lists the classes that Spark's JVM
loaded. A second JVM creates an archive of them. The archive, about 240 MB, fits one Java, the jars of one virtual
environment and those of the cache, so it is stored in that environment. A JVM that the archive does not fit starts without it.

The first JVM could write the archive when it ends, but with Java 17 that took four minutes and a gigabyte of memory.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from frazil.local.toolchain import class_path
from frazil.local.toolchain.java import java, version_text

LONGEST_SECONDS = 300
"""The time that each of the two steps may take."""
TRY_AGAIN = 75
"""The status of the program if a step took longer; it is `EX_TEMPFAIL` of sysexits.h."""

# Without this option, a JVM prints a warning about an archive that does not fit.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_PRACTICE = "frazil.cli.demo.practice"
"""The module whose process loads most classes that a driver needs, and lists them."""


def archive() -> Path:
    """Return the path of the archive for this environment, its jars and the installed Java.

    Raises `JavaUnsuitable`, and `JarsUnavailable` or `JarMismatch`.
    """
    practice = Path(__file__).parents[2] / "cli" / "demo" / "practice.py"
    source = f"{version_text(java())}{practice.read_text()}{class_path.driver_jars(aws=False)}"
    return Path(sys.prefix, "share", "frazil", f"spark-{hashlib.sha256(source.encode()).hexdigest()[:16]}.jsa")


def java_options() -> str:
    """Return the options with which a driver's JVM uses the archive; empty if it does not exist."""
    return f"-XX:SharedArchiveFile={archive()} {_QUIET}" if archive().is_file() else ""


def make() -> Path | None:
    """Create the archive, replacing an earlier one; None if this Java cannot.

    Raises `JavaUnsuitable`, and `TimeoutError` if a step takes longer than `LONGEST_SECONDS`.
    """
    made = archive()
    made.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=made.parent) as name:
        folder = Path(name)
        classes, new = folder / "classes", folder / made.name
        jars = _ran(folder, sys.executable, "-m", _PRACTICE, classes, folder / "services").strip()
        if jars:
            options = (f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={new}")
            _ran(folder, java(), "-Xshare:dump", *options, "-cp", jars)
        if not new.is_file():
            return None
        os.replace(new, made)
    return made


def _ran(folder: Path, *command: str | Path) -> str:
    """Return the output of a command; empty if it fails. Its processes end with it, also if it takes too long."""
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise TimeoutError(f"{command[0]} took longer than {LONGEST_SECONDS} s") from None
    return output if process.returncode == 0 else ""


def main() -> int:
    """Create the archive and say where it is, or why it does not exist. Return the status of the program."""
    try:
        print(make() or "this Java makes no archive of classes; Spark starts without one")
    except TimeoutError as late:
        print(f"no archive of classes was made: {late}. Spark starts without one; `make setup` tries again")
        return TRY_AGAIN
    return 0


if __name__ == "__main__":
    sys.exit(main())
