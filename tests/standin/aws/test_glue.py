"""The local AWS keeps the promises of AWS that our exactly-once rests on, and keeps to this machine and its keys."""

from __future__ import annotations

import stat
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from frazil.local.services import LocalServices
from tests.standin.aws.launch import BUCKET, REGION, endpoint_of, key_files

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

    @property
    def archive(self) -> list[str]:
        listed = self.glue.get_table_versions(DatabaseName=self.name, TableName=self.name)["TableVersions"]
        return [version["VersionId"] for version in listed]


@pytest.fixture
def table(whole_world: LocalServices) -> GlueTable:
    return GlueTable(client(whole_world, "glue"))


def test_what_is_put_is_got(whole_world: LocalServices) -> None:
    s3 = client(whole_world, "s3")
    s3.put_object(Bucket=BUCKET, Key="a/b", Body=b"content")
    assert s3.get_object(Bucket=BUCKET, Key="a/b")["Body"].read() == b"content"


@pytest.mark.long
def test_an_update_of_the_newest_version_makes_the_next(table: GlueTable) -> None:
    version, _ = table.now
    table.update("mine", VersionId=version)
    assert table.now[1] == "mine"
    assert table.now[0] != version


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


@pytest.mark.long
def test_an_update_that_skips_the_archive_leaves_no_old_version(table: GlueTable) -> None:
    table.update("archived")
    assert len(table.archive) == 2
    for _ in range(3):
        table.update("skipped", SkipArchive=True)
    assert table.archive == ["1", table.now[0]]


def test_without_a_version_the_last_writer_wins(table: GlueTable) -> None:
    table.update("first")
    table.update("second")
    assert table.now[1] == "second"


def test_the_keys_are_for_their_user_only(whole_world: LocalServices) -> None:
    keys = key_files(whole_world.home)
    for file in (keys.access_key_id, keys.secret_access_key):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
