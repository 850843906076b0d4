"""A Python package of an extra that is not installed, and the command that installs it."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires

from frazil.errors.failures import LocalPartFailed

_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)[^;]*(?:;.*extra == ['\"](?P<extra>\w+)['\"])?")


def missing_package(module: str | None) -> LocalPartFailed | None:
    """Return the error for a module that cannot be imported; None if it is not of a package that Frazil requires."""
    name = (module or "").partition(".")[0].replace("_", "-").lower()
    try:
        required = requires("frazil") or ()
    except PackageNotFoundError:  # a job run has a release, and no installation
        required = ()
    found = [each for each in map(_REQUIREMENT.match, required) if each and name]
    for is_it in (str.__eq__, lambda package, name: package.startswith(f"{name}-")):
        for each in found:
            package = each["name"].lower().replace("_", "-")
            if is_it(package, name):
                do = f"pip install 'frazil[{each['extra']}]'" if each["extra"] else "Install Frazil again"
                return LocalPartFailed(f"the package {package} is not installed", do=do)
    return None
