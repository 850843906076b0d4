"""Topics from flat options, as tests vary them: `value_format`, `columns`, `key_format`, `key_columns` and so on."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any, get_args

from frazil.declaration import Format, Pipeline, Topic

FORMATS = {kind.kind: kind for kind in get_args(Format)}


def topic_of(name: str, *, value_format: str = "avro", key_format: str = "bytes", **options: Any) -> Topic:
    """Return a topic. Options that begin with `key_` are of its keys, others of its values."""
    transactional = options.pop("transactional", False)
    options = {option: value for option, value in options.items() if value is not None}
    of_keys = {option.removeprefix("key_"): value for option, value in options.items() if option.startswith("key_")}
    of_values = {option: value for option, value in options.items() if not option.startswith("key_")}
    return Topic(
        name, value=FORMATS[value_format](**of_values), key=FORMATS[key_format](**of_keys), transactional=transactional
    )


def varied(topic: Topic, **changes: Any) -> Topic:
    """Return the topic with other options; another format has no option of the earlier one."""
    others = {name: value for name, value in changes.items() if name in ("name", "transactional")}
    sides = {}
    for side, prefix in (("value", ""), ("key", "key_")):
        of = getattr(topic, side)
        kind = FORMATS[changes.get(f"{side}_format", of.kind)]
        names = {field.name for field in fields(kind)}
        kept = {name: getattr(of, name) for name in names} if type(of) is kind else {}
        new = {name: changes[prefix + name] for name in names if prefix + name in changes}
        sides[side] = kind(**kept | new)
    return replace(topic, **sides, **others)


def redeclared(pipeline: Pipeline, **changes: Any) -> Pipeline:
    """Return the pipeline with other options of its topic."""
    return replace(pipeline, topic=varied(pipeline.topic, **changes))


def bodies(*values: Any) -> list[Any]:
    """Return values of records in JSON. Bytes are a value as they are, None is no value."""
    return [value if value is None or isinstance(value, bytes) else json.dumps(value).encode() for value in values]
