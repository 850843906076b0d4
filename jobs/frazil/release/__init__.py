"""Releases: what a job run needs, built once, named by its content. No Spark."""
