"""An example of declarations: the topics that `frazil demo` fills, as tables. Yours may be here, or in another file.

`frazil check` tells what is wrong with them, `frazil run NAME --once` lands one. Every field: `docs/declaration.md`.
"""

from frazil.declaration import Pipeline, Table, Topic, ValueFormat

flights = Pipeline(
    topic=Topic("flights", value_format=ValueFormat.AVRO),
    table=Table("nyc.flights", partition_by=("months(time_hour)",), sort_by=("time_hour",)),
)

weather = Pipeline(
    topic=Topic("weather", value_format=ValueFormat.JSON_SCHEMA),
    table=Table("nyc.weather", partition_by=("months(time_hour)",), sort_by=("time_hour",)),
)

planes = Pipeline(
    topic=Topic("planes", value_format=ValueFormat.PROTOBUF),
    table=Table("nyc.planes"),
)

pipelines = [flights, weather, planes]
