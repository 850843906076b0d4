"""Restore what an older release wrote: its tables under another location, its topic with the same records.

Iceberg's files name each other by absolute location, so the locations are rewritten: in metadata files and decisions as text,
in manifests and their lists as Avro. A topic that is created again has another id, so the ledger's topic id is rewritten too, and the
commit ids that are made of it.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
from pyiceberg.catalog import load_catalog
from pyiceberg.io import load_file_io
from pyspark.sql import SparkSession

from frazil.clients.secrets import Secrets
from frazil.declaration.environment import Environment
from frazil.lake import ledger
from frazil.lake.catalogs import pyiceberg_properties
from frazil.lake.offsets import Offsets
from frazil.local.services import LocalServices
from tests.support.shop import Shop, frame

RELEASES = Path(__file__).parent
Rewrite = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a release: the files of its tables, and what `make_fixtures.py` says of it."""

    files: Mapping[str, bytes]
    told: Mapping[str, Any]

    @classmethod
    def of(cls, release: str, name: str) -> Case:
        """Read it."""
        with tarfile.open(RELEASES / release / f"{name}.tar.gz") as archive:
            found = {m.name: file.read() for m in archive if (file := archive.extractfile(m)) is not None}
        return cls(found, json.loads(found.pop("case.json")))

    def restored(self, world: LocalServices, spark: SparkSession, lake: Environment) -> Shop:
        """Create the topic with the case's records at their offsets, and the tables in this lake."""
        shop = Shop(world, spark, lake, self.told["topic"], partitions=1)
        schema_id = shop.register()
        old = frame(self.told["schema_id"], b"")
        # An offset without a record has one here, as nothing reads it again.
        records = {o: None if value is None else bytes.fromhex(value) for _, o, value in self.told["records"]}
        for offset in range(self.told.get("end", max(records) + 1)):
            value = records.get(offset)
            shop.produce(
                [frame(schema_id, value[5:]) if value is not None and value[:5] == old else value], partition=0
            )
        for place in [p for p in shop.journal if p[1] not in records]:
            del shop.journal[place]
        self._tables(lake, shop.job().kafka.topic(shop.topic).topic_id)
        return shop

    def _tables(self, lake: Environment, topic_id: str) -> None:
        properties = pyiceberg_properties(lake, Secrets({}).read)
        to, io_ = lake.catalog.warehouse, load_file_io(properties)
        root = re.compile(f"(?:file:(?://)?)?{re.escape(self.told['root'])}")

        def topic_moved(text: str) -> str:
            return root.sub(to, text).replace(self.told["topic_id"], topic_id)

        ids = self._commit_ids(topic_moved)
        known = re.compile("|".join(map(re.escape, ids)))

        def moved(text: str) -> str:
            return known.sub(lambda found: ids[found.group()], topic_moved(text))

        written = {moved(name): self._rewritten(name, data, moved) for name, data in self.files.items()}
        sizes = {f"{to}/{name.removeprefix('warehouse/')}": len(data) for name, data in written.items()}
        for name, data in written.items():
            if _is_list(name):
                data = _avro(data, lambda entry: {**entry, "manifest_length": sizes[entry["manifest_path"]]})
            with io_.new_output(f"{to}/{name.removeprefix('warehouse/')}").create(overwrite=True) as stream:
                stream.write(data)
        catalog = load_catalog(lake.catalog.name, **properties)
        catalog.create_namespace_if_not_exists("shop")
        for identifier, metadata in self.told["tables"].items():
            catalog.register_table(identifier, f"{to}/{metadata}")

    def _commit_ids(self, moved: Rewrite) -> dict[str, str]:
        """Each commit id, and what it is with the new topic's id, of which it is made."""
        ids = {}
        for name, data in self.files.items():
            if not name.endswith(".gz.metadata.json"):
                continue
            metadata = json.loads(gzip.decompress(data))
            for summary in (snapshot["summary"] for snapshot in metadata.get("snapshots", ())):
                if ledger.COMMIT_ID not in summary:
                    continue
                pipeline, uuid = summary[ledger.PIPELINE], metadata["table-uuid"]
                old, new = (
                    ledger.commit_id(
                        pipeline, uuid, *(Offsets.parse(change(summary[k])) for k in (ledger.START, ledger.END))
                    )
                    for change in (str, moved)
                )
                ids[old] = new  # a side table's own commits have the ids of the first table's
        return ids

    def _rewritten(self, name: str, data: bytes, moved: Rewrite) -> bytes:
        if name.endswith(".gz.metadata.json"):
            return gzip.compress(moved(gzip.decompress(data).decode()).encode())
        if name.endswith((".metadata.json", ".stats")):
            return moved(data.decode()).encode()
        if _is_list(name):
            return _avro(data, lambda entry: {**entry, "manifest_path": moved(entry["manifest_path"])})
        if name.endswith(".avro"):
            return _avro(data, lambda entry: {**entry, "data_file": _located(entry["data_file"], moved)})
        return data


def _is_list(name: str) -> bool:
    return Path(name).name.startswith("snap-")


def _located(file: Mapping[str, Any], moved: Rewrite) -> dict[str, Any]:
    return {**file, "file_path": moved(file["file_path"])}


def _avro(data: bytes, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> bytes:
    """Rewrite each record of an Avro file; its schema, codec and other headers stay."""
    reader, out = fastavro.reader(io.BytesIO(data)), io.BytesIO()
    kept = {key: value for key, value in reader.metadata.items() if not key.startswith("avro.")}
    schema = json.loads(reader.metadata["avro.schema"])
    fastavro.writer(out, schema, [change(record) for record in reader], codec=reader.codec, metadata=kept)
    return out.getvalue()
