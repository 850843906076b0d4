"""The seam to the CDK."""

import subprocess
import sys
from pathlib import Path


def test_the_bindings_are_imported_one_by_one() -> None:
    """All of them would be 2,138 modules and 526 MB."""
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, infra.tf; print(sum(m.startswith('cdktf_cdktf_provider_aws.') for m in sys.modules))",
        ],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert 30 < int(told.stdout) < 90


def test_declarations_are_checked_without_the_cdk() -> None:
    root = Path(__file__).parents[2]
    code = "import runpy, sys; sys.modules['cdktf'] = None; runpy.run_module('stacks.pipelines', run_name='__main__')"
    ended = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "3 pipelines, no problem\n")


def test_environments_are_read_without_the_cdk() -> None:
    root = Path(__file__).parents[2]
    code = "import sys; sys.modules['cdktf'] = None; import stacks.environments, stacks.pipelines"
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
