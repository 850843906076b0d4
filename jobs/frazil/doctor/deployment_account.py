"""Checks of the AWS account that a deployment is declared for, and of the existing objects that it is given."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from frazil.clients.aws_account import Account, GivenObjects, account_clients
from frazil.declaration import InvalidDeclaration, Problem
from frazil.doctor.check_result import Check, Step
from frazil.exit_codes import Exit

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
    """Return the names of the given objects, of a description by `stacks/workflow/describe.py`."""
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
    subnets = found.vpcs_of_subnets(network["subnets"])
    for each in network["subnets"]:
        if each not in subnets:
            yield Problem("network.subnet_ids", f"the subnet {each} does not exist in this region", _USE)
    vpcs = sorted({*subnets.values()})
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


ACCOUNT = "account"
KEYS, KEY_DAYS = "keys of jobs", 90
"""The check of the keys that jobs read Kafka and the registry with, and the age from which it warns."""
GIVEN = "given objects"
"""The check of existing objects that the deployment uses."""
ZONES = 2
"""Availability zones that the network of a deployment uses."""


def steps(
    declared: Mapping[str, Any], account: Account, given: GivenObjects, name: str, now: Callable[[], float] = time.time
) -> list[Step]:
    """Return the checks of a declared deployment (`stacks/workflow/describe.py`). All of them only read."""
    prepare = f"Run frazil deploy bootstrap {name} as the account's owner"

    def number() -> Check:
        found, wanted = account.number(), declared["account"]
        if found == wanted:
            return Check.ok(ACCOUNT, f"{found}, {declared['region']}")
        what = f"the credentials are of {found}, the deployment is in {wanted}"
        return Check.failed(ACCOUNT, what, "Log in to that account", exit=Exit.INVALID_INPUT)

    def states() -> Check:
        bucket, key = declared["state_bucket"], account.key(declared["state_key"])
        if not account.has_bucket(bucket):
            return Check.failed("state bucket", f"{bucket} does not exist", prepare)
        if key is None or not account.is_protected(bucket, key, declared["state_bucket_policy"]):
            what = "state bucket"
            return Check.warning(what, f"{bucket} has other settings than frazil deploy bootstrap gives it", prepare)
        return Check.ok("state bucket", bucket)

    def boundary() -> Check:
        if account.has_policy(declared["boundary"]):
            return Check.ok("boundary", declared["boundary"].rpartition("/")[2])
        do = "Correct existing.boundary, or create it" if declared["has_given_boundary"] else prepare
        return Check.failed("boundary", "it does not exist, so no role can be created", do)

    def given_objects() -> Check:
        refuse_wrong(declared, given)
        return Check.ok(GIVEN, ", ".join(names(declared)) or "none")

    def service_role() -> Check:
        if account.has_service_role():
            return Check.ok("service role", "EMR Serverless has its role")
        return Check.failed("service role", "EMR Serverless has no role in this account", prepare)

    def quota() -> Check:
        cores, wanted = account.cores(), declared["cores"]
        if cores is None:
            what = f"not known, and the deployment declares {wanted} vCPU; new accounts have 16"
            return Check.warning("quota", what, "Look at EMR Serverless in Service Quotas")
        if cores < wanted:
            what = f"{cores:g} vCPU, and the deployment declares {wanted}"
            return Check.failed("quota", what, "Request an increase in Service Quotas", exit=Exit.FAILED)
        return Check.ok("quota", f"{cores:g} vCPU, and the deployment declares {wanted}")

    def lake_formation() -> Check:
        if account.lake_formation_is_off():
            return Check.ok("Lake Formation", "IAM alone controls new databases")
        if declared["lake_formation"]:
            return Check.ok("Lake Formation", "it controls new databases, and the deployment grants access")
        what = "it controls new databases, so roles of jobs have no access to tables"
        do = "Declare access.lake_formation, or choose `Use only IAM access control` for new databases in its settings"
        return Check.warning("Lake Formation", what, do)

    def zones() -> Check:
        found = account.zones()
        if found >= ZONES:
            return Check.ok("zones", f"{found} in {declared['region']}")
        what = f"{declared['region']} has {found}, and the network needs {ZONES}"
        return Check.failed("zones", what, "Choose another region", exit=Exit.INVALID_INPUT)

    def reader_keys() -> Check:
        stored = account.stored_at(declared["reader_secret"])
        if stored is None:
            return Check.ok(KEYS, "not stored yet")
        days = (datetime.fromtimestamp(now(), UTC) - stored).days
        if days <= KEY_DAYS:
            return Check.ok(KEYS, f"{days} days old")
        do = (
            f"Run frazil deploy rotate-keys {name}"
            if declared["has_own_keys"]
            else "Replace the keys in the given secret"
        )
        return Check.warning(KEYS, f"{days} days old, more than {KEY_DAYS}", do)

    named = {
        "state bucket": states,
        "boundary": boundary,
        GIVEN: given_objects,
        "service role": service_role,
        "quota": quota,
        "Lake Formation": lake_formation,
        "zones": zones,
        KEYS: reader_keys,
    }
    return [
        Step(name=ACCOUNT, work=number),
        *(Step(name=each, work=work, after=(ACCOUNT,)) for each, work in named.items()),
    ]
