"""Order of upserts: the deleted keys that a table with an order remembers, so that an older record brings no row back.

They are in Parquet files next to the data files, which only a commit's summary names (`RememberedDeletes`). A row has the key, the
place of the delete's record, and when its batch was staged. If a key is there several times, the highest place counts; a later row
of a key makes all of them say nothing, so none is ever taken back. Iceberg reads and writes the files: it knows each store that a
catalog knows, and widens columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from frazil.errors import IncompatibleSchema
from frazil.lake.delete_files.java_writers import unlisted_table
from frazil.lake.iceberg_java import DAMAGED, Iceberg, thrown
from frazil.lake.java_classes import Java
from frazil.lake.ledger.remembered_deletes import ROWS_A_FILE, KeyColumn, KeyFile, RememberedDeletes
from frazil.lake.row_offsets import files_read
from frazil.lake.stage import constant, write_files
from frazil.upsert.resolver_protocol import NUMBER, PLACE, Remembered, broadcast, is_tie, key_names
from frazil.upsert.scan_resolver import check_names

if TYPE_CHECKING:
    import pyarrow as pa

Result = TypeVar("Result")
FOLDER = "deleted-keys"
"""The folder of the files, below the table's data."""
_THEN, _STAGED, _LATE, _TIED = "place", "staged", "_frazil_late", "_frazil_tied"


class FilesLost(Exception):  # it says what happened
    """Files of deleted keys that the ledger names do not exist, or are not what was written."""


@dataclass(frozen=True, slots=True)
class DeletedKeys:
    """The deleted keys of a table, as a batch that is staged at `staged_us` sees and leaves them, microseconds since 1970.

    Deletes that were staged `keep_us` before are forgotten. `schema` is that of the batch's keys, as in `positions.find`.
    """

    iceberg: Iceberg
    schema: Any
    staged_us: int
    keep_us: int
    new_id: Callable[[], str]

    @property
    def since(self) -> int:
        """The moment up to which deletes are forgotten."""
        return self.staged_us - self.keep_us

    def search(self, table: Java, known: RememberedDeletes, keys: pa.Table) -> Remembered:
        """Return which of the `keys` come late, and which are tied, by the deletes that are remembered of the loaded `table`.

        Raises `FilesLost`.
        """
        known = known.since(self.since)
        if not known.files or not keys.num_rows:
            return Remembered()
        names = self._names(table, known)
        wanted = broadcast(self.iceberg.spark, keys, self.schema)
        wanted = wanted.select(*(F.col(name).alias(_key(n)) for n, name in enumerate(names)), NUMBER, PLACE)

        def found(deleted: DataFrame) -> pa.Table:
            both = deleted.join(wanted, [_key(n) for n in range(len(names))])
            newest = both.groupBy(NUMBER).agg(F.max(_THEN).alias(_THEN), F.first(PLACE).alias(PLACE))
            then, now = F.col(_THEN), F.col(PLACE)
            compared = newest.select(NUMBER, (now < then).alias(_LATE), is_tie(now, then).alias(_TIED))
            return compared.where(F.col(_LATE) | F.col(_TIED)).toArrow()

        answer = self._read(table, known, found)
        late, tied = (frozenset(answer.filter(answer[mark])[NUMBER].to_pylist()) for mark in (_LATE, _TIED))
        return Remembered(late, tied)

    def after(self, table: Java, known: RememberedDeletes, deleted: pa.Table) -> RememberedDeletes:
        """Return what is remembered after the batch, whose keys `deleted` are those that it deletes: they are written to a file.

        `deleted` is as `keys` of `search`. Raises `FilesLost`.
        """
        known = known.since(self.since)
        names = self._names(table, known)
        known = replace(known, columns=tuple(KeyColumn(_field_id(table, name), name) for name in names))
        if not deleted.num_rows:
            return known
        merged = known.merged_next
        # A driver whose clock is slower than the last one's writes deletes as new as those: else they would be forgotten sooner.
        newest = max(self.staged_us, *(file.newest for file in known.files)) if known.files else self.staged_us
        rows = self.iceberg.spark.createDataFrame(deleted, schema=self.schema).select(
            *(F.col(name).alias(_key(n)) for n, name in enumerate(names)),
            F.col(PLACE).alias(_THEN),
            _moment(newest).alias(_STAGED),
        )
        count = deleted.num_rows + sum(file.rows for file in merged.files)
        tasks = -(-count // ROWS_A_FILE)
        if not merged.files:
            return known.after(merged, self._written(table, names, rows.coalesce(tasks), newest))

        def written(earlier: DataFrame) -> list[KeyFile]:
            key = [_key(n) for n in range(len(names))]
            all_ = earlier.select(*rows.columns).union(rows).repartition(tasks, *key)
            # The highest place and the newest staging may be of two deletes: a key is rather remembered for too long.
            once = all_.groupBy(*key).agg(*(F.max(name).alias(name) for name in (_THEN, _STAGED)))
            return self._written(table, names, once, newest)

        return known.after(merged, self._read(table, merged, written))

    def _read(self, table: Java, known: RememberedDeletes, use: Callable[[DataFrame], Result]) -> Result:
        """Return what `use` makes of the deletes in these files that are not forgotten."""
        here = self._table(table, self._names(table, known))
        try:
            with files_read(
                self.iceberg, here, [_document(file) for file in known.files], unique_id=self.new_id()
            ) as rows:
                return use(rows.where(F.col(_STAGED) > _moment(max(self.since, known.forgotten))))
        except (PySparkException, Py4JJavaError) as error:
            if lost := lost_files(table, known):
                raise FilesLost(", ".join(lost)) from error
            raise

    def _written(self, table: Java, names: Sequence[str], rows: DataFrame, newest: int) -> list[KeyFile]:
        files = write_files(self.iceberg, self._table(table, names), rows, unique_id=self.new_id())
        return [
            KeyFile(str(file.location()), int(file.recordCount()), int(file.fileSizeInBytes()), newest)
            for file in files
        ]

    def _table(self, table: Java, names: Sequence[str]) -> Java:
        types = {field.name: field.dataType for field in self.schema.fields}
        columns = [T.StructField(_key(n), types[name]) for n, name in enumerate(names)]
        columns += [T.StructField(_THEN, types[PLACE]), T.StructField(_STAGED, T.LongType())]
        return unlisted_table(self.iceberg, table, T.StructType(columns), FOLDER)

    def _names(self, table: Java, known: RememberedDeletes) -> tuple[str, ...]:
        """Return the columns of the key in the order of the files, whatever was renamed or moved since they were written.

        Raises `StageAgain`, and `IncompatibleSchema` if several were dropped and others added, so that the order is not known.
        """
        names = key_names(self.schema)
        check_names(table, names)
        found = known.in_order({name: _field_id(table, name) for name in names})
        if found is None:
            raise IncompatibleSchema(
                f"the key was {', '.join(column.name for column in known.columns)} when deletes were last remembered, and is "
                f"{', '.join(names)} now, in columns that were added since",
                where=f"table {table.name()}",
                do="Give the columns their former names, or land the topic in another table",
            )
        return found


def _moment(microseconds: int) -> Column:
    return constant(F.lit(microseconds).cast("bigint"), F.spark_partition_id())


def _field_id(table: Java, name: str) -> int:
    return int(table.schema().findField(name).fieldId())


def lost_files(table: Java, known: RememberedDeletes) -> list[str]:
    """Return the files that do not exist, or are not what was written: each of the others is read.

    Raises `Py4JJavaError` if one exists and the store does not give it.
    """
    return [file.location for file in known.files if _is_lost(table, file)]


def _is_lost(table: Java, file: KeyFile) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    stored = table.io().newInputFile(file.location)
    if not stored.exists() or int(stored.getLength()) != file.bytes:
        return True
    stream = stored.newStream()
    try:
        rows = pq.read_table(pa.BufferReader(bytes(stream.readAllBytes()))).num_rows
    except (pa.ArrowException, OSError):  # Arrow says OSError, too, of bytes that it cannot decode; these are in memory
        return True
    except Py4JJavaError as error:
        if thrown(error) not in DAMAGED:
            raise
        return True
    finally:
        stream.close()
    return bool(rows != file.rows)


def _key(number: int) -> str:
    return f"key_{number}"


def _document(file: KeyFile) -> dict[str, Any]:
    return {
        "spec-id": 0,
        "content": "data",
        "file-path": file.location,
        "file-format": "parquet",
        "partition": [],
        "file-size-in-bytes": file.bytes,
        "record-count": file.rows,
    }
