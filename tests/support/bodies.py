"""Bodies: decoded by one expression, where a test has no frame of records; and spoilt at random."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from pyspark.sql import Column, Row, SparkSession
from pyspark.sql import functions as F

from frazil.decode.decoder import Body


def at_once(body: Body, value: Column) -> Column:
    """Return all steps of the thorough body as one expression, each done once: its result is bound to a lambda's variable."""
    return _bound((value,), (body.thorough or body).steps)


def rows_of(spark: SparkSession, body: Body, *values: bytes | str | None) -> list[Row | None]:
    """Return the row of each value, in their order; None if it was rejected."""
    given = [(n, value.encode() if isinstance(value, str) else value) for n, value in enumerate(values)]
    read = spark.createDataFrame(given, "n int, body binary").select("n", at_once(body, F.col("body")).alias("row"))
    rows = read.select("n", F.when(F.col("row")["_decoded"], F.col("row")).alias("row")).collect()
    found = {each.n: each.row for each in rows}
    return [found[n] for n in range(len(values))]


def _bound(given: tuple[Column, ...], steps: tuple[Callable[..., Column], ...]) -> Column:
    made = steps[0](*given)
    if len(steps) == 1:
        return made
    return F.transform(F.array(made), lambda one: _bound((*given, one), steps[1:]))[0]


def spoilt(dice: Random, body: bytes) -> bytes:
    """Change, lose, insert or repeat some bytes, or cut the end off."""
    made = bytearray(body)
    for _ in range(dice.randrange(1, 4)):
        at = dice.randrange(len(made) + 1)
        match dice.randrange(5):
            case 0 if at < len(made):
                made[at] ^= 1 << dice.randrange(8)
            case 1:
                del made[at : at + dice.randrange(1, 4)]
            case 2:
                made[at:at] = dice.randbytes(dice.randrange(1, 4))
            case 3:
                made[at:at] = made[dice.randrange(len(made) + 1) :][:6]
            case _:
                del made[at:]
    return bytes(made)
