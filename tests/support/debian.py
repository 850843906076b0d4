"""Programs of Debian packages that some tests need. `.ci/setup` installs them as root; elsewhere such a test is skipped."""

from __future__ import annotations

import os
import shutil

import pytest

PACKAGES = {
    "chromium": "chromium",
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "prometheus-alertmanager": "prometheus-alertmanager",
    "amtool": "prometheus-alertmanager",
}
"""The package of each program."""


def program(name: str) -> str:
    """Return the path of a program. If it is missing, skip the test, or have it fail in CI."""
    found = shutil.which(name)
    if found:
        return found
    message = f"{name} is missing: apt install {PACKAGES[name]}"
    if os.environ.get("FRAZIL_TEST_ALL"):
        pytest.fail(message)
    pytest.skip(message)
