"""The envelope that a JSON body is read in, so that bytes after its document are found: `from_json` stops after the first one.

An object is read inside `{"N":[BODY,{"N":true}]}`: the body is one document if the list has two elements and Frazil wrote
the second. What need not be an object has no room for another member beside it, and is read, at some more cost, inside
`{"N":{"v":[BODY],"N":[]}}`: it is one document if the inner object has exactly those two members, and the list one element.
Only a body that knew the name `N` could end one of them and begin another, and each process draws a new `N`.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from frazil.decode.decoder import Step

NAME = f"frazil_{secrets.token_hex(8)}"
"""A name that no body has, but by chance."""

CORRUPT = "corrupt"
"""The column of `Envelope.type` that is null exactly if what `from_json` reads of the text is JSON of that type."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """The text around a body, and the type it is read as. Of what was read: `documents`, of type `listed`, begin with the body's;
    `is_alone` is true if they hold nothing else, else false or null.
    """

    before: str
    after: str
    type: T.StructType
    listed: T.ArrayType
    documents: Step
    is_alone: Step

    def around(self, body: Column) -> Column:
        """Return the text that is read; null if there is no body."""
        return F.concat(F.lit(self.before), body, F.lit(self.after))


def around_objects(written: T.StructType) -> Envelope:
    """Return the envelope for bodies that must be objects of this type; `documents` have one more field, the last one."""
    listed = T.ArrayType(T.StructType([*written.fields, T.StructField(NAME, T.BooleanType())]))

    def is_alone(read: Column) -> Column:
        return (F.size(read[NAME]) == 2) & F.get(read[NAME], F.lit(1))[NAME]

    after = f',{{"{NAME}":true}}]}}'
    return Envelope(f'{{"{NAME}":[', after, _type(listed), listed, lambda read: read[NAME], is_alone)


def around_anything(written: T.DataType) -> Envelope:
    """Return the envelope for bodies of any type."""
    listed = T.ArrayType(written)
    members = T.MapType(T.StringType(), listed)

    def documents(read: Column) -> Column:
        return F.get(F.map_values(read[NAME]), F.lit(0))

    def is_alone(read: Column) -> Column:
        names = F.array(F.lit("v"), F.lit(NAME))
        return (F.map_keys(read[NAME]) == names) & (F.size(documents(read)) == 1)

    return Envelope(f'{{"{NAME}":{{"v":[', f'],"{NAME}":[]}}}}', _type(members), listed, documents, is_alone)


def _type(inner: T.DataType) -> T.StructType:
    return T.StructType([T.StructField(NAME, inner), T.StructField(CORRUPT, T.StringType())])
