"""An example of declarations: the topic that `frazil demo` fills, as a table. Yours may be here, or in another file.

`frazil check` tells what is wrong with them, `frazil run NAME --once` lands one. Every field: `docs/declaration.md`.
"""

from frazil.declaration import Pipeline, Table, Topic, ValueFormat

flights = Pipeline(
    topic=Topic("flights", value_format=ValueFormat.AVRO),
    table=Table("nyc.flights", partition_by=("months(time_hour)",), sort_by=("time_hour",)),
)

pipelines = [flights]
