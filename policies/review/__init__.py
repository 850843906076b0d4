"""The review of a deployment before it is applied: Terraform's changes, effects on data, new permissions, cost.

This package is pure: it computes a `Review` from plans, stacks and documents as parsed JSON. `stacks.workflow.review` creates the
plans. `masking.cleaned` is the first step, because a plan's JSON holds secrets in plain text.
"""
