"""The composition of an environment's stacks, each from the outputs of those before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from frazil.declaration import InvalidDeclaration, Pipeline, Problem, Tableflow, Upsert, check
from frazil.release.manifest import Release
from infra.managed_topic import Cleanup, ManagedTopic
from infra.protection import Protection
from infra.tf import App
from stacks.account_setup import Owner
from stacks.confluent import Confluent
from stacks.deployments import ClusterKind, Deployment
from stacks.foundation import Foundation
from stacks.ingestion import Ingestion


@dataclass(frozen=True, slots=True, kw_only=True)
class Stacks:
    """The stacks of one environment, in the order in which they are deployed."""

    foundation: Foundation
    confluent: Confluent
    ingestion: Ingestion


def compose(
    app: App,
    deployment: Deployment,
    pipelines: Sequence[Pipeline],
    topics: Sequence[ManagedTopic],
    *,
    today: date,
    text_of: Callable[[str], str],
    release: Release | None = None,
    is_named_for_destruction: bool = False,
) -> Stacks:
    """Add the stacks of an environment to the app. Raises `InvalidDeclaration` with every problem of the declarations.

    `text_of` reads schema files, `release` is what should run, `is_named_for_destruction` the second key of `Protection`.
    """
    problems = [*check(pipelines), *_problems(deployment, pipelines, topics, release)]
    if problems:
        raise InvalidDeclaration(problems)
    if deployment.deployer_principals or deployment.github:
        Owner(app, deployment, pipelines)
    protection = Protection(is_disposable=deployment.is_disposable, is_named=is_named_for_destruction)
    foundation = Foundation(app, deployment, pipelines, protection=protection, today=today)
    confluent = Confluent(
        app, deployment, pipelines, topics, foundation.outputs, protection=protection, text_of=text_of
    )
    ingestion = Ingestion(app, deployment, pipelines, foundation.outputs, confluent.outputs, release=release)
    confluent.add_dependency(foundation)
    ingestion.add_dependency(confluent)
    return Stacks(foundation=foundation, confluent=confluent, ingestion=ingestion)


def _cannot_work(deployment: Deployment) -> Iterator[Problem]:
    """Find settings that can be declared but would cut jobs off from Kafka or the registry."""
    missing = (
        "jobs could not reach the public address of the schema registry; no resource connects the endpoint to Confluent's "
        "attachment; Terraform would have to run inside the network"
    )
    do = "Use NAT and a basic or standard cluster until Frazil supports PrivateLink (docs/deploy.md)"
    if deployment.network.private_link is not None:
        yield Problem("deployment.network.private_link", f"PrivateLink does not work yet: {missing}", do)
    if deployment.confluent.is_managed and deployment.confluent.kind is ClusterKind.ENTERPRISE:
        what = f"an enterprise cluster needs PrivateLink, which does not work yet: {missing}"
        yield Problem("deployment.confluent.kind", what, do)


def _unfit_for_tableflow(pipelines: Sequence[Pipeline], topics: Sequence[ManagedTopic]) -> Iterator[Problem]:
    """Find topics for which Tableflow would choose another write mode: it takes a compacted topic for a state, no other one."""
    modes = {p.topic.name: p.write for p in pipelines if isinstance(p.engine, Tableflow)}
    for index, topic in enumerate(topics):
        mode = modes.get(topic.name)
        if mode is not None and isinstance(mode, Upsert) is not (topic.cleanup is Cleanup.COMPACT):
            wanted = Cleanup.COMPACT if isinstance(mode, Upsert) else Cleanup.DELETE
            what = f"Tableflow chooses the write mode by the topic's cleanup, and {mode.kind} is that of {wanted}"
            yield Problem(f"topics[{index}].cleanup", what, f"Write Cleanup.{wanted.name}, or choose engine spark")


def _problems(
    deployment: Deployment, pipelines: Sequence[Pipeline], topics: Sequence[ManagedTopic], release: Release | None
) -> list[Problem]:
    problems = [*_cannot_work(deployment)]
    names = [topic.name for topic in topics]
    problems += _unfit_for_tableflow(pipelines, topics)
    for index, topic in enumerate(topics):
        if topic.name in names[:index]:
            problems.append(Problem(f"topics[{index}].name", f"{topic.name} is declared twice", "Remove one"))
        freshness = deployment.runs.freshness_minutes
        if topic.retention_hours * 60 < 2 * freshness and topic.name in {p.topic.name for p in pipelines}:
            what = f"Kafka deletes records after {topic.retention_hours} h, and rows may be {freshness} minutes late"
            do = "Write at least twice that time: records that are deleted before they are read are lost"
            problems.append(Problem(f"topics[{index}].retention_hours", what, do))
    if release is not None and release.label != deployment.label:
        what = f"the release is for {release.label}, and {deployment.name} runs {deployment.label}"
        problems.append(Problem("release.label", what, "Build a release for the environment's label"))
    if release is not None and release.reconciler is None:
        what = "the release has no program of the reconciler, as before version 0.2"
        problems.append(Problem("release.files", what, "Build the release again with this version"))
    if release is not None and release.architecture is not deployment.architecture:
        what = f"the release is for {release.architecture}, and {deployment.name} has {deployment.architecture}"
        problems.append(Problem("release.architecture", what, "Build a release for the environment's processors"))
    return problems
