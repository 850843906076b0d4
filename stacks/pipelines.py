"""An example of declarations: the topics that `frazil demo` fills, as tables. Yours may be here, or in another file.

`frazil check` tells what is wrong with them, `frazil run NAME --once` lands one. Every field: `docs/declaration.md`.
"""

from frazil.declaration import KeyFormat, Pipeline, Table, Topic, ValueFormat

flights = Pipeline(
    topic=Topic("flights", value_format=ValueFormat.AVRO, key_format=KeyFormat.TEXT),
    table=Table("nyc.flights", partition_by=("months(time_hour)",), sort_by=("time_hour",)),
)

weather = Pipeline(
    topic=Topic("weather", value_format=ValueFormat.JSON_SCHEMA, key_format=KeyFormat.TEXT),
    table=Table("nyc.weather", partition_by=("origin",)),
)

planes = Pipeline(
    topic=Topic("planes", value_format=ValueFormat.PROTOBUF, key_format=KeyFormat.TEXT),
    table=Table("nyc.planes"),
)

pipelines = [flights, weather, planes]
