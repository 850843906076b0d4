"""Resources of the Confluent provider, which has no prebuilt bindings.

    topic = Declared(stack, "orders", "confluent_kafka_topic", topic_name="orders", partitions_count=6, …)

The arguments are the provider's, and tests compare each with `provider_schemas/confluent.json`. A mapping is a nested block or a
map, None is omitted. What Confluent computes is read from the resource.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from infra.tf import (
    MARKER,
    Construct,
    TerraformDataSource,
    TerraformProvider,
    TerraformProviderGeneratorMetadata,
    TerraformResource,
    TerraformResourceLifecycle,
    Token,
)

SOURCE = "confluentinc/confluent"
VERSION = "2.83.4"
"""The provider's release that `provider_schemas/confluent.json` was transcribed from."""

_META = TerraformProviderGeneratorMetadata(provider_name="confluent", provider_version=VERSION)


class Provider(TerraformProvider):
    """The provider itself. Its keys come from the environment, CONFLUENT_CLOUD_API_KEY and _SECRET."""

    def __init__(self, scope: Construct, name: str = "confluent") -> None:
        super().__init__(
            scope,
            name,
            terraform_resource_type="confluent",
            terraform_generator_metadata=_META,
            terraform_provider_source=SOURCE,
        )
        # The bindings' base class writes the version here too, where Terraform no longer wants it.
        self.add_override("version", None)


Credentials = Mapping[str, str]
"""The block with the `key` and the `secret` of an API key."""


class _Filled:
    """The values of a resource that Confluent fills in."""

    interpolation_for_attribute: Callable[[str], Any]
    add_override: Callable[[str, Any], None]

    def computed(self, path: str) -> str:
        """Return a value that Confluent fills in: `computed("aws[0].external_id")`."""
        return str(Token.as_string(self.interpolation_for_attribute(path)))

    @property
    def id(self) -> str:
        """Its id at Confluent."""
        return self.computed("id")

    def _fill(self, arguments: Mapping[str, Any]) -> None:
        for name, value in plain(arguments).items():
            self.add_override(name, value)


class Declared(_Filled, TerraformResource):
    """A resource of a type in a stack. `is_kept`: Terraform refuses to destroy it while it is declared."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        kind: str,
        *,
        depends_on: Sequence[Any] = (),
        is_kept: bool = False,
        **arguments: Any,
    ) -> None:
        super().__init__(
            scope,
            name,
            terraform_resource_type=kind,
            terraform_generator_metadata=_META,
            depends_on=list(depends_on) or None,
            lifecycle=TerraformResourceLifecycle(prevent_destroy=True) if is_kept else None,
        )
        self._fill(arguments)

    def must_be(self, attribute: str, value: str, message: str) -> None:
        """Have Terraform fail, with this message, if Confluent filled in another value."""
        condition = f'${{self.{attribute} == "{value}"}}'
        self.add_override("lifecycle.postcondition", [{"condition": condition, "error_message": message}])


class ExistingResource(_Filled, TerraformDataSource):
    """A data source of a type: something that exists already, and that this stack does not change."""

    def __init__(self, scope: Construct, name: str, kind: str, **arguments: Any) -> None:
        super().__init__(scope, name, terraform_resource_type=kind, terraform_generator_metadata=_META)
        self._fill(arguments)


def is_token(value: object) -> bool:
    """Return whether Terraform fills this in: CDKTF's marker of a value that is not known yet."""
    return isinstance(value, str) and MARKER in value


def plain(value: Any) -> Any:
    """Return arguments as Terraform's JSON: no empty arguments, and nothing in a text that Terraform would evaluate."""
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items() if part is not None}
    if isinstance(value, str) and not is_token(value):
        return value.replace("${", "$${").replace("%{", "%%{")
    return value
