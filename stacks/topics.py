"""An example of topics that deployment makes. A pipeline whose topic is not here reads one that others make."""

from infra.managed_topic import OwnTopic

topics = [
    OwnTopic("flights", partitions=6),
    OwnTopic("weather", partitions=3),
    OwnTopic("planes", partitions=1),
]
