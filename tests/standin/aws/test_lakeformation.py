"""Lake Formation on the stand-in: a grant is revoked once."""

from __future__ import annotations

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from tests.standin.aws.lakeformation import patch_lake_formation

ROLE = {"DataLakePrincipalIdentifier": "arn:aws:iam::123456789012:role/r"}
TABLES = {"Table": {"DatabaseName": "nyc", "TableWildcard": {}}}


@mock_aws
def test_what_is_not_granted_cannot_be_revoked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    patch_lake_formation()
    client = boto3.client("lakeformation", region_name="eu-central-1")
    client.grant_permissions(Principal=ROLE, Resource=TABLES, Permissions=["ALTER", "DESCRIBE"])
    client.revoke_permissions(Principal=ROLE, Resource=TABLES, Permissions=["DESCRIBE"])
    [left] = client.list_permissions()["PrincipalResourcePermissions"]
    assert left["Permissions"] == ["ALTER"]
    client.revoke_permissions(Principal=ROLE, Resource=TABLES, Permissions=["ALTER"])
    for permission in ("ALTER", "SELECT"):
        with pytest.raises(ClientError, match="No permissions revoked. Grantee has no"):
            client.revoke_permissions(Principal=ROLE, Resource=TABLES, Permissions=[permission])
