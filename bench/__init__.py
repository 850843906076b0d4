"""The bench, which compares the cost of landing a topic between Frazil and other ways. See docs/benchmarks.md."""
