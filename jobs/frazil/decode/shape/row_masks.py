"""Masks of decoded values: the types that they have then, and what hides them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TypeVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.declaration import Pipeline
from frazil.declaration.envelopes import BEFORE_COLUMN
from frazil.declaration.formats import Text
from frazil.declaration.secret import Secret
from frazil.declaration.shape import HEADERS, KEY, UNITS, Hmac, Mask, Nullify, Redact, Truncate
from frazil.decode.frames.wire_format import begins_as_registered
from frazil.decode.spark_types import spark_type
from frazil.decode.values.leaves import in_years
from frazil.errors import InvalidInput
from frazil.schemas.evolution.column_names import folded
from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct, Type, inside, type_at

_INNER, _OUTER = "_frazil_hmac_inner_", "_frazil_hmac_outer_"
_BLOCK, _SHORTEST = 64, 16
_LONGEST = 27
"""Digits of decimals that are rounded: differences of longer ones lose digits in Spark."""
_TEXT, _STARS = Primitive(Kind.STRING), "***"
_FLOATS = (Primitive(Kind.FLOAT), Primitive(Kind.DOUBLE))
"""Types whose equal values have several texts, such as 5.0 and 5, or 0.0 and -0.0."""
_WHOLE = (Kind.INT, Kind.LONG)
_TIMES = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
Tree = Mapping[str, "Mask | Tree"]
M = TypeVar("M")


def tree_of(masks: Mapping[str, Mask]) -> Tree:
    """Return the masks of fields by the parts of their paths; no path is inside another."""
    inner: dict[str, dict[str, Mask]] = {}
    for path, mask in masks.items():
        name, _, rest = path.partition(".")
        inner.setdefault(name, {})[rest] = mask
    return {name: of[""] if "" in of else tree_of(of) for name, of in inner.items()}


def masked(row: Struct, masks: Mapping[str, Mask], where: str) -> Struct:
    """Return the row type after masks of its fields. Raises `InvalidInput` for one that it lacks, or that a mask does not fit."""
    return _struct(row, tree_of(masks), (), where)


def _struct(of: Struct, tree: Tree, path: tuple[str, ...], where: str) -> Struct:
    names = {name for each in of.fields for name in _names(each)}
    for name in tree.keys() - names:
        said = f"there is no field {'.'.join((*path, name))}"
        raise InvalidInput(said, where=where, do=f"The fields are {', '.join(sorted(each.name for each in of.fields))}")
    for each in of.fields:
        if _of_field(tree, each) is None and (name := folded(each.source)) in tree:
            here, there = (".".join((*path, one)) for one in (each.name, name))
            raise InvalidInput(
                f"{here} is another field with the name {there}, which is masked", where=where, do=f"Mask {here}, too"
            )
    return replace(of, fields=tuple(_field(each, _of_field(tree, each), path, where) for each in of.fields))


def _names(of: Field) -> tuple[str, ...]:
    """Return the names by which masks may have a field: its own, and those of before a rename."""
    return tuple(dict.fromkeys((of.name, *map(folded, of.aliases))))


def _of_field(tree: Tree, of: Field) -> Mask | Tree | None:
    """Return the mask of a field, or the masks in it: those of all its names."""
    found = [tree[name] for name in _names(of) if name in tree]
    return reduce(_both, found) if found else None


def _both(one: Mask | Tree, other: Mask | Tree) -> Mask | Tree:
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return other if isinstance(one, Mapping) else one
    return {**other, **one, **{name: _both(one[name], other[name]) for name in one.keys() & other.keys()}}


def _field(of: Field, tree: Mask | Tree | None, path: tuple[str, ...], where: str) -> Field:
    if tree is None:
        return of
    here = (*path, of.name)
    if of.as_json and isinstance(tree, Hmac | Truncate | Mapping):
        raise InvalidInput(
            f"{'.'.join(here)} is JSON text, whose parts have no masks", where=where, do="Choose Redact() or Nullify()"
        )
    made = _type(of.type, tree, here, where)
    return replace(of, type=made, as_json=of.as_json and not isinstance(tree, Redact), has_own_scale=False)


def _type(of: Type, tree: Mask | Tree, path: tuple[str, ...], where: str) -> Type:
    match tree, of:
        case Nullify(), _:
            return of
        case Redact(), Primitive() | Decimal():
            return _TEXT
        case Hmac(), Primitive() | Decimal() if of not in _FLOATS:
            return _TEXT
        case Truncate(to=to), _ if _truncates(of, to):
            return of
        case Mapping(), Struct():
            return _struct(of, tree, path, where)
        case Mapping(), ListOf(element) if [*tree] == ["element"]:
            return replace(of, element=_type(element, tree["element"], (*path, "element"), where))
        case Mapping(), MapOf(key, value) if {*tree} <= {"key", "value"}:
            if isinstance(tree.get("key", Hmac), Redact | Nullify | Truncate):
                said = f"{'.'.join(path)}.key would be one key for several"
                raise InvalidInput(said, where=where, do="Choose Hmac(…) for keys of a map")
            kinds = {"key": key, "value": value}
            made = {name: _type(kinds[name], tree[name], (*path, name), where) for name in tree}
            return replace(of, key=made.get("key", key), value=made.get("value", value))
    lacks = f"field {min(tree)}" if isinstance(tree, Mapping) else f"mask {tree.kind}"
    what = f"{'.'.join(path)} is of type {of}, and has no {lacks}"
    do = (
        "Name a value in it; in a list it is .element, in a map .key or .value" if inside(of) else "Choose another mask"
    )
    raise InvalidInput(what, where=where, do=do)


def _truncates(of: Type, to: str) -> bool:
    if isinstance(of, Decimal):
        return to not in UNITS and of.precision <= _LONGEST
    if not isinstance(of, Primitive):
        return False
    if to in UNITS:
        return of.kind in _TIMES and not (to == "hour" and of.kind is Kind.DATE)
    return of.kind in (Kind.STRING, *_WHOLE)


@dataclass(frozen=True, slots=True)
class Masks:
    """The masks of a pipeline's records. `secrets` are those of its HMACs, and `read` gives their values."""

    of_fields: Tree
    of_key: Hmac | None
    of_headers: Mapping[str, Mask]
    secrets: tuple[Secret, ...]
    has_before: bool
    is_text_key: bool
    read: Callable[[Secret], str] = field(repr=False, compare=False)

    def prepared(self, records: DataFrame) -> DataFrame:
        """Return records with a masked key and headers, and with what masks of their values need.

        The keys of HMACs are values of a relation, so that the text of a plan has none.
        """
        spark = records.sparkSession
        for number, secret in enumerate(self.secrets):
            pads = spark.createDataFrame([_pads(self.read(secret))], "inner binary, outer binary")
            names = {
                f"{_INNER}{number}": pads.select("inner").scalar(),
                f"{_OUTER}{number}": pads.select("outer").scalar(),
            }
            records = records.withColumns(names)
        if self.of_key is not None:
            key = F.col("key")
            hidden = self._hmac(key, self.of_key).cast("binary")
            if self.is_text_key:  # what is rejected by its bytes stays as it is: a dead letter has none
                is_text = F.is_valid_utf8(key.cast("string")) & ~F.coalesce(begins_as_registered(key), F.lit(False))
                hidden = F.when(is_text, hidden).otherwise(key)
            records = records.withColumn("key", hidden)
        if self.of_headers and "headers" in records.columns:
            headers = F.transform("headers", self._header)
            records = records.withColumn("headers", headers)
        return records

    def row(self, row: Column, of: Struct) -> Column:
        """Return a row of this type with its values masked: those of the row before a change, too."""
        made = self._fields(row, of, self.of_fields)
        for each in of.fields:
            if self.has_before and each.source == BEFORE_COLUMN and isinstance(each.type, Struct):
                before = self._fields(row[each.name], each.type, self.of_fields)
                made = made.withField(f"`{each.name}`", before)
        return made

    def _fields(self, value: Column, of: Struct, tree: Tree) -> Column:
        made = value  # each value is read from the row as it was: of the growing one, expressions would double
        for each in of.fields:
            if (inner := _of_field(tree, each)) is not None:
                made = made.withField(f"`{each.name}`", self._value(value[each.name], each.type, inner))
        return made

    def _value(self, value: Column, of: Type, tree: Mask | Tree) -> Column:
        match tree, of:
            case Nullify(), _:
                return F.lit(None).cast(spark_type(of))
            case Hmac(), _:
                return self._hmac(_text(value, of), tree)
            case Redact(), _:
                return F.when(value.isNotNull(), F.lit(_STARS))
            case Truncate(to=to), _:
                return _truncated(value, of, to)
            case Mapping(), Struct():
                return self._fields(value, of, tree)
            case Mapping(), ListOf(element):
                return F.transform(value, lambda one: self._value(one, element, tree["element"]))
            case Mapping(), MapOf(key, inner):
                if "value" in tree:
                    value = F.transform_values(value, lambda _, one: self._value(one, inner, tree["value"]))
                if "key" in tree:
                    value = F.transform_keys(value, lambda one, _: self._value(one, key, tree["key"]))
                return value
        raise AssertionError(f"{of} was checked")

    def _hmac(self, value: Column, mask: Hmac) -> Column:
        """Return the HMAC (https://www.rfc-editor.org/rfc/rfc2104) of text, or of bytes, as text."""
        number = self.secrets.index(mask.secret)
        inner = F.sha2(F.concat(F.col(f"{_INNER}{number}"), value.cast("binary")), 256)
        return F.sha2(F.concat(F.col(f"{_OUTER}{number}"), F.unhex(inner)), 256)

    def _header(self, header: Column) -> Column:
        value = header["value"]
        for name, mask in self.of_headers.items():
            match mask:
                case Hmac():
                    made = self._hmac(header["value"], mask).cast("binary")
                case Redact():
                    made = F.when(header["value"].isNotNull(), F.lit(_STARS).cast("binary"))
                case _:
                    made = F.lit(None).cast("binary")
            value = F.when(header["key"] == name, made).otherwise(value)
        return F.struct(header["key"].alias("key"), value.alias("value"))


def _pads(secret: str) -> tuple[bytes, bytes]:
    if len(secret) < _SHORTEST:
        said = f"the secret of an HMAC has fewer than {_SHORTEST} characters"
        raise InvalidInput(said, where="shape.mask", do="Write a longer one, such as 32 random bytes as hex")
    key = secret.encode()
    key = (hashlib.sha256(key).digest() if len(key) > _BLOCK else key).ljust(_BLOCK, b"\0")
    return bytes(one ^ 0x36 for one in key), bytes(one ^ 0x5C for one in key)


def _text(value: Column, of: Type) -> Column:
    """Return the text of a value that is the same in each type: numbers without zeros at their end, times as ISO 8601 in UTC."""
    match of:
        case Primitive(kind=Kind.BINARY):
            return value
        case Primitive(kind=Kind.TIMESTAMP | Kind.TIMESTAMPTZ):
            zone = "'Z'" if of.kind is Kind.TIMESTAMPTZ else ""
            return F.date_format(value, f"yyyy-MM-dd'T'HH:mm:ss.SSSSSS{zone}")
        case Decimal():
            words = value.cast("string")
            return F.when(words.contains("."), F.regexp_replace(words, r"\.?0+$", "")).otherwise(words)
        case _:
            return value.cast("string")


def _truncated(value: Column, of: Type, to: str) -> Column:
    if to in UNITS and isinstance(of, Primitive):  # Spark fails for times far beyond the years of a row
        return F.when(in_years(value, of.kind), F.date_trunc(to, value)).cast(spark_type(of))
    if of == _TEXT:
        return F.substring(value, 1, int(to))
    return (value - value % F.lit(int(to))).cast(spark_type(of))  # toward zero: the result always fits


def named_now(row: Struct, masks: Mapping[str, M]) -> dict[str, M]:
    """Return the masks by the paths that their fields have in a row: of renamed fields by their new names."""
    return {".".join(_now(row, path.split("."))): mask for path, mask in masks.items()}


def _now(of: Type | None, path: Sequence[str]) -> list[str]:
    if not path:
        return []
    name, *rest = path
    match of:
        case Struct(fields):
            same = (each for each in fields if each.name == name)
            found = next(same, None) or next((each for each in fields if name in map(folded, each.aliases)), None)
            return [found.name if found else name, *_now(found.type if found else None, rest)]
        case ListOf(element):
            return [name, *_now(element, rest)]
        case MapOf(_, value):
            return [name, *_now(value if name == "value" else None, rest)]
    return [*path]


def lost(source: Struct, table: Struct, masks: Mapping[str, Mask], first: Collection[str]) -> set[str]:
    """Return the paths of masks of fields that the topic had and has no more: columns of the table, or in its `first` masks."""
    gone = [path for path in masks if type_at(source, ".".join(_now(source, path.split(".")))) is None]
    return {path for path in gone if path in first or type_at(table, path) is not None}


def check_aliases(versions: Iterable[Struct], masks: Mapping[str, Mask], where: str) -> None:
    """Raise `InvalidInput` if a version (names not yet folded) renames a masked field, and has another one of its name.

    That other one is the masked column then, so that the renamed one would land as it is.
    """
    for version in versions:
        _check_names(version, tree_of(masks), (), where)


def _check_names(of: Type, tree: Mask | Tree, path: tuple[str, ...], where: str) -> None:
    match tree, of:
        case Mapping(), Struct(fields):
            names = {folded(each.source) for each in fields}
            for each in fields:
                name = folded(each.source)
                was = next((one for one in map(folded, each.aliases) if one in tree and one in names), None)
                if name not in tree and was is not None:
                    here, there = (".".join((*path, one)) for one in (name, was))
                    what = f"{here} was {there}, which is masked and is another field now"
                    raise InvalidInput(what, where=where, do=f"Mask {here}, too")
                if name in tree:
                    _check_names(each.type, tree[name], (*path, name), where)
        case Mapping(), ListOf(element) if "element" in tree:
            _check_names(element, tree["element"], (*path, "element"), where)
        case Mapping(), MapOf(key, value):
            for part, inner in (("key", key), ("value", value)):
                if part in tree:
                    _check_names(inner, tree[part], (*path, part), where)


def masks_inside(row: Struct, masks: Mapping[str, Mask]) -> dict[str, Mask]:
    """Return the masks of fields that a row has: the row before a change may lack some."""
    names = {each.name for each in row.fields}
    return {path: mask for path, mask in masks.items() if path.partition(".")[0] in names}


def masks_of(pipeline: Pipeline, read: Callable[[Secret], str]) -> Masks | None:
    """Return the declared masks; None if none are declared. `read` gives the value of a secret."""
    masks = pipeline.shape.masks
    if not masks:
        return None
    of_key = masks.get(KEY)
    headers = {path.removeprefix(HEADERS): mask for path, mask in masks.items() if path.startswith(HEADERS)}
    secrets = tuple(dict.fromkeys(mask.secret for mask in masks.values() if isinstance(mask, Hmac)))
    has_before = pipeline.envelope is not None and pipeline.envelope.has_before
    key = of_key if isinstance(of_key, Hmac) else None
    is_text_key = isinstance(pipeline.topic.key, Text) and pipeline.write.has_key
    return Masks(tree_of(of_fields(masks)), key, headers, secrets, has_before, is_text_key, read)


def of_fields(masks: Mapping[str, Mask]) -> dict[str, Mask]:
    """Return the masks of the fields of values."""
    return {path: mask for path, mask in masks.items() if path != KEY and not path.startswith(HEADERS)}
