"""The JSON values of a topic's records, if the topic has a format that a sample can describe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from frazil.clients.registry.schemas import SchemaType
from frazil.errors import InvalidInput
from frazil.inference.record_file import Line
from frazil.status.format_guess import Form, form_of

if TYPE_CHECKING:
    from frazil.clients.kafka_records import Record

_OTHERS = {
    Form.AVRO: 'Declare value_format="avro": the registry has the schema',
    Form.JSON_SCHEMA: 'Declare value_format="json_schema": the registry has the schema',
    Form.PROTOBUF: 'Declare value_format="protobuf": the registry has the schema',
    Form.FRAMED: "Declare the format of its schema, and name the registry in the environment",
    Form.SINGLE_OBJECT: 'Declare value_format="avro", framing="single_object" and the schema files of the producers',
    Form.CONNECT_JSON: 'Declare value_format="connect_json": each record has its schema',
}
"""The forms that have a schema elsewhere, and what to declare."""


def json_lines(
    topic: str, records: Iterable[Record], type_of: Callable[[int], SchemaType | None] = lambda _: None
) -> list[Line]:
    """Return the values as lines, each with its partition and offset as its place; those that are null are left out.

    Raises `InvalidInput` if records have a schema elsewhere, or if none of them is JSON.
    """
    valued = [(record, record.value) for record in records if record.value is not None]
    refuse_others(f"topic {topic}", [form_of(value, record.headers, type_of) for record, value in valued])
    return [
        Line(f"partition {record.partition}, offset {record.offset}", value.decode("utf-8", "replace"))
        for record, value in valued
    ]


def refuse_others(where: str, found: Iterable[Form]) -> None:
    """Raise `InvalidInput` if values have a schema elsewhere, or if none of them is JSON."""
    forms = Counter(found)
    for form, do in _OTHERS.items():
        if forms[form]:
            of = f", {forms[form]:,} of {forms.total():,}" if forms[form] < forms.total() else ""
            raise InvalidInput(f"the values are {form}{of}, and only json is sampled", where=where, do=do)
    if forms and not forms[Form.JSON]:
        what = f"the values are {' and '.join(sorted(map(str, forms)))}, not JSON objects"
        do = f'Declare value_format="{"text" if forms.keys() == {Form.TEXT} else "bytes"}"'
        raise InvalidInput(what, where=where, do=do)
