"""The end of a log for a pipeline that waits for transactions, and whose isolation was another one before."""

from __future__ import annotations

from collections.abc import Mapping

from frazil.clients.kafka import Kafka
from frazil.declaration import Pipeline
from frazil.declaration.options import Isolation
from frazil.ingest.plan import Span, reaching
from frazil.lake.offsets import Offsets


def held_back(pipeline: Pipeline, kafka: Kafka, spans: Mapping[int, Span], committed: Offsets) -> Mapping[int, Span]:
    """Return the spans, each ending at the committed offset where an open transaction begins before that.

    Records of the transaction were landed while the pipeline read uncommitted ones. The log is not truncated: it has them. Whether
    it is another one shows the last record that was read; without one, the span stays as it is, and ends too early.
    """
    at = committed.at
    behind = [p for p, span in spans.items() if span.stable < at.get(p, 0)]
    if not behind or pipeline.isolation is Isolation.READ_UNCOMMITTED or committed.last is None:
        return spans
    known, all_of_it = committed.last.identified(at), kafka.offsets(pipeline.topic.name, Isolation.READ_UNCOMMITTED)
    return reaching(spans, {p: at[p] for p in behind if p in known and p in all_of_it and at[p] <= all_of_it[p].stable})
