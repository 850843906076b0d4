"""Decimals in JSON: exact numbers, read from a variant; and those that Kafka Connect writes as numbers or as bytes in base64."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.decode.json import integers
from frazil.decode.values.semantic_types import scaled
from frazil.schemas.connect.connect_types import NumberOrBytes
from frazil.schemas.types import Decimal


def decimal(raw: Column, of: Decimal) -> Column:
    """Return the decimal that a variant is; null if it is none that the type holds."""
    number = F.try_variant_get(raw, "$", f"decimal({of.precision},{of.scale})")
    if not isinstance(of, NumberOrBytes):
        return number
    octets = F.try_to_binary(F.try_variant_get(raw, "$", "string"), F.lit("base64"))
    return F.when(is_text(raw), scaled(octets, of, of.zeros)).otherwise(number)


def is_exact(raw: Column, of: Decimal, text: Column) -> Column:
    """Return whether the variant's number, in the document `text`, has no more digits than the decimal; or whether it is its bytes.

    A number with an exponent is a variant's double.
    """
    kind, value = F.schema_of_variant(raw), decimal(raw, of)
    scale = F.regexp_extract(kind, r"^DECIMAL\(\d+,(\d+)\)$", 1)
    is_same = value.cast("double") == F.try_variant_get(raw, "$", "double")
    is_double = (kind == "DOUBLE") & is_same & integers.keeps_digits(raw, text)
    is_decimal = kind.startswith("DECIMAL") & (scale.try_cast("int") <= of.scale)
    is_number = (kind == "BIGINT") | is_decimal | is_double
    return value.isNotNull() & (is_number | is_text(raw) if isinstance(of, NumberOrBytes) else is_number)


def is_text(raw: Column) -> Column:
    """Return whether a variant is a string."""
    return F.schema_of_variant(raw) == "STRING"
