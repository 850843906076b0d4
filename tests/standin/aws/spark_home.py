"""The Spark installation of job runs: pyspark's files and the machine's Python, without the virtual environment."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from frazil.errors import LocalPartFailed
from frazil.local.toolchain.java import java

_PARTS = ("bin", "jars", "python", "sbin")


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkHome:
    """The folders of the programs. `bin` holds only Python, under the name that a release uses."""

    spark: Path
    bin: Path
    java: Path

    @classmethod
    def made_in(cls, folder: Path) -> SparkHome:
        """Create the installation if it does not exist. Raises `LocalPartFailed` if pyspark is not installed."""
        spec = find_spec("pyspark")
        if spec is None or spec.origin is None:
            raise LocalPartFailed("pyspark is not installed", where=sys.prefix, do="Install the extra `cli`")
        home, programs = folder / "spark", folder / "bin"
        for part in _PARTS:
            _link(home / part, Path(spec.origin).parent / part)
        # Not this interpreter: it belongs to the virtual environment and would import the checkout.
        python = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
        _link(programs / f"python{sys.version_info.major}.{sys.version_info.minor}", python)
        return cls(spark=home, bin=programs, java=java().resolve().parent.parent)

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the environment variables of a job in a folder: those of Spark, Java and Python, none of this process."""
        return {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "HOME": str(folder),
            "TMPDIR": str(folder / "tmp"),
            "LANG": "C.UTF-8",
            "JAVA_HOME": str(self.java),
            "SPARK_HOME": str(self.spark),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(folder / "tmp"),
            "PYTHONNOUSERSITE": "1",
        }


def _link(link: Path, target: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.is_symlink() and link.readlink() == target:
        return
    link.unlink(missing_ok=True)
    link.symlink_to(target)
