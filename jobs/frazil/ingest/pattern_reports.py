"""The reports of a run on patterns: what matches, what does not exist any more, and what cannot be landed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from frazil.declaration import TopicPattern
from frazil.errors import FrazilError
from frazil.ingest.guard import Outcome, report_error, reporter
from frazil.ingest.reporting.events import Event, Reporter, Sink
from frazil.job.context import JobContext
from frazil.job.entry_point import REFUSED
from frazil.job.matched_topics import Matched, MatchedTopics, source_of
from frazil.rollout.run_proof import of_pattern


def refusals(found: Matched) -> dict[str, Outcome]:
    """Return the outcomes of topics and types that match and cannot be landed."""
    return {f"{REFUSED}{source}": Outcome(error=error) for source, error in found.refused.items()}


def report_matched(
    topics: MatchedTopics, found: Matched, job: JobContext, sink: Sink, *, known: Collection[str] = ()
) -> None:
    """Report how many topics or types match each pattern, those that are gone, and those refused that are not `known`."""
    live = [source_of(pipeline) for pipeline in found.pipelines]
    for index, pattern in enumerate(topics.patterns):
        number, report = sum(1 for source in live if pattern.matches(*source)), _reporter(topics, index, job, sink)
        if isinstance(pattern, TopicPattern):
            report(Event.TOPICS_MATCHED, topics=number)
        else:
            report(Event.TYPES_MATCHED, types=number, types_of=pattern.match)
    for pipeline in found.gone:
        what = f"the topic {pipeline.topic.name} does not exist any more; its table {pipeline.table.identifier} stays"
        reporter(pipeline, job, sink)(Event.TOPIC_GONE, message=what)
    report_refused({name: one for name, one in refusals(found).items() if name not in known}, job, sink)


def report_refused(refused: Mapping[str, Outcome], job: JobContext, sink: Sink) -> None:
    """Report why topics and types that match cannot be landed."""
    for name, outcome in refused.items():
        if outcome.error is not None:
            report_error(Reporter(sink, name, name.removeprefix(REFUSED), job.run, job.clock), outcome.error)


def report_unmatched(topics: MatchedTopics, error: FrazilError, job: JobContext, sink: Sink, **facts: Any) -> None:
    """Report for each pattern why topics or types cannot be listed."""
    for index, _ in enumerate(topics.patterns):
        report_error(_reporter(topics, index, job, sink), error, **facts)


def _reporter(topics: MatchedTopics, index: int, job: JobContext, sink: Sink) -> Reporter:
    pattern = topics.patterns[index]
    topic = pattern.match if isinstance(pattern, TopicPattern) else pattern.topic
    return Reporter(sink, of_pattern(index), topic, job.run, job.clock, pattern.pipeline.group)
