"""The readiness of a generation: whether its drivers have committed, or have nothing to read, according to tables and topics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from frazil.clients.kafka import Kafka, Span
from frazil.clients.secrets import Secrets
from frazil.declaration import Environment, Isolation, Pipeline, parse, parse_environment
from frazil.errors import InvalidInput, KafkaUnavailable, SecretUnavailable, TokenUnavailable
from frazil.lake.read.stored_tables import Lake, StoredTable
from frazil.rollout.desired import Desired, Mode
from frazil.rollout.state import Store
from frazil.rollout.steps import Readiness

KAFKA_SECONDS = 10.0
"""The timeout of requests to Kafka."""


class Tables(Protocol):
    """The operation on a lake that the check needs."""

    def table(self, identifier: str) -> StoredTable | None:
        """Return the table as it is now; None if it does not exist."""
        ...


class Offsets(Protocol):
    """The request to Kafka that the check needs."""

    def offsets(self, topic: str, isolation: Isolation) -> dict[int, Span]:
        """Return the earliest and the stable offset of each partition."""
        ...


class TableReadiness:
    """Check the tables and topics that a generation's documents name. It reads the tables' ledgers and no rows."""

    def __init__(
        self,
        store: Store,
        secrets: Secrets,
        *,
        lake_of: Callable[[Environment, Secrets], Tables] = lambda place, secrets: Lake(place, secrets.read),
        kafka_of: Callable[[Environment, Secrets], Offsets] = lambda place, secrets: Kafka(
            place.kafka, secrets, timeout_seconds=KAFKA_SECONDS
        ),
    ) -> None:
        self._store, self._secrets = store, secrets
        self._lake_of, self._kafka_of = lake_of, kafka_of

    def of(self, desired: Desired) -> Readiness:
        """Return the readiness of a generation. Raises `CatalogUnavailable`, and `InvalidInput` if a document is missing.

        A successful drain has completed all its pipelines, so one commit among them is enough. In a continuous run, each
        pipeline must have committed or have nothing to read. If Kafka is unreachable from here, the latter is unknown,
        which is no evidence of a failure.
        """
        pipelines = [p for p in parse(self._document(desired.document)) if p.name not in desired.stopped]
        place = parse_environment(self._document(desired.environment))
        lake = self._lake_of(place, self._secrets)
        tables = {pipeline.name: lake.table(pipeline.table.identifier) for pipeline in pipelines}
        committed = {p.name for p in pipelines if _has_commit(tables[p.name], p, desired.run_prefix)}
        if committed and desired.mode is Mode.DRAIN:
            return Readiness.COMMITTED
        others = [self._is_caught_up(tables[p.name], p, place) for p in pipelines if p.name not in committed]
        if False in others:
            return Readiness.NOTHING_YET
        if None in others:
            return Readiness.PARTLY if committed else Readiness.UNKNOWN
        return Readiness.COMMITTED if committed else Readiness.CAUGHT_UP

    def _is_caught_up(self, table: StoredTable | None, pipeline: Pipeline, place: Environment) -> bool | None:
        """Return whether the table holds all records of its topic; None if Kafka or its secrets are unavailable from here.

        A table that does not exist has caught up only if its topic is empty.
        """
        newest = next(iter(table.commits(pipeline.name)), None) if table is not None else None
        held = newest.entry.end.at if newest is not None and newest.entry.end is not None else {}
        try:
            kafka = self._kafka_of(place, self._secrets)
            spans = kafka.offsets(pipeline.topic.name, pipeline.isolation)
        except (KafkaUnavailable, SecretUnavailable, TokenUnavailable):
            return None
        # A partition that a ledger does not name was added after it began: it is read from 0.
        return all(held.get(p, 0 if held else span.earliest) >= span.stable for p, span in spans.items())

    def _document(self, key: str) -> bytes:
        held = self._store.read(key)
        if held is None:
            raise InvalidInput(
                f"the document {key} does not exist", where="desired state", do="Deploy it before the runs"
            )
        return held.data


def _has_commit(table: StoredTable | None, pipeline: Pipeline, run_prefix: str) -> bool:
    """Return whether one of the generation's drivers has committed records to the table. Creating the table is not enough."""
    entries = (commit.entry for commit in (table.commits(pipeline.name) if table is not None else ()))
    return any((entry.run or "").startswith(run_prefix) and entry.end != entry.start for entry in entries)
