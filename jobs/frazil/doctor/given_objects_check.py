"""The check of existing objects that a deployment is given, before Terraform creates anything beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from frazil.clients.aws_account import account_clients
from frazil.clients.given_objects import GivenObjects
from frazil.declaration import InvalidDeclaration, Problem

_USE = "Give another one, or correct its name (docs/existing-account.md)"


def refuse_wrong(declared: Mapping[str, Any], found: GivenObjects) -> None:
    """Raise `InvalidDeclaration` with everything that is wrong with the given objects of a declared deployment."""
    if problems := list(_problems(declared, found)):
        raise InvalidDeclaration(problems)


def refuse_wrong_in_account(declared: Mapping[str, Any]) -> None:
    """Do the same with the credentials of the shell. It asks nothing if nothing is given."""
    if names(declared):
        refuse_wrong(declared, GivenObjects(account_clients(declared["region"])))


def names(declared: Mapping[str, Any]) -> list[str]:
    """Return the names of the given objects, of a description by `stacks/describe.py`."""
    given = declared["given"]
    ids = [each for network in given["networks"] for each in (*network["subnets"], *network["groups"])]
    return [*filter(None, [given["key"]]), *given["buckets"].values(), *given["databases"], *ids]


def _problems(declared: Mapping[str, Any], found: GivenObjects) -> Iterator[Problem]:
    given, region = declared["given"], declared["region"]
    for what, bucket in given["buckets"].items():
        place, path = found.bucket_region(bucket), f"existing.buckets.{what}"
        if place is None:
            yield Problem(path, f"the bucket {bucket} does not exist", _USE)
        elif place != region:
            yield Problem(path, f"the bucket {bucket} is in {place}, the deployment is in {region}", _USE)
    if given["key"] is not None:
        yield from _key_problems(found.key(given["key"]), given["key"])
    for index, (database, wanted) in enumerate(given["databases"].items()):
        location, path = found.database_location(database), f"existing.databases[{index}]"
        if location is None:
            yield Problem(path, f"the Glue database {database} does not exist", _USE)
        elif location.rstrip("/") not in ("", wanted):
            do = f"Remove its location, or give a database at {wanted}"
            yield Problem(path, f"the Glue database {database} is at {location}, which no role may access", do)
    for network in given["networks"]:
        yield from _network_problems(network, found)


def _key_problems(key: Mapping[str, Any] | None, arn: str) -> Iterator[Problem]:
    path = "existing.key_arn"
    if key is None:
        yield Problem(path, f"the key {arn} does not exist", _USE)
    elif key["KeyState"] != "Enabled":
        yield Problem(path, f"the key {arn} is {key['KeyState']}", "Enable it, or give another one")
    elif (key.get("KeyUsage"), key.get("KeySpec")) != ("ENCRYPT_DECRYPT", "SYMMETRIC_DEFAULT"):
        what = f"the key {arn} is for {key.get('KeyUsage')} with {key.get('KeySpec')}"
        yield Problem(path, what, "Give a symmetric key for encryption")


def _network_problems(network: Mapping[str, Any], found: GivenObjects) -> Iterator[Problem]:
    subnets = found.subnets(network["subnets"])
    for each in network["subnets"]:
        if each not in subnets:
            yield Problem("network.subnet_ids", f"the subnet {each} does not exist in this region", _USE)
    vpcs = sorted({each.vpc for each in subnets.values()})
    if len(vpcs) > 1:
        yield Problem("network.subnet_ids", f"they are of several VPCs: {', '.join(vpcs)}", "Give subnets of one VPC")
        return
    if network["vpc"] is not None and vpcs and network["vpc"] != vpcs[0]:
        yield Problem("network.vpc_id", f"the subnets are of {vpcs[0]}, not of {network['vpc']}", "Give this VPC")
    groups = found.vpcs_of_groups(network["groups"]) if network["groups"] else {}
    for each in network["groups"]:
        if each not in groups:
            yield Problem(
                "network.security_group_ids", f"the security group {each} does not exist in this region", _USE
            )
        elif vpcs and groups[each] != vpcs[0]:
            what = f"the security group {each} is of {groups[each]}, the subnets are of {vpcs[0]}"
            yield Problem("network.security_group_ids", what, "Give a security group of the subnets' VPC")
