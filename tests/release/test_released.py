"""A release of the real packages and jars, alone: imported by a clean interpreter, and by an executor.

`tests/rollout/test_local_cloud.py` runs one as a job.
"""

from __future__ import annotations

import os
import struct
import subprocess
import tarfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

from frazil.cli.release import built
from frazil.errors import ReleaseIncomplete
from frazil.release.emr_labels import NEWEST
from frazil.release.manifest import Architecture, Release, Role
from tests.support.spark_home import job_environment, plain_python, spark_home

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def release_of(root: Path, folder: Path, architecture: Architecture) -> Release:
    try:
        return built(root, folder, label_name=NEWEST, architecture=architecture)
    except ReleaseIncomplete as missing:
        if "could not fetch" in missing.what:
            pytest.skip(f"no package index: {missing}")
        raise


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("released")


@pytest.fixture(scope="module")
def release(root: Path, folder: Path) -> Release:
    return release_of(root, folder / "release", Architecture.X86_64)


@pytest.fixture(scope="module")
def unpacked(folder: Path, release: Release) -> Path:
    """The environment archive, unpacked."""
    with tarfile.open(folder / "release" / release.the(Role.ENVIRONMENT).name) as archive:
        archive.extractall(folder / "environment", filter="data")
    return folder / "environment"


@pytest.fixture(scope="module")
def home(folder: Path) -> Path:
    return spark_home(folder)


def ran(command: list[str], cwd: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env=dict(environment), capture_output=True, text=True, timeout=400, check=False
    )


def test_every_module_is_imported_with_the_environment_and_spark_alone(
    folder: Path, release: Release, unpacked: Path, home: Path, tmp_path: Path
) -> None:
    package = folder / "release" / release.the(Role.PACKAGE).name
    spark = [*sorted((home / "python" / "lib").glob("*.zip"))]
    code = (
        "import importlib, pkgutil, sys\n"
        f"sys.path += {[str(package), str(unpacked), *map(str, spark)]!r}\n"
        "import frazil\n"
        "names = [m.name for m in pkgutil.walk_packages(frazil.__path__, 'frazil.')]\n"
        "for name in names: importlib.import_module(name)\n"
        "print(len(names))\n"
        "print(*sorted({m.__file__ for m in list(sys.modules.values()) if getattr(m, '__file__', None)}), sep='\\n')\n"
    )
    ended = ran([plain_python(), "-I", "-S", "-c", code], tmp_path, {"PATH": os.environ["PATH"]})
    assert ended.returncode == 0, ended.stderr
    count, *files = ended.stdout.splitlines()
    assert int(count) > 100
    assert not [file for file in files if "site-packages" in file]


def test_an_executor_imports_the_package_and_its_native_packages(
    folder: Path, release: Release, unpacked: Path, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "job.py").write_text(
        "from pyspark.sql import SparkSession\n"
        "def told(_):\n"
        "    import frazil.schemas.avro, ptars, pyarrow, confluent_kafka\n"
        "    from frazil.version import VERSION\n"
        "    yield VERSION, frazil.__file__, pyarrow.__file__, pyarrow.__version__\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "print('TOLD', *spark.sparkContext.parallelize([1], 1).mapPartitions(told).collect()[0], sep='|')\n"
        "spark.stop()\n"
    )
    archive = folder / "release" / release.the(Role.ENVIRONMENT).name
    settings = {
        "spark.executorEnv.PYTHONPATH": "./environment",
        "spark.archives": f"{archive}#environment",
        "spark.submit.pyFiles": str(folder / "release" / release.the(Role.PACKAGE).name),
        "spark.driver.memory": "1g",
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "false",
    }
    confs = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    command = [str(home / "bin" / "spark-submit"), "--master", "local-cluster[1,1,1024]", *confs, "job.py"]
    ended = ran(command, tmp_path, job_environment(home, unpacked))
    assert ended.returncode == 0, ended.stderr[-4000:]
    (line,) = (line for line in ended.stdout.splitlines() if line.startswith("TOLD|"))
    _, version, package, arrow, _ = line.split("|")
    assert version == release.version
    assert f"frazil-{version}.zip" in package
    assert "environment/pyarrow" in arrow
    assert str(unpacked) not in arrow, "it is the executor's own copy, not the driver's"


@pytest.fixture(scope="module")
def arm(root: Path, folder: Path) -> Path:
    release = release_of(root, folder / "arm", Architecture.ARM64)
    return folder / "arm" / release.the(Role.ENVIRONMENT).name


def test_the_same_lock_gives_an_environment_for_arm_with_nothing_of_another_processor(
    arm: Path, unpacked: Path
) -> None:
    with tarfile.open(arm) as archive:
        native = [member.name for member in archive if ".so" in Path(member.name).suffixes]
        for name in native:
            stream = archive.extractfile(name)
            assert stream is not None
            assert machine(stream.read(20)) == AARCH64, name
        there = {name.split("/")[0].split("-")[0] for name in archive.getnames() if ".dist-info/" in name}
    here = {path.name.split("-")[0] for path in unpacked.glob("*.dist-info")}
    assert there == here
    assert len(native) > 50
    assert find_spec("pyarrow") is not None


AARCH64 = 183  # e_machine of ELF


def machine(header: bytes) -> int:
    assert header[:4] == b"\x7fELF"
    number: int = struct.unpack_from("<H", header, 18)[0]
    return number
