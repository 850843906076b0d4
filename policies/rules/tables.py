"""Rules about tables: one maintenance process each, and no other files in their locations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from policies.resource_values import Facts, Place
from policies.resources import Finding, Json, Resource, Reviewed, blocks

_CHECKPOINT = re.compile(r"checkpoint[A-Za-z._-]*[\"'\s:=\\]+s3a?://([^/\"'\s\\]+)/?([^\"'\s\\]*)", re.IGNORECASE)


def optimizer_on_tables(reviewed: Reviewed, facts: Facts) -> Iterator[Finding]:
    """Report Glue's optimizers, which expire snapshots and delete files: they delete Frazil's ledger and staged batches, and
    Tableflow's docs forbid them
    (https://docs.confluent.io/cloud/current/topics/tableflow/how-to-guides/catalog-integration/integrate-with-aws-glue-catalog.html).
    """
    for each in reviewed.of("aws_glue_catalog_table_optimizer"):
        database = _resolved(reviewed, each.text("database_name"))
        identifier = f"{database}.{_resolved(reviewed, each.text('table_name'))}"
        if identifier in facts.tables:
            keeper = "Frazil or Tableflow maintains"
        elif facts.is_tableflow_database(database):
            keeper = "Tableflow maintains"
        elif "${" in identifier:
            keeper = "may be one that is maintained already: its name is not known"
        else:
            continue
        what = f"a {each.text('type') or 'Glue'} optimizer works on {identifier}, which {keeper}"
        yield Finding("optimizer_on_tables", each.address, what, "Remove it; `frazil maintain` does its work")


def lifecycle_under_tables(reviewed: Reviewed, facts: Facts) -> Iterator[Finding]:
    """Report rules that expire current objects of tables: S3 deletes files by age, even if a table still uses them."""
    places = list(facts.table_places())
    for each in reviewed.of("aws_s3_bucket_lifecycle_configuration"):
        bucket = facts.bucket_name(each.text("bucket"))
        for rule in each.blocks("rule"):
            if rule.get("status", "Enabled") != "Enabled" or not _touches_current(rule):
                continue
            prefix = _prefix(rule)
            for place in _unique(places):
                if place.bucket == bucket and place.overlaps(prefix):
                    what = (
                        f"rule {rule.get('id', '')} acts on objects under {prefix or 'all prefixes'}, where tables are"
                    )
                    do = "Limit it to non-current versions and unfinished uploads, or to another prefix"
                    yield Finding("lifecycle_under_tables", each.address, what, do)
                    break


def checkpoint_under_tables(reviewed: Reviewed, facts: Facts) -> Iterator[Finding]:
    """Report other files in tables' locations: maintenance deletes a file that no snapshot names, like a checkpoint or log."""
    places = _unique(list(facts.table_places()))
    for each in reviewed.resources:
        for bucket, prefix, kind in _written(each, facts):
            if any(place.bucket == bucket and place.overlaps(f"{prefix.strip('/')}/".lstrip("/")) for place in places):
                what = f"{kind} is put under s3://{bucket}/{prefix}, where tables are"
                yield Finding("checkpoint_under_tables", each.address, what, "Put it into another bucket")


def _written(each: Resource, facts: Facts) -> Iterator[tuple[str, str, str]]:
    """Yield bucket, prefix and kind of the objects that a resource or its job writes."""
    for text in _texts(each.values):
        for bucket, prefix in _CHECKPOINT.findall(text):
            yield facts.bucket_name(bucket), prefix, "a checkpoint"
        for bucket, prefix in re.findall(r"[lL]ogUri\\?\"\s*:\s*\\?\"s3://([^/\"\\]+)/?([^\"\\]*)", text):
            yield facts.bucket_name(bucket), prefix, "a log"
    if each.type == "aws_s3_object":
        yield facts.bucket_name(each.text("bucket")), each.text("key"), "an object"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from ([f"{key}: {one}"] if isinstance(one, str) else _texts(one))


def _touches_current(rule: Json) -> bool:
    """Return whether a rule expires or moves current objects."""
    expires = any(block.get("days") or block.get("date") for block in blocks(rule.get("expiration")))
    return expires or bool(blocks(rule.get("transition")))


def _prefix(rule: Json) -> str:
    """Return the prefix of a rule. Filters by tag or size are ignored."""
    for block in blocks(rule.get("filter")):
        joined = [block, *blocks(block.get("and"))]
        found = [str(one["prefix"]) for one in joined if one.get("prefix")]
        if found:
            return found[0]
    return str(rule.get("prefix") or "")


def _resolved(reviewed: Reviewed, text: str) -> str:
    """Return a name if it is known, of a name or a reference."""
    found = reviewed.named(text)
    return found.text("name") or text if found else text


def _unique(places: list[Place]) -> list[Place]:
    return list(dict.fromkeys(places))
