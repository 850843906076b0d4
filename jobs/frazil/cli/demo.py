"""`frazil demo`: the whole story on real data, from a broker that starts to a table that is proven."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from frazil.cli.screen import number, out, table
from frazil.cli.spark_here import spark_here
from frazil.cli.verify import tell as tell_verification
from frazil.clients.secrets import Secrets
from frazil.declaration import Environment, Limits, Pipeline, Table, Topic, ValueFormat

if TYPE_CHECKING:
    from frazil.ingest.report import Total

FOLDER = Path(".frazil/demo")
POISON_SHARE = 0.001
SEED = 20130101

FLIGHTS = Pipeline(
    topic=Topic("flights", value_format=ValueFormat.AVRO),
    table=Table("nyc.flights", partition_by=("months(time_hour)",), sort_by=("time_hour",)),
    limits=Limits(first_rows=50_000, max_rows=200_000),
)
QUERY = (
    "select carrier, count(*) as flights, round(avg(arr_delay), 1) as late_minutes "
    "from rows group by carrier order by flights desc limit 5"
)


def demo(context: typer.Context) -> None:
    """Land a year of New York's flights: produce, break, evolve, land, prove, query.

    For example: frazil demo

    It starts a broker and a registry of its own under .frazil/demo, and ends them. A second run starts clean. Exit codes: 0 the
    tables are proven and hold what was produced; 1 they do not.
    """
    from frazil.audit.verify import verify
    from frazil.ingest.drive import drain
    from frazil.lake.reader import Lake
    from frazil.local.poison import Poison
    from frazil.local.produce import Filling
    from frazil.local.sources import flights
    from frazil.local.world import world

    secrets: Secrets = context.find_root().obj
    console = out()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with world(FOLDER) as here:
        console.rule("1. a topic fills")
        source = flights()
        filling = Filling(
            source, here.bootstrap, here.registry_url, Poison(source.count, share=POISON_SHARE, seed=SEED)
        )
        filling.create(partitions=3)
        total: Total | None = None
        environment = here.environment
        with spark_here(environment, secrets, master="local[*]", memory="2g", log=FOLDER / "spark.log") as shared:
            from frazil.clients.registry import Registry

            registry = Registry.of(environment.registry, secrets) if environment.registry else None
            for part in range(len(source.versions)):
                version = filling.next_version(lambda more: None)
                console.print(f"{number(filling.sent)} records so far, version {part + 1} of the schema {version.what}")
                outcome = drain([FLIGHTS], shared, registry, lambda event: None, probe=part == 0)[FLIGHTS.name]
                if outcome.error:
                    raise outcome.error
                total = outcome.total
                console.print(
                    f"landed {number(total.written)}, dead-lettered {number(sum(total.rejected.values()))}, "
                    f"in {total.batches} batches"
                )
        console.rule("2. the proof")
        found = verify(FLIGHTS, Lake(environment, secrets.read), deep=True)
        tell_verification(found, console)
        console.rule("3. a question, asked in DuckDB")
        rows = _query(environment, console)
        spoilt = sum(filling.poison.made.values())
        console.rule("4. what became of each record")
        dead = found.sum_of("dead_lettered")
        summary = table("produced", "landed", "dead-lettered", right=("produced", "landed", "dead-lettered"))
        summary.add_row(number(filling.sent), number(rows), number(dead))
        console.print(summary)
        console.print(f"spoilt on purpose, by kind: {filling.poison.made}", markup=False)
        console.print(f"Tables: {FOLDER}/.frazil/lake. Declarations: stacks/pipelines.py and docs/declaration.md.")
        agrees = found.exit_code == 0 and rows + dead == filling.sent and dead == spoilt
        console.print("verified" if agrees else "NOT verified", style="bold green" if agrees else "bold red")
    if not agrees:
        raise typer.Exit(1)


def _query(environment: Environment, console: Console) -> int:
    """Ask DuckDB for the busiest carriers; returns how many rows the table has."""
    import duckdb

    from frazil.lake.reader import Lake

    lake = Lake(environment, lambda secret: "")
    found = lake.table(FLIGHTS.table.identifier)
    assert found is not None
    rows = found.iceberg.scan(selected_fields=("carrier", "arr_delay")).to_arrow()
    answer = duckdb.connect().execute(QUERY)
    shown = table(*(column[0] for column in answer.description or ()))
    for line in answer.fetchall():
        shown.add_row(*map(str, line))
    console.print(shown)
    return int(rows.num_rows)
