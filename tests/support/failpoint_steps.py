"""The steps at which a driver can die or wait (`frazil.job.failpoints`)."""

from __future__ import annotations

STEPS = (
    "begin.resolved",
    "plan.done",
    "evolve.filled",
    "evolve.committed",
    "stage.started",
    "stage.written",
    "stage.rejected",
    "stage.done",
    "decide.written",
    "publish.decided",
    "publish.filled",
    "publish.committed",
    "decide.decided",
    "finish.started",
    "finish.finished",
)
"""Every step of a batch that code marks, in its order."""
ACCEPT_STEPS = (
    "accept.decided",
    "decide.written",
    "publish.decided",
    "publish.filled",
    "publish.committed",
    "decide.decided",
    "finish.started",
    "finish.removed",
    "finish.finished",
)
"""The same of an operator's decision. A driver that finishes one passes those from `finish.started` on."""
UPKEEP_STEPS = (
    "lease.filled",
    "compact.rewritten",
    "compact.committed",
    "carry.decided",
    "publish.decided",
    "publish.filled",
    "publish.committed",
    "expire.decided",
    "orphans.listed",
    "orphans.decided",
)
"""The same of a maintenance run; carrying a tag forward publishes."""
STATE_STEPS = ("publish.searched",)
"""Further steps of a batch that replaces rows."""
STATE_UPKEEP_STEPS = ("merge.written", "merge.filled")
"""Further steps of the upkeep of such a table."""

REPLAY_STEPS = ("replay.judged", "replay.staged")
"""The steps of a replay of dead letters, next to those of a commit."""
