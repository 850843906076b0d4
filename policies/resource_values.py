"""The facts about tables and topics that rules need, from the reviewed documents and resources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from frazil.declaration import InvalidDeclaration, SubjectStrategy, TopicPattern
from frazil.declaration.checks.validation import FrozenMap
from frazil.declaration.documents.from_json import from_json
from frazil.declaration.table import DEAD_LETTERS_SUFFIX
from policies.resources import TYPE, Json, Reviewed, watch


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredAccess:
    """The access that a deployment declares, as trusted code knows it; by default, none.

    `principals` are the ARNs that may assume roles, `external_ids` the ids of those that need one, `subjects` the workflows.
    `prefixes` are those of topics and subjects with one role binding for all of them. `administers`: Frazil's account
    administers a cluster that is only looked up.
    """

    principals: frozenset[str] = frozenset()
    external_ids: Mapping[str, str] = FrozenMap()
    subjects: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()
    administers: bool = False


NONE_DECLARED = DeclaredAccess()


_ON_S3 = re.compile(r"s3a?://(?P<bucket>[^/]+)/?(?P<prefix>.*)")


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a bucket. `bucket` is a name or a reference, `prefix` has no slash at its end and may be empty."""

    bucket: str
    prefix: str

    def overlaps(self, prefix: str) -> bool:
        """Return whether this part and the objects under a prefix of the same bucket have objects in common."""
        own = f"{self.prefix}/" if self.prefix else ""
        return own.startswith(prefix) or prefix.startswith(own)


class Facts:
    """The facts about the reviewed resources. `today` is the day of the review, `access` what a deployment declares."""

    def __init__(self, reviewed: Reviewed, today: date, access: DeclaredAccess = NONE_DECLARED) -> None:
        self.reviewed, self.today, self.access = reviewed, today, access
        pipelines = [each for document in reviewed.documents for each in document.get("pipelines", ())]
        declared = {str(each["table"]["identifier"]) for each in pipelines}
        self.tables = declared | {f"{identifier}{DEAD_LETTERS_SUFFIX}" for identifier in declared}
        """Identifiers of all declared tables, whoever lands them, and of their dead letters."""
        self.topics = {str(each["topic"]["name"]) for each in pipelines}
        self.subjects = {f"{topic}-{part}" for topic in self.topics for part in ("key", "value")}
        """The subjects of the topics; also `*` if a subject depends on a record's name."""
        patterns = [each for document in reviewed.documents for each in document.get("patterns", ())]
        self._patterns = [(parsed, each["pipeline"]) for each in patterns if (parsed := _parsed(each)) is not None]
        self.prefixes = {parsed.prefix for parsed, _ in self._patterns if parsed.prefix}
        """The literal prefixes of the patterns of topics, and of the subjects of these topics."""
        self.open_namespaces = {parsed.namespace for parsed, _ in self._patterns}
        """The namespaces of the tables of patterns."""
        self.subjects |= {
            "*"
            for each in (*pipelines, *(shared for _, shared in self._patterns))
            if each["topic"].get("value", {}).get("subject_strategy", SubjectStrategy.TOPIC) != SubjectStrategy.TOPIC
        }
        self._pipelines = pipelines
        self._groups = {_pipeline_name(each): each.get("group") for each in pipelines}
        self._topics = {_pipeline_name(each): str(each["topic"]["name"]) for each in pipelines}

    def lag_seconds(self, topic: str) -> int | None:
        """Return how late a topic's rows may be, in seconds, by its pipelines' freshness alarms; None without an alarm."""
        groups = {name: self._groups[name] for name, read in self._topics.items() if read == topic}
        matching = [pattern for pattern, _ in self._patterns if pattern.matches(topic)]
        groups |= {each.identifier(topic).partition(".")[2]: each.pipeline.group for each in matching}
        limits = [
            int(float(alarm.values["threshold"]))
            for alarm in self.reviewed.of(TYPE)
            for watched in [watch(alarm)]
            if watched is not None and watched.metric == "freshness_seconds" and int(float(alarm.values["threshold"]))
            if any(watched.covers(name, group) for name, group in groups.items())
        ]
        return max(limits, default=None)

    def needs_last_records_only(self, topic: str) -> bool:
        """Return whether pipelines read a topic, and each needs the last record of a key only: that of the highest offset."""
        modes = self._write_modes(topic)
        return bool(modes) and all(
            mode.get("type") == "upsert" and not any(mode.get(name) for name in ("key", "order_by")) for mode in modes
        )

    def needs_deletes(self, topic: str) -> bool:
        """Return whether a pipeline takes a record without a value for a delete. It may, if no document has the topic."""
        modes = self._write_modes(topic)
        return not modes or any(mode.get("type") in {"upsert", "changelog"} for mode in modes)

    def _write_modes(self, topic: str) -> list[Json]:
        """Return the write modes of the pipelines that read a topic. A mode without parameters may be its name."""
        readers = [each for each in self._pipelines if str(each["topic"]["name"]) == topic]
        readers += [shared for pattern, shared in self._patterns if pattern.matches(topic)]
        found = [each.get("write") or "append" for each in readers]
        return [each if isinstance(each, Mapping) else {"type": each} for each in found]

    def table_places(self) -> Iterator[Place]:
        """Return the locations of tables' files: environments' warehouses, databases' locations, Tableflow's buckets."""
        for document in self.reviewed.documents:
            yield from self._place(str((document.get("catalog") or {}).get("warehouse", "")))
        for database in self.reviewed.of("aws_glue_catalog_database"):
            yield from self._place(database.text("location_uri"))
        for flow in self.reviewed.of("confluent_tableflow_topic"):
            for block in flow.blocks("byob_aws"):
                yield Place(self.bucket_name(str(block.get("bucket_name"))), "")

    def bucket_name(self, name_or_reference: str) -> str:
        """Return a bucket's name if it is known, else the argument."""
        found = self.reviewed.named(name_or_reference)
        return found.text("bucket") or name_or_reference if found else name_or_reference

    def is_tableflow_database(self, database: str) -> bool:
        """Return whether Tableflow publishes tables to a database."""
        published = {
            str(block.get("custom_database") or "")
            for each in self.reviewed.of("confluent_catalog_integration")
            for block in each.blocks("aws_glue")
        }
        clusters = {
            str(block.get("id"))
            for flow in self.reviewed.of("confluent_tableflow_topic")
            for block in flow.blocks("kafka_cluster")
        }
        return database in published | clusters

    def _place(self, location: str) -> Iterator[Place]:
        # A reference contains no slash, so the text between `s3://` and the next slash is the bucket.
        found = _ON_S3.fullmatch(location)
        if found:
            yield Place(self.bucket_name(found["bucket"]), found["prefix"].strip("/"))


def _parsed(pattern: Json) -> TopicPattern | None:
    """Return a pattern; None if this release cannot read it, which the review reports."""
    try:
        return from_json(TopicPattern, pattern, "")
    except InvalidDeclaration:
        return None


def _pipeline_name(pipeline: Json) -> str:
    return str(pipeline.get("name") or str(pipeline["table"]["identifier"]).partition(".")[2])
