"""The program of the deployed reconciler, made of this checkout and of the installed SDK instead of wheels."""

from __future__ import annotations

from functools import cache
from importlib.metadata import files
from pathlib import Path

from frazil.release.archives import write_zip
from frazil.release.function_package import function_package

PACKAGES = ("boto3", "botocore", "cffi", "cryptography", "jmespath", "python-dateutil", "s3transfer", "six", "urllib3")


@cache
def program_files(root: Path) -> dict[str, bytes]:
    """Return the files of the program."""
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


def program(root: Path, target: Path) -> bytes:
    """Write the program as a zip file, and return its bytes."""
    write_zip(target, program_files(root))
    return target.read_bytes()
