"""The locks have all that the package declares, for each Python and system, and no address."""

from __future__ import annotations

import re
import tomllib
from itertools import product
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCKS = {
    "requirements.lock": ("cli", "local", "infra", "checkout", "dev"),
    "requirements-demo.lock": ("cli", "local", "checkout"),
    "jobs/requirements.lock": (),
}
"""Which extras each lock has."""
MACHINES = (("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"))


def pins(root: Path, lock: str) -> dict[str, Requirement]:
    found = [Requirement(line) for line in re.findall(r"^([A-Za-z0-9].*?) \\$", (root / lock).read_text(), re.M)]
    return {canonicalize_name(pin.name): pin for pin in found}


def declared(root: Path, extras: tuple[str, ...]) -> list[Requirement]:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    of_extras = [line for extra in extras for line in project["optional-dependencies"][extra]]
    return [Requirement(line) for line in (*project["dependencies"], *of_extras)]


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_pins_what_is_declared_for_each_python_and_system(root: Path, lock: str) -> None:
    locked = pins(root, lock)
    pythons = ("3.11",) if lock.startswith("jobs") else ("3.11", "3.12", "3.13")
    for wanted, python, (system, machine) in product(declared(root, LOCKS[lock]), pythons, MACHINES):
        pin = locked[canonicalize_name(wanted.name)]
        version = str(pin.specifier).removeprefix("==")
        assert wanted.specifier.contains(version, prereleases=True), (lock, wanted, version)
        of = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": system}
        of |= {"platform_machine": machine, "platform_system": system.title()}
        of |= {"platform_python_implementation": "CPython", "implementation_name": "cpython"}
        assert pin.marker is None or pin.marker.evaluate(of), (lock, pin, of)


def test_all_extras_are_in_the_lock_of_a_checkout(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert set(LOCKS["requirements.lock"]) == set(project["optional-dependencies"])
    assert project["requires-python"] == ">=3.11,<3.14"


def test_the_lock_of_the_demo_is_a_part_of_that_of_a_checkout(root: Path) -> None:
    of_all = pins(root, "requirements.lock")
    for name, pin in pins(root, "requirements-demo.lock").items():
        assert of_all[name].specifier == pin.specifier


@pytest.mark.parametrize("lock", [*LOCKS, ".ci/uv.lock"])
def test_a_lock_names_no_address_and_each_package_by_its_hashes(root: Path, lock: str) -> None:
    text = (root / lock).read_text()
    assert "://" not in text
    blocks = re.split(r"^(?=[A-Za-z0-9])", "\n".join(t for t in text.splitlines() if not t.startswith("#")), flags=re.M)
    assert all("--hash=sha256:" in block for block in blocks if block.strip())
