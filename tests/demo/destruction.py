"""The end of the demonstration: the environment is destroyed with both keys, and with no less."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.demo.accounting import pipelines
from tests.demo.clouds import Clouds
from tests.demo.commands import Commands
from tests.demo.project import DEV, RETIRED
from tests.demo.summary import Account

STACKS = ("dev-foundation", "dev-confluent", "dev-ingestion")
CDKTF = ("npx", "--no-install", "cdktf")
OPTIONS = ("--auto-approve", "--skip-provider-lock", "--no-color")


@dataclass(frozen=True, kw_only=True)
class Destruction:
    """What a user types to destroy. `accounted` are the accounts of the topics."""

    commands: Commands
    clouds: Clouds
    accounted: Mapping[str, Account]

    def run(self) -> None:
        """Destroy everything but what `frazil bootstrap` made. Raises `StepFailed`."""
        steps = self.commands.steps
        chosen = {"FRAZIL_ENVIRONMENTS": DEV.name, "FRAZIL_RELEASE": self.commands.manifest("second")}
        steps.run("stop", "frazil", "stop", *pipelines(steps))
        destroy = (*CDKTF, "destroy", *STACKS, *OPTIONS)
        steps.run("destroy with one key", *destroy, expect=(1,), more=chosen)
        self._refused()
        both = {**chosen, "FRAZIL_DESTROY_DATA": DEV.name}
        steps.run("turn the second key", *CDKTF, "deploy", *STACKS[:2], *OPTIONS, more=both)  # ingestion holds no data
        with steps.watch("delete the retired topic by hand"):
            is_there = RETIRED in self.clouds.topics()
            steps.require(is_there, "delete the retired topic by hand", "Terraform has deleted it")
            self.clouds.delete_by_hand(RETIRED)
        steps.run("destroy with both keys", *destroy, more=both)
        summary = self.commands.summary
        summary.left = self.clouds.left()
        steps.require(not summary.left, "destroy with both keys", f"it has left {summary.left}")

    def _refused(self) -> None:
        """Require that Terraform refuses for the data, and that all rows are still there."""
        steps, plan = self.commands.steps, ("plan", "-destroy", "-input=false", "-no-color")
        # What Terraform says, the CDK's program does not always print to its end: it is asked once more, by itself.
        refused = steps.run(
            "why it is refused", "terraform", f"-chdir=cdktf.out/stacks/{STACKS[0]}", *plan, expect=(1,)
        )
        is_said = "Instance cannot be destroyed" in refused.stdout + refused.stderr
        held = sum(self.clouds.landed(each).count for each in pipelines(steps).values())
        landed = sum(account.landed for topic, account in self.accounted.items() if topic != RETIRED)
        is_refused = is_said and held == landed > 0
        steps.require(is_refused, "destroy with one key", "it was not refused for data")
        self.commands.summary.is_destroying_refused = is_refused
