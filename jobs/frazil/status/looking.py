"""One look at pipelines of an environment, as a person at a screen needs it: short waits, no secrets, commands to copy."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from frazil.clients.daemon_threads import DaemonThreads
from frazil.clients.secrets import Secrets
from frazil.declaration import Environment, Pipeline

if TYPE_CHECKING:
    from frazil.clients.registry.client import Registry
    from frazil.lake.read.stored_tables import Lake
    from frazil.status.all_pipelines import Services
    from frazil.status.pipeline_status import PipelineStatus

SECONDS = 5.0
"""Longest time that Kafka may take. Without Kafka, only the lag is unknown."""


class Looking:
    """Looks at pipelines of an environment. Clients are made once, and tables are read each time."""

    def __init__(self, place: Environment, env: str, secrets: Secrets, *, commits: int = 0) -> None:
        from frazil.clients.kafka import Kafka
        from frazil.clients.registry.client import Registry
        from frazil.clients.registry.http import RetryPolicy
        from frazil.status.all_pipelines import PARALLEL

        self._place, self._env, self._secrets, self._commits = place, env, secrets, commits
        self._threads = DaemonThreads(PARALLEL, name="status")
        self._kafka = cache(lambda: Kafka(place.kafka, secrets, timeout_seconds=SECONDS))
        retry = RetryPolicy(total_seconds=SECONDS)
        self.registry: Callable[[], Registry | None] = cache(
            lambda: Registry.of(place.registry, secrets, retry=retry) if place.registry else None
        )

    def all(
        self, pipelines: Sequence[Pipeline], *, lake: Lake | None = None, commits: int | None = None
    ) -> list[PipelineStatus]:
        """Return a row for each pipeline. `lake` and `commits` replace those of each look."""
        from frazil.status.all_pipelines import all_pipelines

        services = self._services(lake, commits)
        return [self._shown(row) for row in all_pipelines(pipelines, services, self._threads, now=time.time)]

    def one(self, pipeline: Pipeline) -> PipelineStatus:
        """Return the row of one pipeline, with its details. Raises what reading its table raises."""
        from frazil.status.all_pipelines import one_pipeline

        return self._shown(one_pipeline(pipeline, self._services(), self._threads, now=time.time))

    def in_words(self, text: str) -> str:
        """Return a text without secrets, with its commands as they are for the environment."""
        return self._secrets.redactor.redact(in_environment(text, self._env))

    def _services(self, lake: Lake | None = None, commits: int | None = None) -> Services:
        from frazil.lake.read.stored_tables import Lake
        from frazil.status.all_pipelines import Services

        stopped = stopped_broker(self._place.kafka.bootstrap)
        return Services(
            lake=lake or Lake(self._place, self._secrets.read),
            kafka=None if stopped else self._kafka,
            registry=self.registry,
            stopped=stopped,
            commits=self._commits if commits is None else commits,
        )

    def _shown(self, row: PipelineStatus) -> PipelineStatus:
        """Return the row without secrets, and with its commands as they are for the environment."""
        return replace(
            row, why=self.in_words(row.why), commands=tuple(command_in(one, self._env) for one in row.commands)
        )


def stopped_broker(bootstrap: str) -> str:
    """Return a sentence if the broker is on this machine and does not run; else nothing.

    A port without a process refuses at once. Kafka's client would retry it until its timeout.
    """
    from frazil.clients.reachability import LOOPBACK, connect

    for address in bootstrap.split(","):
        if address.strip().rpartition(":")[0] not in LOOPBACK:
            return ""
        with suppress(OSError):
            connect(address.strip(), SECONDS)
            return ""
    return f"The local broker {bootstrap} does not run"


def command_in(command: str, environment: str) -> str:
    """Return a command that an error names as it is for an environment: errors do not know theirs."""
    return command if environment == "local" else f"{command} --env {shlex.quote(environment)}"


def in_environment(text: str, environment: str) -> str:
    """Return a message with its commands as they are for an environment."""
    return re.sub(r"`(frazil [^`]+)`", lambda found: f"`{command_in(found[1], environment)}`", text)
