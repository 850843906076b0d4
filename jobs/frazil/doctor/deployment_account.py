"""Checks of the AWS account that a deployment is declared for: what it must have before and after the first deployment."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from frazil.clients.aws_account import Account
from frazil.clients.given_objects import GivenObjects
from frazil.doctor.check_result import Check
from frazil.doctor.given_objects_check import names as given_names
from frazil.doctor.given_objects_check import refuse_wrong
from frazil.doctor.schedule import Step
from frazil.exit_codes import Exit

ACCOUNT = "account"
KEYS, KEY_DAYS = "keys of jobs", 90
"""The check of the keys that jobs read Kafka and the registry with, and the age from which it warns."""
GIVEN = "given objects"
"""The check of existing objects that the deployment uses."""
ZONES = 2
"""Availability zones that the network of a deployment uses."""


def steps(
    declared: Mapping[str, Any],
    account: Account,
    given: GivenObjects,
    name: str,
    now: Callable[[], float] = time.time,
) -> list[Step]:
    """Return the checks of a declared deployment (`stacks/describe.py`). All of them only read."""
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
            return Check.warning(
                "state bucket", f"{bucket} has other settings than frazil deploy bootstrap gives it", prepare
            )
        return Check.ok("state bucket", bucket)

    def boundary() -> Check:
        if account.has_policy(declared["boundary"]):
            return Check.ok("boundary", declared["boundary"].rpartition("/")[2])
        do = "Correct existing.boundary, or create it" if declared["has_given_boundary"] else prepare
        return Check.failed("boundary", "it does not exist, so no role can be created", do)

    def given_objects() -> Check:
        refuse_wrong(declared, given)
        return Check.ok(GIVEN, ", ".join(given_names(declared)) or "none")

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
        do = "Declare lake_formation=True, or choose `Use only IAM access control` for new databases in its settings"
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
