"""The composition of an environment's stacks, each from the outputs of those before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from frazil.declaration import InvalidDeclaration, Pipeline, Problem, Tableflow, TopicPattern, check
from frazil.declaration.shape import shape_secrets
from frazil.release.manifest import Release
from frazil.rollout.desired import Mode
from infra.alarms import LATEST_MINUTES, OUTAGE_PERIODS, SEEN
from infra.confluent.managed_topic import Cleanup, ManagedTopic
from infra.protection import Protection
from infra.tf import App
from stacks.spec.deployed_patterns import pattern_problems
from stacks.spec.deployments import AlarmsOf, Deployment
from stacks.spec.groups import Group, groups_of, with_shared
from stacks.spec.reader_keys import READER_KEYS, slots_at
from stacks.stacks.account_setup import Owner
from stacks.stacks.confluent import Confluent
from stacks.stacks.foundation import Foundation, workers_of
from stacks.stacks.ingestion import GroupIngestion, Ingestion
from stacks.stacks.providers import EnvironmentStack
from stacks.stacks.quotas import exceeded


@dataclass(frozen=True, slots=True, kw_only=True)
class Stacks:
    """The stacks of one environment, in the order in which they are deployed."""

    foundation: Foundation
    confluent: Confluent
    ingestion: Ingestion
    groups: tuple[GroupIngestion, ...] = ()

    @property
    def every(self) -> tuple[EnvironmentStack, ...]:
        """All stacks, in their order."""
        return (self.foundation, self.confluent, self.ingestion, *self.groups)


def compose(
    app: App,
    deployment: Deployment,
    pipelines: Sequence[Pipeline],
    topics: Sequence[ManagedTopic],
    *,
    text_of: Callable[[str], str],
    patterns: Sequence[TopicPattern] = (),
    release: Release | None = None,
    is_named_for_destruction: bool = False,
    former_groups: Iterable[str] = (),
    key_step: int = 0,
) -> Stacks:
    """Add the stacks of an environment to the app. Raises `InvalidDeclaration` with every problem of the declarations.

    `text_of` reads schema files, `release` is what should run, `is_named_for_destruction` the second key of `Protection`.
    `former_groups` were deployed: those without pipelines get an empty stack, which removes their jobs. `key_step` is the step of
    the rotations of the jobs' keys.
    """
    problems = [*check(pipelines), *_problems(deployment, pipelines, topics, patterns, release)]
    if problems:
        raise InvalidDeclaration(problems)
    examples = with_shared(pipelines, patterns)
    if deployment.access.has_owner:
        Owner(app, deployment, examples)
    protection = Protection(is_disposable=deployment.is_disposable, is_named=is_named_for_destruction)
    foundation = Foundation(app, deployment, examples, protection=protection)
    confluent = Confluent(
        app,
        deployment,
        pipelines,
        topics,
        foundation.outputs,
        patterns=patterns,
        protection=protection,
        text_of=text_of,
        slots=slots_at(key_step),
    )
    groups = groups_of(pipelines, patterns)
    outputs = (foundation.outputs, confluent.outputs)
    ingestion = Ingestion(app, deployment, groups, *outputs, release=release)
    confluent.add_dependency(foundation)
    ingestion.add_dependency(confluent)
    present = {group.name: group for group in groups if group.name is not None}
    empty = {name: Group(name=name, pipelines=()) for name in former_groups if name not in present}
    named = [each for _, each in sorted({**present, **empty}.items())]
    stacks = tuple(GroupIngestion(app, deployment, each, *outputs, release=release) for each in named)
    for stack in stacks:
        stack.add_dependency(ingestion)
    return Stacks(foundation=foundation, confluent=confluent, ingestion=ingestion, groups=stacks)


def _unseen(deployment: Deployment, pipelines: Sequence[Pipeline]) -> Iterator[Problem]:
    """Find cadences whose alarms CloudWatch could not evaluate."""
    if deployment.monitoring.alarms is AlarmsOf.GROUP:
        for group in groups_of(pipelines):
            jobs = deployment.runs.of(group.name)
            if jobs.mode is Mode.DRAIN and jobs.ingest_minutes * OUTAGE_PERIODS > LATEST_MINUTES:
                what = f"with a drain every {jobs.ingest_minutes} minutes, alarms would need {OUTAGE_PERIODS} of these; {SEEN}"
                do = f"Drain each {LATEST_MINUTES // OUTAGE_PERIODS} minutes or more often, or write alarms=AlarmsOf.PIPELINE"
                yield Problem("deployment.monitoring.alarms", what, do)


def _misfit_groups(deployment: Deployment, pipelines: Sequence[Pipeline]) -> Iterator[Problem]:
    """Find settings of groups without pipelines, and jobs that do not fit the application together."""
    groups = groups_of(pipelines)
    for name in deployment.runs.groups.keys() - {group.name for group in groups}:
        yield Problem(
            f"deployment.runs.groups.{name}", "no pipeline is in this group", "Declare one, or remove the settings"
        )
    if short := deployment.runs.capacity.shortage(*workers_of(deployment, pipelines)):
        what = f"the jobs of {len(groups)} group{'s' * (len(groups) > 1)} do not fit at once: {short}"
        yield Problem("deployment.runs.capacity", what, "Raise it, or lower `most` of the workers of groups")


def _unused_databases(deployment: Deployment, pipelines: Sequence[Pipeline]) -> Iterator[Problem]:
    """Find existing databases without pipelines. A misspelled one would be created next to the existing one."""
    namespaces = {pipeline.table.namespace for pipeline in pipelines}
    for index, database in enumerate(deployment.existing.databases):
        if pipelines and database not in namespaces:
            what = f"no pipeline has a table in {database}"
            yield Problem(
                f"deployment.existing.databases[{index}]", what, "Name the namespace of a pipeline, or remove it"
            )


def _on_a_cluster_of_others(deployment: Deployment, pipelines: Sequence[Pipeline]) -> Iterator[Problem]:
    """Find what the rights on an existing cluster do not allow, and secrets that the jobs' roles could not read."""
    wanted, names = deployment.confluent, deployment.names
    if not wanted.has_admin and any(isinstance(pipeline.engine, Tableflow) for pipeline in pipelines):
        what = "Tableflow publishes tables for a cluster as one, which Confluent lets its administrators do only"
        do = "Write is_administered=True if the cluster's owner agrees, or choose engine spark"
        yield Problem("deployment.confluent.is_administered", what, do)
    for field in ("reader_secret", "manager_secret"):
        arn = (getattr(wanted, field) or "").split(":", 6)
        if len(arn) < 7:
            continue
        path, begins = f"deployment.confluent.{field}", names.secret("")
        place = (names.partition, deployment.region, deployment.account)
        if (arn[1], arn[3], arn[4]) != place or not arn[6].startswith(begins):
            what = "no role of the environment may read a secret of this name or place"
            do = f"Create it in {deployment.account}, {deployment.region}, with a name like {begins}kafka"
            yield Problem(path, what, do)
        elif arn[6][:-7] == names.secret(READER_KEYS):
            yield Problem(path, "Frazil creates and deletes the secret of this name", "Choose another name")


def _secrets_of_shapes(deployment: Deployment, pipelines: Sequence[Pipeline]) -> Iterator[Problem]:
    """Find secrets of shapes that the jobs' roles could not read."""
    names = deployment.names
    begins = f"arn:{names.partition}:secretsmanager:{deployment.region}:{deployment.account}:secret:{names.secret('')}"
    for name in shape_secrets(pipelines):
        if not name.startswith(begins):
            what = "no role of the environment may read this secret"
            yield Problem("pipelines.shape", what, f"Name it by its ARN, which begins with {begins}")


def _unfit_for_tableflow(pipelines: Sequence[Pipeline], topics: Sequence[ManagedTopic]) -> Iterator[Problem]:
    """Find topics for which Tableflow would choose another write mode: it takes a compacted topic for a state, no other one."""
    modes = {p.topic.name: p.write for p in pipelines if isinstance(p.engine, Tableflow)}
    for index, topic in enumerate(topics):
        mode = modes.get(topic.name)
        if mode is not None and mode.replaces_rows is not (topic.cleanup is Cleanup.COMPACT):
            wanted = Cleanup.COMPACT if mode.replaces_rows else Cleanup.DELETE
            what = f"Tableflow chooses the write mode by the topic's cleanup, and {mode.kind} is that of {wanted}"
            yield Problem(f"topics[{index}].cleanup", what, f"Write Cleanup.{wanted.name}, or choose engine spark")


def _problems(
    deployment: Deployment,
    pipelines: Sequence[Pipeline],
    topics: Sequence[ManagedTopic],
    patterns: Sequence[TopicPattern],
    release: Release | None,
) -> list[Problem]:
    examples = with_shared(pipelines, patterns)
    problems = [*_on_a_cluster_of_others(deployment, pipelines), *_secrets_of_shapes(deployment, examples)]
    names = [topic.name for topic in topics]
    problems += [*_unfit_for_tableflow(pipelines, topics), *exceeded(deployment, pipelines, topics, patterns)]
    problems += [*_misfit_groups(deployment, examples), *_unseen(deployment, examples)]
    problems += [*_unused_databases(deployment, examples), *pattern_problems(deployment, pipelines, patterns)]
    for index, topic in enumerate(topics):
        if topic.name in names[:index]:
            problems.append(Problem(f"topics[{index}].name", f"{topic.name} is declared twice", "Remove one"))
        freshness = deployment.runs.freshness_minutes
        is_read = topic.name in {p.topic.name for p in pipelines} or any(one.matches(topic.name) for one in patterns)
        if topic.retention_hours * 60 < 2 * freshness and is_read:
            what = f"Kafka deletes records after {topic.retention_hours} h, and rows may be {freshness} minutes late"
            do = "Write at least twice that time: records that are deleted before they are read are lost"
            problems.append(Problem(f"topics[{index}].retention_hours", what, do))
    if release is not None and release.label != deployment.emr.label:
        what = f"the release is for {release.label}, and {deployment.name} runs {deployment.emr.label}"
        problems.append(Problem("release.label", what, "Build a release for the environment's label"))
    if release is not None and release.architecture is not deployment.emr.architecture:
        what = f"the release is for {release.architecture}, and {deployment.name} has {deployment.emr.architecture}"
        problems.append(Problem("release.architecture", what, "Build a release for the environment's processors"))
    return problems
