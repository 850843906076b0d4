"""Review of a deployment before it happens: what Terraform will change, what becomes of data, who may do more, what it costs.

Everything here is pure: plans, stacks and documents come in as parsed JSON, a `Review` comes out. `stacks.review` makes the
plans; `secrets.cleaned` comes first of all, for a plan's JSON holds secrets in plain text.
"""
