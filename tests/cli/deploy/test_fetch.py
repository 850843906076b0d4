"""`frazil deploy fetch`: what a deployment said is known by its name afterwards, or one line says why not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from typer.testing import CliRunner, Result

from frazil.cli.main import app
from frazil.declaration import canonical, environment_document
from frazil.exit_codes import Exit
from frazil.project.environments import environment
from tests.support.rollout_world import BUCKET, DEV

KEY = "documents/abc.json"
ADDRESS = f"s3://{BUCKET}/{KEY}"


@pytest.fixture
def s3(folder: Path) -> Iterator[Any]:
    """S3 with the document of `DEV`, as a shell with credentials finds it; the working directory is empty."""
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket=BUCKET)
        client.put_object(Bucket=BUCKET, Key=KEY, Body=canonical(environment_document(DEV)))
        yield client


def fetched(source: str, *more: str) -> Result:
    return CliRunner().invoke(app, ["deploy", "fetch", source, *more])


@pytest.mark.usefixtures("s3")
def test_the_outputs_of_a_deployment_make_its_environment_known() -> None:
    deployed = {"dev-foundation": {"bucket": "b"}, "dev-ingestion": {"environment_document": ADDRESS}}
    Path("outputs.json").write_text(json.dumps(deployed))
    result = fetched("outputs.json")
    assert result.exit_code == 0, result.output
    assert result.stdout == "dev is in .frazil/environments/dev.json\n"
    assert environment("dev") == DEV


@pytest.mark.usefixtures("s3")
def test_so_does_the_documents_address_again_and_again() -> None:
    Path(".frazil/environments").mkdir(parents=True)
    Path(".frazil/environments/dev.json").write_text("what was there before")
    result = fetched(ADDRESS, "--json")
    assert json.loads(result.stdout) == {"environments": ["dev"]}
    assert environment("dev") == DEV
    assert [file.name for file in Path(".frazil/environments").iterdir()] == ["dev.json"]
    Path(".frazil").rename("before")
    Path(".frazil").write_text("a file")
    result = fetched(ADDRESS)
    assert (result.exit_code, result.output.count("\n")) == (Exit.INVALID_INPUT, 1)
    assert "it cannot be written" in result.output


@pytest.mark.usefixtures("s3")
@pytest.mark.parametrize(
    ("document", "said"),
    [
        ('{"dev-foundation": {"bucket": "b"}}', "no stack of it has the output environment_document"),
        (f'["{ADDRESS}"]', "no stack of it has the output"),
        ('{"dev-ingestion": {"environment_document": "s3://no-key"}}', "that is no address of an object"),
        (f'{{"dev-ingestion": {{"environment_document": "{ADDRESS}.old"}}}}', "there is no such object"),
        (None, "cannot be read"),
        ("{", "it is no JSON"),
    ],
)
def test_outputs_that_name_no_document_are_told(document: str | None, said: str) -> None:
    if document is not None:
        Path("outputs.json").write_text(document)
    result = fetched("outputs.json")
    assert (result.exit_code, result.output.count("\n")) == (Exit.INVALID_INPUT, 1)
    assert said in result.output
    assert not Path(".frazil").exists()


def test_an_object_that_is_no_environment_leaves_what_is_known(s3: Any) -> None:
    s3.put_object(Bucket=BUCKET, Key="other.json", Body=b'{"version": 1, "name": "../dev"}')
    result = fetched(f"s3://{BUCKET}/other.json")
    assert result.exit_code == Exit.INVALID_INPUT
    assert "name" in result.output
    assert not Path(".frazil").exists()


def test_a_bucket_that_refuses_is_unavailable() -> None:
    with mock_aws():
        assert fetched("s3://nobodys/documents/abc.json").exit_code == Exit.SERVICE_UNAVAILABLE


@pytest.mark.usefixtures("s3")
def test_a_profile_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobodys")
    result = fetched(ADDRESS)
    assert (result.exit_code, result.output.count("\n")) == (Exit.SERVICE_UNAVAILABLE, 1)
    assert "nobodys" in result.output
