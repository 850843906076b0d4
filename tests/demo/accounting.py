"""What has landed, and whether each record is accounted for, as `frazil` and other readers see it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from frazil.declaration import Pipeline
from tests.demo.clouds import Clouds
from tests.demo.producing import Producing
from tests.demo.project import PIPELINES
from tests.demo.steps import Steps
from tests.demo.summary import Account

MOST_LOOKS = 120


def pipelines(steps: Steps) -> dict[str, Pipeline]:
    """Return the project's pipelines by their names. Only its commands have the wheel, so its imports are those of a checkout."""
    text = (steps.folder / PIPELINES).read_text().replace("from frazil_deploy.", "from ")
    names: dict[str, Any] = {}
    exec(text, names)
    return {pipeline.name: pipeline for pipeline in names["pipelines"]}


@dataclass(frozen=True, kw_only=True)
class Accounting:
    """The accounts of topics, each made when no more records of it are produced."""

    steps: Steps
    clouds: Clouds
    producing: Producing

    def wait_for(self, names: Iterable[str], step: str) -> None:
        """Wait until pipelines have come to the end of their topics."""
        for name in names:
            looks = (self.lag(name) for _ in range(MOST_LOOKS))
            self.steps.require(0 in looks, step, f"{name} does not come to its topic's end")

    def lag(self, name: str) -> int | None:
        """Return how many records a pipeline has not read. It takes a second or two."""
        shown = self.steps.run("lag", "frazil", "status", name, "--json", quiet=True)
        lag: int | None = json.loads(shown.stdout)["pipelines"][0]["lag"]
        return lag

    def accounts(self, wanted: dict[str, Pipeline], step: str) -> dict[str, Account]:
        """Verify pipelines, read their tables back, and return the account of each topic. Fails if one does not add up."""
        commands = [("frazil", "verify", name, "--deep", "--json") for name in wanted]
        said = self.steps.run_at_once(step, *commands)
        found = {
            pipeline.topic.name: self._account(pipeline, json.loads(each.stdout))
            for pipeline, each in zip(wanted.values(), said, strict=True)
        }
        for topic, account in found.items():
            self.steps.require(account.adds_up, step, f"the account of {topic} does not add up: {account}")
        return found

    def _account(self, pipeline: Pipeline, verified: dict[str, Any]) -> Account:
        journal, topic = self.producing.journal, pipeline.topic.name
        landed, dead = self.clouds.landed(pipeline), self.clouds.dead_lettered(pipeline)
        return Account(
            produced=journal.count(topic),
            spoilt=len(journal.spoilt[topic]),
            landed=landed.count,
            superseded=len(journal.good[topic]) - len(journal.rows(topic)),
            dead_lettered=dead.count,
            is_same=landed.places == journal.rows(topic) and dead.places == journal.spoilt[topic],
            verified=verified["outcome"],
            read=sum(partition["read"] for partition in verified["partitions"]),
        )
