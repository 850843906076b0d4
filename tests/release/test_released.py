"""A release of the real packages and jars, alone: imported by a clean interpreter, by an executor, and run as a job."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from frazil.cli.release import built
from frazil.clients.object_store import ObjectStore
from frazil.clients.secrets import Secrets
from frazil.declaration import canonical, environment_document
from frazil.declaration.documents.document import document
from frazil.errors import ReleaseIncomplete
from frazil.local.services import LocalServices
from frazil.local.toolchain.class_path import LOCAL_FILES
from frazil.release.emr_labels import NEWEST
from frazil.release.manifest import Architecture, Release, Role, manifest
from frazil.release.upload import document_key
from frazil.rollout.readiness import ProofReadiness, Readiness
from frazil.rollout.run_proof import Reached, parse_proof, proof_prefix
from tests.standin.aws.launch import BUCKET, glue_environment, with_aws
from tests.support.rollout_world import desired
from tests.support.shop import SETTINGS, Shop
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


@pytest.fixture
def glue_world(local_world: LocalServices) -> LocalServices:
    return with_aws(local_world)


@pytest.mark.e2e
@pytest.mark.spark
def test_the_released_job_lands_and_its_generation_is_proven(
    folder: Path, release: Release, unpacked: Path, home: Path, glue_world: LocalServices, shop: Shop, tmp_path: Path
) -> None:
    shop.produce(shop.orders(50, shop.register()))
    place = replace(glue_environment(glue_world), artifact_bucket=BUCKET)
    store = ObjectStore.of(place, Secrets(os.environ), BUCKET)
    store.put_once(release.key, manifest(release))
    documents = [canonical(document([shop.pipeline])), canonical(environment_document(place))]
    keys = [document_key(data) for data in documents]
    for key, data in zip(keys, documents, strict=True):
        store.put_once(key, data)
    for key, data in zip(keys, documents, strict=True):
        (tmp_path / key.rpartition("/")[2]).write_bytes(data)
    wanted = desired(1, release=release.key, document=keys[0], environment=keys[1])
    readiness = ProofReadiness(store)
    assert readiness.of(wanted) is Readiness.NOTHING_YET

    def at(role: Role) -> str:
        return str(folder / "release" / release.the(role).name)

    settings = {
        **{key: value for key, value in SETTINGS.items() if key not in LOCAL_FILES},  # no jar of a release
        "spark.submit.pyFiles": at(Role.PACKAGE),
        "spark.jars": ",".join(str(folder / "release" / jar.name) for jar in release.jars),
    }
    confs = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    names = [key.rpartition("/")[2] for key in keys]
    arguments = ["--document", names[0], "--environment", names[1], "--once", "--run", wanted.run_prefix]
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", *confs, at(Role.INGEST), *arguments]
    ended = ran(command, tmp_path, job_environment(home, unpacked))
    # spark-submit writes all that Python writes to its own stdout
    lines: list[Any] = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith('{"')]
    assert ended.returncode == 0, ended.stderr[-4000:]
    landed = [line for line in lines if line.get("event") == "batch_committed"]
    assert sum(line["written"] for line in landed) == 50
    assert all(line["run"].startswith(wanted.run_prefix) for line in landed)
    assert readiness.of(wanted) is Readiness.COMMITTED
    (key,) = store.keys(f"{proof_prefix(wanted.job)}{wanted.run_prefix}")
    held = store.read(key)
    assert held is not None
    assert parse_proof(held.data).pipelines == {shop.pipeline.name: Reached.COMMITTED}


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
