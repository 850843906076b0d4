"""The history of a table of current state: what each of its commits changed, as rows of a table beside it."""
