"""Connectors of the local Connect worker as tests create them: in each format, with further settings, and deleted again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType

from frazil.local import connect_worker
from frazil.local.connect_worker import request


class Converter(StrEnum):
    """How a connector writes keys and values.

    `json` writes payloads only, so the type of a number is not visible. `json_with_schema` repeats the schema in each record.
    `avro` registers schemas in the local registry and writes their ids in front.
    """

    JSON = "json"
    JSON_WITH_SCHEMA = "json_with_schema"
    AVRO = "avro"


def connector_settings(
    database: str,
    *,
    prefix: str,
    tables: Sequence[str],
    converter: Converter,
    registry_url: str = "",
    more: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Return the settings of the product with another converter; `more` overrides settings."""
    settings = connect_worker.connector_settings(database, prefix=prefix, tables=tables, registry_url=registry_url)
    if converter is not Converter.AVRO:
        of_avro = (".converter", "name.adjustment.mode")
        settings = {name: value for name, value in settings.items() if not any(part in name for part in of_avro)}
        with_schema = json.dumps(converter is Converter.JSON_WITH_SCHEMA)
        for side in ("key", "value"):
            settings[f"{side}.converter"] = "org.apache.kafka.connect.json.JsonConverter"
            settings[f"{side}.converter.schemas.enable"] = with_schema
    if converter is Converter.JSON:
        settings["decimal.handling.mode"] = "string"  # bytes without their scale are no number
    return settings | dict(more)


def delete_connector(worker: str, name: str) -> None:
    """Delete a connector. Its position and its replication slot stay. Raises `LocalPartFailed` if it does not exist."""
    request(worker, "DELETE", f"/connectors/{name}")
