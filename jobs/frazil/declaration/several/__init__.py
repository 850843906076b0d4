"""Functions of a declaration that return several pipelines: the tables of one connector, or of one topic."""
