import pytest

from frazil.declaration import GlueCatalog, LocalCatalog, ObjectStore, RestAuth, RestCatalog, Secret
from tests.declaration.problems_of import problems_of

HERE = Secret(env="KEY")


@pytest.mark.parametrize(
    ("make", "paths"),
    [
        (lambda: LocalCatalog(path="lake.db", warehouse="lake"), ["local_catalog.path", "local_catalog.warehouse"]),
        (lambda: LocalCatalog(path="/a", warehouse="/b", name="spark_catalog"), ["local_catalog.name"]),
        (lambda: LocalCatalog(path="/a", warehouse="/b", name="staged"), ["local_catalog.name"]),
        (lambda: LocalCatalog(path="/a", warehouse="/b", name="My Lake"), ["local_catalog.name"]),
        (lambda: RestCatalog(uri="h", warehouse=" "), ["rest_catalog.uri", "rest_catalog.warehouse"]),
        (
            lambda: RestCatalog(uri="http://h", warehouse="w", auth=RestAuth.SIGV4),
            ["rest_catalog.signing_name", "rest_catalog.region"],
        ),
        (lambda: RestCatalog(uri="http://h", warehouse="w", auth=RestAuth.OAUTH2), ["rest_catalog.credential"]),
        (lambda: RestCatalog(uri="http://h", warehouse="w", auth=RestAuth.TOKEN), ["rest_catalog.token"]),
        (
            lambda: RestCatalog(uri="http://h", warehouse="w", signing_name="glue", scope="x", token=HERE),
            ["rest_catalog.signing_name", "rest_catalog.scope", "rest_catalog.token"],
        ),
        (
            lambda: GlueCatalog(warehouse="/a", region="Frankfurt", account_id="1"),
            ["glue_catalog.warehouse", "glue_catalog.region", "glue_catalog.account_id"],
        ),
        (lambda: ObjectStore(access_key_id=HERE), ["object_store.secret_access_key"]),
        (lambda: ObjectStore(secret_access_key=HERE), ["object_store.access_key_id"]),
    ],
)
def test_what_would_fail_at_the_first_commit_is_refused(make, paths):
    assert list(problems_of(make)) == paths
