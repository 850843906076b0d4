"""Limits of AWS and Confluent that a deployment would exceed. An apply would fail half-way, so synthesis refuses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from frazil.declaration import Pipeline, Problem
from infra.execution_role import QUOTAS
from policies.documents import MANAGED_LIMIT, characters
from stacks.account_setup import boundary
from stacks.deployments import Deployment


def exceeded(deployment: Deployment, pipelines: Sequence[Pipeline]) -> Iterator[Problem]:
    """Yield each exceeded limit, with its number, its source and a remedy."""
    yield from _boundary(deployment, pipelines)


def _boundary(deployment: Deployment, pipelines: Sequence[Pipeline]) -> Iterator[Problem]:
    namespaces = {pipeline.table.namespace for pipeline in pipelines}
    if namespaces and (size := characters(boundary(deployment, pipelines))) > MANAGED_LIMIT:
        name = deployment.names.boundary
        what = (
            f"{name} would have {size:,} characters with {len(namespaces)} namespaces; IAM's limit is {MANAGED_LIMIT:,}"
        )
        yield Problem("pipelines", f"{what} ({QUOTAS})", "Use fewer or shorter namespaces, or another environment")
