"""Refusals among the outages: the service answered, and it was no. Callers that do not care catch the wider error."""

from __future__ import annotations

from frazil.errors import KafkaUnavailable, RegistryUnavailable


class KafkaRefused(KafkaUnavailable):
    """The broker does not accept who we say we are; the secrets were read again and tried once more before this was
    raised.
    """

    authentication = True


class TopicMissing(KafkaUnavailable):
    """The cluster answered: it has no topic of that name. Also what it says about a topic that we may not describe."""


class RegistryRefused(RegistryUnavailable):
    """The registry does not accept who we say we are (401), or what we ask for (403)."""

    authentication = True
