"""An example of declarations: tables of the topics that `frazil local demo` fills. Add yours here or in another file.

`frazil check` prints all problems (so does `python -m stacks.pipelines`, which needs the declarations only).
`frazil run NAME --once` lands one pipeline. All fields: `docs/reference/declaration.md`.
"""

import sys

from frazil import Pipeline, Table, Topic
from frazil.declaration import check

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

if __name__ == "__main__":
    problems = check(pipelines)
    print("\n".join(map(str, problems)) or f"{len(pipelines)} pipelines, no problem")
    sys.exit(2 if problems else 0)  # as `frazil check`: invalid input
