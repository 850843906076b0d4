"""Rules about tables: one maintenance process each, and no lifecycle of their files."""

from __future__ import annotations

from collections.abc import Iterator

from policies.resource_values import Facts
from policies.resources import Finding, Json, Reviewed, blocks


def optimizer_on_tables(reviewed: Reviewed, facts: Facts) -> Iterator[Finding]:
    """Report Glue's optimizers, which expire snapshots and delete files: they delete Frazil's ledger and staged batches, and
    Tableflow's docs forbid them
    (https://docs.confluent.io/cloud/current/topics/tableflow/how-to-guides/catalog-integration/integrate-with-aws-glue-catalog.html).
    """
    for each in reviewed.of("aws_glue_catalog_table_optimizer"):
        database = _resolved(reviewed, each.text("database_name"))
        identifier = f"{database}.{_resolved(reviewed, each.text('table_name'))}"
        if identifier in facts.tables or database in facts.open_namespaces:
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
            expires = any(block.get("days") or block.get("date") for block in blocks(rule.get("expiration")))
            if rule.get("status", "Enabled") != "Enabled" or not (expires or blocks(rule.get("transition"))):
                continue
            prefix = _prefix(rule)
            if any(place.bucket == bucket and place.overlaps(prefix) for place in places):
                what = f"rule {rule.get('id', '')} acts on objects under {prefix or 'all prefixes'}, where tables are"
                do = "Limit it to non-current versions and unfinished uploads, or to another prefix"
                yield Finding("lifecycle_under_tables", each.address, what, do)


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
