"""Data files outside of a table's location: some stores refuse Puffin files where the catalog places tables, and with them deletes
of format version 3.
"""

from __future__ import annotations

import re
import uuid
from contextlib import suppress

from py4j.protocol import Py4JJavaError

from frazil.errors import InvalidInput
from frazil.lake.catalogs import DATA_LOCATION
from frazil.lake.iceberg_java import Iceberg, error_text
from frazil.lake.java_classes import Java

DATA_PATH = "write.data.path"
VECTORS_FROM = 3
"""The format version from which deletes are deletion vectors (https://iceberg.apache.org/spec/#deletion-vectors)."""
_REFUSED = re.compile(r"AccessDenied|Forbidden|Status Code: 403")


def place_data(iceberg: Iceberg, name: str) -> None:
    """Have a table of format version 3 write its data files below the catalog's `data_location`, if it has one and the table none.

    The folder has the table's uuid in its name: no other table has it, and a renamed one keeps it.
    """
    location = iceberg.spark.conf.get(f"spark.sql.catalog.{iceberg.name}.{DATA_LOCATION}", None)
    if location is None:
        return

    def placed(table: Java) -> Java | None:
        if not has_vectors(iceberg, table) or table.properties().get(DATA_PATH) is not None:
            return None
        path = f"{location.rstrip('/')}/{name.replace('.', '/')}-{table.uuid()}"
        return table.updateProperties().set(DATA_PATH, path)

    iceberg.change(name, placed)


def has_vectors(iceberg: Iceberg, table: Java) -> bool:
    """Return whether the deletes of a loaded table are deletion vectors, in Puffin files."""
    return int(iceberg.metadata(table)["format-version"]) >= VECTORS_FROM


def own_data_path(table: Java) -> str | None:
    """Return where a table has its data files outside of its location; None if nowhere, or if other tables may be there, too."""
    path = table.properties().get(DATA_PATH)
    is_own = path is not None and str(table.uuid()) in str(path) and not str(path).startswith(f"{table.location()}/")
    return str(path).rstrip("/") if is_own else None


def check_puffin(iceberg: Iceberg, name: str) -> None:
    """Write a small Puffin file where a new table of format version 3 has its metadata, and delete it again, if data is there, too.

    The store decides by the bucket and the name. Raises `InvalidInput` if it refuses the file. A table that has a snapshot is not
    tested, and no other failure counts.
    """
    table = iceberg.load(name)
    if (
        table.currentSnapshot() is not None
        or table.properties().get(DATA_PATH) is not None
        or not has_vectors(iceberg, table)
    ):
        return
    location = f"{table.location()}/metadata/frazil-probe-{uuid.uuid4().hex}.puffin"
    try:
        iceberg.write_text(table, location, "PFA1")
    except Py4JJavaError as error:
        if not _REFUSED.search(error_text(error)):
            return
        raise InvalidInput(
            "the object store refuses Puffin files here, which hold the deletes of format version 3",
            where=f"table {name}, {table.location()}",
            do="Name a location outside of the bucket of tables as catalog.data_location in the environment, or drop the table and "
            "declare format_version=2",
        ) from None
    with suppress(Py4JJavaError):  # what cannot be deleted is an orphan
        table.io().deleteFile(location)
