"""The Spark that job runs find: pyspark's own files and the machine's Python, nothing else of the virtual environment."""

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
    """Where programs are. `bin` holds Python, under the name that a release asks for, and nothing else."""

    spark: Path
    bin: Path
    java: Path

    @classmethod
    def made_in(cls, folder: Path) -> SparkHome:
        """Make it, or find it made. Raises `LocalPartFailed` where pyspark is not installed."""
        spec = find_spec("pyspark")
        if spec is None or spec.origin is None:
            raise LocalPartFailed("pyspark is not installed", where=sys.prefix, do="Install the extra `cli`")
        home, programs = folder / "spark", folder / "bin"
        for part in _PARTS:
            _link(home / part, Path(spec.origin).parent / part)
        # Not this interpreter: it is the virtual environment's, and would see the checkout.
        python = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
        _link(programs / f"python{sys.version_info.major}.{sys.version_info.minor}", python)
        return cls(spark=home, bin=programs, java=java().resolve().parent.parent)

    def environment(self, folder: Path) -> dict[str, str]:
        """The environment of a job that works in a folder: what Spark, Java and Python need, and nothing of this process's."""
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
