"""The system's Java. Spark 4.1 and Kafka 4.3 both need 17 or newer."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

from frazil.errors import JavaUnsuitable

OLDEST = 17
_PRINTED = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
"""Variables with options of a JVM, which prints them before its version."""


@functools.cache
def version_text(program: Path) -> str:
    """Return the version text that this `java` prints. Takes about 60 ms, once per process."""
    plain = {name: value for name, value in os.environ.items() if name not in _PRINTED}
    return subprocess.run([program, "-version"], capture_output=True, text=True, check=False, env=plain).stderr


@functools.cache
def java() -> Path:
    """Return the `java` of `JAVA_HOME`, else of the `PATH`.

    Raises `JavaUnsuitable` if none exists or it is older than 17.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home, "bin", "java"))) if home else shutil.which("java")
    if not found:
        place = f"JAVA_HOME={home}" if home else "PATH"
        raise JavaUnsuitable(
            "Java is not installed", where=place, do=f"Install a JDK, {OLDEST} or 21, or set JAVA_HOME"
        )
    version = re.search(r'version "(?:1\.)?(\d+)', version_text(Path(found)))
    if version is None:
        raise JavaUnsuitable("it prints no version", where=found, do="Set JAVA_HOME to a JDK that runs")
    if int(version[1]) < OLDEST:
        raise JavaUnsuitable(f"it is Java {version[1]}", where=found, do=f"Set JAVA_HOME to a JDK {OLDEST} or 21")
    return Path(found)
