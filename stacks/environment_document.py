"""The environment document that jobs read: the addresses of Kafka, registry and tables, without secrets."""

from __future__ import annotations

from frazil.declaration import (
    Environment,
    GlueCatalog,
    Kafka,
    Mechanism,
    ObjectStore,
    Registry,
    Secret,
    Security,
    canonical,
    environment_document,
)
from stacks.confluent import ConfluentOutputs
from stacks.deployments import Deployment
from stacks.foundation import FoundationOutputs
from stacks.providers import local_endpoint
from stacks.unknown_values import APPLICATION, BOOTSTRAP, REGISTRY, filled

WAREHOUSE = "lake"
"""The prefix of all tables in their bucket."""


def environment_text(deployment: Deployment, foundation: FoundationOutputs, confluent: ConfluentOutputs) -> str:
    """Return the document as text, in which Terraform fills in addresses and ids."""

    def secret(field: str) -> Secret:
        return Secret(secretsmanager=confluent.secret_name, field=field)

    if deployment.is_local:
        kafka = Kafka(bootstrap=BOOTSTRAP)
        registry = Registry(url=REGISTRY)
    else:
        kafka = Kafka(
            bootstrap=BOOTSTRAP,
            security=Security.SASL_SSL,
            mechanism=Mechanism.PLAIN,
            username=secret("kafka_key"),
            password=secret("kafka_secret"),
        )
        registry = Registry(url=REGISTRY, username=secret("registry_key"), password=secret("registry_secret"))
    endpoint = local_endpoint() if deployment.is_local else None
    environment = Environment(
        name=deployment.name,
        kafka=kafka,
        registry=registry,
        catalog=GlueCatalog(
            warehouse=f"s3://{foundation.table_bucket}/{WAREHOUSE}", region=deployment.region, endpoint=endpoint
        ),
        object_store=ObjectStore(endpoint=endpoint, path_style=True, region=deployment.region) if endpoint else None,
        artifact_bucket=foundation.artifact_bucket,
        emr_application=APPLICATION,
        metrics_namespace=deployment.names.metrics_namespace,
        trusted_keys=deployment.trusted_keys or None,
    )
    return filled(
        canonical(environment_document(environment)).decode(),
        {
            BOOTSTRAP: confluent.bootstrap,
            REGISTRY: confluent.registry_url,
            APPLICATION: foundation.application_id,
        },
    )
