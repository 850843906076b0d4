"""Compare the layout that a declaration wants with the one that the table has. Values only: no service, no JVM."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from frazil.declaration import Pipeline
from frazil.declaration.checks.allowed_options import undeclarable
from frazil.declaration.checks.column_notation import columns
from frazil.declaration.checks.column_rules import is_reserved
from frazil.declaration.documents.to_json import to_json
from frazil.declaration.formats import Bytes
from frazil.declaration.options import MetadataColumns
from frazil.declaration.partitioning import PartitionField, SortField, Transform
from frazil.declaration.table import Table
from frazil.declaration.write_modes import identity
from frazil.errors import ColumnsMissing, OtherPipeline
from frazil.errors.state_tables import written
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.next_offsets import canonical
from frazil.schemas.connect.connect_types import as_text, row_meaning
from frazil.schemas.declared_columns import UNKNOWN, declared_type
from frazil.schemas.evolution.column_names import folded, suffixed
from frazil.schemas.evolution.merge import merge
from frazil.schemas.iceberg import FIELD_IDS, field_ids, row_type
from frazil.schemas.json_columns import with_texts
from frazil.schemas.metadata import OF_CHANGELOGS, OF_STATES
from frazil.schemas.types import Kind, Primitive, Struct, Type

FEW_MANIFESTS = 10
"""A table keeps fewer manifests than this of data and as few of deletes. Each reader opens all of them, at 2 to 3 ms each, and so
does the driver of an upsert table for each batch. Iceberg's default is 100 (ADR 6)."""
START, DECLARED, SHAPES, TYPE = "frazil.start", "frazil.properties", "frazil.shapes", "frazil.type"
"""Table properties: the start that was declared when the table was created, the names of declared properties, and the shapes that
rows had as a JSON list, the present one last. Of a dead-letter table, the new type whose records were rejected."""
_BESIDE = (*OF_STATES, *OF_CHANGELOGS, UNKNOWN)
_MANY = {"year": "years", "month": "months", "day": "days", "hour": "hours"}
_CHANGES_WRITES = re.compile(
    r"(write\.(parquet|metadata|object-storage|data|folder-storage|location-provider|summary|wap)|commit|gc|history|encryption"
    r"|compatibility)\..+|write\.spark\.accept-any-schema"
)
"""Properties that change how files and commits are written. Formats, distribution and order are options of each write; how rows are
deleted (`write.delete.mode` and the like) is for engines that run a `DELETE`."""


def properties(
    *,
    format_version: int,
    target_file_size_bytes: int,
    keep_snapshots: int,
    offset_columns: Sequence[str],
    declared: Mapping[str, str],
) -> dict[str, str]:
    """Return the table properties of a new table; a property that the declaration may set has the declared value.

    Measured over 1,000 commits: without metadata care planning takes 2.5 s and metadata 647 MB, with it 35 ms and 3 MB.
    """
    return {
        "format-version": str(format_version),
        "write.format.default": "parquet",
        "write.parquet.compression-codec": "zstd",
        "write.target-file-size-bytes": str(target_file_size_bytes),
        "write.metadata.compression-codec": "gzip",
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "20",
        "write.distribution-mode": "none",
        "history.expire.min-snapshots-to-keep": str(keep_snapshots),
        "commit.manifest.min-count-to-merge": str(FEW_MANIFESTS),
        **{f"write.metadata.metrics.column.{name}": "full" for name in offset_columns},
        **declared,
    }


def declared_properties(pipeline: Pipeline) -> dict[str, str]:
    """Return the properties of a pipeline's table that its declaration decides, also later; others are given at creation."""
    table = pipeline.table
    return properties(
        format_version=table.format_version,
        target_file_size_bytes=table.target_file_size_bytes,
        keep_snapshots=table.snapshots.newest,
        offset_columns=[f"{prefix_of(pipeline)}{name}" for name in ("topic", "partition", "offset")],
        declared={**table.properties, **({DECLARED: " ".join(sorted(table.properties))} if table.properties else {})},
    )


def prefix_of(pipeline: Pipeline) -> str:
    """Return what the columns of a row's place begin with."""
    return "_kafka." if pipeline.table.metadata_columns is MetadataColumns.STRUCT else "_kafka_"


def start_property(pipeline: Pipeline) -> str:
    """Return the declared start as the property `START` has it."""
    return canonical(to_json(pipeline.start))


def shapes(actual: Layout) -> list[Any]:
    """Return the shapes that a table's rows had, as a document has them, the present one last."""
    return list(json.loads(actual.properties.get(SHAPES, "[{}]")))


_NO_COLUMNS = Struct(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The layout of a table, from its metadata.

    `columns` are all fields at any depth by Iceberg's dotted names, with their ids; `former` those of earlier schemas.
    """

    uuid: str
    format_version: int
    partition_by: frozenset[str]
    sort_by: tuple[str, ...]
    properties: Mapping[str, str]
    columns: Mapping[str, int]
    required: frozenset[str]
    former: Mapping[str, int]
    identifiers: tuple[str, ...] = ()
    row: Struct = _NO_COLUMNS
    """The columns with their types."""
    writers: frozenset[str] = frozenset()
    """The pipelines that have committed to the table."""

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Layout:
        """Return the layout that a metadata file describes, as Iceberg's JSON (https://iceberg.apache.org/spec/#table-metadata)."""
        schema = _chosen(metadata["schemas"], "schema-id", metadata["current-schema-id"])
        ids = field_ids(schema)
        names = {number: name for name, number in ids.items()}
        spec = _chosen(metadata["partition-specs"], "spec-id", metadata["default-spec-id"])
        order = _chosen(metadata.get("sort-orders", []), "order-id", metadata.get("default-sort-order-id", 0))
        return cls(
            uuid=str(metadata["table-uuid"]),
            format_version=int(metadata["format-version"]),
            partition_by=frozenset(_partition(f, names) for f in spec["fields"] if f["transform"] != "void"),
            sort_by=tuple(_sort(f, names) for f in order.get("fields", ())),
            properties=dict(metadata.get("properties", {})),
            columns=ids,
            required=frozenset(column["name"] for column in schema["fields"] if column["required"]),
            former={name: number for old in metadata["schemas"] for name, number in field_ids(old).items()},
            identifiers=tuple(sorted(names[number] for number in schema.get("identifier-field-ids", ()))),
            row=row_type(schema, metadata.get("properties", {}).get(FIELD_IDS)),
            writers=ledger.writers(metadata.get("refs") or ()),
        )

    @property
    def is_ours(self) -> bool:
        """Return whether Frazil made the table: it has, or had, the columns of a record's place, or a property of Frazil's."""
        names = {"_kafka_offset", "_kafka.offset"}
        return not names.isdisjoint({*self.columns, *self.former}) or START in self.properties

    def name_now(self, column: str) -> str | None:
        """Return the present name of a column that is missing; None if it was dropped, or never existed."""
        number = self.former.get(column)
        return next((name for name, known in self.columns.items() if known == number), None)

    def declared(self, table: Table) -> Table:
        """Return a declaration of the table with the present names of the columns that it is partitioned and sorted by.

        A column that a schema renamed is declared by its former name until the declaration is edited.
        """

        def now(fields: Iterable[PartitionField | SortField]) -> tuple[str, ...]:
            return tuple(str(replace(one, source=self.name_now(one.source) or one.source)) for one in fields)

        return replace(table, partition_by=now(table.partition_fields), sort_by=now(table.sort_fields))


def _chosen(listed: Iterable[Mapping[str, Any]], name: str, number: int) -> dict[str, Any]:
    return next((dict(one) for one in listed if one[name] == number), {})


def _partition(field: Mapping[str, Any], names: Mapping[int, str]) -> str:
    source = names.get(field["source-id"], f"dropped column {field['source-id']}")
    name, _, argument = str(field["transform"]).rstrip("]").partition("[")
    if (transform := _MANY.get(name, name)) not in list(Transform):
        return f"{name}({source})"
    return str(PartitionField(Transform(transform), source, int(argument) if argument else None))


def _sort(field: Mapping[str, Any], names: Mapping[int, str]) -> str:
    source = names.get(field["source-id"], f"dropped column {field['source-id']}")
    if field["transform"] != "identity":
        return f"{field['transform']}({source}) {field['direction']}"
    return str(SortField(source, field["direction"] == "asc", field["null-order"] == "nulls-first"))


@dataclass(frozen=True, slots=True)
class Difference:
    """A field of a declaration that says something else than the table has. A run applies it, or `do` says who can."""

    field: str
    what: str
    do: str = ""
    set: Mapping[str, str | None] | None = None
    """Table properties that a run sets, or removes where the value is None."""

    @property
    def is_refused(self) -> bool:
        """Return whether a run stops at it."""
        return self.field in ("name", "write", "write.key", "table.metadata_columns", "shape.mask")

    @property
    def is_applied(self) -> bool:
        """Return whether a run changes the table."""
        return not self.do

    def __str__(self) -> str:
        return f"{self.field}: {self.what}. {self.do or 'A run changes the table'}"


def differences(pipeline: Pipeline, actual: Layout) -> tuple[Difference, ...]:
    """Return how an existing table differs from its declaration, and who can change it.

    Fields that are not here have no copy in a table: they apply to the next records, or a run refuses the change.
    """
    if not actual.is_ours:
        do = "Name another table, or rename that one"
        return (Difference("table.identifier", "another engine made the table of this name, and not Frazil", do),)
    if others := actual.writers - {pipeline.name}:
        return (Difference("name", *OtherPipeline.said(others)),)
    refused = tuple(_refused(pipeline, actual))
    return refused or (*_of_fields(pipeline, actual), *_of_properties(pipeline, actual))


def _refused(pipeline: Pipeline, actual: Layout) -> Iterator[Difference]:
    """Yield what a run refuses, so that nothing else of the table counts: another write mode, key, or metadata columns."""
    write, names = pipeline.write, {number: name for name, number in actual.columns.items()}
    of_changelog = ledger.key_of(actual.properties, names)
    declared_as = identity(pipeline, of_changelog if write.keeps_changes else ())
    if (made := ledger.made_for(actual.properties, names)) != declared_as:
        what = f"the table was made for write mode {made}, and the declaration has {declared_as}"
        yield Difference("write", what, f"Declare {made} again, or name another table")
    elif write.has_key and write.key is not None:
        key = tuple(sorted(actual.identifiers or of_changelog))
        if tuple(sorted(write.key)) != key:
            do = f"Declare key={written(key)} again, or name another table"
            yield Difference("write.key", f"the table has the key {', '.join(key)}", do)
    if (one := _made_with(actual)) not in (None, pipeline.table.metadata_columns):
        do = f"Declare metadata_columns={one} again, or name another table"
        yield Difference("table.metadata_columns", f"the table was made with metadata_columns={one}", do)


def _made_with(actual: Layout) -> MetadataColumns | None:
    layouts = {"_kafka_offset": MetadataColumns.FLAT, "_kafka.offset": MetadataColumns.STRUCT}
    return next((one for name, one in layouts.items() if name in actual.columns), None)


def check_metadata_columns(pipeline: Pipeline, actual: Layout) -> None:
    """Raise `ColumnsMissing` if the metadata columns have the other layout."""
    if (made_with := _made_with(actual)) not in (None, pipeline.table.metadata_columns):
        raise ColumnsMissing.of_layout(pipeline.name, pipeline.table.identifier, made_with=str(made_with))


def _of_fields(pipeline: Pipeline, actual: Layout) -> Iterator[Difference]:
    declared, name = actual.declared(pipeline.table), pipeline.table.identifier
    if declared.format_version > actual.format_version:
        do = f"Run ALTER TABLE {name} SET TBLPROPERTIES ('format-version' = '{declared.format_version}')"
        yield Difference("table.format_version", f"the table has {actual.format_version}", do)
    elif declared.format_version < actual.format_version:
        do = f"Declare format_version={actual.format_version}: no table goes back"
        yield Difference("table.format_version", f"the table has {actual.format_version}", do)
    if actual.partition_by != (wanted := frozenset(declared.partition_by)):
        steps = [one.added(actual.columns) for one in declared.partition_fields if str(one) not in actual.partition_by]
        steps += [f"DROP PARTITION FIELD {one}" for one in sorted(actual.partition_by - wanted)]
        do = f"New files get it by {'; '.join(f'ALTER TABLE {name} {step}' for step in steps)}. Else declare what the table has"
        what = f"the table is partitioned by {', '.join(sorted(actual.partition_by)) or 'nothing'}"
        yield Difference("table.partition_by", what, do)
    if actual.sort_by != declared.sort_by:
        yield Difference("table.sort_by", f"the table is sorted by {', '.join(actual.sort_by) or 'nothing'}")
    began = actual.properties.get(START)
    if began is not None and began != start_property(pipeline):
        do = "The pipeline continues from its offsets. Declare that start again, or name another table, which begins at the new one"
        yield Difference("start", f"the table began at {_start(began)}", do)
    if (had := shapes(actual))[-1] != (now := to_json(pipeline.shape.of_rows)):
        what = f"rows landed with {canonical(had[-1])} until now"
        do = "The pipeline stops" if (had[-1].get("mask") or {}) != (now.get("mask") or {}) else ""
        yield Difference("shape.mask" if do else "shape", what, do, set={SHAPES: canonical([*had, now])})
    if (key := key_type(actual)) is not None:
        is_bytes = isinstance(pipeline.topic.key, Bytes)
        if is_bytes is not (key == Primitive(Kind.BINARY)):
            do = "Declare the key's format as before, or name another table"
            yield Difference("topic.key", f"the table has keys as {key}", do)
    if undeclared := _undeclared(pipeline, actual):
        what = f"the table has {', '.join(undeclared)}, which the declaration does not have: new rows have null there"
        yield Difference("topic.value.columns", what, "Declare them again, or drop them from the table")
    for column, why in _retyped(pipeline, actual):
        do = f"Declare {column} as it was, or name another table: no column changes its type so"
        yield Difference("topic.value.columns", why, do)
    for one in columns((not pipeline.shape.selected and pipeline.topic.value.columns) or ()):
        column = folded(one.name)
        if one.required and column in actual.columns and column not in actual.required and is_kept_required(pipeline):
            do = f"Records without {column} are rejected from now on; earlier rows may have null, so the column stays optional"
            yield Difference("topic.value.columns", f"{column} is required, and is an optional column of the table", do)


def key_type(actual: Layout) -> Type | None:
    """Return the type of the column that holds records' keys; None if there is none."""
    fields = {field.name: field.type for field in actual.row.fields}
    inner = fields.get("_kafka")
    fields |= {f"_kafka_{field.name}": field.type for field in inner.fields} if isinstance(inner, Struct) else {}
    return fields.get("_kafka_key")


def _undeclared(pipeline: Pipeline, actual: Layout) -> list[str]:
    """Return the columns that no declared column is; none where schemas, or an event of change data, decide on columns."""
    topic, write = pipeline.topic, pipeline.write
    has_key_fields = write.has_key and write.key is None
    is_known = bool(topic.value.columns) or not (topic.value.has_schemas_inside or topic.value.has_schema)
    if not is_known or pipeline.is_change_data or pipeline.shape.selected or (has_key_fields and not topic.key.columns):
        return []
    keys = topic.key.columns if has_key_fields and topic.key.columns else ()
    rows = [declared_type(listed) for listed in (keys, topic.value.columns or ())]
    fields = [field for row in rows for field in merge([(0, row)]).type.fields]
    named = {name for field in fields for name in (field.name, suffixed(field.source))}
    named |= set() if topic.value.columns else {"value"}
    own = {number for name, number in actual.former.items() if is_reserved(name.partition(".")[0])}
    return [
        name
        for name, number in actual.columns.items()
        if "." not in name and not is_reserved(name) and number not in own and name not in {*named, *_BESIDE}
    ]


def _retyped(pipeline: Pipeline, actual: Layout) -> Iterator[tuple[str, str]]:
    """Yield the declared columns whose type the table's column cannot get, and why."""
    if pipeline.is_change_data or pipeline.shape.selected or not pipeline.topic.value.columns:
        return
    there = {field.name: field for field in as_text(with_texts(actual.row)).fields}
    row = row_meaning(declared_type(pipeline.topic.value.columns))
    for field in as_text(with_texts(merge([(0, row)]).type)).fields:
        if known := there.get(field.name) or there.get(suffixed(field.source)):
            types = enumerate((known.type, field.type))
            both = [(number, Struct((replace(field, type=of, required=False),))) for number, of in types]
            for problem in merge(both).incompatible.values():
                yield field.name, f"{field.name}: {problem.what}"


def is_kept_required(pipeline: Pipeline) -> bool:
    """Return whether a required column of the records is one of the table: each of its rows is a record with a value."""
    return not pipeline.write.has_key


def _start(text: str) -> str:
    """Return the words for a start; a text that is not a JSON object stays as it is."""
    try:
        document = dict(json.loads(text))
    except (ValueError, TypeError):
        return text
    kind, more = document.pop("type", None), [canonical(value) for value in document.values()]
    return " ".join([str(kind), *more[:1]])


_FIELDS = {
    "write.target-file-size-bytes": "table.target_file_size_bytes",
    "history.expire.min-snapshots-to-keep": "table.snapshots.newest",
}


def _of_properties(pipeline: Pipeline, actual: Layout) -> Iterator[Difference]:
    wanted, there = declared_properties(pipeline), actual.properties
    for name, value in wanted.items():
        if name not in {"format-version", DECLARED} and there.get(name) != value:
            what = (
                f"the table's property {name} has another value"
                if name in there
                else f"the table has no property {name}"
            )
            yield Difference(_FIELDS.get(name, "table.properties"), what, set={name: value})
    gone = [name for name in there.get(DECLARED, "").split() if name not in wanted and name in there]
    yield from (
        Difference("table.properties", f"the table has {one}, no longer declared", set={one: None}) for one in gone
    )
    if actual.uuid in there.get("write.data.path", ""):  # where data files are, of some catalogs: Frazil set it
        wanted = {**wanted, "write.data.path": there["write.data.path"]}
    for name in sorted(there):
        if name not in wanted and name not in gone and _CHANGES_WRITES.fullmatch(name):
            text = name.replace("\\", "\\\\").replace("'", "\\'")
            unset = f"un ALTER TABLE {pipeline.table.identifier} UNSET TBLPROPERTIES ('{text}')"
            why = undeclarable(name)
            do = f"Declare it in properties, or r{unset}" if why is None else f"R{unset}: {why}"
            yield Difference(
                "table.properties", f"{name} of the table changes what Frazil writes, and is not declared", do
            )


def changed(pipeline: Pipeline, actual: Layout) -> tuple[dict[str, str], list[str], bool]:
    """Return what a run changes: properties that it sets and removes, and whether it sets the sort order."""
    found = [one for one in differences(pipeline, actual) if one.is_applied]
    every = {name: value for one in found for name, value in (one.set or {}).items()}
    if actual.properties.get(DECLARED) != (marked := declared_properties(pipeline).get(DECLARED)):
        every[DECLARED] = marked
    sets = {name: value for name, value in every.items() if value is not None}
    return sets, [name for name, value in every.items() if value is None], any(one.set is None for one in found)
