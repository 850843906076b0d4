"""The tree of errors: who catches an outage, and what each error holds."""

from __future__ import annotations

from frazil.errors import KafkaRefused, KafkaUnavailable, RegistryRefused, RegistryUnavailable, TopicMissing


def test_who_catches_an_outage_catches_a_refusal() -> None:
    assert issubclass(KafkaRefused, KafkaUnavailable)
    assert issubclass(TopicMissing, KafkaUnavailable)
    assert issubclass(RegistryRefused, RegistryUnavailable)


def test_only_a_refused_login_is_one_of_authentication() -> None:
    assert KafkaRefused("no").authentication
    assert RegistryRefused("no").authentication
    assert not getattr(TopicMissing("no"), "authentication", False)
