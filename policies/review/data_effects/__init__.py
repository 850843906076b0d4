"""The effects of planned changes on data: columns, runs, and what is lost."""
