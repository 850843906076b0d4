"""The local cloud is where `localstack_client` looks, and leaves nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from frazil.local.ports import HOST, free_ports
from frazil.local.process import noted
from frazil.local.services import down
from tests.standin.__main__ import up as started
from tests.standin.aws.launch import PART


@pytest.mark.long
@pytest.mark.e2e
def test_the_cloud_is_found_by_localstacks_client_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with free_ports(1) as (port,):
        monkeypatch.setenv("LOCALSTACK_HOST", f"localhost:{port}")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    told = started(tmp_path)
    assert told["exports"]["AWS_ENDPOINT_URL"] == f"http://{HOST}:{port}"
    assert set(told["parts"]) == {"kafka", "registry"}
    code = (
        "from localstack_client.session import Session\n"
        "made = Session().client('emr-serverless').create_application(\n"
        "    name='a', releaseLabel='emr-spark-8.1.0', type='SPARK', clientToken='t')\n"
        "print(made['name'], [b['Name'] for b in Session().client('s3').list_buckets()['Buckets']])\n"
    )
    asked = subprocess.run(
        [sys.executable, "-c", code], env=dict(os.environ), capture_output=True, text=True, check=True
    )
    assert asked.stdout.strip() == "a ['lake']"
    home = tmp_path / ".frazil"
    pids = [process.pid for process in (*noted(home), *noted(home / PART))]
    assert len(pids) == 3
    down(tmp_path)
    assert not any(psutil.pid_exists(pid) for pid in pids)
