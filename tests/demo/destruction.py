"""The end of the demonstration: the environment is destroyed with both keys, and with no less."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.demo.accounting import pipelines
from tests.demo.clouds import Clouds
from tests.demo.commands import Commands
from tests.demo.project import DEV, RETIRED
from tests.demo.summary import Account

LAST = "dev-ingestion"
STACKS = ("dev-foundation", "dev-confluent", LAST)
REFUSAL = "Instance cannot be destroyed"
"""What Terraform says of what `prevent_destroy` protects."""


@dataclass(frozen=True, kw_only=True)
class Destruction:
    """What a user types to destroy. `accounted` are the accounts of the topics."""

    commands: Commands
    clouds: Clouds
    accounted: Mapping[str, Account]

    def run(self) -> None:
        """Destroy everything but what `frazil deploy bootstrap` made. Raises `StepFailed`."""
        steps = self.commands.steps
        steps.run("stop", "frazil", "jobs", "stop", *pipelines(steps))
        cdktf, both = self.commands.cdktf, {"FRAZIL_DESTROY_DATA": DEV.name}
        self._refused(cdktf("destroy with one key", "second", "destroy", *STACKS, expect=(1,)))
        cdktf("turn the second key", "second", "deploy", *STACKS[:2], more=both)  # ingestion holds no data
        with steps.watch("delete the retired topic by hand"):
            is_there = RETIRED in self.clouds.topics()
            steps.require(is_there, "delete the retired topic by hand", "Terraform has deleted it")
            self.clouds.delete_by_hand(RETIRED)
        cdktf("destroy with both keys", "second", "destroy", *STACKS, more=both)
        summary = self.commands.summary
        summary.left = self.clouds.left()
        steps.require(not summary.left, "destroy with both keys", f"it has left {summary.left}")

    def _refused(self, destroyed: str) -> None:
        """Require that Terraform refused for the data, and that all rows are still there."""
        steps, plan = self.commands.steps, ("plan", "-destroy", "-input=false", "-no-color")
        is_said = REFUSAL in destroyed
        if not is_said:  # the CDK's program does not always print to its end what Terraform says: it is asked once more
            said = steps.run(
                "why it is refused", "terraform", f"-chdir=cdktf.out/stacks/{STACKS[0]}", *plan, expect=(1,)
            )
            is_said = REFUSAL in said.stdout + said.stderr
        held = sum(self.clouds.landed(each).count for each in pipelines(steps).values())
        landed = sum(account.landed for topic, account in self.accounted.items() if topic != RETIRED)
        is_refused = is_said and held == landed > 0
        steps.require(is_refused, "destroy with one key", "it was not refused for data")
        self.commands.summary.is_destroying_refused = is_refused
