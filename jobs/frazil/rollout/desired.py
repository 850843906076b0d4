"""The desired state of a job, an object that deployment writes and the reconciler reads. It holds no secret.

Each job has one object, `desired/<job>.json`. A generation is one version of it; any change must raise the number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import StrEnum
from typing import Annotated, Any

from frazil.declaration.checks.constraints import between, matching, one_of
from frazil.declaration.checks.declared import declared
from frazil.declaration.checks.problems import Problem
from frazil.declaration.documents.from_json import VERSION, from_json, members
from frazil.declaration.documents.to_json import canonical, digest, to_json
from frazil.release.emr_labels import LABELS

MEMORY_GB: Mapping[int, range] = {
    1: range(2, 9),
    2: range(4, 17),
    4: range(8, 31),
    8: range(16, 61, 4),
    16: range(32, 121, 8),
}
"""The memory sizes in GB that are offered for each number of cores
(https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/app-behavior.html#worker-configs)."""

_OVERHEAD_LEAST_MB = 384
_OVERHEAD_PERCENT = (
    20  # for Python, Arrow and native memory outside the heap; Spark's default of 10 is for the JVM alone
)


@declared
class Worker:
    """The size of one worker: a driver or an executor."""

    cores: Annotated[int, "vCPUs.", one_of(*MEMORY_GB)] = 4
    memory_gb: Annotated[int, "The worker's memory, heap and overhead, in GB.", between(2, 120)] = 16
    disk_gb: Annotated[int, "Disk, in GB.", between(20, 200)] = 20

    def _contradictions(self) -> Iterator[Problem]:
        sold = MEMORY_GB.get(self.cores, range(0))
        if sold and self.memory_gb not in sold:
            step = f" in steps of {sold.step}" if sold.step > 1 else ""
            do = f"Write {sold[0]} to {sold[-1]}{step}, or another number of cores"
            yield Problem("memory_gb", f"{self.cores} cores are not offered with {self.memory_gb} GB", do)

    @property
    def overhead_mb(self) -> int:
        """The memory outside the JVM's heap, in MB."""
        return max(_OVERHEAD_LEAST_MB, self.memory_gb * 1024 * _OVERHEAD_PERCENT // 100)

    @property
    def heap_mb(self) -> int:
        """The JVM's heap in MB. Heap and overhead are exactly the worker's memory."""
        return self.memory_gb * 1024 - self.overhead_mb


@declared
class Workers:
    """A driver, and executors whose number follows the work."""

    driver: Annotated[Worker, "The driver."] = Worker()  # frozen
    executor: Annotated[Worker, "Each executor."] = Worker()  # frozen
    least: Annotated[int, "The fewest executors.", between(1, 1000)] = 1
    most: Annotated[int, "The most executors.", between(1, 1000)] = 4

    def _contradictions(self) -> Iterator[Problem]:
        if self.least > self.most:
            yield Problem("least", f"it is more than `most`, {self.most}", "Lower it, or raise `most`")

    @property
    def most_cores(self) -> int:
        """The most vCPUs, the driver's included. An application's maximum capacity must not be smaller."""
        return self.driver.cores + self.most * self.executor.cores

    @property
    def most_memory_gb(self) -> int:
        """The most memory, the driver's included, in GB."""
        return self.driver.memory_gb + self.most * self.executor.memory_gb


_JOB = matching("[a-z][a-z0-9-]{0,39}", "a job's name", "Write a lower-case letter, then up to 39 of a-z, 0-9 and -")
_RELEASE = matching(
    r"releases/[0-9A-Za-z.+-]+/[0-9a-f]{64}/manifest\.json", "a release's key", "Write what its upload printed"
)
_DOCUMENT = matching(r"documents/[0-9a-f]{64}\.json", "a document's key", "Write what its upload printed")
_ROLE = matching(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[\w+=,.@/-]+", "a role's ARN", "Write it in full")
_LOG_URI = matching("s3://[a-z0-9][a-z0-9.-]+/.*", "a location on S3", "Write it like s3://bucket/prefix/")
_LABEL = matching("|".join(row.name for row in LABELS), "a supported label", "Write one of release/emr_labels.py")
_PIPELINE = matching("[a-z][a-z0-9_]{0,99}", "a pipeline's name", "Write it as it is declared")
_ARGUMENT = matching(r"[^\s'\"\\]+", "an argument", "Write it without spaces, quotes and backslashes")


class Mode(StrEnum):
    """The way in which a job runs.

    `follow` is one streaming run that does not end by itself. `drain` is a run that ends when it has landed all existing
    records. The reconciler starts the first one of a generation at once, to prove it, and each later one when its schedule
    calls it.
    """

    FOLLOW = "follow"
    DRAIN = "drain"


@declared
class Desired:
    """One generation of an ingest job: which release lands the pipelines of which documents, and how."""

    job: Annotated[str, "The job's name, which never changes.", _JOB]
    generation: Annotated[int, "The version of this object.", between(1, 1_000_000_000)]
    label: Annotated[str, "The EMR release of the application.", _LABEL]
    application: Annotated[
        str, "The id of the EMR Serverless application.", matching("[0-9a-z]{1,64}", "an id", "Write it")
    ]
    release: Annotated[str, "The key of the release's manifest.", _RELEASE]
    document: Annotated[str, "The key of the pipelines' document.", _DOCUMENT]
    environment: Annotated[str, "The key of the environment's document.", _DOCUMENT]
    execution_role: Annotated[str, "The ARN of the role of its runs.", _ROLE]
    log_uri: Annotated[str, "Where runs write their logs.", _LOG_URI]
    mode: Annotated[Mode, "How it runs."] = Mode.FOLLOW
    is_stopped: Annotated[bool, "Whether the job is stopped."] = False
    stopped: Annotated[tuple[Annotated[str, _PIPELINE], ...], "Pipelines that an operator stopped."] = ()
    arguments: Annotated[tuple[Annotated[str, _ARGUMENT], ...], "Further arguments of the entry point."] = ()
    workers: Annotated[Workers, "The sizes of its workers."] = Workers()  # frozen
    log_group: Annotated[str | None, "The CloudWatch log group; its lines contain the metrics."] = None
    grace_seconds: Annotated[int, "How long a cancelled run may take to end.", between(15, 1800)] = 120
    proof_seconds: Annotated[int, "How long a new run may take to prove itself.", between(60, 86_400)] = 1800
    calm_seconds: Annotated[
        int, "How long a new run with nothing to read must run before it counts as proven.", between(10, 3600)
    ] = 300
    timeout_minutes: Annotated[int, "How long a drain may take at most.", between(5, 10_080)] = 720

    def _contradictions(self) -> Iterator[Problem]:
        for index, argument in enumerate(self.arguments):
            if argument.split("=")[0] in {"--document", "--environment", "--once", "--follow", "--run", "--without"}:
                yield Problem(f"arguments[{index}]", f"{argument} is given by the settings of the run", "Remove it")
        if self.calm_seconds > self.proof_seconds:
            yield Problem("calm_seconds", f"it is more than proof_seconds, {self.proof_seconds}", "Lower it")

    @property
    def digest(self) -> str:
        """The digest of this generation's content: two generations that differ have different digests.

        Fields with their default value are omitted, so a release that adds a field changes no digest.
        """
        return digest(canonical(_chosen(self)))

    @property
    def unstopped(self) -> Desired:
        """The generation with all its pipelines: it is proven or given up whichever of them an operator stopped."""
        return replace(self, stopped=(), is_stopped=False) if self.stopped else self

    @property
    def is_ended(self) -> bool:
        """True if the declaration stops the job. If an operator stopped all pipelines, `stopped` names them."""
        return self.is_stopped and not self.stopped

    @property
    def run_prefix(self) -> str:
        """The prefix of the run ids that this generation's drivers write into the ledger."""
        return f"{self.job}-{self.generation}-{self.digest[:8]}-"


def _chosen(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that differ from their default, as JSON."""
    chosen = {}
    for field in fields(value):
        held = getattr(value, field.name)
        if held != field.default:
            chosen[field.name] = _chosen(held) if is_dataclass(held) else to_json(held)
    return chosen


INGEST, MAINTAIN = "ingest", "maintain"


def job_name(kind: str, group: str | None) -> str:
    """Return the name of a group's job; `kind` is `INGEST` or `MAINTAIN`."""
    return f"{kind}-{group}" if group else kind


def desired_key(job: str) -> str:
    """Return the key of a job's desired state in the artifact bucket."""
    return f"desired/{job}.json"


def desired_document(desired: Desired) -> bytes:
    """Return the desired state as canonical JSON."""
    return canonical({"version": VERSION, **to_json(desired)})


def parse_desired(source: bytes | Mapping[str, Any]) -> Desired:
    """Parse a desired state. Raises `InvalidDeclaration` with every problem."""
    return from_json(Desired, members(source, "desired state"), "")
