"""Objects of the artifact bucket that deployment writes."""

from __future__ import annotations

from collections.abc import Sequence

from infra.tf import Construct, S3Object, TerraformResource, TerraformResourceLifecycle
from stacks.foundation import FoundationOutputs


def artifact(
    scope: Construct,
    name: str,
    key: str,
    text: str,
    foundation: FoundationOutputs,
    *,
    is_named_by_content: bool = False,
    after: Sequence[TerraformResource] = (),
) -> S3Object:
    """Declare an object. If its key depends on the content, `name` does too, so Terraform can forget the old object."""
    return S3Object(
        scope,
        name,
        bucket=foundation.artifact_bucket,
        key=key,
        content=text,
        content_type="application/json",
        server_side_encryption="aws:kms",
        kms_key_id=foundation.key_arn,
        depends_on=list(after) or None,
        lifecycle=TerraformResourceLifecycle(create_before_destroy=True) if is_named_by_content else None,
    )
