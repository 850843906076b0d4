"""One catalog, as Spark's options and as PyIceberg's properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from frazil.declaration.catalogs import GlueCatalog, LocalCatalog, RestAuth, RestCatalog
from frazil.declaration.environment import Environment
from frazil.declaration.secret import Secret

Resolve = Callable[[Secret], str]
_S3 = "org.apache.iceberg.aws.s3.S3FileIO"
_S3_KEYS = ("s3.access-key-id", "s3.secret-access-key")
_BUSY_MS = 10_000  # how long a SQLite writer waits for another


def spark_options(environment: Environment, resolve: Resolve) -> dict[str, str]:
    """The catalog as `spark.sql.catalog.<name>…` settings of a Spark session.

    A cached table would make a long-lived driver see a stale one, so nothing is cached.
    """
    catalog = environment.catalog
    prefix = f"spark.sql.catalog.{catalog.name}"
    options = {"cache-enabled": "false", **_options(environment, resolve)}
    return {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        **{f"{prefix}.{key}": value for key, value in options.items()},
        "spark.sql.catalog.staged": "org.apache.iceberg.spark.SparkRewriteTableCatalog",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    }


def _options(environment: Environment, resolve: Resolve) -> Mapping[str, str]:
    match environment.catalog:
        case LocalCatalog(path=path, warehouse=warehouse):
            return {
                "type": "jdbc",
                "uri": f"jdbc:sqlite:{path}?busy_timeout={_BUSY_MS}",
                "jdbc.schema-version": "V1",
                "warehouse": warehouse,
                **(_s3(environment, resolve) if warehouse.startswith("s3:") else {}),
            }
        case RestCatalog() as rest:
            return {
                "type": "rest",
                "uri": rest.uri,
                "warehouse": rest.warehouse,
                **_s3(environment, resolve),
                **_rest_auth(rest, environment, resolve),
            }
        case GlueCatalog() as glue:
            given = {"glue.id": glue.account_id, "glue.endpoint": glue.endpoint}
            return {
                "type": "glue",
                "warehouse": glue.warehouse,
                "client.region": glue.region,
                **{key: value for key, value in given.items() if value},
                **_s3(environment, resolve),
            }


def _s3(environment: Environment, resolve: Resolve) -> dict[str, str]:
    options = {"io-impl": _S3}
    store = environment.object_store
    if store is None:
        return options
    if store.endpoint:
        options["s3.endpoint"] = store.endpoint
    if store.path_style:
        options["s3.path-style-access"] = "true"
    if store.region:
        options["client.region"] = store.region
    if store.access_key_id and store.secret_access_key:
        options["s3.access-key-id"] = resolve(store.access_key_id)
        options["s3.secret-access-key"] = resolve(store.secret_access_key)
    return options


def _rest_auth(rest: RestCatalog, environment: Environment, resolve: Resolve) -> dict[str, str]:
    match rest.auth:
        case RestAuth.SIGV4:
            store = environment.object_store
            keys = {}
            if store and store.access_key_id and store.secret_access_key:
                keys = {
                    "rest.access-key-id": resolve(store.access_key_id),
                    "rest.secret-access-key": resolve(store.secret_access_key),
                }
            return {
                "rest.sigv4-enabled": "true",
                "rest.signing-name": rest.signing_name or "",
                "rest.signing-region": rest.region or "",
                **keys,
            }
        case RestAuth.OAUTH2:
            given = {"oauth2-server-uri": rest.token_uri, "scope": rest.scope}
            credential = {"credential": resolve(rest.credential)} if rest.credential else {}
            return {**credential, **{key: value for key, value in given.items() if value}}
        case RestAuth.TOKEN:
            return {"token": resolve(rest.token)} if rest.token else {}
        case RestAuth.NONE:
            return {}


def pyiceberg_properties(environment: Environment, resolve: Resolve) -> dict[str, str]:
    """The catalog as the properties of PyIceberg's catalog of the same name; `type` says which: sql, rest or glue."""
    catalog, files = environment.catalog, _pyiceberg_files(environment, resolve)
    match catalog:
        case LocalCatalog(path=path, warehouse=warehouse):
            return {
                "type": "sql",
                "uri": f"sqlite:///{path}?timeout={_BUSY_MS // 1000}",
                "warehouse": warehouse,
                **(files if warehouse.startswith("s3:") else {}),
            }
        case RestCatalog() as rest:
            auth = _rest_auth(rest, environment, resolve)
            keys = {"rest.access-key-id", "rest.secret-access-key"}  # which PyIceberg calls `client.…`
            return {
                "type": "rest",
                "uri": rest.uri,
                "warehouse": rest.warehouse,
                **files,
                **{key.replace("rest.", "client.") if key in keys else key: value for key, value in auth.items()},
            }
        case GlueCatalog() as glue:
            given = {"glue.id": glue.account_id, "glue.endpoint": glue.endpoint}
            return {
                "type": "glue",
                "warehouse": glue.warehouse,
                "glue.region": glue.region,
                **{key: value for key, value in given.items() if value},
                "s3.region": glue.region,
                **files,
                **{key.replace("s3.", "glue."): value for key, value in files.items() if key.startswith(_S3_KEYS)},
            }


def _pyiceberg_files(environment: Environment, resolve: Resolve) -> dict[str, str]:
    options = {key: value for key, value in _s3(environment, resolve).items() if key.startswith("s3.")}
    is_path_style = options.pop("s3.path-style-access", None) is not None
    if environment.object_store and environment.object_store.region:
        options["s3.region"] = environment.object_store.region
    if "s3.endpoint" in options:
        options["s3.force-virtual-addressing"] = str(not is_path_style).lower()
        options.setdefault("s3.region", "us-east-1")  # without one, Arrow asks AWS where the bucket is
    return options
