"""What a resource of Lake Formation grants: permissions, a place, and the role that gets them."""

from __future__ import annotations

from collections.abc import Iterator

from policies.resources import Json, blocks

TYPE = "aws_lakeformation_permissions"
_PLACES = ("catalog_resource", "data_location", "database", "lf_tag", "lf_tag_policy", "table", "table_with_columns")


def grants(values: Json) -> set[tuple[str, str]]:
    """Return each permission with its place and principal, as text; none of a resource that does not exist."""
    where = f"{' and '.join(_places(values))} to {values.get('principal')}"
    passed_on = [f"{each} with the right to pass it on" for each in values.get("permissions_with_grant_option") or ()]
    return {(str(each), where) for each in (*(values.get("permissions") or ()), *passed_on)}


def role_of(values: Json) -> str:
    """Return the name of the role that gets the permissions."""
    return str(values.get("principal") or "").rpartition("/")[2]


def database_of(values: Json) -> str:
    """Return the database that the permissions are on, or whose tables; empty if they are on something else."""
    found = [str(block.get("name") or "") for block in blocks(values.get("database"))]
    found += [str(block.get("database_name") or "") for block in blocks(values.get("table"))]
    return found[0] if len(found) == 1 else ""


def _places(values: Json) -> Iterator[str]:
    for kind in _PLACES:
        for block in blocks(values.get(kind)):
            settings = [f"{name} {value}" for name, value in sorted(block.items()) if value]
            yield f"{kind} ({', '.join(settings)})"
        if values.get(kind) is True:
            yield kind
