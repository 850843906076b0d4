"""The archive of the jobs' packages, kept between builds: most builds change only Frazil's own code.

The archive is compressed again if a wheel, zlib or the code that packs it has changed. A kept file has its own SHA-256 in its
name, and is used only if it still has it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from frazil.release import archives, wheels
from frazil.release.archives import sha256, write_tar_gz

_ENDING = ".tar.gz"


def write_environment(
    target: Path, entries: Mapping[str, bytes], *, packages: Sequence[Path], kept: Path | None
) -> None:
    """Write the archive of `entries`, the merged content of the wheels `packages`, as the file `target`.

    `kept` is the folder of archives of earlier builds; None keeps none. Of each file name the last one is kept.
    """
    if kept is None:
        write_tar_gz(target, entries)
        return
    own = target.name.removesuffix(_ENDING)
    of = f"{own}-{_identity(packages)}"
    for file in kept.glob(f"{of}-*{_ENDING}"):
        if _copied(file, target) and file.name == f"{of}-{sha256(target)}{_ENDING}":
            return
    write_tar_gz(target, entries)
    _keep(target, kept, f"{of}-{sha256(target)}{_ENDING}", replaces=f"{own}-*{_ENDING}")


def _identity(packages: Sequence[Path]) -> str:
    """Return what the archive's bytes depend on, as 16 characters."""
    code = (Path(str(module.__file__)) for module in (archives, wheels))
    parts = [*(sha256(file) for file in (*packages, *code)), zlib.ZLIB_RUNTIME_VERSION]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _copied(file: Path, target: Path) -> bool:
    try:
        shutil.copyfile(file, target)
    except FileNotFoundError:  # another build has replaced it
        return False
    return True


def _keep(archive: Path, folder: Path, name: str, *, replaces: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".new-", dir=folder) as beside:  # complete before it has its name
        shutil.copyfile(archive, Path(beside, name))
        os.replace(Path(beside, name), folder / name)
    for former in folder.glob(replaces):
        if former.name != name:
            former.unlink(missing_ok=True)
