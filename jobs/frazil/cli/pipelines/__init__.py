"""Commands about pipelines and their tables."""
