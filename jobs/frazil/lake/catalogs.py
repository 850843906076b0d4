"""One catalog, as Spark's options and as PyIceberg's properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from frazil.declaration.catalogs import GlueCatalog, LocalCatalog, RestAuth, RestCatalog
from frazil.declaration.environment import Environment
from frazil.declaration.secret import Secret
from frazil.errors import InvalidInput

DATA_LOCATION = "frazil.data-location"
"""Option of a catalog in Spark's settings: where tables of format version 3 keep their data files."""
Resolve = Callable[[Secret], str]
_S3 = "org.apache.iceberg.aws.s3.S3FileIO"
_S3_KEYS = ("s3.access-key-id", "s3.secret-access-key")
_REST_KEYS = ("rest.access-key-id", "rest.secret-access-key")
_SECRETS = (*_S3_KEYS, *_REST_KEYS, "credential", "token")
_SOME_REGION = "us-east-1"  # a store at an address of its own has none, but each client signs for one
_BUSY_MS = 10_000  # how long a SQLite writer waits for another


def spark_options(environment: Environment, resolve: Resolve) -> dict[str, str]:
    """Return the catalog as `spark.sql.catalog.<name>…` settings of a Spark session.

    A cached table would make a long-lived driver see a stale one, so nothing is cached. Those of which `is_secret` is
    true must not be given to a process that starts: its arguments are open to every user of the machine.
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


def is_secret(option: str) -> bool:
    """Return whether the value of one of `spark_options` is a secret, by the option's name."""
    return option.endswith(tuple(f".{name}" for name in _SECRETS))


def java_properties(environment: Environment, resolve: Resolve) -> dict[str, str]:
    """Return what the driver's JVM must have as system properties: the keys for Glue, for which Iceberg has no option.

    Empty where AWS's default chain of credentials is to decide, and for other catalogs.
    """
    keys = _keys(environment, resolve) if isinstance(environment.catalog, GlueCatalog) else ()
    return _named(("aws.accessKeyId", "aws.secretAccessKey"), keys)


def make_folder(environment: Environment) -> None:
    """Create the folder of a local catalog's SQLite file. Raises `InvalidInput` if it cannot be created."""
    catalog = environment.catalog
    if not isinstance(catalog, LocalCatalog):
        return
    folder, where = Path(catalog.path).parent, f"environment {environment.name}, catalog.path"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what, do = (
            f"the folder {folder} cannot be created ({error.strerror})",
            "Create it, or name a file in another folder",
        )
        raise InvalidInput(what, where=where, do=do) from None
    if Path(catalog.path).is_dir():
        raise InvalidInput(f"{catalog.path} is a folder", where=where, do="Name a file in it, like catalog.db")


def needs_s3(environment: Environment) -> bool:
    """Return whether files are in an object store; if not, AWS's 60 MB of classes need not be loaded."""
    return not isinstance(environment.catalog, LocalCatalog) or environment.catalog.warehouse.startswith("s3:")


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
                **({DATA_LOCATION: rest.data_location} if rest.data_location else {}),
            }
        case GlueCatalog() as glue:
            given = {"glue.id": glue.account_id, "glue.endpoint": glue.endpoint}
            store = environment.object_store
            is_elsewhere = store is not None and store.region not in (None, glue.region)
            return {
                "type": "glue",
                "warehouse": glue.warehouse,
                "glue.skip-archive": "true",  # an account's archive is bounded, a table's commits are not
                **{key: value for key, value in given.items() if value},
                **_s3(environment, resolve),
                "client.region": glue.region,  # one for both of Iceberg's clients; S3's finds buckets elsewhere
                **({"s3.cross-region-access-enabled": "true"} if is_elsewhere else {}),
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
    if store.region or store.endpoint:
        options["client.region"] = store.region or _SOME_REGION
    return {**options, **_named(_S3_KEYS, _keys(environment, resolve))}


def _keys(environment: Environment, resolve: Resolve) -> tuple[str, str] | tuple[()]:
    """Return the object store's key pair; none where AWS's default chain decides."""
    store = environment.object_store
    if store is None or store.access_key_id is None or store.secret_access_key is None:
        return ()
    return resolve(store.access_key_id), resolve(store.secret_access_key)


def _named(names: Sequence[str], values: Sequence[str]) -> dict[str, str]:
    """Return the values by their names; without values, nothing."""
    return dict(zip(names, values, strict=True)) if values else {}


def _rest_auth(rest: RestCatalog, environment: Environment, resolve: Resolve) -> dict[str, str]:
    match rest.auth:
        case RestAuth.SIGV4:
            return {
                "rest.sigv4-enabled": "true",
                "rest.signing-name": rest.signing_name or "",
                "rest.signing-region": rest.region or "",
                **_named(_REST_KEYS, _keys(environment, resolve)),
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
    """Return the catalog as the properties of PyIceberg's catalog of the same name; `type` says which: sql, rest or glue."""
    catalog = environment.catalog
    files = _pyiceberg_files(environment, resolve, region=catalog.region if isinstance(catalog, GlueCatalog) else None)
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
            return {
                "type": "rest",
                "uri": rest.uri,
                "warehouse": rest.warehouse,
                **files,
                # PyIceberg calls the keys `client.…`
                **{key.replace("rest.", "client.") if key in _REST_KEYS else key: value for key, value in auth.items()},
            }
        case GlueCatalog() as glue:
            given = {"glue.id": glue.account_id, "glue.endpoint": glue.endpoint}
            return {
                "type": "glue",
                "warehouse": glue.warehouse,
                "glue.region": glue.region,
                **{key: value for key, value in given.items() if value},
                **files,
                **{key.replace("s3.", "glue."): value for key, value in files.items() if key.startswith(_S3_KEYS)},
            }


def _pyiceberg_files(environment: Environment, resolve: Resolve, *, region: str | None) -> dict[str, str]:
    """Return the store's settings; `region` is the catalog's, which counts where the store has none of its own."""
    options = {key: value for key, value in _s3(environment, resolve).items() if key.startswith("s3.")}
    is_path_style = options.pop("s3.path-style-access", None) is not None
    known = (environment.object_store and environment.object_store.region) or region
    if "s3.endpoint" in options:
        options["s3.force-virtual-addressing"] = str(not is_path_style).lower()
        known = known or _SOME_REGION  # without one, Arrow asks AWS where the bucket is
    return {**options, **({"s3.region": known} if known else {})}
