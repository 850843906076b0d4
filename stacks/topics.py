"""An example of topics that deployment creates. The topics of other pipelines must exist already."""

from infra.confluent.managed_topic import ManagedTopic

topics = [
    ManagedTopic("flights", partitions=6),
    ManagedTopic("weather", partitions=3),
    ManagedTopic("planes", partitions=1),
]
