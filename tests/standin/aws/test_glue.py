"""The local Glue keeps the promise of AWS that our exactly-once rests on: of two writers of one version, one is refused."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from frazil.local.services import LocalServices
from tests.standin.aws.launch import REGION, endpoint_of, key_files

pytestmark = pytest.mark.e2e


def client(world: LocalServices, service: str) -> Any:
    keys = key_files(world.home).credentials()
    return boto3.session.Session().client(
        service,
        endpoint_url=endpoint_of(world.home),
        region_name=REGION,
        aws_access_key_id=keys.access_key,
        aws_secret_access_key=keys.secret_key,
    )


class GlueTable:
    """A table of the local Glue, of one parameter."""

    def __init__(self, glue: Any) -> None:
        self.glue, self.name = glue, f"t{uuid.uuid4().hex}"
        glue.create_database(DatabaseInput={"Name": self.name})
        glue.create_table(DatabaseName=self.name, TableInput=self._input("none"))

    def _input(self, value: str) -> dict[str, Any]:
        return {"Name": self.name, "Parameters": {"value": value}}

    def update(self, value: str, **options: Any) -> None:
        self.glue.update_table(DatabaseName=self.name, TableInput=self._input(value), **options)

    @property
    def now(self) -> tuple[str, str]:
        found = self.glue.get_table(DatabaseName=self.name, Name=self.name)["Table"]
        return found["VersionId"], found["Parameters"]["value"]


@pytest.fixture
def table(whole_world: LocalServices) -> GlueTable:
    return GlueTable(client(whole_world, "glue"))


@pytest.mark.parametrize("skips", [True, False])
def test_an_update_of_a_version_that_is_not_the_newest_is_refused(table: GlueTable, skips: bool) -> None:
    version, _ = table.now
    table.update("twins", VersionId=version, SkipArchive=skips)
    with pytest.raises(ClientError) as refused:
        table.update("mine", VersionId=version, SkipArchive=skips)
    assert refused.value.response["Error"]["Code"] == "ConcurrentModificationException"
    assert table.now[1] == "twins"


@pytest.mark.long
def test_of_many_updates_of_one_version_exactly_one_is_taken(whole_world: LocalServices, table: GlueTable) -> None:
    version, _ = table.now

    def try_to_be(value: str) -> str | None:
        try:
            table.update(value, VersionId=version)
        except ClientError:
            return None
        return value

    with ThreadPoolExecutor(16) as threads:
        (winner,) = filter(None, threads.map(try_to_be, map(str, range(64))))
    assert table.now[1] == winner
