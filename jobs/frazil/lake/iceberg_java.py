"""Iceberg's Java API from Python: the one module that reaches into the JVM by name.

`jvm.org.apache.iceberg…` does not see classes that came with `spark.jars`, so classes are loaded by the class loader of the
catalog object itself. Everything here is a thin call; decisions are made elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from frazil.errors import CatalogUnavailable

Java = Any  # an object that lives in the JVM

_CAUSES = 20  # exceptions wrap each other; a chain longer than this is a circle
_ICEBERG = "org.apache.iceberg."
_JSON = _ICEBERG + "shaded.com.fasterxml.jackson.databind."


def thrown(error: Py4JJavaError) -> str:
    """The simple class name of the Java exception behind a py4j error: `CommitFailedException`."""
    return str(error.java_exception.getClass().getSimpleName())


def message(error: Py4JJavaError) -> str:
    """The first line of the Java exception's message."""
    return (str(error.java_exception.getMessage()) or thrown(error)).splitlines()[0]


def told(error: Py4JJavaError | PySparkException) -> str:
    """The words of the exception and of what caused it, each on a line."""
    if isinstance(error, PySparkException):
        return str(error)
    lines: list[str] = []
    current = error.java_exception
    while current is not None and len(lines) < _CAUSES:
        lines.append(str(current.toString()))
        current = current.getCause()
    return "\n".join(lines)


def entries(java_map: Java) -> dict[str, str]:
    """A map of texts, such as a snapshot's summary, in one call: iterating takes two a key and an exception at the end."""
    parsed: dict[str, str] = json.loads(_mapper(java_map._gateway_client).writeValueAsString(java_map))
    return parsed


def items(collection: Java) -> tuple[Java, ...]:
    """The members of a Java collection, without the exception that ends an iteration and is costly to make."""
    array = collection.toArray()
    return tuple(array[i] for i in range(len(array)))


@lru_cache(maxsize=1)
def _mapper(client: Any) -> Java:
    return JavaClass("com.fasterxml.jackson.databind.ObjectMapper", client)()


class Iceberg:
    """One catalog of a Spark session, through Iceberg's own API. Safe to share between threads.
    Raises `CatalogUnavailable` if the catalog cannot be opened."""

    def __init__(self, spark: SparkSession, catalog: str = "lake") -> None:
        self.spark = spark
        self._gateway: Java = spark.sparkContext._gateway
        self._named: dict[str, Java] = {}
        self._loaded: dict[str, Java] = {}
        self._methods: dict[tuple[str, str, int], Java] = {}
        self._identifiers: dict[str, Java] = {}
        self.name = catalog
        try:
            plugin = spark._jsparkSession.sessionState().catalogManager().catalog(catalog)
            self.catalog: Java = plugin.icebergCatalog()
        except (Py4JJavaError, PySparkException) as error:
            do = "Check the catalog's settings in the environment document, then run again"
            raise CatalogUnavailable(told(error).splitlines()[-1], where=f"catalog {catalog}", do=do) from error
        self._loader = self.catalog.getClass().getClassLoader()
        self._string = self._class("java.lang.String")

    # ── Tables ──────────────────────────────────────────────────────────────────────────────────
    def identifier(self, table: str) -> Java:
        """`namespace.table` as Iceberg's identifier."""
        if table not in self._identifiers:
            self._identifiers[table] = self.static("catalog.TableIdentifier", "parse", (self._string, table))
        return self._identifiers[table]

    def exists(self, table: str) -> bool:
        """Whether the catalog has the table."""
        return bool(self.catalog.tableExists(self.identifier(table)))

    def load(self, table: str) -> Java:
        """The table as it stands now; nothing is cached."""
        return self.catalog.loadTable(self.identifier(table))

    def drop(self, table: str, *, purge: bool) -> None:
        """Drop a table; with `purge` its files go too."""
        self.catalog.dropTable(self.identifier(table), purge)

    def create_namespace(self, namespace: str) -> None:
        """Make the namespace if it is missing."""
        levels = self._array(self._java("java.lang.String"), namespace.split("."))
        named = self.static("catalog.Namespace", "of", (levels.getClass(), levels))
        if not self.catalog.namespaceExists(named):
            try:
                self.catalog.createNamespace(named)
            except Py4JJavaError:
                # Somebody made it in between. Catalogs tell so in ways of their own: a JDBC catalog by its constraint's error.
                if not self.catalog.namespaceExists(named):
                    raise

    def create(
        self, table: str, schema: Mapping[str, Any], spec: Mapping[str, Any] | None, properties: Mapping[str, str]
    ) -> Java:
        """Create a table from schema and partition spec, both as Iceberg's JSON."""
        made = self.schema(schema)
        builder = self.catalog.buildTable(self.identifier(table), made)
        if spec is not None:
            builder.withPartitionSpec(
                self.static(
                    "PartitionSpecParser",
                    "fromJson",
                    (self._class(_ICEBERG + "Schema"), made),
                    (self._string, json.dumps(spec)),
                )
            )
        builder.withProperties(dict(properties))
        return builder.create()

    def schema(self, schema: Mapping[str, Any]) -> Java:
        """A Java `Schema` from its JSON."""
        return self.static("SchemaParser", "fromJson", (self._string, json.dumps(schema)))

    def metadata(self, table: Java) -> dict[str, Any]:
        """All that a loaded table's metadata file says, as Iceberg's JSON: one call, however many snapshots there are."""
        kind = self._class(_ICEBERG + "TableMetadata")
        parsed: dict[str, Any] = json.loads(
            self.static("TableMetadataParser", "toJson", (kind, table.operations().current()))
        )
        return parsed

    def older_metadata(self, table: Java, location: str) -> Java:
        """Read another metadata file of a table, as a Java `TableMetadata`."""
        io = (self._class(_ICEBERG + "io.FileIO"), table.io())
        return self.static("TableMetadataParser", "read", io, (self._string, location))

    def schema_json(self, table: Java) -> dict[str, Any]:
        """The current schema of a table as Iceberg's JSON."""
        text = self.static("SchemaParser", "toJson", (self._class(_ICEBERG + "Schema"), table.schema()))
        parsed: dict[str, Any] = json.loads(text)
        return parsed

    def term(self, transform: str, source: str, argument: int | None) -> Java:
        """A partition transform as an unbound term, for `updateSpec()`."""
        method = {"identity": "ref", "years": "year", "months": "month", "days": "day", "hours": "hour"}
        name = method.get(transform, transform)
        if argument is None:
            return self.static("expressions.Expressions", name, (self._string, source))
        integer = self._java("java.lang.Integer").TYPE
        return self.static("expressions.Expressions", name, (self._string, source), (integer, argument))

    # ── Staging: internal API of Iceberg's Spark module, used in lake/stage.py only ─────────────
    def table_cache(self) -> Java:
        """The tables that `staged.<id>` may write to."""
        return self.static("spark.SparkTableCache", "get")

    def coordinator(self) -> Java:
        """Where a staged write leaves the files it wrote."""
        return self.static("spark.FileRewriteCoordinator", "get")

    def task_sets(self) -> Java:
        """Where the files that `staged.<id>` reads are put, used in lake/rewrite.py and lake/row_offsets.py only."""
        return self.static("spark.ScanTaskSetManager", "get")

    def rewrite_planner(self, table: Java, options: Mapping[str, str]) -> Java:
        """Iceberg's own planner of bin-packing, used in lake/rewrite.py only."""
        planner = self._new("actions.BinPackRewriteFilePlanner", (self._class(_ICEBERG + "Table"), table))
        planner.init(dict(options))
        return planner

    def rewrite_commit(self, table: Java, snapshot_id: int, summary: Mapping[str, str]) -> Java:
        """What commits rewritten groups, and cleans up those it could not commit; used in lake/rewrite.py only."""
        return self._new(
            "actions.RewriteDataFilesCommitManager",
            (self._class(_ICEBERG + "Table"), table),
            (self._java("java.lang.Long").TYPE, snapshot_id),
            (self._java("java.lang.Boolean").TYPE, True),
            (self._class("java.util.Map"), self._map(summary)),
        )

    # ── Expiry ──────────────────────────────────────────────────────────────────────────────────
    def metadata_only(self) -> Java:
        """The level of clean-up that deletes manifests and their lists, and no data file."""
        return self.static("ExpireSnapshots$CleanupLevel", "valueOf", (self._string, "METADATA_ONLY"))

    def spark_actions(self) -> Java:
        """Iceberg's actions that run as Spark jobs."""
        return self.static("spark.actions.SparkActions", "get")

    # ── Files as JSON ───────────────────────────────────────────────────────────────────────────
    def file_json(self, table: Java, file: Java) -> dict[str, Any]:
        """A data file as JSON, with its metrics."""
        spec = table.specs().get(file.specId())
        text = self.static(
            "ContentFileParser",
            "toJson",
            (self._class(_ICEBERG + "ContentFile"), file),
            (self._class(_ICEBERG + "PartitionSpec"), spec),
        )
        parsed: dict[str, Any] = json.loads(text)
        return parsed

    def file(self, table: Java, document: Mapping[str, Any]) -> Java:
        """The data file that `file_json` wrote."""
        mapper = self._loader.loadClass(_JSON + "ObjectMapper").getDeclaredConstructor(self._classes([]))
        node = mapper.newInstance(self._objects([])).readTree(json.dumps(document))
        return self.static(
            "ContentFileParser",
            "fromJson",
            (self._class(_JSON + "JsonNode"), node),
            (self._class("java.util.Map"), table.specs()),
        )

    def scan_task(self, table: Java, document: Mapping[str, Any]) -> Java:
        """A task that reads all rows of the data file that `file_json` wrote; used in lake/row_offsets.py only."""
        file = self.file(table, document)
        spec = (self._class(_ICEBERG + "PartitionSpec"), table.specs().get(file.specId()))
        every = self._class(_ICEBERG + "expressions.Expression"), self.static("expressions.Expressions", "alwaysTrue")
        evaluator, deletes = "expressions.ResidualEvaluator", self._class(_ICEBERG + "DeleteFile")
        none = self._java("java.lang.reflect.Array").newInstance(deletes, 0)
        return self._new(
            "BaseFileScanTask",
            (self._class(_ICEBERG + "DataFile"), file),
            (none.getClass(), none),
            (self._string, json.dumps(self.schema_json(table))),
            (self._string, self.static("PartitionSpecParser", "toJson", spec)),
            (self._class(_ICEBERG + evaluator), self.static(evaluator, "unpartitioned", every)),
        )

    def write_text(self, table: Java, location: str, text: str) -> None:
        """Write a small file with the table's own `FileIO`; it must not exist."""
        stream = table.io().newOutputFile(location).create()
        try:
            stream.write(text.encode())
        finally:
            stream.close()

    def read_text(self, table: Java, location: str) -> str:
        """Read a small file with the table's own `FileIO`."""
        stream = table.io().newInputFile(location).newStream()
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    # ── Reflection ──────────────────────────────────────────────────────────────────────────────
    def static(self, name: str, method: str, *arguments: tuple[Java, Any]) -> Java:
        """Call a static method of `org.apache.iceberg.<name>`; each argument comes with its declared class.

        Methods are kept by name and number of arguments: one of two with the same number is called only.
        """
        key = (name, method, len(arguments))
        if key not in self._methods:
            types = self._classes([kind for kind, _ in arguments])
            found = self._class(_ICEBERG + name).getDeclaredMethod(method, types)
            found.setAccessible(True)
            self._methods[key] = found
        return self._methods[key].invoke(None, self._objects([value for _, value in arguments]))

    def _new(self, name: str, *arguments: tuple[Java, Any]) -> Java:
        """Make an object of `org.apache.iceberg.<name>`; each argument comes with its declared class."""
        constructor = self._class(_ICEBERG + name).getDeclaredConstructor(
            self._classes([kind for kind, _ in arguments])
        )
        constructor.setAccessible(True)
        return constructor.newInstance(self._objects([value for _, value in arguments]))

    def java_set(self, items: Iterable[Java]) -> Java:
        """Java objects as a set that lives in the JVM."""
        made = self._java("java.util.HashSet")()
        for item in items:
            made.add(item)
        return made

    def _map(self, entries: Mapping[str, str]) -> Java:
        made = self._java("java.util.HashMap")()
        for key, value in entries.items():
            made.put(key, value)
        return made

    def _class(self, name: str) -> Java:
        if name not in self._loaded:
            self._loaded[name] = self._java("java.lang.Class").forName(name, True, self._loader)
        return self._loaded[name]

    def _java(self, name: str) -> Java:
        """A class of Java's own. `jvm.java…` would be looked for in every jar, and in every package that PySpark imports."""
        if name not in self._named:
            self._named[name] = JavaClass(name, self._gateway._gateway_client)
        return self._named[name]

    def _classes(self, items: Iterable[Java]) -> Java:
        return self._array(self._java("java.lang.Class"), items)

    def _objects(self, items: Iterable[Any]) -> Java:
        return self._array(self._java("java.lang.Object"), items)

    def _array(self, kind: Java, items: Iterable[Any]) -> Java:
        values = list(items)
        array = self._gateway.new_array(kind, len(values))
        for i, value in enumerate(values):
            array[i] = value
        return array
