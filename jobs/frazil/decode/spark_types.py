"""Row types as Spark types."""

from __future__ import annotations

from pyspark.sql import types as T

from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct, Type

_KINDS: dict[Kind, T.DataType] = {
    Kind.BOOLEAN: T.BooleanType(),
    Kind.INT: T.IntegerType(),
    Kind.LONG: T.LongType(),
    Kind.FLOAT: T.FloatType(),
    Kind.DOUBLE: T.DoubleType(),
    Kind.STRING: T.StringType(),
    Kind.BINARY: T.BinaryType(),
    Kind.DATE: T.DateType(),
    Kind.TIMESTAMP: T.TimestampNTZType(),
    Kind.TIMESTAMPTZ: T.TimestampType(),
    Kind.VARIANT: T.VariantType(),
}


def spark_type(of: Type) -> T.DataType:
    """Return the Spark type of a row type, with the columns' names; everything is nullable, as a table's columns are."""
    match of:
        case Primitive(kind):
            return _KINDS[kind]
        case Decimal(precision, scale):
            return T.DecimalType(precision, scale)
        case ListOf(element):
            return T.ArrayType(spark_type(element))
        case MapOf(key, value):
            return T.MapType(spark_type(key), spark_type(value))
        case Struct():
            return spark_struct(of)


def row_type(of: T.DataType) -> Type | None:
    """Return the row type of a Spark type; None if no column of a table has it."""
    match of:
        case T.DecimalType():
            return Decimal(of.precision, of.scale)
        case T.ByteType() | T.ShortType():
            return Primitive(Kind.INT)
        case T.ArrayType():
            element = row_type(of.elementType)
            return None if element is None else ListOf(element)
        case T.MapType():
            key, value = row_type(of.keyType), row_type(of.valueType)
            return None if key is None or value is None else MapOf(key, value)
        case T.StructType():
            types = [(field.name, row_type(field.dataType)) for field in of]
            known = [Field(name, kind) for name, kind in types if kind is not None]
            return Struct(tuple(known)) if len(known) == len(types) else None
        case _:
            return next((Primitive(kind) for kind, known in _KINDS.items() if known == of), None)


def spark_struct(of: Struct) -> T.StructType:
    """Return the Spark type of a struct."""
    return T.StructType([T.StructField(field.name, spark_type(field.type)) for field in of.fields])
