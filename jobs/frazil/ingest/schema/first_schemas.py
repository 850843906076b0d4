"""The first schemas of a topic whose records hold their schemas: the table's columns and key are known only from them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import functions as F

from frazil.clients.kafka import Span
from frazil.declaration import Pipeline
from frazil.decode.connect_json.connect_decoder import frame_inside
from frazil.decode.keys.key_column import Keys
from frazil.decode.writers.seen_frames import SeenFrames
from frazil.decode.writers.writer_schemas import WriterSchemas
from frazil.errors import InvalidInput
from frazil.ingest.batch.read import consumer_options, read
from frazil.ingest.plan.ranges import OffsetRange
from frazil.ingest.setup.waiting import position
from frazil.job.context import JobContext


class FirstSchemas:
    """The schemas that the records of one pipeline's topic hold, before its first batch is staged."""

    def __init__(self, pipeline: Pipeline, job: JobContext) -> None:
        self._pipeline, self._job = pipeline, job
        self._searched: tuple[str, Mapping[int, Span]] = "", {}
        self._unread: dict[str, list[bytes]] = {"value": [], "key": []}

    def learn(self, values: WriterSchemas, keys: Keys | None) -> None:
        """Read the schemas of two records, of values and of keys where they are in the records and none is known.

        One is that of the first record which has one that can be read: the oldest, as a registry has it. The other is that of the
        next record to land. Offsets that were searched in vain are not searched again.

        Raises `InvalidInput` as `WriterSchemas.learn` does: for an envelope, if all schemas that were found are none of its.
        """
        sides = {"value": values, **({"key": keys.writers} if keys is not None else {})}
        open_sides = {column: side for column, side in sides.items() if side.is_in_records and not side.versions}
        if not open_sides:
            return
        topic_id = self._job.kafka.topic(
            self._pipeline.topic.name
        ).topic_id  # one that was created again is searched again
        spans = self._job.kafka.offsets(self._pipeline.topic.name, self._pipeline.isolation)
        if (topic_id, spans) == self._searched:
            return
        start = position(self._pipeline, self._job, spans)
        oldest = {p: span.earliest for p, span in spans.items()}
        next_to_land = {p: max(start.get(p, 0), earliest) for p, earliest in oldest.items()}
        for column, side in open_sides.items():
            refused: InvalidInput | None = None
            for begin in (oldest, next_to_land) if next_to_land != oldest else (oldest,):
                ranges = [OffsetRange(p, begin[p], span.stable) for p, span in spans.items() if begin[p] < span.stable]
                unread = self._unread[column]  # of earlier calls, too: their problems are known and not counted again
                while (frame := self._first(column, topic_id, spans, ranges, unread)) is not None:
                    problems = len(side.problems)
                    try:
                        side.learn(SeenFrames(unknown=(frame,)))
                    except InvalidInput as problem:
                        if len(side.problems) == problems:
                            raise
                        refused = problem  # a later record may have a schema of the envelope's
                    if len(side.problems) == problems:
                        break
                    unread.append(frame)
            if refused is not None and not side.versions:
                raise refused
        self._searched = topic_id, spans

    def _first(
        self, column: str, topic_id: str, spans: Mapping[int, Span], ranges: list[OffsetRange], unread: list[bytes]
    ) -> bytes | None:
        """Return the schema of the first record in the ranges that has another one than these."""
        if not ranges:
            return None
        options = consumer_options(self._pipeline, self._job.kafka)
        leaders = {partition: span.leader_epoch for partition, span in spans.items()}
        records = read(
            self._job.spark,
            self._pipeline.topic.name,
            ranges,
            options=options,
            isolation=self._pipeline.isolation.value,
            group=self._job.consumers.group(self._pipeline.name, options, topic_id, leaders),
            headers=False,
        )
        frames = records.select(frame_inside(F.col(column), ()).alias("frame"))
        frames = frames.where(F.col("frame").isNotNull() & ~F.col("frame").isin([bytearray(text) for text in unread]))
        return next((bytes(row["frame"]) for row in frames.limit(1).collect()), None)
