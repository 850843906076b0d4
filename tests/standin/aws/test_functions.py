"""The local cloud runs functions alone, with their role's credentials; `tests/rollout/test_local_cloud.py` has the reconciler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boto3
import pytest

from frazil.release.archives import write_zip
from tests.standin.aws.instant_emr import pretended_aws

pytestmark = pytest.mark.e2e

REGION = "eu-central-1"
ROLE = "frazil-local-reconcile-orders"


def test_a_function_runs_as_its_role_and_with_nothing_of_this_process(root: Path, tmp_path: Path, name: str) -> None:
    source = b"import os, sys\ndef handle(event, context):\n    return {'key': os.environ['AWS_ACCESS_KEY_ID'], 'path': sys.path, 'home': os.environ.get('HOME')}\n"
    write_zip(tmp_path / "f.zip", {"f.py": source})
    with pretended_aws(root, tmp_path, minute_seconds=0.2) as endpoint:

        def client(service: str) -> Any:
            keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
            return boto3.client(service, endpoint_url=endpoint, region_name=REGION, **keys)

        role = client("iam").create_role(RoleName=ROLE, AssumeRolePolicyDocument="{}")["Role"]
        functions = client("lambda")
        functions.create_function(
            FunctionName=name,
            Role=role["Arn"],
            Runtime="python3.11",
            Handler="f.handle",
            Code={"ZipFile": (tmp_path / "f.zip").read_bytes()},
            Timeout=60,
            LoggingConfig={"LogFormat": "Text", "LogGroup": "/frazil/local/reconcile-orders"},
        )
        told = functions.get_function_configuration(FunctionName=name)
        assert told["LoggingConfig"]["LogGroup"] == "/frazil/local/reconcile-orders"
        answer = json.loads(functions.invoke(FunctionName=name, Payload=b"{}")["Payload"].read())
    assert answer["key"].startswith("ASIA")
    assert answer["home"] is None
    assert not [place for place in answer["path"] if "site-packages" in place]
