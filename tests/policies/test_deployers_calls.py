"""What Terraform's AWS provider really asks for when the foundation is made, planned again and destroyed.

`deployer_calls.json` is what was recorded, by terraform 1.11.4 with hashicorp/aws 5.100.0 against moto 5.2.5.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from tests.policies.example import policy
from tests.policies.recorded_aws import Call, recorded_aws

RECORDED: list[str] = json.loads(Path(__file__).with_name("deployer_calls.json").read_text())
ASKED_OF_NOBODY = {"sts:GetCallerIdentity"}  # needs no permission
# A part of a bucket's settings -> what its permission is called; deleting one is putting it, but for the policy.
_PARTS = {
    "accelerate": "AccelerateConfiguration", "acl": "BucketAcl", "cors": "BucketCORS", "encryption": "EncryptionConfiguration",
    "lifecycle": "LifecycleConfiguration", "location": "BucketLocation", "logging": "BucketLogging",
    "object-lock": "BucketObjectLockConfiguration", "ownershipControls": "BucketOwnershipControls", "policy": "BucketPolicy",
    "publicAccessBlock": "BucketPublicAccessBlock", "replication": "ReplicationConfiguration",
    "requestPayment": "BucketRequestPayment", "tagging": "BucketTagging", "versioning": "BucketVersioning", "website": "BucketWebsite",
}  # fmt: skip
_WHOLE = {"HEAD": "ListBucket", "PUT": "CreateBucket", "DELETE": "DeleteBucket", "GET": "ListBucket"}


def granted() -> set[str]:
    return {
        action
        for statement in policy("deployer")["Statement"]
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    }


def test_the_deployer_may_do_all_that_terraform_was_recorded_to_do() -> None:
    assert len(RECORDED) > 60
    assert set(RECORDED) - granted() - ASKED_OF_NOBODY == set()


def asked(environ: dict[str, Any], body: bytes) -> Iterator[Call]:
    """IAM's action of a request of any service that the foundation uses."""
    scope = re.search(r"Credential=[^/]+/\d+/[^/]+/([^/]+)/", environ.get("HTTP_AUTHORIZATION", ""))
    service = {"monitoring": "cloudwatch"}.get(scope[1], scope[1]) if scope else "?"
    target, query = environ.get("HTTP_X_AMZ_TARGET", ""), parse_qs(environ["QUERY_STRING"], keep_blank_values=True)
    method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"].strip("/")
    if target:
        yield Call(f"{service}:{target.rpartition('.')[2]}", "")
    elif b"Action=" in body:
        yield Call(f"{service}:{parse_qs(body.decode())['Action'][0]}", "")
    elif service == "s3" and "/" not in path:
        if "versions" in query:
            yield Call("s3:ListBucketVersions", path)
            return
        part = next((each for each in _PARTS if each in query), None)
        verb = "Get" if method == "GET" else "Put"
        if part == "policy" and method == "DELETE":
            verb = "Delete"
        yield Call(f"s3:{verb}{_PARTS[part]}" if part else f"s3:{_WHOLE[method]}", path)


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("terraform"), reason="terraform is not installed")
def test_terraform_asks_for_what_is_recorded(root: Path, tmp_path: Path) -> None:
    with recorded_aws(asked) as (endpoint, log):
        settings = {
            **os.environ,
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "made-up",
            "AWS_SECRET_ACCESS_KEY": "made-up",
            "CDKTF_OUTDIR": str(tmp_path),
            "FRAZIL_ENVIRONMENTS": "local",
            "FRAZIL_DESTROY_DATA": "local",
            "CHECKPOINT_DISABLE": "1",
        }
        subprocess.run([sys.executable, "-m", "stacks.app"], cwd=root, env=settings, check=True, timeout=120)
        folder = tmp_path / "stacks" / "local-foundation"
        stack = json.loads((folder / "cdk.tf.json").read_text())
        del stack["terraform"]["backend"]
        # Stock moto knows no such release label: what an application needs is taken from the documentation.
        del stack["resource"]["aws_emrserverless_application"]
        stack.pop("output", None)
        (folder / "cdk.tf.json").write_text(json.dumps(stack))

        def terraform(*arguments: str) -> subprocess.CompletedProcess[str]:
            command = ["terraform", f"-chdir={folder}", *arguments, "-input=false", "-no-color"]
            return subprocess.run(command, env=settings, capture_output=True, text=True, check=False, timeout=300)

        begun = terraform("init")
        if begun.returncode:
            pytest.skip(f"the AWS provider is not to be had: {begun.stderr[-300:]}")
        for arguments in (("apply", "-auto-approve"), ("plan", "-detailed-exitcode"), ("destroy", "-auto-approve")):
            ended = terraform(*arguments)
            assert ended.returncode == 0, f"{arguments}: {ended.stderr[:2000]}"
        calls = sorted({call.action for call in log.take()})
    assert calls == RECORDED, json.dumps(calls)
