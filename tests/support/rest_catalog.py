"""Iceberg's own REST service, which has views: the servlet of its tests over a catalog in SQLite, in a JVM of its own.

The object store's REST catalog has no views. Jetty is that of the Connect worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from frazil.clients.secrets import Secrets
from frazil.declaration.catalogs import LocalCatalog, RestCatalog
from frazil.declaration.environment import Environment
from frazil.lake.catalogs import spark_options
from frazil.local import seaweedfs
from frazil.local.ports import HOST
from frazil.local.toolchain.jars import jars
from frazil.local.toolchain.java import java

LOCK = Path(__file__).parent / "rest_catalog.jars.lock"
_OF_PYSPARK = ("RoaringBitmap", "avro", "hadoop-client-api", "hadoop-client-runtime")
_OF_SPARK = ("iceberg-aws-bundle", "sqlite-jdbc")


@contextmanager
def rest_catalog(folder: Path, environment: Environment) -> Iterator[Environment]:
    """Start the service on 127.0.0.1 with the object store of an environment, and stop it at the end.

    Returns the environment with this catalog. `folder` gets the SQLite file.
    """
    warehouse = f"s3://{seaweedfs.BUCKET}/rest"
    behind = replace(environment, catalog=LocalCatalog(path=str(folder / "rest.db"), warehouse=warehouse))
    port, secret, process = launch_gateway(
        classpath=":".join(map(str, _class_path())),
        javaopts=["-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
        java_path=str(java()),
        die_on_exit=True,
        enable_auth=True,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=secret, auto_convert=True))
    try:
        jvm = gateway.jvm
        prefix = f"spark.sql.catalog.{behind.catalog.name}."
        options = spark_options(behind, Secrets({}).read).items()
        catalog = jvm.org.apache.iceberg.jdbc.JdbcCatalog()
        catalog.initialize(
            "rest", {key.removeprefix(prefix): value for key, value in options if key.startswith(prefix)}
        )
        rest, ee10 = jvm.org.apache.iceberg.rest, jvm.org.eclipse.jetty.ee10.servlet
        servlets = ee10.ServletContextHandler()
        servlets.addServlet(ee10.ServletHolder(rest.RESTCatalogServlet(rest.RESTCatalogAdapter(catalog))), "/*")
        server = jvm.org.eclipse.jetty.server.Server(jvm.java.net.InetSocketAddress(HOST, 0))
        server.setHandler(servlets)
        server.start()
        yield replace(
            environment, catalog=RestCatalog(uri=f"http://{HOST}:{server.getURI().getPort()}", warehouse=warehouse)
        )
    finally:
        gateway.close()
        process.stdin.close()  # at which the JVM ends
        process.wait(30)


def _class_path() -> list[Path]:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    of_pyspark = [next(Path(spec.origin).parent.glob(f"jars/{name}-[0-9]*.jar")) for name in _OF_PYSPARK]
    of_spark = [jar for jar in jars("spark") if jar.name.startswith(_OF_SPARK)]
    return [*jars("iceberg", lock=LOCK), *jars("iceberg-tests", lock=LOCK), *jars("connect"), *of_pyspark, *of_spark]
