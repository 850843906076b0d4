"""Commands about deployments: plan, apply, probe."""
