"""The seam to the CDK."""

import subprocess
import sys
from pathlib import Path

import pytest

import infra.tf


def test_the_bindings_are_imported_one_by_one() -> None:
    """All of them would be 2,138 modules and 526 MB."""
    assert infra.tf.S3Bucket
    loaded = [name for name in sys.modules if name.startswith("cdktf_cdktf_provider_aws.")]
    assert 30 < len(loaded) < 110


def test_declarations_and_environments_are_checked_without_the_cdk() -> None:
    root = Path(__file__).parents[2]
    code = "import sys; sys.modules['cdktf'] = sys.modules['jsii'] = None; import stacks.spec.deployments, stacks.pipelines"
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True)


@pytest.mark.parametrize("text", ["x", "", "${aws_kms_key.k.arn}", "$${TfToken", "{TfToken["])
def test_a_text_without_the_marker_is_known(text: str) -> None:
    assert (infra.tf.MARKER in text) is infra.tf.Token.is_unresolved(text) is False


def test_a_text_with_a_value_that_is_not_known_has_the_marker() -> None:
    for text in (infra.tf.Token.as_string({"a": 1}), f"User:{infra.tf.Token.as_string([1])}/y"):
        assert (infra.tf.MARKER in text) is infra.tf.Token.is_unresolved(text) is True
