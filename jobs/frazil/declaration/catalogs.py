"""The catalogs a lake can have, and the object store under it."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, ClassVar

from frazil.declaration.checks.constraints import ABSOLUTE_PATH, NOT_EMPTY, WEB_ADDRESS, Rule, matching
from frazil.declaration.checks.declared import declared
from frazil.declaration.checks.problems import Problem, Refusal
from frazil.declaration.secret import Secret

REGION = matching("[a-z]{2,}(?:-[a-z0-9]+)+", "an AWS region", "Write it like eu-central-1")
_LOCATION = matching(
    "/.*|file:/.*|s3://[^/]+.*", "an absolute path or a location", "Write it like /data/lake or s3://bucket/lake"
)
_ON_S3 = matching("s3://[^/]+.*", "a location on S3", "Write it like s3://bucket/lake")
_ACCOUNT = matching("[0-9]{12}", "an AWS account", "Write its 12 digits, in quotes")


def _catalog_name(name: str) -> Refusal | None:
    # `spark_catalog` is Spark's own session catalog; `staged` is where files are written before they are published.
    if name in {"spark_catalog", "staged"}:
        return Refusal(f"{name!r} is taken by Spark and Frazil", "Choose another, like lake")
    return _NAME.refusal(name)


_NAME = matching("[a-z][a-z0-9_]{0,62}", "a catalog's name", "Write a lower-case letter, then a-z, 0-9 and _")
_CATALOG_NAME = Rule(_catalog_name, _NAME.keywords)
CatalogName = Annotated[str, "The catalog's name in SQL.", _CATALOG_NAME]


class RestAuth(StrEnum):
    """The authentication to an Iceberg REST catalog.

    `none` sends nothing; `sigv4` signs each request as AWS does; `oauth2` trades a client's credential for tokens and
    renews them; `token` sends one bearer token, which another program renews.
    """

    NONE = "none"
    SIGV4 = "sigv4"
    OAUTH2 = "oauth2"
    TOKEN = "token"  # noqa: S105 # the name of a way, not a token


@declared
class LocalCatalog:
    """Iceberg's JDBC catalog in a SQLite file, which PyIceberg reads too. For one machine."""

    kind: ClassVar[str] = "local"

    path: Annotated[str, "The SQLite file.", ABSOLUTE_PATH]
    warehouse: Annotated[str, "The folder or location of the tables' files.", _LOCATION]
    name: CatalogName = "lake"


@declared
class RestCatalog:
    """A catalog that speaks Iceberg's REST protocol.

    `sigv4` signs with the object store's keys if the environment names them, else with AWS's default chain. With `data_location`,
    metadata stays where the catalog places it, and each table of format version 3 has a folder of its own there for its data.
    """

    kind: ClassVar[str] = "rest"

    uri: Annotated[str, "The catalog's address, without /v1.", WEB_ADDRESS]
    warehouse: Annotated[str, "The warehouse's name or location in the catalog.", NOT_EMPTY]
    name: CatalogName = "lake"
    auth: Annotated[RestAuth, "The authentication method."] = RestAuth.NONE
    signing_name: Annotated[str | None, "With sigv4: the service to sign for, like glue or s3tables.", NOT_EMPTY] = None
    region: Annotated[str | None, "With sigv4: the AWS region to sign for.", REGION] = None
    credential: Annotated[Secret | None, "With oauth2: client id and client secret, joined by a colon."] = None
    token_uri: Annotated[str | None, "With oauth2: the token endpoint, if not the catalog's.", WEB_ADDRESS] = None
    scope: Annotated[str | None, "With oauth2: the scope to request.", NOT_EMPTY] = None
    token: Annotated[Secret | None, "With token: the bearer token."] = None
    data_location: Annotated[
        str | None,
        "Where tables of format version 3 keep their data, if the bucket of tables refuses Puffin files.",
        _ON_S3,
    ] = None

    def _contradictions(self) -> Iterator[Problem]:
        needed = {
            RestAuth.SIGV4: ("signing_name", "region"),
            RestAuth.OAUTH2: ("credential",),
            RestAuth.TOKEN: ("token",),
        }
        allowed = {**needed, RestAuth.OAUTH2: ("credential", "token_uri", "scope")}
        for name in needed.get(self.auth, ()):
            if getattr(self, name) is None:
                yield Problem(name, f"auth {self.auth} needs it", f"Give {name}, or choose another auth")
        for name in ("signing_name", "region", "credential", "token_uri", "scope", "token"):
            if getattr(self, name) is not None and name not in allowed.get(self.auth, ()):
                yield Problem(name, f"auth {self.auth} does not use it", "Remove it, or choose the auth that does")


@declared
class GlueCatalog:
    """AWS Glue's own catalog; its credentials are AWS's default chain, or the object store's keys."""

    kind: ClassVar[str] = "glue"

    warehouse: Annotated[str, "The location of the tables' files.", _ON_S3]
    region: Annotated[str, "The AWS region.", REGION]
    account_id: Annotated[str | None, "The catalog's account, if not the caller's.", _ACCOUNT] = None
    endpoint: Annotated[str | None, "Another endpoint of the service, for tests.", WEB_ADDRESS] = None
    name: CatalogName = "lake"


Catalog = LocalCatalog | RestCatalog | GlueCatalog


@declared
class ObjectStore:
    """The store of files, if that is not AWS's S3 with AWS's default chain of credentials."""

    endpoint: Annotated[str | None, "Another endpoint of the service.", WEB_ADDRESS] = None
    path_style: Annotated[bool, "Put the bucket into the path, not into the host name."] = False
    region: Annotated[str | None, "The region, if not the default chain's.", REGION] = None
    access_key_id: Annotated[Secret | None, "The access key, if not the default chain's."] = None
    secret_access_key: Annotated[Secret | None, "The secret key of the access key."] = None

    def _contradictions(self) -> Iterator[Problem]:
        if (self.access_key_id is None) != (self.secret_access_key is None):
            missing = "access_key_id" if self.access_key_id is None else "secret_access_key"
            yield Problem(missing, "of the two keys only one is given", "Give both or none")
