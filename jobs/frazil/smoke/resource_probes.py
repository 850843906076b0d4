"""Probes of resources that no run writes: the reconciler, schedules, alarms and their topic, tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from frazil.clients.deployed_resources import Metric
from frazil.rollout.desired import Mode
from frazil.smoke.deployed_job import IngestJob, Services
from frazil.smoke.probe import Answer

RECENT = timedelta(hours=1)
"""The function is called every five minutes, so it was called within this time."""
PERIOD = timedelta(minutes=5)
"""The period of a metric, as it is asked for."""
SETTLING = timedelta(hours=3)
"""The time that an alarm may lack data after it was created."""
LOOKS, LOOK_SECONDS = 10, 3.0
"""The number of looks for the action of a raised alarm, and the seconds between two."""
_ENABLED, _ACTIVE = "ENABLED", "Active"
_REASON = "frazil deploy smoke: a test of the topic. Nothing is wrong"


def reconciler(job: IngestJob) -> Answer:
    """Return whether the deployed function was called and did not fail, and whether its log becomes a metric."""
    services = job.services
    name = services.names.role(f"reconcile-{job.job}")
    function = services.resources.function(name)
    if function is None:
        return Answer.failed(f"the function {name} does not exist", "Deploy again")
    if function.state != _ACTIVE:
        what = f"the function {name} is {function.state}"
        return Answer.failed(what, "Deploy again; look at the function's own message")
    if services.names.is_local:
        return Answer.not_here(f"{name} exists; the local cloud counts no calls")
    # A metric's value is of five minutes. Calls of the function before its last change show nothing of this one.
    within = min(RECENT, services.now - function.changed_at - PERIOD)
    if within <= timedelta():
        return Answer.not_yet(f"{name} has just changed", "Its schedule calls it every five minutes")
    asked = [
        *(
            Metric(namespace="AWS/Lambda", name=metric, dimensions={"FunctionName": name}, statistic="Sum")
            for metric in ("Invocations", "Errors")
        ),
        Metric(
            namespace=job.environment.metrics_namespace,
            name="rolled_back",
            dimensions={"job": job.job},
            statistic="SampleCount",
        ),
    ]
    calls, errors, lines = services.resources.sums(asked, now=services.now, within=within)
    if errors:
        log = f"{services.names.log_groups}reconcile-{job.job}"
        return Answer.failed(f"{errors:.0f} of {calls:.0f} calls failed", f"Read the log group {log}")
    is_due = within == RECENT
    if not calls:
        what, do = "no call in the last hour", "Its schedule calls it every five minutes: look at the probe schedules"
        return Answer.failed(what, do) if is_due else Answer.not_yet("no call since it changed", do)
    if not lines:
        what, do = f"{calls:.0f} calls, and no metric of its log", "CloudWatch needs some minutes"
        return (
            Answer.failed(what, "Its alarms have no data: look into its log group")
            if is_due
            else Answer.not_yet(what, do)
        )
    return Answer.shown(f"{calls:.0f} calls, no error, metrics of its log")


def schedules(job: IngestJob) -> Answer:
    """Return whether the rule for events and the schedules are enabled."""
    resources, names = job.services.resources, job.services.names
    function = names.role(f"reconcile-{job.job}")
    wanted = [function, names.role(job.maintenance.job)]
    if job.desired.mode is Mode.DRAIN:
        wanted.append(names.role(job.job))
    states = {f"schedule {name}": resources.schedule_state(names.schedule_group, name) for name in wanted}
    states[f"rule {function}"] = resources.rule_state(function)
    wrong = [
        f"{name} {f'is {state}' if state else 'does not exist'}" for name, state in states.items() if state != _ENABLED
    ]
    if wrong:
        return Answer.failed("; ".join(wrong), "Deploy again")
    return Answer.shown(f"{len(wanted)} schedules and a rule are enabled")


def alarms(services: Services) -> Answer:
    """Return whether alarms exist and have data. Those that are raised are named."""
    prefix = f"{services.names.prefix}-"
    found = services.resources.alarms(prefix)
    if not found:
        return Answer.failed(f"no alarm begins with {prefix}", "Deploy again")
    if services.names.is_local:
        return Answer.not_here(f"{len(found)} alarms exist, and nothing evaluates them")
    empty = [each for each in found if each.state == "INSUFFICIENT_DATA"]
    late = [each.name for each in empty if services.now - each.since > SETTLING]
    if late:
        do = "Compare its metric with those of the namespace: the probe metrics says whether logs become metrics"
        return Answer.failed(f"no data for {', '.join(late[:5])}", do)
    if empty:
        return Answer.not_yet(f"no data yet for {empty[0].name} and {len(empty) - 1} more")
    raised = [each.name for each in found if each.state == "ALARM"]
    return Answer.shown(f"{len(found)} alarms have data" + (f"; raised: {', '.join(raised)}" if raised else ""))


def alarm_topic(services: Services, *, is_published: bool) -> Answer:
    """Return whether the topic is ready, and whether CloudWatch could publish to it. With `is_published`, raise an alarm first."""
    arn = services.names.alarm_topic
    found = services.resources.topic(arn)
    if found is None:
        return Answer.failed(f"{arn} does not exist", "Deploy the foundation stack")
    if not found.get("KmsMasterKeyId"):
        return Answer.failed(f"{arn} has no key", "Deploy the foundation stack again")
    if services.names.is_local:
        return Answer.not_here("the topic exists, and alarms publish nothing")
    if int(found.get("SubscriptionsPending", "0")):
        what = f"{found['SubscriptionsPending']} addresses are not confirmed"
        return Answer.not_yet(what, "Open the link in their mail", is_awaited=False)
    confirmed, wanted = int(found.get("SubscriptionsConfirmed", "0")), services.names.alarm_addresses
    if confirmed < wanted:
        do = "An address was unsubscribed: deploy the foundation stack again, and open the link in the mail"
        return Answer.failed(f"{confirmed} of {wanted} addresses are subscribed", do)
    alarm = services.names.role("not-started")
    if is_published:
        services.resources.raise_alarm(alarm, _REASON)
    for _ in range(LOOKS if is_published else 1):
        action = services.resources.newest_action(alarm)
        if action is not None and (not is_published or action.at >= services.now):
            do = "Compare the key's policy with docs/policies.md: CloudWatch may use it for the topic"
            if not action.is_done:
                return Answer.failed(action.summary, do)
            is_sent = f"{action.summary}, and no address is declared (monitoring.emails)"
            return Answer.shown(action.summary) if wanted else Answer.not_here(is_sent)
        if is_published:
            services.wait(LOOK_SECONDS)
    if is_published:
        return Answer.failed(f"CloudWatch has done no action of {alarm}", "Look at the alarm's history in CloudWatch")
    what, do = "no alarm has published anything so far", "frazil deploy smoke --publish raises one for a test"
    return Answer.not_yet(what, do, is_awaited=False)


def tables(services: Services, jobs: Sequence[IngestJob]) -> Answer:
    """Return whether the reader role can read the metadata of each table that holds records."""
    role = services.names.reader_role
    if role is None:
        return Answer.not_here("no reader role is declared (access.readers)")
    reader = services.resources.as_role(role)
    if reader is None:
        return Answer.not_here(f"these credentials may not assume {role}")
    landed = [tables for job in jobs for tables in job.landed_tables]
    if not landed:
        return Answer.not_yet("no pipeline has landed yet")
    missing = [
        tables[0].identifier
        for tables in landed
        if all(reader.table_metadata(table.namespace, table.name) is None for table in tables)
    ]
    if missing:
        what = f"Glue has no table {', '.join(missing[:5])}"
        return Answer.failed(what, "Read frazil jobs logs: was the table dropped?")
    return Answer.shown(f"{len(landed)} tables, as {role.rpartition('/')[2]}")
