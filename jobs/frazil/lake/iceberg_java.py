"""Iceberg's Java API from Python, through `java_classes`: thin calls; decisions are made elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from frazil.errors import CatalogUnavailable, CommitRefused, FrazilError
from frazil.errors.causes import Failure, meaning, words
from frazil.lake.java_classes import Java, JavaClasses

_CAUSES = 20  # exceptions wrap each other; a chain longer than this is a circle
_JSON = "shaded.com.fasterxml.jackson.databind."
ATTEMPTS = 5
_STRING = "java.lang.String"

DAMAGED = ("ChecksumException", "EOFException")
"""Java's exceptions for a file that has other bytes than were written, or fewer; no outage of a store."""


def thrown(error: Py4JJavaError) -> str:
    """Return the simple class name of a py4j error's Java exception: `CommitFailedException`."""
    return str(error.java_exception.getClass().getSimpleName())


def message(error: Py4JJavaError) -> str:
    """Return the first line of the Java exception's message, and the second if the first ends with a colon.

    A file is its path, without the statistics that Iceberg prints of it.
    """
    text = re.sub(r"Generic\w+File\{.*?file_path=([^,}]*).*\}", r"\1", str(error.java_exception.getMessage()))
    first, *more = (text or thrown(error)).splitlines()
    return f"{first} {more[0]}" if more and first.endswith(":") else first


def said(error: Py4JJavaError | PySparkException) -> str:
    """Return the innermost cause with its complete message, on one line."""
    return words(error_text(error))


def failure_of(error: Py4JJavaError | PySparkException) -> Failure:
    """Return what the exception means, by its innermost cause."""
    return meaning(error_text(error))


def failed(what: str, error: Py4JJavaError | PySparkException, *, where: str, do: str = "Run again") -> FrazilError:
    """Return the error of a request that the catalog or the object store did not grant, with its cause.

    It is `CatalogUnavailable` with the remedy `do` if waiting may help, else `CommitRefused`.
    """
    kind, text = failure_of(error), f"{what}: {said(error)}"
    if kind.is_outage or kind is Failure.CONFLICT:
        return CatalogUnavailable(text, where=where, do=do)
    return CommitRefused(text, where=where, do="Correct what the cause names, then run again")


def error_text(error: Py4JJavaError | PySparkException) -> str:
    """Return the classes and messages of the exception and of its causes, each on a line."""
    lines: list[str] = []
    current: Any = getattr(error, "_origin" if isinstance(error, PySparkException) else "java_exception", None)
    if current is None:
        return str(error)
    while current is not None and len(lines) < _CAUSES:
        lines.append(str(current.toString()))
        current = current.getCause()
    return "\n".join(lines)


class Iceberg:
    """One catalog of a Spark session, safe to share between threads. Raises `CatalogUnavailable` if it cannot be opened."""

    def __init__(self, spark: SparkSession, catalog: str = "lake") -> None:
        self.spark = spark
        self._identifiers: dict[str, Java] = {}
        self.name = catalog
        try:
            # A catalog has the settings of the thread's active session, which is another one after a small batch.
            spark._jvm.SparkSession.setActiveSession(spark._jsparkSession)  # type: ignore[union-attr]
            plugin = spark._jsparkSession.sessionState().catalogManager().catalog(catalog)
            self.catalog: Java = plugin.icebergCatalog()
        except (Py4JJavaError, PySparkException) as error:
            do = "Check the catalog's settings in the environment document, then run again"
            raise CatalogUnavailable(said(error), where=f"catalog {catalog}", do=do) from error
        self.classes = JavaClasses(spark.sparkContext._gateway, self.catalog.getClass().getClassLoader())

    # ── Tables ──────────────────────────────────────────────────────────────────────────────────
    def identifier(self, table: str) -> Java:
        """Return `namespace.table` as Iceberg's identifier."""
        if table not in self._identifiers:
            self._identifiers[table] = self.classes.static("catalog.TableIdentifier", "parse", (_STRING, table))
        return self._identifiers[table]

    def exists(self, table: str) -> bool:
        """Return whether the catalog has the table."""
        return bool(self.catalog.tableExists(self.identifier(table)))

    def load(self, table: str) -> Java:
        """Load the table as it is now; nothing is cached."""
        return self.catalog.loadTable(self.identifier(table))

    def change(self, table: str, update: Callable[[Java], Java | None]) -> None:
        """Load a table and commit the update that is made of it, if one is; again if another commit came first."""
        for attempt in range(ATTEMPTS):
            if (made := update(self.load(table))) is None:
                return
            try:
                made.commit()
            except Py4JJavaError as error:
                if thrown(error) != "CommitFailedException" or attempt == ATTEMPTS - 1:
                    raise

    def drop(self, table: str, *, purge: bool) -> None:
        """Drop a table; with `purge` its files go too."""
        self.catalog.dropTable(self.identifier(table), purge)

    def create_namespace(self, namespace: str) -> None:
        """Make the namespace if it is missing."""
        levels = self.classes.array_of(self.classes.java(_STRING), namespace.split("."))
        named = self.classes.static("catalog.Namespace", "of", ("[Ljava.lang.String;", levels))
        if not self.catalog.namespaceExists(named):
            try:
                self.catalog.createNamespace(named)
            except Py4JJavaError:
                # Another client created it in between. Catalogs report that in different ways: a JDBC catalog by its
                # constraint's error.
                if not self.catalog.namespaceExists(named):
                    raise

    def create(
        self, table: str, schema: Mapping[str, Any], spec: Mapping[str, Any] | None, properties: Mapping[str, str]
    ) -> Java:
        """Create a table from schema and partition spec, both as Iceberg's JSON."""
        made = self.schema(schema)
        builder = self.catalog.buildTable(self.identifier(table), made)
        if spec is not None:
            arguments = ("Schema", made), (_STRING, json.dumps(spec))
            builder.withPartitionSpec(self.classes.static("PartitionSpecParser", "fromJson", *arguments))
        builder.withProperties(dict(properties))
        return builder.create()

    def schema(self, schema: Mapping[str, Any]) -> Java:
        """Return a Java `Schema` from its JSON."""
        return self.classes.static("SchemaParser", "fromJson", (_STRING, json.dumps(schema)))

    def metadata(self, table: Java) -> dict[str, Any]:
        """Return all that a loaded table's metadata file says, as Iceberg's JSON: one call, however many snapshots there are."""
        current = ("TableMetadata", table.operations().current())
        parsed: dict[str, Any] = json.loads(self.classes.static("TableMetadataParser", "toJson", current))
        return parsed

    def older_metadata(self, table: Java, location: str) -> Java:
        """Read another metadata file of a table, as a Java `TableMetadata`."""
        file = ("io.FileIO", table.io()), (_STRING, location)
        return self.classes.static("TableMetadataParser", "read", *file)

    def schema_json(self, table: Java) -> dict[str, Any]:
        """Return the current schema of a table as Iceberg's JSON."""
        parsed: dict[str, Any] = json.loads(self.classes.static("SchemaParser", "toJson", ("Schema", table.schema())))
        return parsed

    def term(self, transform: str, source: str, argument: int | None) -> Java:
        """Return a partition transform as an unbound term, for `updateSpec()`."""
        method = {"identity": "ref", "years": "year", "months": "month", "days": "day", "hours": "hour"}
        name = method.get(transform, transform)
        arguments = [(_STRING, source), *([] if argument is None else [("int", argument)])]
        return self.classes.static("expressions.Expressions", name, *arguments)

    # ── Staging: internal API of Iceberg's Spark module, used in lake/stage.py only ─────────────
    def table_cache(self) -> Java:
        """Return the tables that `staged.<id>` may write to."""
        return self.classes.static("spark.SparkTableCache", "get")

    def coordinator(self) -> Java:
        """Return the coordinator that receives the files of a staged write."""
        return self.classes.static("spark.FileRewriteCoordinator", "get")

    def task_sets(self) -> Java:
        """Return the task sets that hold the files which `staged.<id>` reads; only lake/rewrite.py and row_offsets.py use it."""
        return self.classes.static("spark.ScanTaskSetManager", "get")

    # ── Files as JSON ───────────────────────────────────────────────────────────────────────────
    def file_json(self, table: Java, file: Java) -> dict[str, Any]:
        """Return a data file as JSON, with its metrics."""
        arguments = ("ContentFile", file), ("PartitionSpec", table.specs().get(file.specId()))
        parsed: dict[str, Any] = json.loads(self.classes.static("ContentFileParser", "toJson", *arguments))
        return parsed

    def file(self, table: Java, document: Mapping[str, Any]) -> Java:
        """Return the data file that `file_json` wrote."""
        node = self.classes.new(_JSON + "ObjectMapper").readTree(json.dumps(document))
        arguments = (_JSON + "JsonNode", node), ("java.util.Map", table.specs())
        return self.classes.static("ContentFileParser", "fromJson", *arguments)

    def scan_task(self, table: Java, document: Mapping[str, Any]) -> Java:
        """Return a task that reads all rows of the data file that `file_json` wrote; used in lake/row_offsets.py only."""
        file = self.file(table, document)
        spec = ("PartitionSpec", table.specs().get(file.specId()))
        every = ("expressions.Expression", self.classes.static("expressions.Expressions", "alwaysTrue"))
        evaluator = "expressions.ResidualEvaluator"
        none = self.classes.java("java.lang.reflect.Array").newInstance(self.classes.load("DeleteFile"), 0)
        return self.classes.new(
            "BaseFileScanTask",
            ("DataFile", file),
            ("[Lorg.apache.iceberg.DeleteFile;", none),
            (_STRING, json.dumps(self.schema_json(table))),
            (_STRING, self.classes.static("PartitionSpecParser", "toJson", spec)),
            (evaluator, self.classes.static(evaluator, "unpartitioned", every)),
        )

    def write_text(self, table: Java, location: str, text: str) -> None:
        """Write a small file with the table's own `FileIO`; it must not exist."""
        with closing(table.io().newOutputFile(location).create()) as stream:
            stream.write(text.encode())

    def read_text(self, table: Java, location: str) -> str:
        """Read a small file with the table's own `FileIO`."""
        with closing(table.io().newInputFile(location).newStream()) as stream:
            return bytes(stream.readAllBytes()).decode()
