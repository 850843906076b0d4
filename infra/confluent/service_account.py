"""A service account: a program's identity at Confluent, with its API keys, kept in Secrets Manager."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from infra.confluent.resource import Credentials, Declared
from infra.protection import Protection
from infra.tf import (
    Construct,
    DataAwsSecretsmanagerSecretVersion,
    Fn,
    SecretsmanagerSecret,
    SecretsmanagerSecretVersion,
    Token,
)


class Account(Construct):
    """One service account. Its name is unique in the organization, hence the environment's name in it."""

    def __init__(self, scope: Construct, name: str, *, account: str, description: str) -> None:
        super().__init__(scope, name)
        self._name = account
        self._declared = Declared(
            self, "account", "confluent_service_account", display_name=account, description=description
        )
        self.principal = f"User:{self._declared.id}"
        """Who it is to Kafka's permissions."""

    def bind(
        self, name: str, role: str, crn: str, *, is_awaited: bool = True, depends_on: Sequence[Any] = ()
    ) -> Declared:
        """Give the account a role on the resources of a CRN. A `*` at its end matches each resource with the prefix.

        The provider waits 90 s until the role is in effect, if `is_awaited`. A change of that updates the binding in place.
        """
        return Declared(
            self,
            name,
            "confluent_role_binding",
            depends_on=depends_on,
            principal=self.principal,
            role_name=role,
            crn_pattern=crn,
            disable_wait_for_ready=None if is_awaited else True,
        )

    def key(self, name: str, opens: Mapping[str, Any], *, depends_on: Sequence[Any] = ()) -> Credentials:
        """Make an API key of a managed resource. Its secret is in Terraform's state in the clear: the state is a secret.

        `depends_on`: the rights that must exist before the key is tried.
        """
        key = Declared(
            self,
            name,
            "confluent_api_key",
            depends_on=depends_on,
            display_name=f"{self._name}-{name}",
            description="Made by Terraform",
            owner={"id": self._declared.id, "kind": "ServiceAccount", "api_version": "iam/v2"},
            managed_resource=opens,
        )
        return {"key": key.id, "secret": key.computed("secret")}


def given_keys(stored: DataAwsSecretsmanagerSecretVersion, what: str) -> Credentials:
    """Return the API key of a secret that exists, in the fields of `StoredKeys`. Terraform's state holds it in the clear."""
    fields = Fn.jsondecode(stored.secret_string)
    return {part: str(Token.as_string(Fn.lookup(fields, f"{what}_{part}"))) for part in ("key", "secret")}


class StoredKeys(Construct):
    """API keys as one secret: a JSON object of strings. Its value is in Terraform's state, and in no other place of Frazil's."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        secret: str,
        key_arn: str,
        keys: dict[str, Credentials],
        protection: Protection,
    ) -> None:
        """`keys` by what they open: `kafka` becomes the fields `kafka_key` and `kafka_secret`."""
        super().__init__(scope, name)
        self.secret_name = secret
        made = SecretsmanagerSecret(
            self,
            "secret",
            name=secret,
            kms_key_id=key_arn,
            recovery_window_in_days=7 if protection.is_kept else 0,
            lifecycle=protection.lifecycle,
        )
        fields = {f"{what}_{part}": value for what, pair in sorted(keys.items()) for part, value in pair.items()}
        SecretsmanagerSecretVersion(self, "value", secret_id=made.id, secret_string=json.dumps(fields, sort_keys=True))
        self.arn: str = made.arn
        """The secret's ARN, known when it exists."""
