"""Plans in Terraform's own shapes, as small as a test needs them, and reviews of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from frazil.declaration import Pipeline, Table, Topic, canonical
from frazil.declaration.documents.document import document
from policies.review.plan.plan_gaps import StackPlan
from policies.review.prices import price_table
from policies.review.review import Review, review
from tests.policies.reviewing import TODAY

FLIGHTS = Pipeline(
    topic=Topic("flights", value="avro"),
    table=Table("nyc.flights", partition_by=("months(time_hour)",), sort_by=("time_hour",)),
)
PLANES = Pipeline(topic=Topic("planes", value="protobuf"), table=Table("nyc.planes"))

_ACTIONS = {
    "replace": ["delete", "create"],
    "stay": ["no-op"],
}


def change(
    address: str,
    verb: str,
    before: Any = None,
    after: Any = None,
    *,
    unknown: Mapping[str, Any] | None = None,
    forced: Sequence[Sequence[str | int]] = (),
    secret: Mapping[str, Any] | None = None,
    importing: str = "",
    **more: Any,
) -> dict[str, Any]:
    """One change, as `terraform show -json` tells it; `secret` marks what is sensitive on either side."""
    told: dict[str, Any] = {
        "actions": _ACTIONS.get(verb, [verb]),
        "before": before,
        "after": after,
        "after_unknown": dict(unknown or {}),
        "before_sensitive": dict(secret or {}) if before is not None else False,
        "after_sensitive": dict(secret or {}) if after is not None else False,
    }
    if forced:
        told["replace_paths"] = [list(path) for path in forced]
    if importing:
        told["importing"] = {"id": importing}
    kind = address.partition(".")[0]
    return {
        "address": address,
        "mode": "managed",
        "type": kind,
        "name": address.partition(".")[2],
        "change": told,
        **more,
    }


def stays(address: str, values: Any) -> dict[str, Any]:
    """A resource that does not change: a plan holds those, too."""
    return change(address, "stay", values, values)


def plan(*changes: Mapping[str, Any], outputs: Mapping[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """A plan. What stands after it is what the changes make; `outputs` are names and what happens to them."""
    after = [
        {
            "address": each["address"],
            "mode": "managed",
            "type": each["type"],
            "values": each["change"]["after"],
            "sensitive_values": each["change"]["after_sensitive"] or {},
        }
        for each in changes
        if each["change"]["after"] is not None
    ]
    return {
        "format_version": "1.2",
        "complete": True,
        "errored": False,
        "resource_changes": list(changes),
        "output_changes": {
            name: {"actions": [what], "before": None, "after": None} for name, what in (outputs or {}).items()
        },
        "planned_values": {"root_module": {"resources": after}},
        **more,
    }


def declared(*pipelines: Pipeline, name: str = "a") -> dict[str, Any]:
    """The object that holds the pipelines' document. Its key has one letter, where a digest would change with each new field."""
    text = canonical(document(pipelines)).decode()
    return {"bucket": "frazil-dev-artifacts", "key": f"documents/{name * 8}.json", "content": text}


def documents(before: Sequence[Pipeline] | None, after: Sequence[Pipeline]) -> dict[str, Any]:
    """The change of the pipelines' document; None is before the first deployment."""
    if before is None:
        return change("aws_s3_object.pipelines", "create", None, declared(*after))
    if list(before) == list(after):
        return stays("aws_s3_object.pipelines", declared(*after))
    old, new = declared(*before), declared(*after, name="b")
    return change("aws_s3_object.pipelines", "replace", old, new, forced=[["key"]])


def reviewed(
    *plans: Mapping[str, Any], name: str = "ingestion", synthesised: Mapping[str, Any] | None = None, **more: Any
) -> Review:
    """The review of plans, of the environment dev, through their JSON; `synthesised` is the stack of all."""
    names = [name, "confluent", "foundation"] if len(plans) > 1 else [name]
    stacks = [
        StackPlan(name=f"dev-{stack}", synthesised=synthesised, plan=json.loads(json.dumps(each)))
        for stack, each in zip(names, plans, strict=False)
    ]
    return review("dev", stacks, **{"prices": price_table(), "today": TODAY, "region": "eu-central-1", **more})
