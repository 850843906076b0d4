"""Typed arguments as resources of the Confluent provider, which has no prebuilt bindings.

    topic = KafkaTopic(topic_name="orders", partitions_count=6, …).declare(stack, "orders")

A dataclass in a field is a nested block, None is omitted. What Confluent computes is read from what `declare` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A nested block. Its values come from declarations, which are checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments(Block):
    """The arguments of a resource. `TYPE` is its type in Terraform."""

    TYPE: ClassVar[str]

    def declare(
        self,
        scope: Construct,
        name: str,
        *,
        depends_on: Sequence[Any] = (),
        is_kept: bool = False,
    ) -> Declared:
        """Add the resource to a stack. `is_kept`: Terraform refuses to destroy it while it is declared."""
        return Declared(scope, name, self, depends_on=depends_on, is_kept=is_kept)

    def look_up(self, scope: Construct, name: str, *, depends_on: Sequence[Any] = ()) -> ExistingResource:
        """Add a data source of the same type: something that exists already, and that this stack does not change."""
        return ExistingResource(scope, name, self, depends_on=depends_on)


class _Filled:
    """The values of a resource that Confluent fills in."""

    interpolation_for_attribute: Callable[[str], Any]

    def computed(self, path: str) -> str:
        """Return a value that Confluent fills in: `computed("aws[0].external_id")`."""
        return str(Token.as_string(self.interpolation_for_attribute(path)))

    @property
    def id(self) -> str:
        """Its id at Confluent."""
        return self.computed("id")


class Declared(_Filled, TerraformResource):
    """A resource in a stack."""

    def __init__(
        self, scope: Construct, name: str, arguments: Arguments, *, depends_on: Sequence[Any], is_kept: bool
    ) -> None:
        super().__init__(
            scope,
            name,
            terraform_resource_type=arguments.TYPE,
            terraform_generator_metadata=_META,
            depends_on=list(depends_on) or None,
            lifecycle=TerraformResourceLifecycle(prevent_destroy=True) if is_kept else None,
        )
        for key, value in plain(arguments).items():
            self.add_override(key, value)

    def must_be(self, attribute: str, value: str, message: str) -> None:
        """Have Terraform fail, with this message, if Confluent filled in another value."""
        condition = f'${{self.{attribute} == "{value}"}}'
        self.add_override("lifecycle.postcondition", [{"condition": condition, "error_message": message}])


class ExistingResource(_Filled, TerraformDataSource):
    """Something that exists already."""

    def __init__(self, scope: Construct, name: str, arguments: Arguments, *, depends_on: Sequence[Any]) -> None:
        super().__init__(
            scope,
            name,
            terraform_resource_type=arguments.TYPE,
            terraform_generator_metadata=_META,
            depends_on=list(depends_on) or None,
        )
        for key, value in plain(arguments).items():
            self.add_override(key, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Id(Block):
    """A block that names another object."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Empty(Block):
    """A block that only says which kind of thing this is: `standard {}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials(Block):
    """An API key of the cluster, registry or Tableflow that is asked."""

    key: str
    secret: str


def is_token(value: object) -> bool:
    """Return whether Terraform fills this in: CDKTF's marker of a value that is not known yet."""
    return isinstance(value, str) and MARKER in value


def plain(value: Any) -> Any:
    """Return arguments as Terraform's JSON: no empty arguments, and nothing in a text that Terraform would evaluate."""
    if is_dataclass(value) and not isinstance(value, type):
        named = {f.name: plain(getattr(value, f.name)) for f in fields(value)}
        return {name: part for name, part in named.items() if part is not None}
    if isinstance(value, Mapping):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    if isinstance(value, str) and not is_token(value):
        return value.replace("${", "$${").replace("%{", "%%{")
    return value
