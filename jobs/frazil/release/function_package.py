"""The program of the deployed reconciler: its module and that module's imports, the AWS SDK, and `cryptography`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from frazil.errors import ReleaseIncomplete

FILE_NAME = "reconciler.zip"
MODULE = "frazil.rollout.reconciler_function"
PARTS = (
    *("boto3/", "botocore/", "dateutil/", "jmespath/", "s3transfer/", "six.py", "urllib3/"),
    *("cryptography/", "_cffi_backend."),
)
"""Files of the locked `boto3` and `cryptography`. Lambda's own `boto3` changes its version by itself."""
GLIBC_MINOR = 26
"""The minor version of glibc 2 in Lambda's runtime of Python 3.11, on Amazon Linux 2
(https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtimes.html)."""
_NATIVE = ("cryptography-", "cffi-")
_OMITTED = ("boto3/data/", "boto3/examples/", "botocore/data/")
_SERVICES = ("botocore/data/emr-serverless/", "botocore/data/s3/")


def function_package(own: Mapping[str, bytes], packages: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of the program. `own` are those of the project's wheel, `packages` those of all locked packages.

    Raises `ReleaseIncomplete` if a package is missing, or needs a newer glibc than Lambda has.
    """
    if missing := [part for part in PARTS if not any(name.startswith(part) for name in packages)]:
        raise ReleaseIncomplete(
            f"the reconciler's program lacks {', '.join(missing)}", where="requirements.lock", do="Lock it"
        )
    for name, data in packages.items():
        if name.startswith(_NATIVE) and name.endswith("/WHEEL"):
            needed = [int(minor) for minor in re.findall(rb"manylinux_2_([0-9]+)", data)]
            if needed and min(needed) > GLIBC_MINOR:
                raise ReleaseIncomplete(
                    f"{name.split('.dist')[0]} needs glibc 2.{min(needed)}", where="requirements.lock"
                )
    sdk = {name: data for name, data in packages.items() if name.startswith(PARTS) and _is_needed(name)}
    return {**sdk, **{name: own[name] for name in imported(own, MODULE)}}


def _is_needed(name: str) -> bool:
    if not name.startswith(_OMITTED) or name.startswith(_SERVICES):
        return True
    return name.startswith("botocore/data/") and name.count("/") == 2  # endpoints, partitions, defaults


def imported(files: Mapping[str, bytes], module: str) -> set[str]:
    """Return the paths of a module and of all that it imports, at its top or in functions, among these files."""
    found: set[str] = set()
    open_ = [module]
    while open_:
        name = open_.pop()
        parts = name.split(".")
        for end in range(1, len(parts) + 1):  # Python imports each package above a module first
            path = _path(files, ".".join(parts[:end]))
            if path is not None and path not in found:
                found.add(path)
                open_ += _imports(files[path])
    return found


def _imports(source: bytes) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _path(files: Mapping[str, bytes], module: str) -> str | None:
    base = module.replace(".", "/")
    return next((path for path in (f"{base}.py", f"{base}/__init__.py") if path in files), None)
