"""A patch of moto's Lake Formation: it refuses to revoke what was not granted, as AWS does.

Terraform's provider revokes a grant again until it gets this error.
"""

from __future__ import annotations

from moto.lakeformation.exceptions import InvalidInput
from moto.lakeformation.models import Permission, PermissionCatalog

_remove = PermissionCatalog.remove_permission


def patch_lake_formation() -> None:
    """Patch moto in this process. Idempotent."""
    PermissionCatalog.remove_permission = _remove_granted  # type: ignore[method-assign,assignment]


def _remove_granted(catalog: PermissionCatalog, revoked: Permission) -> None:
    held = {
        permission
        for each in catalog.permissions
        if revoked.equal_principal_and_resouce(each)
        for permission in each.permissions
    }
    if not held & {*revoked.permissions}:
        raise InvalidInput("No permissions revoked. Grantee has no permissions on the resource.")
    _remove(catalog, revoked)
