"""Topics that deployment makes."""

from infra.confluent.managed_topic import Cleanup, ManagedTopic
from tests.declaration.problems_of import problems_of


def test_settings_are_kafkas() -> None:
    topic = ManagedTopic("clicks", retention_hours=2, cleanup=Cleanup.COMPACT, config={"max.message.bytes": "1"})
    assert topic.settings == {"cleanup.policy": "compact", "retention.ms": "7200000", "max.message.bytes": "1"}


def test_a_setting_has_one_place() -> None:
    assert list(problems_of(lambda: ManagedTopic("clicks", config={"retention.ms": "1"}))) == [
        "managed_topic.config['retention.ms']"
    ]


def test_a_topic_without_partitions_or_of_no_name_is_refused() -> None:
    assert set(problems_of(lambda: ManagedTopic("my clicks", partitions=0))) == {
        "managed_topic.name",
        "managed_topic.partitions",
    }
