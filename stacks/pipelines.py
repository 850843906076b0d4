"""An example of declarations: tables of the topics that `frazil local demo` fills. Add yours here or in another file.

`frazil check` prints all problems.
`frazil run NAME --once` lands one pipeline. All fields: `docs/reference/declaration.md`.
"""

from frazil import Pipeline, Table, Topic

flights = Pipeline(
    topic=Topic("flights", value="avro"),
    table=Table("nyc.flights", partition_by=("months(time_hour)",), sort_by=("time_hour",)),
)

weather = Pipeline(
    topic=Topic("weather", value="json_schema"),
    table=Table("nyc.weather", partition_by=("months(time_hour)",), sort_by=("time_hour",)),
)

planes = Pipeline(
    topic=Topic("planes", value="protobuf"),
    table=Table("nyc.planes"),
)

pipelines = [flights, weather, planes]
