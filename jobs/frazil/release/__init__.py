"""Releases: the files that a job run needs, built once, named by their content. Imports no Spark."""
