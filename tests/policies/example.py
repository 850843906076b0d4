"""One made-up environment, and every policy filled for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from policies.documents import fill, placeholders
from policies.documents.filling import Value
from policies.table_resources import Places, Scope

ACCOUNT, REGION = "123456789012", "eu-central-1"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/11111111-2222-4333-8444-555555555555"
INGEST, MAINTENANCE = (
    f"arn:aws:iam::{ACCOUNT}:role/frazil-dev-ingest",
    f"arn:aws:iam::{ACCOUNT}:role/frazil-dev-maintain",
)
SECRET = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:frazil/dev/kafka-AbCdEf"
REVIEW_SECRET = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:confluent-review-AbCdEf"
APPLICATION = "00f1application"
VENDOR = "arn:aws:iam::888888888888:user/snowflake"
CONFLUENT = "arn:aws:iam::999999999999:role/confluent-dev"

PLACES = Places(
    region=REGION,
    account=ACCOUNT,
    table_bucket="frazil-dev-tables",
    warehouse="lake",
    tables=["shop.orders", "shop.orders__dead_letters", "nyc.flights", "nyc.flights__dead_letters"],
    scope=Scope.TABLE,
)
NAMESPACES = replace(PLACES, scope=Scope.NAMESPACE)
VALUES: dict[str, Value] = {
    "artifact_bucket": "frazil-dev-artifacts",
    "artifact_prefixes": ["releases", "documents"],
    "write_once_prefixes": ["releases", "documents"],
    "document_prefixes": ["documents"],
    "proof_prefix": "reconcile/ingest/proof",
    "state_prefixes": ["reconcile"],
    "log_bucket": "frazil-dev-logs",
    "workgroup": "analysts",
    "results_prefix": "athena",
    "log_prefix": "runs",
    "log_group": "/frazil/dev/ingest",
    "function_log_groups": ["/frazil/dev/reconcile-ingest"],
    "functions": ["frazil-dev-reconcile-ingest"],
    "log_groups": ["/frazil/dev/ingest", "/frazil/dev/maintain"],
    "key": KEY,
    "secrets": [SECRET],
    "applications": [APPLICATION],
    "job_roles": [INGEST, MAINTENANCE],
    "schedule_group": "frazil-dev",
    "principals": [f"arn:aws:iam::{ACCOUNT}:role/analyst"],
    "principal": VENDOR,
    "integration_role": CONFLUENT,
    "external_id": "5c1d6b2e-1111-4aaa-9bbb-0123456789ab",
    "database": "shop",
    "topics": ["orders", "orders.v2"],
    "prefix": "frazil-dev",
    "environment": "dev",
    "iam_path": "/",
    "boundary": f"arn:aws:iam::{ACCOUNT}:policy/boundary-frazil-dev",
    "given_buckets": [],
    "given_artifact_buckets": [],
    "given_databases": [],
    "given_keys": [],
    "given_vpcs": [],
    "own_workgroups": ["frazil-dev"],
    "lake_formation_regions": [REGION],
    "flow_log_roles": [f"arn:aws:iam::{ACCOUNT}:role/frazil-dev-flow-logs"],
    "scheduler_roles": [f"arn:aws:iam::{ACCOUNT}:role/frazil-dev-scheduler"],
    "deployed_prefixes": ["documents", "desired"],
    "state_bucket": "frazil-dev-state",
    "state_readers": [f"arn:aws:iam::{ACCOUNT}:role/{name}-frazil-dev" for name in ("deployer", "reviewer")],
    "state_writers": [f"arn:aws:iam::{ACCOUNT}:role/deployer-frazil-dev"],
    "disposable_buckets": ["frazil-dev-logs"],
    "repository": "shop/lake",
    "github_environment": "review-dev",
    "review_secrets": [REVIEW_SECRET],
}
_OF: dict[str, dict[str, Value]] = {"reconciler": {"artifact_prefixes": ["releases", "documents", "desired"]}}
"""What is another value for one document."""


def policy(name: str, places: Places = PLACES, **others: Value) -> dict[str, Any]:
    """A policy of the example, with these values instead of the example's."""
    wanted = placeholders(name)
    values = {**VALUES, **_OF.get(name, {}), **others}
    return fill(name, places.values(name, **{key: each for key, each in values.items() if key in wanted}))
