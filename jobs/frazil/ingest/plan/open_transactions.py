"""The end of a log for a pipeline that waits for transactions, and whose isolation was another one before."""

from __future__ import annotations

from collections.abc import Mapping

from frazil.clients.kafka import Kafka
from frazil.declaration import Pipeline
from frazil.declaration.options import Isolation
from frazil.ingest.plan.plan import Span, reaching
from frazil.lake.ledger.offsets import Offsets


def held_back(pipeline: Pipeline, kafka: Kafka, spans: Mapping[int, Span], committed: Offsets) -> Mapping[int, Span]:
    """Return the spans, each ending at the committed offset where an open transaction begins before that.

    Records of the transaction were landed while the pipeline read uncommitted ones. The log is not truncated: it has them. Whether
    it is another one shows the last record that was read; without one, the span stays as it is, and ends too early.
    """
    is_behind = any(span.stable < committed.at.get(p, 0) for p, span in spans.items())
    if not is_behind or pipeline.isolation is Isolation.READ_UNCOMMITTED or committed.last is None:
        return spans
    known = {p: committed.at[p] for p in committed.last.identified(committed.at)}
    return up_to_committed(spans, kafka.offsets(pipeline.topic.name, Isolation.READ_UNCOMMITTED), known)


def up_to_committed(
    spans: Mapping[int, Span], uncommitted: Mapping[int, Span], committed: Mapping[int, int]
) -> Mapping[int, Span]:
    """Return the spans, each reaching its committed offset if the log, with its `uncommitted` records, does."""
    return reaching(spans, {p: o for p, o in committed.items() if p in uncommitted and o <= uncommitted[p].stable})
