"""The bench: what landing a topic costs, beside what others would pay for it, in one run. See docs/benchmarks.md."""
