"""Services that do not answer or refuse."""

from __future__ import annotations

from frazil.errors.frazil_error import FrazilError


class ServiceUnavailable(FrazilError):
    """A service, or a secret for it, did not answer or refused. Nothing is rejected because of it; retrying may help."""


class KafkaUnavailable(ServiceUnavailable):
    """The Kafka cluster did not answer, or refused."""


class KafkaRefused(KafkaUnavailable):
    """The broker refused the login twice; in between the secrets were read again."""

    authentication = True


class TopicMissing(KafkaUnavailable):
    """The cluster answered that it has no such topic. It says so too of a topic that may not be described."""


class RegistryUnavailable(ServiceUnavailable):
    """The schema registry did not answer, or not with a schema."""


class RegistryRefused(RegistryUnavailable):
    """The registry refused the login (401), or the request (403)."""

    authentication = True


class SecretUnavailable(ServiceUnavailable):
    """A secret that the environment names cannot be read."""


class TokenUnavailable(ServiceUnavailable):
    """No token for a login can be had: its endpoint, or AWS's default credential chain, gave none."""


class TokenRefused(TokenUnavailable):
    """The token endpoint refused the client twice; in between its secret was read again."""

    authentication = True


class CatalogUnavailable(ServiceUnavailable):
    """The catalog or the object store refused or did not answer."""


class ObjectStoreUnavailable(ServiceUnavailable):
    """The bucket of releases and desired states refused or did not answer."""


class AccountUnavailable(ServiceUnavailable):
    """A service of the AWS account refused or did not answer while the account was prepared."""


class EmrUnavailable(ServiceUnavailable):
    """EMR Serverless refused or did not answer."""
