"""The dangers of changes that interrupt jobs: access that is replaced, a changed application, a changed network."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from policies.review.danger import Danger
from policies.review.plan.resource_changes import Planned, Verb

_ACCESS = {
    # type: the arguments that say who may do what
    "confluent_role_binding": ("principal", "role_name", "crn_pattern"),
    "confluent_kafka_acl": ("principal", "operation", "resource_type", "resource_name"),
    "aws_iam_role_policy_attachment": ("role", "policy_arn"),
}
_OPENS_NOTHING = re.compile(r"/(?:subject|topic)=frazil-waited-[0-9a-f]+")
"""The binding that the provider waits for (`stacks/stacks/reading_rights.py`): no object has its name."""
_NETWORK = {
    *("aws_vpc", "aws_subnet", "aws_route", "aws_route_table", "aws_route_table_association", "aws_internet_gateway"),
    *("aws_nat_gateway", "aws_eip", "aws_vpc_endpoint", "aws_security_group"),
    *("aws_vpc_security_group_egress_rule", "aws_vpc_security_group_ingress_rule"),
}
_APPLICATION = (
    "release_label",
    "architecture",
    "maximum_capacity",
    "initial_capacity",
    "network_configuration",
    "name",
)
_MOVE = "Declare another application and keep this one in emr.former, then run frazil deploy move-application"
_LEAVE = (
    "Run frazil deploy move-application before you remove it from emr.former: AWS deletes stopped applications only"
)
_CUTS = {Verb.DELETE, Verb.REPLACE, Verb.UPDATE}


def interruptions(changes: Sequence[Planned]) -> Iterator[Danger]:
    """Yield the dangers of a deployment that interrupts jobs which run. Nothing runs before the first deployment."""
    yield from _access(changes)
    yield from _applications(changes)
    yield from _networks(changes)


def _access(changes: Sequence[Planned]) -> Iterator[Danger]:
    """Yield access that is deleted and created again: until the new one takes effect, jobs and readers get refusals."""
    created = {_identity(each, each.after) for each in changes if each.verb is Verb.CREATE and each.type in _ACCESS}
    again = [
        each
        for each in changes
        if each.type in _ACCESS
        and not _OPENS_NOTHING.search(str((each.before or {}).get("crn_pattern", "")))
        and (each.verb is Verb.REPLACE or (each.verb is Verb.DELETE and _identity(each, each.before) in created))
    ]
    for stack in dict.fromkeys(each.stack for each in again):
        found = [each for each in again if each.stack == stack]
        yield Danger(
            rule="access_interrupted",
            where=found[0].address,
            what=f"{_count(len(found), 'permission is', 'permissions are')} deleted and created again, so jobs may be refused "
            "for minutes in between",
            do="Keep the address and the arguments, or add a moved block; otherwise stop the pipelines first",
            stack=stack,
            touches=tuple(_named(each) for each in found),
        )


def _identity(change: Planned, values: object) -> tuple[str, ...]:
    known = values if isinstance(values, dict) else {}
    return (change.type, *(str(known.get(name)) for name in _ACCESS[change.type]))


def _named(change: Planned) -> str:
    values = change.before or change.after
    return " ".join(str(values[name]) for name in _ACCESS[change.type] if values.get(name)) or change.address


def _applications(changes: Sequence[Planned]) -> Iterator[Danger]:
    """Yield changed applications: EMR Serverless changes a stopped application only, and a replaced one cancels its runs."""
    for each in changes:
        if each.type != "aws_emrserverless_application" or each.verb not in _CUTS:
            continue
        paths = [difference.path.partition(".")[0].partition("[")[0] for difference in each.differences()]
        named = [name for name in _APPLICATION if name in paths] or sorted(set(paths))
        what = {
            Verb.DELETE: "the application is deleted, with its runs",
            Verb.REPLACE: f"the application is replaced ({', '.join(each.forced_by)}), and its runs end",
            Verb.UPDATE: f"{', '.join(named) or 'the application'} changes, which EMR Serverless refuses while it is started",
        }[each.verb]
        yield Danger(
            rule="application_change",
            where=each.address,
            what=what,
            do=_LEAVE if each.verb is Verb.DELETE else _MOVE,
            stack=each.stack,
        )


def _networks(changes: Sequence[Planned]) -> Iterator[Danger]:
    """Yield changes of an existing network: runs lose their connections, or their way to Kafka and the registry."""
    found = [each for each in changes if each.type in _NETWORK and each.verb in _CUTS]
    for stack in dict.fromkeys(each.stack for each in found):
        mine = [each for each in found if each.stack == stack]
        yield Danger(
            rule="network_change",
            where=mine[0].address,
            what=f"{_count(len(mine), 'part', 'parts')} of the network of running jobs "
            f"{'changes' if len(mine) == 1 else 'change'}: {_verbs(mine)}",
            do="Deploy it while no run is active, and check the way to Kafka and the registry",
            stack=stack,
            touches=tuple(each.address for each in mine),
        )


def _verbs(changes: Sequence[Planned]) -> str:
    counts = {verb: sum(each.verb is verb for each in changes) for verb in (Verb.REPLACE, Verb.DELETE, Verb.UPDATE)}
    return ", ".join(f"{verb} {count}" for verb, count in counts.items() if count)


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"
