"""The buckets that the foundation creates: those that are not given."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.declaration import Pipeline, Tableflow
from frazil.rollout.group_jobs import INGEST, job_name
from frazil.rollout.run_proof import proof_prefix
from infra.buckets import WRITE_ONCE, BucketSettings, artifact_bucket, log_bucket, table_bucket
from infra.protection import Protection
from infra.tf import Construct
from policies.documents import fill
from policies.documents.filling import Value
from stacks.deployments import Deployment
from stacks.groups import groups_of


def declare_buckets(
    scope: Construct, deployment: Deployment, pipelines: Sequence[Pipeline], key_arn: str, protection: Protection
) -> None:
    """Declare the buckets of tables, artifacts and logs, and that of Tableflow if a pipeline uses it."""
    has_tableflow = any(isinstance(pipeline.engine, Tableflow) for pipeline in pipelines)
    proofs = [proof_prefix(job_name(INGEST, group.name)) for group in groups_of(pipelines)]
    names, given = deployment.names, deployment.existing.buckets.given

    def settings(what: str, document: str, placeholder: str, **more: Value) -> BucketSettings:
        values = {"account": deployment.account, "key": key_arn, placeholder: names.bucket(what), **more}
        policy = fill(document, values, partition=names.partition)
        return {"bucket": names.bucket(what), "key_arn": key_arn, "policy": policy, "protection": protection}

    for what in ("tables", "tableflow") if has_tableflow else ("tables",):
        # Confluent requires a bucket that is empty before its first table, so it has one of its own.
        if what not in given:
            table_bucket(scope, what, **settings(what, "table_bucket", "table_bucket"))
    if "artifacts" not in given:
        once = {"write_once_prefixes": WRITE_ONCE}
        own = settings("artifacts", "artifact_bucket", "artifact_bucket", **once)
        artifact_bucket(scope, "artifacts", proof_prefixes=proofs, **own)
    if "logs" not in given:
        log_bucket(scope, "logs", keep_days=deployment.log_days, **settings("logs", "log_bucket", "log_bucket"))
