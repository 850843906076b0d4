"""Row types as Spark types."""

from __future__ import annotations

from pyspark.sql import types as T

from frazil.schemas.types import Decimal, Kind, ListOf, MapOf, Primitive, Struct, Type

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


def spark_struct(of: Struct) -> T.StructType:
    """Return the Spark type of a struct."""
    return T.StructType([T.StructField(field.name, spark_type(field.type)) for field in of.fields])
