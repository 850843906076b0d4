"""The environment document that jobs read: the addresses of Kafka, registry and tables, without secrets."""

from __future__ import annotations

from collections.abc import Mapping

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
from infra.tf import Construct, Fn, TerraformLocal
from stacks.spec.deployments import Deployment
from stacks.stacks.confluent import ConfluentOutputs
from stacks.stacks.foundation import FoundationOutputs
from stacks.stacks.providers import local_endpoint

BOOTSTRAP = "bootstrap.frazil.invalid:9092"
REGISTRY = "https://registry.frazil.invalid"
APPLICATION = "frazil0application0of0later"
ENVIRONMENT_DIGEST = "e" * 63 + "0"


def filled(text: str, values: Mapping[str, str]) -> str:
    """Replace the placeholders of a text by expressions, and escape everything else that Terraform would evaluate."""
    text = text.replace("${", "$${").replace("%{", "%%{")
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return text


class Text:
    """A text with unknown values, and its hash, which Terraform computes from the bytes that it writes."""

    def __init__(self, scope: Construct, name: str, text: str) -> None:
        self.text = text
        self.sha256 = str(Fn.sha256(TerraformLocal(scope, name, text).as_string))


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
        trusted_keys=deployment.access.trusted_keys or None,
    )
    return filled(
        canonical(environment_document(environment)).decode(),
        {
            BOOTSTRAP: confluent.bootstrap,
            REGISTRY: confluent.registry_url,
            APPLICATION: foundation.application_id,
        },
    )
