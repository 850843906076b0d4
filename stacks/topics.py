"""An example of topics that deployment makes. A pipeline whose topic is not here reads one that others make."""

from infra.managed_topic import ManagedTopic

topics = [
    ManagedTopic("flights", partitions=6),
    ManagedTopic("weather", partitions=3),
    ManagedTopic("planes", partitions=1),
]
