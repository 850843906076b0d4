"""The reports of a run on patterns of topics: what matches, what does not exist any more, and what cannot be landed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from frazil.errors import FrazilError
from frazil.ingest.guard import Outcome, report_error, reporter
from frazil.ingest.reporting.events import Event, Reporter, Sink
from frazil.job.context import JobContext
from frazil.job.entry_point import REFUSED
from frazil.job.matched_topics import Matched, MatchedTopics
from frazil.rollout.run_proof import of_pattern


def refusals(found: Matched) -> dict[str, Outcome]:
    """Return the outcomes of topics that match and cannot be landed."""
    return {f"{REFUSED}{topic}": Outcome(error=error) for topic, error in found.refused.items()}


def report_matched(
    topics: MatchedTopics, found: Matched, job: JobContext, sink: Sink, *, known: Collection[str] = ()
) -> None:
    """Report how many topics match each pattern, those that are gone, and those refused that are not `known`."""
    live = [pipeline.topic.name for pipeline in found.pipelines]
    for index, pattern in enumerate(topics.patterns):
        number = sum(1 for name in live if pattern.matches(name))
        _reporter(topics, index, job, sink)(Event.TOPICS_MATCHED, topics=number)
    for pipeline in found.gone:
        what = f"the topic {pipeline.topic.name} does not exist any more; its table {pipeline.table.identifier} stays"
        reporter(pipeline, job, sink)(Event.TOPIC_GONE, message=what)
    report_refused({name: one for name, one in refusals(found).items() if name not in known}, job, sink)


def report_refused(refused: Mapping[str, Outcome], job: JobContext, sink: Sink) -> None:
    """Report why topics that match cannot be landed."""
    for name, outcome in refused.items():
        if outcome.error is not None:
            report_error(Reporter(sink, name, name.removeprefix(REFUSED), job.run, job.clock), outcome.error)


def report_unmatched(topics: MatchedTopics, error: FrazilError, job: JobContext, sink: Sink, **facts: Any) -> None:
    """Report for each pattern why topics cannot be listed."""
    for index, _ in enumerate(topics.patterns):
        report_error(_reporter(topics, index, job, sink), error, **facts)


def _reporter(topics: MatchedTopics, index: int, job: JobContext, sink: Sink) -> Reporter:
    pattern = topics.patterns[index]
    return Reporter(sink, of_pattern(index), pattern.match, job.run, job.clock, pattern.pipeline.group)
