"""The rules about a connector's converters: what keys and values are written as."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from frazil.declaration.checks.column_notation import columns
from frazil.declaration.options import KeyFormat, ValueFormat
from frazil.envelopes.connector_rules import Fed, Found, Rule
from frazil.envelopes.plugins import plugin

_SIDES = ("key", "value")
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_APICURIO = "io.apicurio.registry.utils.converter.AvroConverter"
_CONFLUENT_AVRO = "io.confluent.connect.avro.AvroConverter"
_CONFLUENT_JSON = "io.confluent.connect.json.JsonSchemaConverter"
_FORMATS = {_APICURIO: "avro", _CONFLUENT_AVRO: "avro", _CONFLUENT_JSON: "json_schema"}
_KNOWN = (_JSON, _CONFLUENT_AVRO, _CONFLUENT_JSON)


def _converter(fed: Fed, side: str) -> str:
    """Return the class of a side's converter; two have one short name, and its other settings say which."""
    is_apicurio = any(name.startswith(f"{side}.converter.apicurio.") for name in fed.connector.settings)
    known = (_APICURIO, *_KNOWN) if is_apicurio else (*_KNOWN, _APICURIO)
    return plugin(fed.connector.value(f"{side}.converter"), known, "Converter")


def _format(fed: Fed, side: str) -> str:
    """Return the format that a side is written in; empty if it is none that is read, or not known."""
    converter = _converter(fed, side)
    if converter == _JSON:
        has_schema = fed.connector.is_true(f"{side}.converter.schemas.enable", default=True)
        return "connect_json" if has_schema else "json"
    return _FORMATS.get(converter, "")


def _declared(fed: Fed, side: str) -> ValueFormat | KeyFormat:
    return fed.pipeline.topic.value_format if side == "value" else fed.pipeline.topic.key_format


def _converters(fed: Fed) -> Iterator[Found]:
    for side in _SIDES:
        setting, wanted = f"{side}.converter", _declared(fed, side).value
        if not fed.connector.value(setting):
            what = f"{setting} is not set, so the worker's converter writes the {side}s"
            yield Found(
                setting=setting,
                what=what,
                do=f"Check that it writes {wanted}, or set it in the connector",
                is_note=True,
            )
            continue
        stated, written = fed.connector.stated(setting, ""), _format(fed, side)
        if not written:
            yield Found(setting=setting, what=f"{stated}: it writes no format that is read", do=f"Choose {_choices()}")
        elif written != wanted and {written, wanted} != {"json", "connect_json"}:
            what = f"{stated} and writes {written}, but the topic's {side}_format is {wanted}"
            yield Found(setting=setting, what=what, do=f"Declare {side}_format={written}, or choose another converter")


def _choices() -> str:
    return ", ".join((*_FORMATS, _JSON))


def _schemas(fed: Fed) -> Iterator[Found]:
    for side in _SIDES:
        setting, wanted = f"{side}.converter.schemas.enable", _declared(fed, side).value
        written = _format(fed, side)
        if written != wanted and {written, wanted} == {"json", "connect_json"}:
            what = f"{fed.connector.stated(setting, 'true')}, but the topic's {side}_format is {wanted}"
            yield Found(setting=setting, what=what, do=f"Declare {side}_format={written}, or change the setting")


def _nulls_of_json(fed: Fed) -> Iterator[Found]:
    yield from _nulls(fed, "value.converter.replace.null.with.default", (_JSON,), wanted="false", default="true")


def _nulls_of_confluent(fed: Fed) -> Iterator[Found]:
    setting = "value.converter.ignore.default.for.nullables"
    yield from _nulls(fed, setting, (_CONFLUENT_AVRO, _CONFLUENT_JSON), wanted="true", default="false")


def _nulls(fed: Fed, setting: str, of: tuple[str, ...], *, wanted: str, default: str) -> Iterator[Found]:
    if _converter(fed, "value") in of and fed.connector.value(setting, default).lower() != wanted:
        what = f"{fed.connector.stated(setting, default)}: null lands as the default of a column that has one"
        yield Found(setting=setting, what=what, do=f"Set {setting} to {wanted}", is_note=True)


def _nulls_of_apicurio(fed: Fed) -> Iterator[Found]:
    if _converter(fed, "value") == _APICURIO:
        what = "Apicurio's Avro converter writes null as the default of a column that has one"
        do = "Choose another converter, or have no defaults in columns that may be null"
        yield Found(setting="value.converter", what=what, do=do, is_note=True)


def _decimals(fed: Fed) -> Iterator[Found]:
    setting, default = "value.converter.decimal.format", "BASE64"
    declared = columns(fed.pipeline.topic.columns or ())
    named = next((each.name for each in declared if each.type.name == "decimal"), None)
    is_text = fed.connector.value("decimal.handling.mode", "precise").lower() != "precise"
    if named is None or is_text or _format(fed, "value") != "json":
        return
    if fed.connector.value(setting, default).upper() != "NUMERIC":
        what = f"{fed.connector.stated(setting, default)}: values of the column {named} do not say their scale"
        yield Found(setting=setting, what=what, do=f"Set {setting} to NUMERIC, or decimal.handling.mode to string")


def _ids(name: str, default: str, wanted: str, what: str) -> Callable[[Fed], Iterator[Found]]:
    def check(fed: Fed) -> Iterator[Found]:
        for side in _SIDES:
            setting = f"{side}.converter.apicurio.registry.{name}"
            is_apicurio = _converter(fed, side) == _APICURIO
            if is_apicurio and fed.connector.value(setting, default).lower() != wanted.lower():
                stated = fed.connector.stated(setting, default)
                yield Found(setting=setting, what=f"{stated}: {what}", do=f"Set {setting} to {wanted}")

    return check


RULES = (
    Rule(
        setting="`key.converter`, `value.converter`",
        default="the worker's",
        takes=(
            "Confluent's converters for Avro or JSON Schema, Apicurio's for Avro, or Kafka Connect's "
            "`JsonConverter`; the one of the declared format"
        ),
        why=(
            "others are refused: converters to Protobuf write null as 0 or empty text by default, and leave out "
            "the types of the source"
        ),
        check=_converters,
    ),
    Rule(
        setting="`schemas.enable` of `JsonConverter`",
        default="`true`",
        takes="`true` for the format `connect_json`, `false` for `json`",
        why="records of the other form are rejected",
        check=_schemas,
    ),
    Rule(
        setting="`value.converter.replace.null.with.default` of `JsonConverter`",
        default="`true`",
        takes="`false` (advice)",
        why="the converter writes the default of a column where the source has null",
        check=_nulls_of_json,
    ),
    Rule(
        setting="`value.converter.ignore.default.for.nullables` of Confluent's converters",
        default="`false`",
        takes="`true` (advice)",
        why="the same",
        check=_nulls_of_confluent,
    ),
    Rule(
        setting="`value.converter`: Apicurio's",
        default="",
        takes="another one, or no defaults in columns that may be null (advice)",
        why="it always writes the default of a column where the source has null",
        check=_nulls_of_apicurio,
    ),
    Rule(
        setting="`apicurio.registry.as-confluent` of Apicurio's converters",
        default="`false`",
        takes="`true`",
        why="without it, ids have eight bytes, not four",
        check=_ids("as-confluent", "false", "true", "ids have another length than is read"),
    ),
    Rule(
        setting="`apicurio.registry.headers.enabled`",
        default="`true`",
        takes="`false`",
        why="the converter writes the id into a header of its own, which is not read",
        check=_ids("headers.enabled", "true", "false", "the id is in a header that is not read"),
    ),
    Rule(
        setting="`apicurio.registry.use-id`",
        default="`globalId`",
        takes="`contentId`",
        why=(
            "global ids name other schemas in the registry's Confluent API: some records are decoded with wrong columns"
        ),
        check=_ids("use-id", "globalId", "contentId", "such ids name other schemas in the Confluent API"),
    ),
    Rule(
        setting="`value.converter.decimal.format` of `JsonConverter`",
        default="`BASE64`",
        takes="with declared columns: `NUMERIC`, or `decimal.handling.mode=string`",
        why=(
            "in `BASE64` the value does not say the number of digits behind the point: values of declared "
            "`decimal` columns are rejected. A schema in the record says it, so any format lands then. Of "
            "Confluent's JSON Schema converter, any lands"
        ),
        check=_decimals,
    ),
)
