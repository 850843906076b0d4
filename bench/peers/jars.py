"""The jars of the peers: those of `peers.jars.lock` beside this module, fetched once into the user's cache, and some of pyspark."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from frazil.local.toolchain.jars import jars

LOCK = Path(__file__).parent / "peers.jars.lock"
FLINK, ICEBERG_SINK = "flink", "iceberg-sink"
_HADOOP = ("hadoop-client-api", "hadoop-client-runtime")
_LOGGING = ("log4j-api", "log4j-core", "log4j-slf4j2-impl", "slf4j-api")
_OF_SPARK = ("hadoop-bare-naked-local-fs", "sqlite-jdbc")
"""What all contenders have: files without a process for each, and the catalog's driver."""


def flink_jars() -> list[Path]:
    """Return the class path of Flink."""
    return [*jars(FLINK, lock=LOCK), *_of_pyspark(*_HADOOP, *_LOGGING), *_shared()]


def sink_jars() -> list[Path]:
    """Return the jars of the plugin with Iceberg's sink."""
    return [*jars(ICEBERG_SINK, lock=LOCK), *_of_pyspark(*_HADOOP), *_shared()]


def _shared() -> list[Path]:
    return [jar for jar in jars("spark") if jar.name.startswith(_OF_SPARK)]


def _of_pyspark(*names: str) -> list[Path]:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "jars"
    found = [next(folder.glob(f"{name}-[0-9]*.jar")) for name in names]
    return sorted(found)
