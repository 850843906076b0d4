"""The reconciler's program has what it imports and nothing else, and runs with Python alone."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from functools import cache
from importlib.metadata import files
from pathlib import Path

import pytest

from frazil.errors import ReleaseIncomplete
from frazil.release.archives import write_zip
from frazil.release.function_package import MODULE, function_package, imported
from frazil.rollout.function_settings import HANDLER
from tests.support import small_release

PACKAGES = ("boto3", "botocore", "cffi", "cryptography", "jmespath", "python-dateutil", "s3transfer", "six", "urllib3")


@cache
def program_files(root: Path) -> dict[str, bytes]:
    """Return the files of the program, made of this checkout and of the installed SDK instead of wheels."""
    jobs = root / "jobs"
    own = {str(file.relative_to(jobs)): file.read_bytes() for file in (jobs / "frazil").rglob("*.py")}
    sdk = {
        str(file): Path(str(file.locate())).read_bytes()
        for package in PACKAGES
        for file in files(package) or ()
        if not str(file).startswith("..")
        and "__pycache__" not in str(file)
        and ".dist-info/" not in str(file)  # of this machine's wheels
        and file.locate().is_file()  # type: ignore[attr-defined]
        and not (
            str(file).startswith("botocore/data/")
            and str(file).split("/")[2] not in ("s3", "emr-serverless")
            and str(file).count("/") > 2
        )
    }
    return function_package(own, sdk)


def test_it_has_what_the_module_imports_and_nothing_of_spark_kafka_or_tables(root: Path) -> None:
    names = set(program_files(root))
    own = {name for name in names if name.startswith("frazil/")}
    assert {
        "frazil/rollout/reconciler_function.py",
        "frazil/clients/emr.py",
        "frazil/declaration/documents/document.py",
    } <= own
    folders = {name.split("/")[1] for name in own if name.count("/") > 1}
    assert folders == {"clients", "declaration", "errors", "release", "rollout"}
    assert not {name for name in names if name.startswith(("pyspark/", "confluent_kafka/", "pyiceberg/", "pyarrow/"))}
    services = {name.split("/")[2] for name in names if name.startswith("botocore/data/") and name.count("/") > 2}
    assert services == {"emr-serverless", "s3"}
    native = {name.split(".")[0] for name in names if name.endswith((".so", ".pyd"))}
    assert native == {"_cffi_backend", "cryptography/hazmat/bindings/_rust"}


def test_it_is_imported_and_makes_its_clients_by_python_alone(root: Path, tmp_path: Path) -> None:
    write_zip(tmp_path / "program.zip", program_files(root))
    with zipfile.ZipFile(tmp_path / "program.zip") as packed:
        packed.extractall(tmp_path / "program")
    module, _, name = HANDLER.rpartition(".")
    assert module == MODULE
    code = (
        f"import sys; sys.path[:0] = [{str(tmp_path / 'program')!r}]\n"
        f"from {module} import {name}, reconciler_of\n"
        "from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey\n"
        "Ed25519PublicKey.from_public_bytes(bytes(32))\n"
        "from frazil.rollout.function_settings import Settings\n"
        "reconciler_of(Settings(job='ingest', bucket='artifacts', metrics_namespace='Frazil'))\n"
        "assert not set(sys.modules) & {'pyspark', 'confluent_kafka', 'pyiceberg', 'pyarrow'}\n"
    )
    python = str(Path(getattr(sys, "_base_executable", sys.executable)).resolve())
    ended = subprocess.run(
        [python, "-I", "-S", "-c", code],
        env={"AWS_DEFAULT_REGION": "eu-central-1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


def test_imports_are_found_in_functions_and_of_the_packages_above() -> None:
    files = {
        "a/__init__.py": b"from a import b",
        "a/b.py": b"def f():\n    import c.d\n",
        "a/e.py": b"",
        "c/__init__.py": b"",
        "c/d.py": b"import json",
    }
    assert imported(files, "a.b") == {"a/__init__.py", "a/b.py", "c/__init__.py", "c/d.py"}


def test_a_package_that_needs_a_newer_glibc_than_lambda_has_is_refused() -> None:
    wheel = "cryptography-50.0.2.dist-info/WHEEL"
    both = {**small_release.SDK_FILES, wheel: b"Tag: cp311-abi3-manylinux_2_17_x86_64\nTag: x-manylinux2014_x86_64\n"}
    function_package({}, both)
    with pytest.raises(ReleaseIncomplete, match=r"cryptography-50.0.2 needs glibc 2.34"):
        function_package({}, {**both, wheel: b"Tag: cp311-abi3-manylinux_2_34_x86_64\n"})


def test_without_the_sdk_there_is_no_program() -> None:
    packages = {name: data for name, data in small_release.SDK_FILES.items() if not name.startswith("urllib3")}
    with pytest.raises(ReleaseIncomplete, match="lacks urllib3/"):
        function_package({}, packages)
