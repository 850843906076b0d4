"""Topics that deployment makes."""

from infra.managed_topic import Cleanup, OwnTopic
from tests.declaration.problems_of import problems_of


def test_settings_are_kafkas() -> None:
    topic = OwnTopic("clicks", retention_hours=2, cleanup=Cleanup.COMPACT, config={"max.message.bytes": "1"})
    assert topic.settings == {"cleanup.policy": "compact", "retention.ms": "7200000", "max.message.bytes": "1"}


def test_a_setting_has_one_place() -> None:
    assert list(problems_of(lambda: OwnTopic("clicks", config={"retention.ms": "1"}))) == [
        "own_topic.config['retention.ms']"
    ]


def test_a_topic_without_partitions_or_of_no_name_is_refused() -> None:
    assert set(problems_of(lambda: OwnTopic("my clicks", partitions=0))) == {"own_topic.name", "own_topic.partitions"}
