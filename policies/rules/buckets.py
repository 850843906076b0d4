"""Rules about buckets: not public, encrypted, accessed by TLS only, and owner of all their objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from policies.resource_values import Facts
from policies.resources import Finding, Resource, Reviewed, blocks, many, policy, statements

_CLOSED = ("block_public_acls", "block_public_policy", "ignore_public_acls", "restrict_public_buckets")


def public_bucket(reviewed: Reviewed, facts: Facts) -> Iterator[Finding]:
    """Report buckets without a complete public access block: one ACL or policy could make them public."""
    for bucket in reviewed.of("aws_s3_bucket"):
        blocks = list(_about(reviewed, "aws_s3_bucket_public_access_block", bucket))
        is_open = [name for name in _CLOSED if not any(block.values.get(name) is True for block in blocks)]
        if is_open:
            what = f"it is not closed to the public: {', '.join(is_open)}"
            yield Finding("public_bucket", bucket.address, what, "Give it a public access block with all four set")
    for acl in reviewed.of("aws_s3_bucket_acl"):
        if acl.text("acl").startswith(("public", "authenticated")):
            what = f"its ACL is {acl.text('acl')}"
            yield Finding("public_bucket", acl.address, what, "Remove the ACL; grant by policy, to a role")


def bucket_encryption(reviewed: Reviewed, facts: Facts) -> Iterator[Finding]:
    """Report buckets without a customer-managed key: with one, reading a file needs two permissions and is logged."""
    for bucket in reviewed.of("aws_s3_bucket"):
        algorithms = [
            (str(default.get("sse_algorithm")), default.get("kms_master_key_id"))
            for each in _about(reviewed, "aws_s3_bucket_server_side_encryption_configuration", bucket)
            for rule in each.blocks("rule")
            for default in blocks(rule.get("apply_server_side_encryption_by_default"))
        ]
        if not any(algorithm.startswith("aws:kms") and key for algorithm, key in algorithms):
            what = "it does not encrypt with a customer-managed KMS key"
            yield Finding("bucket_encryption", bucket.address, what, "Give it encryption by aws:kms, and name the key")


def bucket_tls(reviewed: Reviewed, facts: Facts) -> Iterator[Finding]:
    """Report buckets that allow plain HTTP, which others can read: only a bucket's policy can forbid it."""
    for bucket in reviewed.of("aws_s3_bucket"):
        policies = list(_about(reviewed, "aws_s3_bucket_policy", bucket))
        if not any(_refuses_plain_http(each) for each in policies):
            if any(policy(each.values.get("policy")) is None for each in policies):
                what = "whether its policy refuses requests without TLS is not known before it is applied"
                yield Finding("bucket_tls", bucket.address, what, "Give the synthesised stack to the review as well")
                continue
            what = (
                "its policy does not refuse requests without TLS"
                if policies
                else "it has no policy, so none refuses plain HTTP"
            )
            yield Finding("bucket_tls", bucket.address, what, "Deny s3:* where aws:SecureTransport is false")


def bucket_owner(reviewed: Reviewed, facts: Facts) -> Iterator[Finding]:
    """Report buckets that do not enforce their owner: tables could not read a file that another account wrote."""
    for bucket in reviewed.of("aws_s3_bucket"):
        ownership = {
            str(rule.get("object_ownership"))
            for each in _about(reviewed, "aws_s3_bucket_ownership_controls", bucket)
            for rule in each.blocks("rule")
        }
        if ownership != {"BucketOwnerEnforced"}:
            what = f"objects are owned by {' and '.join(sorted(ownership)) or 'whoever ACLs say'}"
            yield Finding("bucket_owner", bucket.address, what, "Set its ownership controls to BucketOwnerEnforced")


def _refuses_plain_http(each: Resource) -> bool:
    """Return whether the policy denies everything without TLS, on the bucket and its objects. An unknown one does not."""
    return any(
        statement.get("Effect") == "Deny"
        and statement.get("Principal") in ("*", {"AWS": "*"})
        and set(many(statement.get("Action", ()))) & {"s3:*", "*"}
        and _reaches_all(many(statement.get("Resource", ())))
        and _is_without_tls(statement.get("Condition"))
        for statement in statements(policy(each.values.get("policy")))
    )


def _reaches_all(resources: Sequence[str]) -> bool:
    """Return whether the resources include both a bucket and its objects."""
    return "*" in resources or {one.endswith("/*") for one in resources} == {True, False}


def _is_without_tls(condition: Any) -> bool:
    """Return whether this is the only condition."""
    return condition in (
        {operator: {"aws:SecureTransport": value}}
        for operator in ("Bool", "BoolIfExists")
        for value in ("false", ["false"], False)
    )


def _about(reviewed: Reviewed, kind: str, bucket: Resource) -> Iterator[Resource]:
    return reviewed.about(kind, "bucket", bucket, "bucket")
