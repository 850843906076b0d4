"""The demo's database: its changes become an upsert table, which must equal the database's own."""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from rich.console import Console

from frazil.cli.console import number, say
from frazil.clients.secrets import Secrets
from frazil.declaration import Debezium, Environment, Hmac, Pipeline, Secret, Shape, Table, Topic, Upsert
from frazil.errors import KafkaUnavailable, TopicMissing

if TYPE_CHECKING:
    from frazil.audit.files.proofs import ProofFolder
    from frazil.clients.kafka import Kafka
    from frazil.lake.read.stored_tables import Lake
    from frazil.local.services import LocalServices

PREFIX, _MASK_KEY, _WHERE = "airline", "FRAZIL_DEMO_MASK_KEY", "fare >= 50"
BOOKINGS = Pipeline(
    name="bookings",
    topic=Topic(f"{PREFIX}.public.bookings", value="avro", key="avro"),
    table=Table("airline.bookings"),
    write=Upsert(),
    envelope=Debezium(),
    shape=Shape(where=_WHERE, mask={"passenger": Hmac(Secret(env=_MASK_KEY))}),
)

_ROWS = """
INSERT INTO bookings
SELECT n, 'flight ' || n % 97, 'passenger ' || n, 40 + n % 900 / 4.0, 'booked', '2013-01-01Z'::timestamptz + n * interval '1 minute'
FROM generate_series({first}, {last}) AS n
"""
_CREATE = """
CREATE TABLE bookings (
    id int PRIMARY KEY, flight text NOT NULL, passenger text NOT NULL, fare numeric(8, 2), state text, changed_at timestamptz
)
"""
_CHANGES = (
    ("inserted", 1, _ROWS.format(first=5_001, last=6_000)),
    (
        "updated",
        1,
        "UPDATE bookings SET state = 'boarded', changed_at = changed_at + interval '1 day' WHERE id % 4 = 0",
    ),
    ("with another key", 3, "UPDATE bookings SET id = id + 10000, state = 'moved' WHERE id % 100 = 0"),
    ("deleted", 2, "DELETE FROM bookings WHERE id % 50 = 1"),
)
"""The changes with their records for each row: a delete has a tombstone, another key is delete and insert."""
_SECONDS = 60.0
_POLL_SECONDS = 0.05


@dataclass(slots=True, kw_only=True)
class Captured:
    """The database while its changes are captured, and how many records its topic has."""

    services: LocalServices
    produced: int = 0

    @classmethod
    def begin(cls, folder: Path) -> Captured:
        """Start database and worker, fill the database, and create the connector, which takes a snapshot."""
        from frazil.local.connect_worker import connector_settings, create_connector
        from frazil.local.postgres import execute
        from frazil.local.services import CHANGE_DATA, up

        os.environ.setdefault(_MASK_KEY, token_hex(32))
        services = up(folder, parts=CHANGE_DATA)
        _, rows = execute(services.database, _CREATE, _ROWS.format(first=1, last=5_000))
        settings = connector_settings(
            services.database,
            prefix=PREFIX,
            tables=("public.bookings",),
            registry_url=services.registry_url,
        )
        create_connector(services.connect_url, PREFIX, settings)
        return cls(services=services, produced=rows)

    def land(
        self, console: Console, environment: Environment, secrets: Secrets, land: Callable[[Pipeline], None]
    ) -> None:
        """Land the snapshot, change the database, and land the changes. `land` lands what the topic has."""
        from frazil.local.postgres import execute

        what = f"Debezium reads a snapshot of bookings: {number(self.produced)} rows"
        say(f"PostgreSQL at {self.services.database}; {what}", to=console)
        self._wait(environment, secrets)
        land(BOOKINGS)
        changed = execute(self.services.database, *(statement for _, _, statement in _CHANGES))
        self.produced += sum(each * rows for (_, each, _), rows in zip(_CHANGES, changed, strict=True))
        counts = (f"{number(rows)} {what}" for (what, _, _), rows in zip(_CHANGES, changed, strict=True))
        say(f"bookings: {', '.join(counts)}", to=console)
        self._wait(environment, secrets)
        land(BOOKINGS)

    def document(self) -> dict[str, Any]:
        """Return the same as JSON."""
        return {"pipeline": BOOKINGS.name, "produced": self.produced}

    def proof(self, lake: Lake, remembered: ProofFolder, console: Console) -> bool:
        """Verify the table, and compare it with the database, row by row."""
        from frazil.audit.verify import verify
        from frazil.cli.pipelines.verify import print_result
        from frazil.local.postgres import query

        found = verify(BOOKINGS, lake, deep=True, proofs=remembered)
        print_result(found, console)
        stored = lake.table(BOOKINGS.table.identifier)
        assert stored is not None
        columns, found_rows = query(self.services.database, "SELECT * FROM bookings WHERE fare >= 50")
        rows = [tuple(_masked(name, value) for name, value in zip(columns, row, strict=True)) for row in found_rows]
        copied = stored.iceberg.scan(selected_fields=tuple(columns)).to_arrow().select(columns).to_pylist()
        is_equal = sorted(tuple(row.values()) for row in copied) == sorted(rows)  # by the key, which is first
        equal = "equal" if is_equal else "NOT equal"
        of_database = f"{number(len(rows))} rows with {_WHERE} in PostgreSQL, passengers masked"
        say(f"airline.bookings: {of_database}: all rows {equal}", to=console)
        return found.exit_code == 0 and found.sum_of("read") == self.produced and is_equal

    def _wait(self, environment: Environment, secrets: Secrets) -> None:
        """Wait until the topic has all records."""
        from frazil.clients.kafka import Kafka

        kafka, deadline = Kafka(environment.kafka, secrets), time.monotonic() + _SECONDS
        while self._end(kafka) < self.produced:
            if time.monotonic() > deadline:
                what = f"the topic has fewer than {self.produced} records after {_SECONDS:.0f} s"
                raise KafkaUnavailable(what, where=f"topic {BOOKINGS.topic.name}")
            time.sleep(_POLL_SECONDS)

    @staticmethod
    def _end(kafka: Kafka) -> int:
        try:
            return kafka.offsets(BOOKINGS.topic.name, BOOKINGS.isolation)[0].stable
        except TopicMissing:  # the worker creates it with the first record
            return 0


def _masked(column: str, value: Any) -> Any:
    """Return a value of the database as the table has it."""
    if column != "passenger":
        return value
    return hmac.new(os.environ[_MASK_KEY].encode(), value.encode(), hashlib.sha256).hexdigest()
